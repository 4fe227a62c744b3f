//! `Dispatcher`: hands out what may run now, and what has finished.
//!
//! The decisions are [`ungil_fanout::dispatcher`]'s; here are the input and the clock. The state is
//! never locked while Python runs: the input and the functions are the user's, and may come back to
//! us.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::attempt::{After, Failure};
use ungil_fanout::auto_limit::AutoLimit;
use ungil_fanout::backoff::Backoff;
use ungil_fanout::bucket::Bucket;
use ungil_fanout::dispatch::Next;
use ungil_fanout::dispatcher::{self, Limit};
use ungil_fanout::limit::{Driver, Opening};

use super::callables::Callables;
use super::cycles;
use super::input::{Input, Pulled};
use super::load::may_be_load;
use super::outcome::Outcome;
use crate::clock::{now, processor, seconds};

/// Which items run when. One for each fan-out; the modes ask it.
///
/// Threads may share it, but only one at a time may ask for the next item, as the input may be an
/// iterator.
#[pyclass(frozen, module = "ungil._native")]
pub struct Dispatcher {
    input: Input,
    retries: u32,
    asked: Callables,
    state: Mutex<State>,
}

struct State {
    items: dispatcher::Dispatcher<Py<Outcome>>,
    /// What the input raised: it is told when everything that ran before has been handed out.
    input_error: Option<PyErr>,
    /// With what fails that would still have run, once nothing starts any more.
    stopped_by: Option<Py<PyBaseException>>,
}

impl State {
    /// An attempt begins.
    fn begin(&mut self, outcome: &Outcome, now: u64) {
        let ticket = self.items.begin(outcome.membership, now);
        outcome.begin(now, ticket);
    }

    /// The input has come to its end by an error, unless it has before.
    fn ended_by(&mut self, error: PyErr) {
        self.items.exhausted();
        self.input_error.get_or_insert(error);
    }
}

