//! `Connection`: a stream socket, read and written by coroutines.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyEOFError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use ungil_fanout::reactor::Direction;

use super::connecting::{Place, belongs, os_error};
use super::hand::Want;
use super::operation::{Kind, Operation, Progress};
use super::socket;

/// How much is received at once.
const PIECE: usize = 1 << 16;

/// The longest line that is read, unless told otherwise: a peer that never ends one shall not fill
/// the memory.
const LONGEST_LINE: usize = 1 << 16;

/// A stream to another program. One item reads it at a time, and one writes it.
#[pyclass(weakref, module = "ungil.fanout")]
pub struct Connection {
    socket: Option<OwnedFd>,
    place: Place,
    /// What has arrived and was not asked for.
    unread: Vec<u8>,
    /// The loop that has it in its reactor, or 0.
    kept_by: u64,
    /// Somebody waits to read, or to write.
    is_read: bool,
    is_written: bool,
    /// Closed by the user; the socket stays until nobody waits for it.
    is_closed: bool,
    /// Whether what is written next could wait for what was written before: that is Nagle's rule.
    may_delay: bool,
    was_written: bool,
}

impl Connection {
    pub fn new(socket: OwnedFd, kept_by: u64, is_internet: bool, place: Place) -> Self {
        Self {
            socket: Some(socket),
            place,
            unread: Vec::new(),
            kept_by,
            is_read: false,
            is_written: false,
            is_closed: false,
            may_delay: is_internet,
            was_written: false,
        }
    }

    fn fd(&self) -> PyResult<RawFd> {
        match &self.socket {
            Some(socket) if !self.is_closed => Ok(socket.as_raw_fd()),
            _ => Err(self.error(libc::EBADF)),
        }
    }

    fn error(&self, errno: i32) -> PyErr {
        os_error(errno, &self.place)
    }

    fn is_waited_for(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Read => &mut self.is_read,
            Direction::Write => &mut self.is_written,
        }
    }

    /// Closes the socket if nobody waits for it, and else wakes those.
    fn release(&mut self) {
        if !self.is_read && !self.is_written {
            self.socket = None;
        } else if let Some(socket) = &self.socket {
            socket::shut_down(socket.as_raw_fd());
        }
    }

    /// Sends what goes now; gives how much of `bytes` that was.
    fn send(&mut self, bytes: &[u8]) -> PyResult<usize> {
        let fd = self.fd()?;
        // The first can wait for nothing, and most connections are written to once.
        if self.may_delay && self.was_written {
            socket::without_delay(fd);
            self.may_delay = false;
        }
        self.was_written = true;
        match socket::send(fd, bytes) {
            Ok(count) => Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(self.error(errno(&error))),
        }
    }

    fn want(&mut self, direction: Direction) -> PyResult<Want> {
        Ok(Want::Ready { fd: self.fd()?, direction, belongs: belongs(&mut self.kept_by) })
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// The right to be the one who waits for a connection in this direction.
struct Turn {
    connection: Py<Connection>,
    direction: Direction,
}

impl Turn {
    fn take(connection: &Bound<'_, Connection>, direction: Direction) -> PyResult<Self> {
        let mut inner = connection.borrow_mut();
        if std::mem::replace(inner.is_waited_for(direction), true) {
            let verb = match direction {
                Direction::Read => "reads from",
                Direction::Write => "writes to",
            };
            return Err(PyRuntimeError::new_err(format!(
                "another item {verb} {} already",
                inner.place
            )));
        }
        Ok(Self { connection: connection.clone().unbind(), direction })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Python::attach(|py| {
            let mut connection = self.connection.borrow_mut(py);
            *connection.is_waited_for(self.direction) = false;
            if connection.is_closed {
                connection.release();
            }
        });
    }
}

/// What a reader wants.
enum Until {
    /// Something, but not more than this.
    AtMost(usize),
    /// This much.
    Exactly(usize),
    /// The end of what there is.
    End,
    /// These bytes, within a limit; without them at the end what there is, if that is allowed.
    Separator { separator: Vec<u8>, limit: usize, or_end: bool },
}

impl Until {
    /// How much of what has arrived belongs to it, if that is enough. `seen` was looked at before.
    fn found(&self, arrived: &[u8], seen: usize) -> Option<usize> {
        match self {
            Self::AtMost(most) => (!arrived.is_empty()).then_some(arrived.len().min(*most)),
            Self::Exactly(count) => (*count <= arrived.len()).then_some(*count),
            Self::End => None,
            Self::Separator { separator, .. } => {
                // It may have begun in what was seen.
                let from = seen.saturating_sub(separator.len() - 1);
                let at = match separator.as_slice() {
                    [byte] => arrived[from..].iter().position(|other| other == byte),
                    several => {
                        arrived[from..].windows(several.len()).position(|part| part == several)
                    }
                };
                at.map(|at| from + at + separator.len())
            }
        }
    }
}

/// An operation that reads.
pub struct Read {
    connection: Py<Connection>,
    until: Until,
    /// How much of what has arrived was looked at in vain.
    seen: usize,
    turn: Option<Turn>,
}

impl Read {
    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let connection = self.connection.clone_ref(py).into_bound(py);
        let progress = self.read(&connection);
        match progress {
            Ok(Progress::Wait(_)) if self.turn.is_none() => {
                self.turn = Some(Turn::take(&connection, Direction::Read)?);
            }
            Ok(Progress::Wait(_)) => {}
            _ => self.turn = None,
        }
        progress
    }

    fn read(&mut self, connection: &Bound<'_, Connection>) -> PyResult<Progress> {
        let py = connection.py();
        let this = &mut *connection.borrow_mut();
        if this.is_read && self.turn.is_none() {
            return this.want(Direction::Read).map(Progress::Wait); // It is refused the turn.
        }
        if let Until::AtMost(0) | Until::Exactly(0) = self.until {
            return Ok(Progress::Done(PyBytes::new(py, b"").into_any().unbind()));
        }
        if self.seen < this.unread.len()
            && let Some(count) = self.until.found(&this.unread, self.seen)
        {
            let bytes = PyBytes::new(py, &this.unread[..count]);
            this.unread.drain(..count);
            if this.unread.is_empty() {
                this.unread = Vec::new();
            }
            return Ok(Progress::Done(bytes.into_any().unbind()));
        }
        self.seen = this.unread.len();
        // What is ready before it is registered is announced then: no need to be told `EAGAIN`.
        if this.kept_by == 0 && super::hand::driver().is_some() {
            return this.want(Direction::Read).map(Progress::Wait);
        }
        loop {
            let mut room = [MaybeUninit::<u8>::uninit(); PIECE];
            let arrived = match socket::receive(this.fd()?, &mut room) {
                Ok([]) => return self.at_end(this, py),
                Ok(arrived) => arrived,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return this.want(Direction::Read).map(Progress::Wait);
                }
                Err(error) => return Err(this.error(errno(&error))),
            };
            let before = this.unread.len();
            if before == 0
                && let Some(count) = self.until.found(arrived, 0)
            {
                let (bytes, rest) = arrived.split_at(count);
                this.unread.extend_from_slice(rest);
                return Ok(Progress::Done(PyBytes::new(py, bytes).into_any().unbind()));
            }
            this.unread.extend_from_slice(arrived);
            if let Some(count) = self.until.found(&this.unread, before) {
                let bytes = PyBytes::new(py, &this.unread[..count]);
                this.unread.drain(..count);
                return Ok(Progress::Done(bytes.into_any().unbind()));
            }
            self.seen = this.unread.len();
            if let Until::Separator { limit, .. } = self.until
                && self.seen > limit
            {
                return Err(PyValueError::new_err(format!(
                    "{} sent {} bytes without the separator that was waited for, more than \
                     limit={limit}",
                    this.place, self.seen
                )));
            }
        }
    }

    fn at_end(&self, this: &mut Connection, py: Python<'_>) -> PyResult<Progress> {
        let count = this.unread.len();
        let wanted = match &self.until {
            Until::Exactly(wanted) => format!("{wanted} bytes"),
            Until::Separator { or_end: false, separator, .. } => {
                format!("\"{}\"", separator.escape_ascii())
            }
            _ => {
                let rest = PyBytes::new(py, &std::mem::take(&mut this.unread));
                return Ok(Progress::Done(rest.into_any().unbind()));
            }
        };
        Err(PyEOFError::new_err(format!(
            "{} closed the connection after {count} bytes, before {wanted}",
            this.place
        )))
    }
}

