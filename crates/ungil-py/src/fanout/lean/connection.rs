//! `Connection`: a stream socket, read and written by coroutines.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use ungil_fanout::reactor::Direction;

use super::connecting::{Place, belongs, os_error};
use super::hand::Want;
use super::operation::{Kind, Operation};
use super::socket;
use super::transfer::{Read, Until, Write};
use super::unread::Unread;

/// Whether the system lets what is written wait for the answer to what was written before.
enum Nagle {
    /// There is nothing before. Most connections are written to once, and need no system call.
    Idle,
    On,
    Off,
}

/// A stream to another program. One item reads it at a time, and one writes it.
#[pyclass(weakref, module = "ungil.fanout")]
pub struct Connection {
    socket: Option<OwnedFd>,
    pub place: Place,
    pub unread: Unread,
    /// The loop that has it in its reactor, or 0.
    kept_by: u64,
    /// Somebody waits to read, or to write.
    is_read: bool,
    is_written: bool,
    /// Closed by the user; the socket stays until nobody waits for it.
    is_closed: bool,
    nagle: Nagle,
}

impl Connection {
    pub fn new(socket: OwnedFd, kept_by: u64, is_internet: bool, place: Place) -> Self {
        Self {
            socket: Some(socket),
            place,
            unread: Unread::default(),
            kept_by,
            is_read: false,
            is_written: false,
            is_closed: false,
            nagle: if is_internet { Nagle::Idle } else { Nagle::Off },
        }
    }

    /// The descriptor, as long as the user has not closed it.
    pub fn fd(&self) -> PyResult<RawFd> {
        match &self.socket {
            Some(socket) if !self.is_closed => Ok(socket.as_raw_fd()),
            _ => Err(os_error(libc::EBADF, &self.place)),
        }
    }

    /// The exception for what the system says.
    pub fn error(&self, error: &io::Error) -> PyErr {
        os_error(error.raw_os_error().unwrap_or(libc::EIO), &self.place)
    }

    /// Whether somebody waits for it.
    pub fn is_waited_for(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Read => &mut self.is_read,
            Direction::Write => &mut self.is_written,
        }
    }

    /// Whoever waited for it does so no more.
    pub fn is_left(&mut self, direction: Direction) {
        *self.is_waited_for(direction) = false;
        if self.is_closed {
            self.release();
        }
    }

    /// Whether no loop has it in its reactor.
    pub fn is_new(&self) -> bool {
        self.kept_by == 0
    }

    /// To wait until it is ready.
    pub fn want(&mut self, direction: Direction) -> PyResult<Want> {
        Ok(Want::Ready { fd: self.fd()?, direction, belongs: belongs(&mut self.kept_by) })
    }

    /// Sends what goes now; says how much of `bytes` that was.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(fd) = self.fd() else { return Err(io::Error::from_raw_os_error(libc::EBADF)) };
        match self.nagle {
            Nagle::Idle => self.nagle = Nagle::On,
            Nagle::On => {
                socket::without_delay(fd);
                self.nagle = Nagle::Off;
            }
            Nagle::Off => {}
        }
        socket::send(fd, bytes)
    }

    /// Closes the socket if nobody waits for it, and else wakes those who do.
    fn release(&mut self) {
        if !self.is_read && !self.is_written {
            self.socket = None;
        } else if let Some(socket) = &self.socket {
            socket::shut_down(socket.as_raw_fd());
        }
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
    /// Raises ValueError for one longer than `limit` bytes: a peer that never ends a line shall not
    /// fill the memory.
    #[pyo3(signature = (*, limit = 65_536))]
    fn read_line(slf: Bound<'_, Self>, limit: usize) -> Operation {
        let separator = b"\n".to_vec();
        reading(slf, Until::Separator { separator, limit, or_end: true })
    }

    /// Everything up to `separator`, and that. Raises EOFError if the peer ends before it, and
    /// ValueError if it does not come within `limit` bytes.
    #[pyo3(signature = (separator, /, *, limit = 65_536))]
    fn read_until(slf: Bound<'_, Self>, separator: Vec<u8>, limit: usize) -> PyResult<Operation> {
        if separator.is_empty() {
            return Err(PyValueError::new_err("read_until(b\"\"): there is nothing to wait for"));
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
    pub fn close(&mut self) {
        self.is_closed = true;
        self.release();
    }

    /// Whether it was closed on this side.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed
    }

    /// The number of its descriptor.
    fn fileno(&self) -> PyResult<RawFd> {
        self.fd()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Operation {
        Operation::known(slf.into_any().unbind())
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&mut self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Operation {
        self.close();
        Operation::known(py.None())
    }

    fn __repr__(&self) -> String {
        let state = if self.is_closed { "closed connection" } else { "connection" };
        format!("<{state} to {}>", self.place)
    }
}
