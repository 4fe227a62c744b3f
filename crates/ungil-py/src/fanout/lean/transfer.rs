//! Reading from a connection and writing to it.

use std::io;
use std::mem::MaybeUninit;

use pyo3::exceptions::{PyEOFError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ungil_fanout::reactor::Direction;

use super::connection::Connection;
use super::hand::{self, Want};
use super::operation::Progress;
use super::socket;

/// How much is received at once.
const PIECE: usize = 1 << 16;

/// So many pieces are received or sent before others have their turn.
const PIECES: usize = 16;

/// The right to be the one who waits for a connection in this direction.
struct Turn {
    connection: Py<Connection>,
    direction: Direction,
}

impl Turn {
    /// Ends an operation that another's wait is in the way of.
    fn check(connection: &Bound<'_, Connection>, direction: Direction) -> PyResult<()> {
        let mut inner = connection.borrow_mut();
        if !*inner.is_waited_for(direction) {
            return Ok(());
        }
        let verb = match direction {
            Direction::Read => "reads from",
            Direction::Write => "writes to",
        };
        Err(PyRuntimeError::new_err(format!("another item {verb} {} already", inner.place)))
    }

    fn take(connection: &Bound<'_, Connection>, direction: Direction) -> Self {
        *connection.borrow_mut().is_waited_for(direction) = true;
        Self { connection: connection.clone().unbind(), direction }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Python::attach(|py| self.connection.borrow_mut(py).is_left(self.direction));
    }
}

/// Takes a step of an operation, of which only one may wait at a time.
fn in_turn<'py>(
    turn: &mut Option<Turn>,
    connection: &Bound<'py, Connection>,
    direction: Direction,
    step: impl FnOnce(&mut Connection, Python<'py>) -> PyResult<Progress>,
) -> PyResult<Progress> {
    if turn.is_none() {
        Turn::check(connection, direction)?;
    }
    let progress = step(&mut connection.borrow_mut(), connection.py());
    match progress {
        Ok(Progress::Wait(_)) => {
            turn.get_or_insert_with(|| Turn::take(connection, direction));
        }
        _ => *turn = None,
    }
    progress
}

/// What a reader wants.
pub enum Until {
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
            Self::AtMost(0) => Some(0),
            Self::AtMost(most) => (!arrived.is_empty()).then_some(arrived.len().min(*most)),
            Self::Exactly(count) => (*count <= arrived.len()).then_some(*count),
            Self::End => None,
            Self::Separator { separator, .. } => {
                // It may have begun in what was seen.
                let from = seen.saturating_sub(separator.len() - 1);
                let rest = &arrived[from..];
                let at = match separator.as_slice() {
                    [byte] => rest.iter().position(|other| other == byte),
                    several => rest.windows(several.len()).position(|part| part == several),
                };
                at.map(|at| from + at + separator.len())
            }
        }
    }

    /// What is given for what has arrived before the end, if that will do.
    fn is_found_by_end(&self, arrived: usize) -> Result<(), String> {
        match self {
            Self::Exactly(wanted) => Err(format!("after {arrived} of {wanted} bytes")),
            Self::Separator { or_end: false, separator, .. } => {
                Err(format!("after {arrived} bytes without \"{}\"", separator.escape_ascii()))
            }
            _ => Ok(()),
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
    pub fn new(connection: Py<Connection>, until: Until) -> Self {
        Self { connection, until, seen: 0, turn: None }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let Self { connection, until, seen, turn } = self;
        in_turn(turn, connection.bind(py), Direction::Read, |connection, py| {
            read(connection, until, seen, py)
        })
    }
}

fn read(
    connection: &mut Connection,
    until: &Until,
    seen: &mut usize,
    py: Python<'_>,
) -> PyResult<Progress> {
    let fd = connection.fd()?;
    if let Some(count) = until.found(connection.unread.as_slice(), *seen) {
        return Ok(taken(connection, count, py));
    }
    *seen = connection.unread.len();
    // What is ready before it is registered is announced then: no need to be told `EAGAIN`.
    if connection.is_new() && hand::driver().is_some() {
        return connection.want(Direction::Read).map(Progress::Wait);
    }
    for _ in 0..PIECES {
        let mut room = [MaybeUninit::<u8>::uninit(); PIECE];
        let arrived = match socket::receive(fd, &mut room) {
            Ok([]) => {
                let count = connection.unread.len();
                return match until.is_found_by_end(count) {
                    Ok(()) => Ok(taken(connection, count, py)),
                    Err(what) => Err(PyEOFError::new_err(format!(
                        "{} has closed the connection {what}",
                        connection.place
                    ))),
                };
            }
            Ok(arrived) => arrived,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return connection.want(Direction::Read).map(Progress::Wait);
            }
            Err(error) => return Err(connection.error(&error)),
        };
        if *seen == 0
            && let Some(count) = until.found(arrived, 0)
        {
            let (bytes, rest) = arrived.split_at(count);
            if !rest.is_empty() {
                connection.unread.add(rest);
            }
            return Ok(Progress::Done(PyBytes::new(py, bytes).into_any().unbind()));
        }
        connection.unread.add(arrived);
        if let Some(count) = until.found(connection.unread.as_slice(), *seen) {
            return Ok(taken(connection, count, py));
        }
        *seen = connection.unread.len();
        if let Until::Separator { limit, .. } = until
            && *seen > *limit
        {
            return Err(PyValueError::new_err(format!(
                "{} has sent {seen} bytes without the end that was waited for: more than \
                 limit={limit}",
                connection.place
            )));
        }
    }
    Ok(Progress::Wait(Want::Sleep(0)))
}

fn taken(connection: &mut Connection, count: usize, py: Python<'_>) -> Progress {
    let bytes = PyBytes::new(py, &connection.unread.as_slice()[..count]);
    connection.unread.take(count);
    Progress::Done(bytes.into_any().unbind())
}

/// An operation that writes.
pub struct Write {
    connection: Py<Connection>,
    bytes: Py<PyBytes>,
    written: usize,
    turn: Option<Turn>,
}

impl Write {
    pub fn new(connection: Py<Connection>, bytes: Py<PyBytes>) -> Self {
        Self { connection, bytes, written: 0, turn: None }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let Self { connection, bytes, written, turn } = self;
        in_turn(turn, connection.bind(py), Direction::Write, |connection, py| {
            let bytes = bytes.bind(py).as_bytes();
            for _ in 0..PIECES {
                let rest = &bytes[*written..];
                if rest.is_empty() {
                    return Ok(Progress::Done(py.None()));
                }
                match connection.send(rest) {
                    Ok(count) => *written += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return connection.want(Direction::Write).map(Progress::Wait);
                    }
                    Err(error) => return Err(connection.error(&error)),
                }
            }
            Ok(Progress::Wait(Want::Sleep(0)))
        })
    }
}
