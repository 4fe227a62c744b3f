//! `Dispatcher`: hands out what may run now, and what has finished.
//!
//! The decisions are `ungil_fanout::dispatch`'s; here are the input, the clock, and the question
//! whether an exception is worth another attempt. The state is never locked while Python runs: the
//! input, the groups and `retry_if` are the user's, and may come back to us.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::backoff::Backoff;
use ungil_fanout::bucket::Bucket;
use ungil_fanout::dispatch::{Dispatch, Membership, Next};
use ungil_fanout::limit::{Driver, MOST_JITTER_NS, Opening, Outcome as Ended, Ticket};

use super::clock::{nanoseconds, now, seconds};
use super::cycles;
use super::limiter::{Limiter, host_of, kind};
use super::outcome::Outcome;

/// Timers are not finer than that, ns.
const MOMENT: u64 = 500_000;

struct State {
    dispatch: Dispatch<Py<Outcome>>,
    /// Of `limit="auto"`.
    limiter: Option<Box<Limiter>>,
    backoff: Backoff,
    /// What the input raised: it is told when everything that ran before has been handed out.
    input_error: Option<PyErr>,
    failed: u64,
    /// How many have failed in which way, by its name.
    failures: Vec<(String, u64)>,
    retried: u64,
    resumed: u64,
    most_running: usize,
    /// When whoever has asked for the pause comes back, if nothing calls them before.
    expected: Option<u64>,
}

impl State {
    /// An attempt begins.
    fn begin(&mut self, outcome: &Outcome, now: u64) {
        let mut ticket = Ticket::default();
        if let Some(limiter) = &mut self.limiter {
            ticket = limiter.started(now, outcome.membership.map(|(group, _)| group));
            self.dispatch.limit = limiter.limit();
        }
        outcome.begin(now, ticket);
        self.most_running = self.most_running.max(self.dispatch.running());
    }

    /// An attempt has ended; whoever was asked wants to be asked again after so many nanoseconds.
    fn end(&mut self, outcome: &Outcome, ended: Ended, asked: u64, now: u64) {
        self.dispatch.ended(outcome.membership);
        if let Some(limiter) = &mut self.limiter {
            let group = outcome.membership.map(|(group, _)| group);
            limiter.ended(outcome.ticket(), outcome.started_at(), now, group, (ended, asked));
            self.dispatch.limit = limiter.limit();
            if self.dispatch.most_jitter > 0 {
                self.dispatch.most_jitter = limiter.most_jitter();
            }
        }
    }

    /// What may start now, where time may have raised the limit.
    fn next(&mut self, now: u64) -> Next<Py<Outcome>> {
        if let Some(limiter) = &mut self.limiter {
            limiter.tick(now);
            self.dispatch.limit = limiter.limit();
        }
        self.dispatch.next(now)
    }

    /// When time alone lets something start.
    fn pauses_until(&mut self, now: u64) -> Option<u64> {
        let raised = self.limiter.as_mut().and_then(|limiter| limiter.due());
        self.expected = self.dispatch.pauses_until(now, raised);
        self.expected
    }

    /// Whether something may start earlier by now than when somebody comes back for it.
    fn is_due_earlier(&mut self, now: u64) -> bool {
        let expected = self.expected;
        let until = self.pauses_until(now);
        self.expected = expected;
        until.is_some_and(|until| {
            expected.is_none_or(|expected| until.saturating_add(MOMENT) < expected)
        })
    }

    fn count_failure(&mut self, name: String) {
        self.failed += 1;
        match self.failures.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((name, 1)),
        }
    }
}

