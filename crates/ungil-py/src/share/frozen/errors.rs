//! What fails with frozen files, as exceptions.

use std::path::Path;

use pyo3::exceptions::{PyMemoryError, PyOSError, PyRecursionError, PyValueError};
use pyo3::prelude::*;
use ungil_frozen::Error;

/// The exception for an error of a file that is mapped, or in memory.
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::TooDeep(why) => PyRecursionError::new_err(why),
        Error::Io { error, .. }
            if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOSPC)) =>
        {
            PyMemoryError::new_err("there is no memory for the frozen copy")
        }
        Error::Io { what, error } => PyOSError::new_err((error.raw_os_error(), {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            format!("{what}: {text}")
        })),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The exception for an error of the file at `path`.
pub fn raised_at(path: &Path, error: Error) -> PyErr {
    match error {
        Error::Io { what, error } if error.raw_os_error() == Some(libc::ENOMEM) => {
            PyMemoryError::new_err(format!(
                "{}: {what} takes as many addresses as it has bytes, and the process may not have \
                 them (RLIMIT_AS, ulimit -v)",
                path.display()
            ))
        }
        Error::Io { what, error } => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            let path = path.as_os_str().to_owned();
            PyOSError::new_err((error.raw_os_error(), format!("{what}: {text}"), path))
        }
        Error::TooDeep(_) => raised(error),
        other => PyValueError::new_err(format!("{}: {other}", path.display())),
    }
}
