//! The steps of one item: it begins, goes on, ends or is ended.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use ungil_fanout::lean::{Refused, Waiting};

use super::connecting::meaning;
use super::coroutine::{self, Step};
use super::ending::{self, Cancelled, End, Why};
use super::run::Lean;
use super::task::Task;
use crate::clock::{now, seconds};
use crate::fanout::outcome::Outcome;

/// How long a coroutine that was cancelled may take to end, before it is left to itself.
pub const GRACE: u64 = 1_000_000_000;

impl Lean {
    /// Begins an item. Gives the time after its first step.
    pub(super) fn begin(&mut self, py: Python<'_>, outcome: Py<Outcome>) -> PyResult<u64> {
        let context = self.contexts.copy(py)?;
        let function = self.function.bind(py);
        let first = || {
            let made = function.call1((&outcome.get().item,))?;
            let iterator = coroutine::iterator(function, made)?.unbind();
            let step = coroutine::send(py, &iterator);
            Ok((iterator, step))
        };
        let begun = self.contexts.run(py, &context, first)?;
        let time = now();
        match begun {
            Ok((iterator, step)) => {
                let birth = self.tasks.place();
                if let Some(timeout) = self.timeout {
                    let deadline = outcome.get().started_at().saturating_add(timeout);
                    self.tasks.limit_time(birth, deadline);
                }
                let task = Task {
                    iterator,
                    context,
                    outcome: Some(outcome),
                    pending: None,
                    cancelled: None,
                    is_closing: false,
                };
                self.stepped(py, birth, task, step, time);
            }
            Err(error) => self.finish(py, outcome, None, Err(error), time),
        }
        Ok(time)
    }

    pub(super) fn resume(&mut self, py: Python<'_>, key: u64) -> PyResult<()> {
        let Some(mut task) = self.tasks.take(key) else { return Ok(()) };
        let pending = task.pending.take();
        let step = self.contexts.run(py, &task.context, || match pending {
            None => coroutine::send(py, &task.iterator),
            Some(exception) => coroutine::throw(py, &task.iterator, exception),
        })?;
        self.stepped(py, key, task, step, now());
        Ok(())
    }

    /// A task that was taken out of its place with `key` has made a step.
    pub(super) fn stepped(
        &mut self,
        py: Python<'_>,
        key: u64,
        mut task: Task,
        step: Step,
        time: u64,
    ) {
        let waiting = match step {
            Step::Asked(want) => self.tasks.wait_for(want, key, time).unwrap_or_else(|refused| {
                task.pending = Some(raised(refused).into_value(py));
                Waiting::Nothing
            }),
            Step::Passed => Waiting::Nothing,
            Step::Foreign(yielded) => {
                let name = coroutine::name(self.function.bind(py));
                task.pending = Some(ending::foreign(&name, yielded.bind(py)));
                Waiting::Nothing
            }
            Step::Returned(value) => return self.end(py, key, task, Ok(value), time),
            Step::Raised(error) => return self.end(py, key, task, Err(error), time),
        };
        self.tasks.pause(key, task, waiting);
    }

    pub(super) fn end(&mut self, py: Python<'_>, key: u64, task: Task, end: End, time: u64) {
        self.tasks.end(key);
        match (task.outcome, end) {
            (Some(outcome), end) => self.finish(py, outcome, task.cancelled, end, time),
            // It goes on unwatched, or closes a generator.
            (None, Err(error)) if !error.is_instance_of::<Cancelled>(py) => {
                error.write_unraisable(py, Some(self.function.bind(py)));
            }
            (None, _) => {}
        }
    }

    pub(super) fn finish(
        &mut self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        cancelled: Option<Why>,
        end: End,
        time: u64,
    ) {
        self.ended += 1;
        let dispatcher = self.dispatcher.get();
        let exception = match (cancelled, end) {
            (Some(Why::TimedOut), end) => ending::timed_out(py, self.patience(), Some(end)),
            (_, Ok(value)) => {
                dispatcher.end_well(py, outcome, value, time);
                return;
            }
            (_, Err(error)) => {
                ending::advise(py, &error);
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    self.raised = Some(error.clone_ref(py));
                    ending::cut_off(py, error)
                } else if cancelled.is_some() && error.is_instance_of::<Cancelled>(py) {
                    ending::cut_off(py, error)
                } else {
                    error.into_value(py)
                }
            }
        };
        dispatcher.end_badly(py, outcome, &exception, false, time);
    }

    pub(super) fn patience(&self) -> f64 {
        self.timeout.map_or(f64::INFINITY, seconds)
    }

    /// A task has taken too long: the first time it is cancelled, the second time given up.
    pub(super) fn is_over_time(&mut self, py: Python<'_>, birth: u64, time: u64) {
        let Some(task) = self.tasks.born(birth) else { return };
        match task.cancelled {
            None => {
                self.tasks.limit_time(birth, time + GRACE);
                self.cancel(py, birth, Why::TimedOut);
                return;
            }
            Some(Why::Closed) => return,
            Some(Why::TimedOut) => {}
        }
        let Some(outcome) = task.outcome.take() else { return };
        self.ended += 1;
        let exception = ending::timed_out(py, self.patience(), None);
        self.dispatcher.get().end_badly(py, outcome, &exception, true, time);
    }

    /// Raises [`Cancelled`] where a task waits.
    pub(super) fn cancel(&mut self, py: Python<'_>, birth: u64, why: Why) {
        let Some(task) = self.tasks.interrupt(birth) else { return };
        task.cancelled = Some(why);
        task.pending = Some(ending::cancellation(py));
    }

    pub(super) fn close_generator(
        &mut self,
        py: Python<'_>,
        generator: &Py<PyAny>,
    ) -> PyResult<()> {
        let closing = generator.call_method0(py, "aclose")?;
        let task = Task {
            iterator: closing,
            context: self.contexts.copy(py)?,
            outcome: None,
            pending: None,
            cancelled: None,
            is_closing: true,
        };
        let birth = self.tasks.place();
        self.tasks.pause(birth, task, Waiting::Nothing);
        Ok(())
    }
}

/// What is raised in a coroutine that cannot wait for what it wants.
fn raised(refused: Refused) -> PyErr {
    match refused {
        Refused::Io(error) => match error.raw_os_error() {
            Some(errno) => PyOSError::new_err((errno, meaning(errno))),
            None => error.into(),
        },
        busy => PyRuntimeError::new_err(busy.to_string()),
    }
}