/// Which items run when. One for each fan-out; the modes ask it.
///
/// Threads may share it, but only one at a time may ask for the next item, as the input is an
/// iterator.
#[pyclass(frozen, module = "ungil._native")]
pub struct Dispatcher {
    input: Option<Py<PyIterator>>,
    retries: u32,
    retry_if: Option<Py<PyAny>>,
    /// Gives `(seconds, exactly)` to wait after an exception and the number of its attempt, or None:
    /// as the backoff says. Where it is not exact, the backoff's wait is added.
    wait: Option<Py<PyAny>>,
    /// Gives `(group, most)` or None for an item.
    group: Option<Py<PyAny>>,
    /// Of `limit="auto"`, for which a URL is of the group of its host, if there is no `group`.
    adapts: bool,
    /// Gives the seconds after which whoever has caused an exception wants to be asked again, zero
    /// if it does not tell, or None if it does not say that it is too much.
    too_much: Option<Py<PyAny>>,
    /// The number of each group, as groups are whatever is hashable.
    groups: Py<PyDict>,
    /// Gives `(value,)` for an item that an earlier run has done, else None.
    resume: Option<Py<PyAny>>,
    /// Is told each outcome, before it can be taken.
    finished: Option<Py<PyAny>>,
    /// Gives the name of the way in which an exception makes an item fail; without it, that is the
    /// name of the exception.
    name: Option<Py<PyAny>>,
    state: Mutex<State>,
}

