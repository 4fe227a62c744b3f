//! `ungil._native`: conversions between Python and the Rust parts, and nothing else.

mod hook;
mod in_process;
mod recording;

use std::path::PathBuf;

use pyo3::prelude::*;
use ungil_trace::interpreter::{self, Hookable};

/// Where the hook library is installed: beside this module.
#[pyfunction]
fn hook_path() -> PyResult<PathBuf> {
    Ok(hook::path()?)
}

/// `None` if nothing speaks against recording this program, else why not, in a sentence.
///
/// A program that is no Python is fine: the Python programs that it starts are recorded.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
fn hookable(executable: PathBuf) -> Option<String> {
    match interpreter::hookable(&executable) {
        Hookable::Yes | Hookable::NotPython => None,
        Hookable::No(why) => Some(why),
    }
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::in_process::{
        gil_install, gil_installed, gil_level, gil_policy, gil_set_level, gil_set_policy,
        gil_stats, gil_thread_stats,
    };
    #[pymodule_export]
    use super::recording::{Recorder, read_trace};
    #[pymodule_export]
    use super::{hook_path, hookable};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
