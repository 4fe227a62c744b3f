//! Where an item goes, if it says so.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use ungil_fanout::url;

/// The host of an item that is a URL: a string with a scheme and a host, or what has both.
pub fn host_of<'py>(item: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if let Ok(text) = item.cast::<PyString>() {
        // What cannot be encoded is no URL.
        let host = text.to_str().ok().and_then(url::host);
        return host.map(|host| PyString::new(item.py(), host).into_any());
    }
    if item.is_exact_instance_of::<PyInt>() || item.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    // Those of yarl and httpx. Other things may have a host without being one.
    let part = |name| {
        item.getattr_opt(name).ok().flatten().filter(PyAnyMethods::is_instance_of::<PyString>)
    };
    let (scheme, host) = (part(intern!(item.py(), "scheme")), part(intern!(item.py(), "host")));
    scheme.and(host)
}
