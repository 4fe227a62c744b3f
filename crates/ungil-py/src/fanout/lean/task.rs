//! A coroutine that the loop drives.

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::ending::Why;
use crate::fanout::outcome::Outcome;

/// A coroutine that has begun and not ended.
pub struct Task {
    pub iterator: Py<PyAny>,
    pub context: Py<PyAny>,
    /// The item that it runs for. None if nobody is interested in its end.
    pub outcome: Option<Py<Outcome>>,
    /// What is raised in it when it goes on.
    pub pending: Option<Py<PyBaseException>>,
    /// Why it was cancelled, if it was.
    pub cancelled: Option<Why>,
    /// It closes an asynchronous generator.
    pub is_closing: bool,
}

impl Task {
    /// For the collector of cycles.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.iterator)?;
        visit.call(&self.context)?;
        visit.call(&self.outcome)?;
        visit.call(&self.pending)
    }
}