impl Dispatcher {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may run now, begun.
    pub fn start(&self, py: Python<'_>, now: u64) -> PyResult<Option<Py<Outcome>>> {
        loop {
            let next = self.state().next(now);
            let started = match next {
                Next::Run(outcome) => Some(outcome),
                Next::Wait(_) | Next::Blocked => return Ok(None),
                Next::Pull => match &self.input {
                    None => return Ok(None),
                    Some(input) => match input.bind(py).clone().next() {
                        Some(Ok(item)) => self.enter(item, now)?,
                        Some(Err(error)) => {
                            self.ended_by(error);
                            continue;
                        }
                        None => {
                            self.state().dispatch.exhausted();
                            continue;
                        }
                    },
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
        self.state().dispatch.is_ready()
    }

    /// When time alone lets something start, if that does.
    pub fn pauses_until(&self, now: u64) -> Option<u64> {
        self.state().pauses_until(now)
    }

    /// Whether whoever waits for time has to be told that it is less by now: a limit may rise, or
    /// an item be tried again, earlier than was known when they asked.
    pub fn is_due_earlier(&self, now: u64) -> bool {
        self.state().is_due_earlier(now)
    }

    /// The loop that drives the items has come late.
    pub fn late(&self, lag: std::time::Duration) {
        let mut state = self.state();
        let State { limiter: Some(limiter), dispatch, .. } = &mut *state else { return };
        limiter.lagged(now(), u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        dispatch.limit = limiter.limit();
    }

    /// The input has come to its end by an error, which is raised after all outcomes.
    pub fn ended_by(&self, error: PyErr) {
        let mut state = self.state();
        state.dispatch.exhausted();
        state.input_error.get_or_insert(error);
    }

    fn enter(&self, item: Bound<'_, PyAny>, now: u64) -> PyResult<Option<Py<Outcome>>> {
        let py = item.py();
        let (membership, value) = match self.look_at(&item) {
            Ok(known) => known,
            Err(error) => {
                // As if the input itself had raised: what runs is not lost.
                self.ended_by(error);
                return Ok(None);
            }
        };
        let index = self.state().dispatch.pulled();
        if let Some(value) = value {
            let outcome = Outcome::of_earlier_run(item.unbind(), index, now, value);
            let outcome = Py::new(py, outcome)?;
            let mut state = self.state();
            state.resumed += 1;
            state.dispatch.entered_finished(outcome);
            return Ok(None);
        }
        let outcome = Outcome::new(item.unbind(), index, now, membership);
        let outcome = Bound::new(py, outcome)?;
        cycles::leave_out(&outcome, outcome.get().item.bind(py));
        let outcome = outcome.unbind();
        Ok(self.state().dispatch.entered(outcome, membership, now))
    }

    /// The group of an item, or its value if an earlier run has done it.
    fn look_at(&self, item: &Bound<'_, PyAny>) -> PyResult<(Membership, Option<Py<PyAny>>)> {
        if let Some(resume) = &self.resume
            && let Some((value,)) = resume.bind(item.py()).call1((item,))?.extract()?
        {
            return Ok((None, Some(value)));
        }
        Ok((self.membership(item)?, None))
    }

    fn membership(&self, item: &Bound<'_, PyAny>) -> PyResult<Membership> {
        let py = item.py();
        let answer: Option<(Bound<'_, PyAny>, usize)> = match &self.group {
            Some(group) => group.bind(py).call1((item,))?.extract()?,
            None if self.adapts => host_of(item).map(|host| (host, usize::MAX)),
            None => None,
        };
        let Some((name, most)) = answer else { return Ok(None) };
        let groups = self.groups.bind(py);
        let number = if let Some(number) = groups.get_item(&name)? {
            number.extract()?
        } else {
            let number = groups.len() as u64;
            groups.set_item(&name, number)?;
            number
        };
        Ok(Some((number, most)))
    }

    pub fn end_well(&self, py: Python<'_>, outcome: Py<Outcome>, value: Py<PyAny>, now: u64) {
        cycles::watch(outcome.bind(py), value.bind(py));
        let ended = outcome.get();
        ended.succeed(value, now);
        self.tell(py, &outcome);
        let index = ended.index;
        let mut state = self.state();
        state.end(ended, Ended::Completed, 0, now);
        state.dispatch.finished(index, outcome);
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
        let (index, failures) = (ended.index, ended.attempts_so_far());
        let too_much = self.says_too_much(py, exception);
        let why = if too_much.is_some() { Ended::Overloaded } else { kind(exception.bind(py)) };
        let may_again = failures <= self.retries && !self.state().dispatch.is_stopped();
        let again = may_again.then(|| self.asks_for_another(py, exception, failures));
        let again = again.transpose().unwrap_or_else(|error| {
            // As with `group`: the item itself has come to its end all the same.
            self.ended_by(error);
            None
        });
        let again = again.flatten();
        let name = again.is_none().then(|| self.name_of(exception.bind(py)));
        if again.is_none() {
            cycles::watch(outcome.bind(py), exception.bind(py).as_any());
            ended.fail(exception.clone_ref(py), abandoned, now);
            self.tell(py, &outcome);
        }
        let mut state = self.state();
        state.end(ended, why, too_much.unwrap_or(0), now);
        if let Some(asked) = too_much {
            state.dispatch.slow_down(asked, now);
        }
        if let Some((asked, exactly)) = again {
            let wait = if exactly { 0 } else { state.backoff.wait(failures) };
            let due = now.saturating_add(asked).saturating_add(wait);
            state.retried += 1;
            let membership = ended.membership;
            state.dispatch.retry(index, outcome, membership, due);
        } else {
            state.count_failure(name.unwrap_or_default());
            state.dispatch.finished(index, outcome);
        }
    }

    /// Under which name a failure is counted.
    fn name_of(&self, exception: &Bound<'_, PyBaseException>) -> String {
        let own = self.name.as_ref().map(|name| {
            let given = name.bind(exception.py()).call1((exception,))?;
            given.extract::<String>()
        });
        own.transpose()
            .unwrap_or_else(|error| {
                // An interrupt, say, which must not be lost.
                self.ended_by(error);
                None
            })
            .unwrap_or_else(|| {
                let kind = exception.get_type();
                kind.name().map_or_else(|_| String::new(), |name| name.to_string())
            })
    }

    /// What `finished` raises ends the input: a journal that cannot be written keeps no promise.
    fn tell(&self, py: Python<'_>, outcome: &Py<Outcome>) {
        if let Some(finished) = &self.finished
            && let Err(error) = finished.bind(py).call1((outcome,))
        {
            self.ended_by(error);
        }
    }

    /// After how many nanoseconds, at least one, whoever was asked wants to be asked again, if that
    /// is what the exception says.
    fn says_too_much(&self, py: Python<'_>, exception: &Py<PyBaseException>) -> Option<u64> {
        let too_much = self.too_much.as_ref()?;
        let seconds = too_much.bind(py).call1((exception,)).and_then(|it| it.extract());
        let seconds: Option<f64> = seconds.unwrap_or_else(|error| {
            // An interrupt, say, which must not be lost.
            self.ended_by(error);
            None
        });
        seconds.map(|seconds| nanoseconds(seconds).max(1))
    }

    /// How many nanoseconds an item is to wait before it is tried again, and whether it is exactly
    /// that; `None` if it is not to be.
    fn asks_for_another(
        &self,
        py: Python<'_>,
        exception: &Py<PyBaseException>,
        failures: u32,
    ) -> PyResult<Option<(u64, bool)>> {
        if !self.is_worth_another(py, exception)? {
            return Ok(None);
        }
        let Some(wait) = &self.wait else { return Ok(Some((0, false))) };
        let asked: Option<(f64, bool)> = wait.bind(py).call1((exception, failures))?.extract()?;
        let asked = asked.map(|(seconds, exactly)| (nanoseconds(seconds), exactly));
        Ok(Some(asked.unwrap_or((0, false))))
    }

    fn is_worth_another(&self, py: Python<'_>, exception: &Py<PyBaseException>) -> PyResult<bool> {
        // SystemExit, KeyboardInterrupt and their like are no failures of a host.
        if !exception.bind(py).is_instance_of::<PyException>() {
            return Ok(false);
        }
        match &self.retry_if {
            None => Ok(true),
            Some(retry_if) => retry_if.bind(py).call1((exception,))?.is_truthy(),
        }
    }
}

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (input, *, limit, window, in_order, rate=None, retries=0, backoff=(0.0, 1.0, 0.0, 0.0), retry_if=None, wait=None, group=None, resume=None, finished=None, name=None, too_much=None, seed=1, opening=None))]
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
    ) -> Self {
        // With an opening, `limit` is the ceiling of one that adapts.
        let adapts = opening.is_some();
        let limiter = opening.map(|(opening, threads)| {
            let opening = match opening {
                "hosts" => Opening::Hosts,
                "service" => Opening::Service,
                _ => Opening::Unknown,
            };
            let driver = if threads { Driver::Threads } else { Driver::Loop };
            Box::new(Limiter::new(limit, opening, driver, now()))
        });
        let limit = limiter.as_ref().map_or(limit, |limiter| limiter.limit());
        let bucket = rate.map(|(per_second, burst)| Bucket::new(per_second, burst, now()));
        let (first, factor, most, jitter) = backoff;
        let mut dispatch = Dispatch::new(limit, window, in_order, bucket);
        if limiter.is_some() && input.is_some() {
            // Nobody would come back for an item that was put in and is put off.
            (dispatch.most_jitter, dispatch.seed) = (MOST_JITTER_NS, seed);
        }
        let state = State {
            dispatch,
            limiter,
            backoff: Backoff::new(first * 1e9, factor, most * 1e9, jitter, seed),
            input_error: None,
            failed: 0,
            failures: Vec::new(),
            retried: 0,
            resumed: 0,
            most_running: 0,
            expected: None,
        };
        let groups = PyDict::new(py).unbind();
        let state = Mutex::new(state);
        Self {
            input,
            retries,
            retry_if,
            wait,
            group,
            adapts,
            too_much,
            groups,
            resume,
            finished,
            name,
            state,
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

    /// The next item that has finished, or `None`. Raises what the input raised, at the end.
    fn take(&self) -> PyResult<Option<Py<Outcome>>> {
        let mut state = self.state();
        match state.dispatch.take() {
            Some(outcome) => Ok(Some(outcome)),
            None if state.dispatch.is_over() => state.input_error.take().map_or(Ok(None), Err),
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
        self.state().dispatch.look(now()) == Next::Pull
    }

    /// The input has come to its end, perhaps by an exception.
    #[pyo3(signature = (error=None))]
    fn close(&self, error: Option<Bound<'_, PyBaseException>>) {
        let mut state = self.state();
        state.dispatch.exhausted();
        if let Some(error) = error {
            state.input_error = Some(PyErr::from_value(error.into_any()));
        }
    }

    /// Starts nothing any more: what would still have run fails with `exception`.
    fn stop(&self, exception: &Bound<'_, PyBaseException>) {
        let (py, now) = (exception.py(), now());
        let rest = self.state().dispatch.stop();
        let name = self.name_of(exception);
        for outcome in rest {
            cycles::watch(outcome.bind(py), exception.as_any());
            outcome.get().fail(exception.clone().unbind(), false, now);
            let index = outcome.get().index;
            let mut state = self.state();
            state.count_failure(name.clone());
            state.dispatch.finished(index, outcome);
        }
    }

    /// How many run now.
    #[getter]
    pub fn running(&self) -> usize {
        self.state().dispatch.running()
    }

    /// How many may run at once.
    #[getter]
    fn limit(&self) -> usize {
        self.state().dispatch.limit
    }

    /// No more than so many can run at once: the system gives no more.
    fn lower_limit(&self, limit: usize) {
        let mut state = self.state();
        state.limiter = None;
        state.dispatch.limit = state.dispatch.limit.min(limit.max(1));
    }

    /// How many more may run now.
    #[getter]
    pub fn room(&self) -> usize {
        let state = self.state();
        state.dispatch.limit.saturating_sub(state.dispatch.running())
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
        self.state().limiter.as_ref().is_some_and(|limiter| limiter.is_in_the_dark())
    }

    /// Those that run do nothing but sleep.
    pub fn asleep(&self) {
        let mut state = self.state();
        let State { limiter: Some(limiter), dispatch, .. } = &mut *state else { return };
        limiter.asleep(now());
        dispatch.limit = limiter.limit();
    }

    /// The event loop has come so many seconds late.
    fn lagged(&self, lag: f64) {
        self.late(std::time::Duration::try_from_secs_f64(lag).unwrap_or_default());
    }

    /// What `limit="auto"` has found, in sentences; `None` for a limit that is a number.
    #[getter]
    fn found(&self) -> Option<String> {
        self.state().limiter.as_ref().map(|limiter| limiter.report())
    }

    /// Whether `pause` may ever be a time.
    #[getter]
    pub fn waits_for_time(&self) -> bool {
        let state = self.state();
        self.retries > 0 || state.dispatch.has_rate() || state.limiter.is_some()
    }

    /// Whether an item has finished that can be taken.
    #[getter]
    fn ready(&self) -> bool {
        self.state().dispatch.is_ready()
    }

    /// Whether everything that will ever run has ended.
    #[getter]
    fn ended(&self) -> bool {
        self.state().dispatch.has_ended()
    }

    /// `(came in, failed, attempts repeated, most running at once)` so far.
    #[getter]
    fn counts(&self) -> (u64, u64, u64, usize) {
        let state = self.state();
        (state.dispatch.pulled(), state.failed, state.retried, state.most_running)
    }

    /// `(came in, done, of these resumed, of these failed, attempts repeated, running, limit)`, all
    /// at one moment.
    #[getter]
    fn progress(&self) -> (u64, u64, u64, u64, u64, usize, usize) {
        let state = self.state();
        let dispatch = &state.dispatch;
        let (came_in, done) = (dispatch.pulled(), dispatch.done());
        let (running, limit) = (dispatch.running(), dispatch.limit);
        (came_in, done, state.resumed, state.failed, state.retried, running, limit)
    }

    /// How many items have failed in which way, by its name, the first one first.
    #[getter]
    fn failures(&self) -> Vec<(String, u64)> {
        self.state().failures.clone()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.input)?;
        visit.call(&self.retry_if)?;
        visit.call(&self.wait)?;
        visit.call(&self.group)?;
        visit.call(&self.resume)?;
        visit.call(&self.finished)?;
        visit.call(&self.too_much)?;
        visit.call(&self.name)?;
        visit.call(&self.groups)
    }
}
