//! Handles: what is pickled of a shared object.
//!
//! A handle says where its heap is found and which object of it is meant, in plain numbers: nothing
//! is ever unpickled to use one. The object lives at least until the handle was used once, or its
//! maker has ended ([`ungil_heap::pin`]).

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::{PyReferenceError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ungil_heap::Error;
use ungil_heap::pin::Pin;

use super::errors::raised;
use super::{attached, proxy};

/// Why something has no handle.
const NOT_SHARED: &str = "this is not a shared object yet: put it into a heap, and pickle the \
                          object that the heap returns";
/// Bytes of a handle: the heap's uuid, and the fields of a [`Pin`] in their order.
const SIZE: usize = 16 + 8 + 4 + 4 + 4 + 8;

/// Whether something is a proxy: a struct or a lock may not be shared yet.
#[pyfunction]
#[pyo3(signature = (given, /))]
pub fn is_shared(given: &Bound<'_, PyAny>) -> bool {
    proxy::hold(given).is_some()
}

/// Makes a handle of the object that a proxy stands for: where the heap is, and which object it is.
#[pyfunction]
pub fn send_handle<'py>(proxy: &Bound<'py, PyAny>) -> PyResult<(OsString, Bound<'py, PyBytes>)> {
    let held = proxy::hold(proxy).and_then(|hold| Some((&hold.shared, hold.root()?)));
    let (shared, root) = held.ok_or_else(|| PyTypeError::new_err(NOT_SHARED))?;
    let place = shared.place()?.into_os_string();
    let pin = shared.heap.pin(root).map_err(raised)?;
    attached::stay(shared);
    let mut bytes = Vec::with_capacity(SIZE);
    bytes.extend(shared.heap.uuid().to_le_bytes());
    bytes.extend((pin.at as u64).to_le_bytes());
    for number in [pin.serial, pin.slot, pin.index] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(pin.nonce.to_le_bytes());
    Ok((place, PyBytes::new(proxy.py(), &bytes)))
}

/// The proxy of the object that a handle means. The process is attached to its heap, if need be.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn receive_handle<'py>(
    py: Python<'py>,
    place: PathBuf,
    handle: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let (uuid, pin) = parse(handle)
        .ok_or_else(|| PyValueError::new_err("this is not a handle of a shared object"))?;
    let shared = attached::find(uuid, &place)?;
    match shared.heap.adopt(&pin) {
        Ok(root) => shared.proxy(py, root),
        Err(Error::Stale) => Err(PyReferenceError::new_err(
            "the object of this handle no longer exists: no process holds it, and the sender of \
             the handle has ended, or another process has used the handle before",
        )),
        Err(error) => Err(raised(error)),
    }
}

fn parse(handle: &[u8]) -> Option<(u128, Pin)> {
    if handle.len() != SIZE {
        return None;
    }
    let (uuid, rest) = handle.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (serial, rest) = rest.split_first_chunk()?;
    let (slot, rest) = rest.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let nonce = rest.first_chunk()?;
    let pin = Pin {
        at: usize::try_from(u64::from_le_bytes(*at)).ok()?,
        serial: u32::from_le_bytes(*serial),
        slot: u32::from_le_bytes(*slot),
        index: u32::from_le_bytes(*index),
        nonce: u64::from_le_bytes(*nonce),
    };
    Some((u128::from_le_bytes(*uuid), pin))
}
