//! Reading from a connection and writing to it.

use pyo3::exceptions::{PyEOFError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ungil_fanout::lean::stream::{ReadError, Stream};
use ungil_fanout::lean::until::Until;
use ungil_fanout::lean::{Direction, Progress};

use super::connecting::Place;
use super::connection::Connection;
use super::operation;

/// The right to be the one who waits for a connection in this direction.
struct Turn {
    connection: Py<Connection>,
    direction: Direction,
}

impl Drop for Turn {
    fn drop(&mut self) {
        Python::attach(|py| {
            self.connection.get().stream.with(py, |stream| stream.leave(self.direction));
        });
    }
}

/// Ends an operation that another's wait is in the way of.
fn is_taken(place: &Place, direction: Direction) -> PyErr {
    let verb = match direction {
        Direction::Read => "reads from",
        Direction::Write => "writes to",
    };
    PyRuntimeError::new_err(format!("another item {verb} {place} already"))
}

/// Takes a step of an operation, of which only one may wait at a time.
fn in_turn(
    turn: &mut Option<Turn>,
    connection: &Bound<'_, Connection>,
    direction: Direction,
    step: impl FnOnce(&Connection, &mut Stream) -> PyResult<operation::Progress>,
) -> PyResult<operation::Progress> {
    let inner = connection.get();
    let has_turn = turn.is_some();
    let progress = inner.stream.with(connection.py(), |stream| {
        if !has_turn && stream.is_waited_for(direction) {
            return Err(is_taken(&inner.place, direction));
        }
        let progress = step(inner, stream);
        if !has_turn && matches!(progress, Ok(Progress::Wait(_))) {
            stream.enter(direction);
        }
        progress
    });
    match progress {
        Ok(Progress::Wait(_)) => {
            turn.get_or_insert_with(|| Turn { connection: connection.clone().unbind(), direction });
        }
        _ => *turn = None,
    }
    progress
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
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<operation::Progress> {
        let Self { connection, until, seen, turn } = self;
        in_turn(turn, connection.bind(py), Direction::Read, |connection, stream| {
            let give = |bytes: &[u8]| PyBytes::new(py, bytes).into_any().unbind();
            let read = stream.read(until, seen, give);
            read.map_err(|error| unread(connection, error))
        })
    }
}

fn unread(connection: &Connection, error: ReadError) -> PyErr {
    let place = &connection.place;
    match error {
        ReadError::Io(error) => connection.error(&error),
        ReadError::Ended(what) => {
            PyEOFError::new_err(format!("{place} has closed the connection {what}"))
        }
        ReadError::TooLong { arrived, limit } => PyValueError::new_err(format!(
            "{place} has sent {arrived} bytes without the separator: that is more than \
             limit={limit}"
        )),
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
    pub fn new(connection: Py<Connection>, bytes: Py<PyBytes>) -> Self {
        Self { connection, bytes, written: 0, turn: None }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<operation::Progress> {
        let Self { connection, bytes, written, turn } = self;
        in_turn(turn, connection.bind(py), Direction::Write, |connection, stream| {
            let bytes = bytes.bind(py).as_bytes();
            match stream.write(bytes, written) {
                Ok(Progress::Done(())) => Ok(Progress::Done(py.None())),
                Ok(Progress::Wait(want)) => Ok(Progress::Wait(want)),
                Err(error) => Err(connection.error(&error)),
            }
        })
    }
}
