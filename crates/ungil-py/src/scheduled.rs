//! How a program starts with a policy: what it is preloaded with, and whether it can be scheduled.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ungil_control::hookable::{self, Hookable};
use ungil_control::preload::{lasting_links, preload};
use ungil_control::signals;
use ungil_core::schedule::{Level, Policy};

use crate::hook;

/// The names of all policies.
pub fn policies() -> Vec<&'static str> {
    Policy::ALL.into_iter().map(Policy::name).collect()
}

/// The names of all levels, lowest first.
pub fn levels() -> Vec<&'static str> {
    Level::ALL.into_iter().map(Level::name).collect()
}

/// The value of `LD_PRELOAD` with the hook in front of what `others`, its value so far, loads; if it
/// is to be `written` somewhere, one that nothing completes on its way.
#[pyfunction]
#[pyo3(signature = (others, *, written = false))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn preload_value(others: Option<OsString>, written: bool) -> PyResult<OsString> {
    let hook = hook::path()?;
    let value = preload(&hook, others.as_deref(), written, || lasting_links(&hook));
    value.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        _ => error.into(),
    })
}

/// `None` if nothing speaks against scheduling this program, else what does, in a sentence, and
/// whether the hook can be preloaded into it all the same, and whether it surely runs unscheduled.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn unscheduled(executable: PathBuf) -> Option<(String, bool, bool)> {
    match hookable::program(&executable) {
        Hookable::Yes | Hookable::NotPython { .. } => None,
        Hookable::FreeThreaded(why) => Some((why, true, false)),
        Hookable::NotScheduled(why) => Some((why, true, true)),
        Hookable::No(why) => Some((why, false, true)),
    }
}

/// Undoes what Python does to signals when it starts and exec would pass on: ignoring SIGPIPE and
/// SIGXFSZ.
#[pyfunction]
pub fn restore_signals() {
    signals::restore_signals();
}