impl Dispatcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may run now, begun.
    pub fn start(&self, py: Python<'_>, now: u64) -> PyResult<Option<Py<Outcome>>> {
        loop {
            let next = self.state().items.next(now);
            let started = match next {
                Next::Run(outcome) => Some(outcome),
                Next::Wait(_) | Next::Blocked => return Ok(None),
                Next::Pull => match self.input.pull(py) {
                    Pulled::Item(item) => self.enter(item, now)?,
                    Pulled::NotYet => return Ok(None),
                    Pulled::Failed(error) => {
                        self.ended_by(error);
                        continue;
                    }
                    Pulled::Over => {
                        self.state().items.exhausted();
                        continue;
                    }
                },
            };
            if let Some(outcome) = started {
                self.state().begin(outcome.get(), now);
                return Ok(Some(outcome));
            }
        }
    }

    /// Whether something can be taken.
    pub fn is_ready(&self) -> bool {
        self.state().items.is_ready()
    }

    /// When time alone lets something start, if that does.
    pub fn pauses_until(&self, now: u64) -> Option<u64> {
        self.state().items.pauses_until(now)
    }

    /// Whether whoever waits for time has to be told that it is less by now: a limit may rise, or
    /// an item be tried again, earlier than was known when they asked.
    pub fn is_due_earlier(&self, now: u64) -> bool {
        self.state().items.is_due_earlier(now)
    }

    /// The loop that drives the items has come so many nanoseconds late.
    pub fn late(&self, lag: u64) {
        self.state().items.lagged(now(), lag);
    }

    /// The input has come to its end by an error, which is raised after all outcomes.
    pub fn ended_by(&self, error: PyErr) {
        self.state().ended_by(error);
    }

    /// The answer of one of the user's functions. What it raises ends the input, and what runs is
    /// not lost: it may be an interrupt, or a journal that cannot be written and keeps no promise.
    fn answer<T: Default>(&self, answer: PyResult<T>) -> T {
        answer.unwrap_or_else(|error| {
            self.ended_by(error);
            T::default()
        })
    }

    fn enter(&self, item: Bound<'_, PyAny>, now: u64) -> PyResult<Option<Py<Outcome>>> {
        let py = item.py();
        let resumed = match self.asked.resumed(&item) {
            Ok(resumed) => resumed,
            Err(error) => {
                self.ended_by(error);
                return Ok(None);
            }
        };
        if let Some(value) = resumed {
            let index = self.state().items.next_index();
            let outcome = Outcome::of_earlier_run(item.unbind(), index, now, value);
            let outcome = Py::new(py, outcome)?;
            self.state().items.entered_resumed(outcome);
            return Ok(None);
        }
        let membership = match self.asked.membership(&item) {
            Ok(membership) => membership,
            Err(error) => {
                self.ended_by(error);
                return Ok(None);
            }
        };
        let index = self.state().items.next_index();
        let outcome = Outcome::new(item.unbind(), index, now, membership);
        let outcome = Bound::new(py, outcome)?;
        cycles::leave_out(&outcome, outcome.get().item.bind(py));
        let outcome = outcome.unbind();
        Ok(self.state().items.entered(outcome, membership, now))
    }

    pub fn end_well(&self, py: Python<'_>, outcome: Py<Outcome>, value: Py<PyAny>, now: u64) {
        cycles::watch(outcome.bind(py), value.bind(py));
        let ended = outcome.get();
        ended.succeed(value, now);
        self.answer(self.asked.tell(outcome.bind(py)));
        let (index, attempt) = (ended.index, ended.attempt());
        self.state().items.succeeded(index, outcome, attempt, now);
    }

    pub fn end_badly(
        &self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        exception: &Py<PyBaseException>,
        abandoned: bool,
        now: u64,
    ) {
        let ended = outcome.get();
        let exception = exception.bind(py);
        let (index, attempts) = (ended.index, ended.attempts_so_far());
        let too_much = self.answer(self.asked.says_too_much(exception));
        let may_be_load = too_much.is_none() && may_be_load(exception);
        let may_again = attempts <= self.retries && !self.state().items.is_stopped();
        let again = may_again.then(|| self.answer(self.asked.another(exception, attempts)));
        let next = again.flatten().unwrap_or_else(|| {
            let name = self.name_of(exception);
            cycles::watch(outcome.bind(py), exception.as_any());
            ended.fail(exception.clone().unbind(), abandoned, now);
            self.answer(self.asked.tell(outcome.bind(py)));
            After::Never(name)
        });
        let failure = Failure { attempts, may_be_load, too_much, next };
        let attempt = ended.attempt();
        self.state().items.failed(index, outcome, attempt, failure, now);
    }

    /// What was read and has not come in does not run.
    fn give_up_stock(&self, exception: &Bound<'_, PyBaseException>) -> PyResult<()> {
        let (py, now) = (exception.py(), now());
        for item in self.input.clear() {
            let name = self.name_of(exception);
            let index = self.state().items.next_index();
            let outcome = Py::new(py, Outcome::new(item, index, now, None))?;
            fail_unrun(&outcome, exception, now);
            self.state().items.entered_failed(outcome, name);
        }
        Ok(())
    }

    /// Under which name a failure is counted.
    fn name_of(&self, exception: &Bound<'_, PyBaseException>) -> String {
        self.answer(self.asked.name_of(exception)).unwrap_or_else(|| {
            let kind = exception.get_type();
            kind.name().map_or_else(|_| String::new(), |name| name.to_string())
        })
    }
}

