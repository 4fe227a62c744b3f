//! The policy of another process, through its control page.

use std::ffi::OsString;
use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use ungil_control::{NoPage, Page, files};
use ungil_core::request::Request;
use ungil_core::schedule::{Policy, Settings};

use crate::attaching;

create_exception!(
    ungil._native,
    WithoutPolicy,
    PyRuntimeError,
    "The process has no policy, and may be given one on one of its own threads."
);
create_exception!(
    ungil._native,
    StillStarting,
    PyRuntimeError,
    "The process may be about to get a policy."
);

/// The policy of a running process and its quantum in nanoseconds.
#[pyfunction]
pub fn process_policy(pid: u32) -> PyResult<(&'static str, u64)> {
    Ok(shown(page(pid)?.control().settings()))
}

/// Changes the policy of a running process and returns what it was; a quantum of 0 nanoseconds is
/// the policy's own.
#[pyfunction]
pub fn set_process_policy(
    py: Python<'_>,
    pid: u32,
    policy: &str,
    quantum_ns: u64,
) -> PyResult<(&'static str, u64)> {
    let policy: Policy = policy
        .parse()
        .map_err(|_| PyValueError::new_err(format!("there is no policy {policy:?}")))?;
    let quantum_ns = if quantum_ns == 0 { policy.quantum_ns() } else { quantum_ns };
    let page = page(pid)?;
    let before = page.control().settings();
    let settings = Settings { policy, quantum_ns };
    if page.is_standby() {
        attaching::ask(py, pid, &Request::schedule(settings))?;
    }
    page.control().set_settings(settings);
    Ok(shown(before))
}

/// The path of the mark that this process may have, as `ungil run`.
#[pyfunction]
pub fn mark_path() -> io::Result<String> {
    files::mark_path()
}

/// Removes the control pages and the marks that killed processes of this user have left; where they
/// were, and how many bytes they took.
#[pyfunction]
pub fn remove_stale_pages() -> Vec<(OsString, u64)> {
    files::remove_stale().into_iter().map(|(path, bytes)| (path.into_os_string(), bytes)).collect()
}

fn page(pid: u32) -> PyResult<Page> {
    Page::of(pid).map_err(|why| match why {
        NoPage::Never(why) => PyRuntimeError::new_err(why),
        NoPage::Without(why) => WithoutPolicy::new_err(why),
        NoPage::NotYet(why) => StillStarting::new_err(why),
        NoPage::Unknown(error) => error.into(),
    })
}

fn shown(settings: Settings) -> (&'static str, u64) {
    (settings.policy.name(), settings.quantum_ns)
}
