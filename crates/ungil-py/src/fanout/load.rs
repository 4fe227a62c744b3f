//! Which exceptions may come from load.

use std::iter::successors;

use pyo3::exceptions::{PyConnectionError, PyOSError, PyTimeoutError};
use pyo3::prelude::*;

/// How many exceptions of a chain are looked at: it may be a ring.
const LONGEST_CHAIN: usize = 8;

/// Whether an exception may come from load: it, or one of those that it was raised for. Libraries
/// raise errors of their own in the place of the system's.
pub fn may_be_load(exception: &Bound<'_, PyAny>) -> bool {
    let mut chain = successors(Some(exception.clone()), raised_for).take(LONGEST_CHAIN);
    chain.any(|error| says_load(&error))
}

fn raised_for<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut links = ["__cause__", "__context__"].into_iter();
    links.find_map(|link| error.getattr(link).ok().filter(|error| !error.is_none()))
}

fn says_load(error: &Bound<'_, PyAny>) -> bool {
    if error.is_instance_of::<PyTimeoutError>() || error.is_instance_of::<PyConnectionError>() {
        return true;
    }
    let errno = error
        .is_instance_of::<PyOSError>()
        .then(|| error.getattr("errno").ok()?.extract::<i32>().ok())
        .flatten();
    matches!(errno, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN))
}
