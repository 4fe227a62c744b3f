//! `Connection`: a stream socket, read and written by coroutines.

use std::io;
use std::os::fd::RawFd;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use ungil_fanout::lean::stream::Stream;
use ungil_fanout::lean::until::Until;

use super::connecting::{Place, os_error};
use super::operation::{Kind, Operation};
use super::transfer::{Read, Write};
use crate::guarded::Guarded;

/// A stream to another program. One item reads it at a time, and one writes it.
#[pyclass(frozen, weakref, module = "ungil.fanout")]
pub struct Connection {
    pub stream: Guarded<Stream>,
    pub place: Place,
}

impl Connection {
    pub fn new(stream: Stream, place: Place) -> Self {
        Self { stream: Guarded::new(stream), place }
    }

    /// The exception for what the system says.
    pub fn error(&self, error: &io::Error) -> PyErr {
        os_error(error.raw_os_error().unwrap_or(libc::EIO), &self.place)
    }
}

fn reading(connection: Bound<'_, Connection>, until: Until) -> Operation {
    let connection = connection.unbind();
    Operation::new(Kind::Read(Read::new(connection, until)))
}

#[pymethods]
impl Connection {
    /// What has arrived, at most `n` bytes of it, as soon as there is something; `b""` at the end.
    /// Without `n`, everything up to the end.
    #[pyo3(signature = (n = None, /))]
    fn read(slf: Bound<'_, Self>, n: Option<usize>) -> Operation {
        reading(slf, n.map_or(Until::End, Until::AtMost))
    }

    /// `n` bytes. Raises EOFError if the peer ends before them.
    #[pyo3(signature = (n, /))]
    fn read_exactly(slf: Bound<'_, Self>, n: usize) -> Operation {
        reading(slf, Until::Exactly(n))
    }

    /// A line with its end, `b"\n"`. What the last one lacks of it is not added; `b""` at the end.
    /// Raises ValueError for one longer than `limit` bytes: a peer that never ends a line must not
    /// fill the memory.
    #[pyo3(signature = (*, limit = 65_536))]
    fn read_line(slf: Bound<'_, Self>, limit: usize) -> Operation {
        let separator = b"\n".to_vec();
        reading(slf, Until::Separator { separator, limit, or_end: true })
    }

    /// Everything up to and including `separator`. Raises EOFError if the peer ends before it, and
    /// ValueError if it does not come within `limit` bytes.
    #[pyo3(signature = (separator, /, *, limit = 65_536))]
    fn read_until(slf: Bound<'_, Self>, separator: Vec<u8>, limit: usize) -> PyResult<Operation> {
        if separator.is_empty() {
            return Err(PyValueError::new_err(
                "read_until(b\"\"): the separator must not be empty",
            ));
        }
        Ok(reading(slf, Until::Separator { separator, limit, or_end: false }))
    }

    /// Sends all of `data`. Comes back when the system has it, which says nothing of the peer.
    #[pyo3(signature = (data, /))]
    fn write(slf: Bound<'_, Self>, data: &Bound<'_, PyAny>) -> PyResult<Operation> {
        let bytes = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => PyBytes::new(slf.py(), &PyBuffer::<u8>::get(data)?.to_vec(slf.py())?),
        };
        Ok(Operation::new(Kind::Write(Write::new(slf.unbind(), bytes.unbind()))))
    }

    /// Closes the connection. Whoever waits for it gets an OSError.
    pub fn close(&self, py: Python<'_>) {
        self.stream.with(py, Stream::close);
    }

    /// Whether it was closed on this side.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.stream.with(py, |stream| stream.is_closed())
    }

    /// The number of its descriptor.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.stream.with(py, |stream| stream.fd()).map_err(|error| self.error(&error))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Operation {
        Operation::known(slf.into_any().unbind())
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Operation {
        self.close(py);
        Operation::known(py.None())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.closed(py) { "closed connection" } else { "connection" };
        format!("<{state} to {}>", self.place)
    }
}