/// An item does not run, or not again, because of that.
fn fail_unrun(outcome: &Py<Outcome>, exception: &Bound<'_, PyBaseException>, now: u64) {
    cycles::watch(outcome.bind(exception.py()), exception.as_any());
    outcome.get().fail(exception.clone().unbind(), false, now);
}

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (input, *, limit, window, in_order, rate=None, retries=0, backoff=(0.0, 1.0, 0.0, 0.0), retry_if=None, wait=None, group=None, resume=None, finished=None, name=None, too_much=None, seed=1, opening=None, is_read_apart=false))]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a fan-out, by name")]
    fn new(
        py: Python<'_>,
        input: Option<Py<PyIterator>>,
        limit: usize,
        window: usize,
        in_order: bool,
        rate: Option<(f64, f64)>,
        retries: u32,
        backoff: (f64, f64, f64, f64),
        retry_if: Option<Py<PyAny>>,
        wait: Option<Py<PyAny>>,
        group: Option<Py<PyAny>>,
        resume: Option<Py<PyAny>>,
        finished: Option<Py<PyAny>>,
        name: Option<Py<PyAny>>,
        too_much: Option<Py<PyAny>>,
        seed: u64,
        opening: Option<(&str, bool)>,
        is_read_apart: bool,
    ) -> Self {
        // With an opening, `limit` is the ceiling of one that adapts.
        let limit = match opening {
            None => Limit::Fixed(limit),
            Some((opening, threads)) => {
                let opening = match opening {
                    "hosts" => Opening::Hosts,
                    "service" => Opening::Service,
                    _ => Opening::Unknown,
                };
                let driver = if threads { Driver::Threads } else { Driver::Loop };
                Limit::Auto(Box::new(AutoLimit::new(limit, opening, driver, processor, now())))
            }
        };
        let adapts = matches!(limit, Limit::Auto(_));
        let bucket = rate.map(|(per_second, burst)| Bucket::new(per_second, burst, now()));
        let (first, factor, most, jitter) = backoff;
        let backoff = Backoff::new(first * 1e9, factor, most * 1e9, jitter, seed);
        let mut items = dispatcher::Dispatcher::new(limit, window, in_order, bucket, backoff);
        if input.is_some() {
            // Nobody would come back for an item that was put in and does not start at once.
            items.read_ahead();
            items.put_off_starts(seed);
        }
        let groups = PyDict::new(py).unbind();
        let asked =
            Callables { retry_if, wait, group, too_much, resume, finished, name, adapts, groups };
        let input = match input {
            None => Input::Put,
            Some(iterator) if is_read_apart => Input::Read(iterator, Mutex::default()),
            Some(iterator) => Input::Iterator(iterator),
        };
        Self {
            input,
            retries,
            asked,
            state: Mutex::new(State { items, input_error: None, stopped_by: None }),
        }
    }

    /// The next to run, begun; `None` if none may start now.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<Outcome>>> {
        self.start(py, now())
    }

    /// The function returned for an item. Gives the next to run in its place.
    fn succeeded(
        &self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        value: Py<PyAny>,
    ) -> PyResult<Option<Py<Outcome>>> {
        let now = now();
        self.end_well(py, outcome, value, now);
        self.start(py, now)
    }

    /// The function raised for an item. Gives the next to run in its place.
    #[pyo3(signature = (outcome, exception, *, abandoned=false))]
    fn failed(
        &self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        exception: &Bound<'_, PyBaseException>,
        abandoned: bool,
    ) -> PyResult<Option<Py<Outcome>>> {
        let now = now();
        self.end_badly(py, outcome, exception.as_unbound(), abandoned, now);
        self.start(py, now)
    }

    /// Whoever was to run an item has not begun it, and does not. Gives the next to run in its place.
    fn given_back(
        &self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        exception: &Bound<'_, PyBaseException>,
    ) -> PyResult<Option<Py<Outcome>>> {
        outcome.get().never_began();
        self.failed(py, outcome, exception, false)
    }

    /// The next item that has finished, or `None`. Raises what the input raised, at the end.
    fn take(&self) -> PyResult<Option<Py<Outcome>>> {
        let mut state = self.state();
        match state.items.take() {
            Some(outcome) => Ok(Some(outcome)),
            None if state.items.is_over() => state.input_error.take().map_or(Ok(None), Err),
            None => Ok(None),
        }
    }

    /// An item for a dispatcher without an input, while it `wants` one. Given back to be run now.
    fn put(&self, item: Bound<'_, PyAny>) -> PyResult<Option<Py<Outcome>>> {
        let now = now();
        let started = self.enter(item, now)?;
        if let Some(outcome) = &started {
            self.state().begin(outcome.get(), now);
        }
        Ok(started)
    }

    /// Whether an item may come in now.
    #[getter]
    fn wants(&self) -> bool {
        self.state().items.wants(now())
    }

    /// Reads an item of an input that a thread of its own reads, for the stock; false at the end.
    fn read(&self, py: Python<'_>) -> PyResult<bool> {
        if self.state().items.is_stopped() {
            return Ok(false);
        }
        let has_come = self.input.read(py).unwrap_or_else(|error| {
            self.state().input_error.get_or_insert(error);
            false
        });
        // Everything may have been stopped while the input was waited for.
        let stopped_by = self.state().stopped_by.as_ref().map(|exception| exception.clone_ref(py));
        if let Some(exception) = stopped_by {
            self.give_up_stock(exception.bind(py))?;
            return Ok(false);
        }
        Ok(has_come)
    }

    /// How many items are in stock; `None` if no thread of its own reads the input.
    #[getter]
    fn in_stock(&self) -> Option<usize> {
        self.input.in_stock()
    }

    /// The input has come to its end, perhaps by an exception.
    #[pyo3(signature = (error=None))]
    fn close(&self, error: Option<Bound<'_, PyBaseException>>) {
        let mut state = self.state();
        state.items.exhausted();
        if let Some(error) = error {
            state.input_error = Some(PyErr::from_value(error.into_any()));
        }
    }

    /// Starts nothing any more: what would still have run fails with `exception`.
    fn stop(&self, exception: &Bound<'_, PyBaseException>) -> PyResult<()> {
        let now = now();
        let rest = self.state().items.stop();
        let name = self.name_of(exception);
        for outcome in rest {
            fail_unrun(&outcome, exception, now);
            let index = outcome.get().index;
            self.state().items.give_up(index, outcome, name.clone());
        }
        self.state().stopped_by.get_or_insert_with(|| exception.clone().unbind());
        self.give_up_stock(exception)
    }

    /// How many run now.
    #[getter]
    pub fn running(&self) -> usize {
        self.state().items.running()
    }

    /// How many may run at once.
    #[getter]
    fn limit(&self) -> usize {
        self.state().items.limit()
    }

    /// No more than so many can run at once: the system gives no more.
    fn lower_limit(&self, limit: usize) {
        self.state().items.lower_limit(limit);
    }

    /// How many more may run now.
    #[getter]
    pub fn room(&self) -> usize {
        self.state().items.room()
    }

    /// Seconds until time alone lets something start (a rate, a backoff), or `None`.
    #[getter]
    fn pause(&self) -> Option<f64> {
        let now = now();
        self.pauses_until(now).map(|until| seconds(until.saturating_sub(now)))
    }

    /// Whether of `limit="auto"` nothing has ended yet, the items do not say where they go, and no
    /// more may start: then somebody may look what they do.
    #[getter]
    pub fn in_the_dark(&self) -> bool {
        self.state().items.is_in_the_dark()
    }

    /// Those that run do nothing but sleep.
    pub fn asleep(&self) {
        self.state().items.asleep(now());
    }

    /// The event loop has come so many seconds late.
    fn lagged(&self, lag: f64) {
        let lag = Duration::try_from_secs_f64(lag).unwrap_or_default();
        self.late(u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What `limit="auto"` has found, in sentences; `None` for a limit that is a number.
    #[getter]
    fn found(&self) -> Option<String> {
        self.state().items.found()
    }

    /// Whether `pause` may ever be a time.
    #[getter]
    pub fn waits_for_time(&self) -> bool {
        self.retries > 0 || self.state().items.goes_by_time()
    }

    /// Whether an item has finished that can be taken.
    #[getter]
    fn ready(&self) -> bool {
        self.state().items.is_ready()
    }

    /// Whether everything that will ever run has ended.
    #[getter]
    fn ended(&self) -> bool {
        self.state().items.has_ended()
    }

    /// `(came in, failed, attempts repeated, most running at once)` so far.
    #[getter]
    fn counts(&self) -> (u64, u64, u64, usize) {
        let it = self.state().items.progress();
        (it.came_in, it.failed, it.retried, it.most_running)
    }

    /// `(came in, done, of these resumed, of these failed, attempts repeated, running, limit)`, all
    /// at one moment.
    #[getter]
    fn progress(&self) -> (u64, u64, u64, u64, u64, usize, usize) {
        let it = self.state().items.progress();
        (it.came_in, it.done, it.resumed, it.failed, it.retried, it.running, it.limit)
    }

    /// How many items have failed in which way, by its name, the first one first.
    #[getter]
    fn failures(&self) -> Vec<(String, u64)> {
        self.state().items.failures().to_vec()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.input.traverse(&visit)?;
        self.asked.traverse(&visit)
    }
}