/// An operation that writes.
pub struct Write {
    connection: Py<Connection>,
    bytes: Py<PyBytes>,
    written: usize,
    turn: Option<Turn>,
}

impl Write {
    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let connection = self.connection.clone_ref(py).into_bound(py);
        if self.turn.is_none() && connection.borrow().is_written {
            Turn::take(&connection, Direction::Write)?; // It is refused.
        }
        let progress = self.write(&connection);
        match progress {
            Ok(Progress::Wait(_)) if self.turn.is_none() => {
                self.turn = Some(Turn::take(&connection, Direction::Write)?);
            }
            Ok(Progress::Wait(_)) => {}
            _ => self.turn = None,
        }
        progress
    }

    fn write(&mut self, connection: &Bound<'_, Connection>) -> PyResult<Progress> {
        let py = connection.py();
        let this = &mut *connection.borrow_mut();
        let bytes = self.bytes.bind(py).as_bytes();
        while self.written < bytes.len() {
            let count = this.send(&bytes[self.written..])?;
            if count == 0 {
                return this.want(Direction::Write).map(Progress::Wait);
            }
            self.written += count;
        }
        Ok(Progress::Done(py.None()))
    }
}

fn reading(connection: Bound<'_, Connection>, until: Until) -> Operation {
    let connection = connection.unbind();
    Operation::new(Kind::Read(Read { connection, until, seen: 0, turn: None }))
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
    /// Raises ValueError for one longer than `limit` bytes.
    #[pyo3(signature = (*, limit = LONGEST_LINE))]
    fn read_line(slf: Bound<'_, Self>, limit: usize) -> Operation {
        let separator = b"\n".to_vec();
        reading(slf, Until::Separator { separator, limit, or_end: true })
    }

    /// Everything up to `separator`, and that. Raises EOFError if the peer ends before it, and
    /// ValueError if it does not come within `limit` bytes.
    #[pyo3(signature = (separator, /, *, limit = LONGEST_LINE))]
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
        let connection = slf.unbind();
        let bytes = bytes.unbind();
        Ok(Operation::new(Kind::Write(Write { connection, bytes, written: 0, turn: None })))
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
        Operation::new(Kind::Value(slf.into_any().unbind()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(&mut self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Operation {
        self.close();
        Operation::new(Kind::Value(py.None()))
    }

    fn __repr__(&self) -> String {
        let state = if self.is_closed { "closed connection" } else { "connection" };
        format!("<{state} to {}>", self.place)
    }
}
