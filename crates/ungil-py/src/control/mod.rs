//! The policy of another process, through its control page.

mod files;
mod mapping;
mod no_page;
mod page;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ungil_core::schedule::{Policy, Settings};

pub use files::{mark_path, remove_stale_pages};
pub use no_page::StillStarting;
use page::Page;

/// The policy of a running process and its quantum in nanoseconds.
#[pyfunction]
pub fn process_policy(pid: u32) -> PyResult<(&'static str, u64)> {
    Ok(shown(Page::of(pid)?.control().settings()))
}

/// Changes the policy of a running process and returns what it was; a quantum of 0 nanoseconds is
/// the policy's own.
#[pyfunction]
pub fn set_process_policy(
    pid: u32,
    policy: &str,
    quantum_ns: u64,
) -> PyResult<(&'static str, u64)> {
    let policy: Policy = policy
        .parse()
        .map_err(|_| PyValueError::new_err(format!("there is no policy {policy:?}")))?;
    let quantum_ns = if quantum_ns == 0 { policy.quantum_ns() } else { quantum_ns };
    let page = Page::of(pid)?;
    let before = page.control().settings();
    page.control().set_settings(Settings { policy, quantum_ns });
    Ok(shown(before))
}

fn shown(settings: Settings) -> (&'static str, u64) {
    (settings.policy.name(), settings.quantum_ns)
}
