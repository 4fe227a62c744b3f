//! `Lean`: the loop.

use std::collections::VecDeque;
use std::mem;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::timers::Timers;

use super::asyncgens::Generators;
use super::context::Contexts;
use super::coroutine::{self, Step};
use super::ending::{self, Cancelled, End, Why};
use super::hand::Driving;
use super::tasks::{Task, Tasks};
use super::waits::{Waiting, Waits};
use crate::fanout::clock::{now, seconds};
use crate::fanout::dispatcher::Dispatcher;
use crate::fanout::outcome::Outcome;

/// How long items begin before those that run have a turn.
const STARTS: u64 = 1_000_000;

/// So many outcomes are handed out although more could be done first.
const MANY: usize = 1000;

/// How long a coroutine that was cancelled may take to end, before it is left to itself.
const GRACE: u64 = 1_000_000_000;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Drives the coroutines of one fan-out: `Lean(function, dispatcher, timeout)`.
#[pyclass(subclass, weakref, module = "ungil._native")]
pub struct Lean {
    number: u64,
    /// The process that it is of: a forked child has the coroutines, but they are not its own.
    process: u32,
    function: Py<PyAny>,
    dispatcher: Py<Dispatcher>,
    timeout: Option<u64>,
    contexts: Contexts,
    generators: Generators,
    tasks: Tasks,
    /// Those that go on in the next round.
    ready: VecDeque<u64>,
    waits: Waits,
    /// When tasks have to end, by the key that they began with. All have equally long, so this is a
    /// queue.
    timeouts: Timers,
    /// What ends the fan-out.
    raised: Option<PyErr>,
    /// How many have ended since the caller last had a look.
    ended: usize,
}

impl Lean {
    fn run(&mut self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        let _driving = self.driving()?;
        let generators = self.generators.clone();
        let _watched = generators.watch(py)?;
        self.ended = 0;
        loop {
            let may_start_more = self.start(py)?;
            self.go_on(py)?;
            let is_busy = may_start_more || !self.ready.is_empty();
            let dispatcher = self.dispatcher.get();
            if self.ended >= MANY || (!is_busy && dispatcher.is_ready()) {
                return Ok(());
            }
            if is_busy {
                self.waits.look(&mut self.ready)?;
                continue;
            }
            let until = dispatcher.pauses_until(now());
            if until.is_none() && self.tasks.len() == 0 {
                return Ok(());
            }
            self.wait(py, until)?;
        }
    }

    fn driving(&self) -> PyResult<Driving> {
        Driving::begin(self.number).ok_or_else(|| {
            PyRuntimeError::new_err(
                "a fan-out inside of a coroutine of a lean fan-out would keep all its others \
                 waiting: give the outer one the items of the inner, or pass mode=\"asyncio\" \
                 and use Fanout",
            )
        })
    }

    fn check_process(&self) -> PyResult<()> {
        if process::id() == self.process {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "this fan-out belongs to process {}, which has forked this one: leave a forked child \
             with os._exit(), or use subprocess",
            self.process
        )))
    }

    /// Begins some of the items that may begin. Whether there may be more.
    fn start(&mut self, py: Python<'_>) -> PyResult<bool> {
        let mut time = now();
        let end = time + STARTS;
        while time < end {
            let Some(outcome) = self.dispatcher.get().start(py, time)? else { return Ok(false) };
            time = self.begin(py, outcome)?;
        }
        Ok(true)
    }

    /// Begins an item. Gives the time after its first step.
    fn begin(&mut self, py: Python<'_>, outcome: Py<Outcome>) -> PyResult<u64> {
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
                    self.timeouts.add(outcome.get().started_at().saturating_add(timeout), birth);
                }
                let task = Task {
                    iterator,
                    context,
                    outcome: Some(outcome),
                    waiting: Waiting::Nothing,
                    pending: None,
                    cancelled: None,
                    is_closing: false,
                    birth,
                };
                self.stepped(py, birth, task, step, time)?;
            }
            Err(error) => self.finish(py, outcome, None, Err(error), time)?,
        }
        Ok(time)
    }

    /// Lets those go on whose wait is over.
    fn go_on(&mut self, py: Python<'_>) -> PyResult<()> {
        let time = now();
        while let Some(key) = self.waits.due(time) {
            self.resume(py, key)?;
        }
        while let Some(birth) = self.timeouts.pop(time) {
            self.is_over_time(py, birth, time)?;
        }
        for generator in self.generators.take() {
            self.close_generator(py, &generator)?;
        }
        // Those that get ready meanwhile have their turn in the next round.
        for _ in 0..self.ready.len() {
            let Some(key) = self.ready.pop_front() else { break };
            self.resume(py, key)?;
        }
        match self.raised.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn wait(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<()> {
        let until = [until, self.waits.next(), self.timeouts.next()].into_iter().flatten().min();
        self.waits.wait(py, until, &mut self.ready)?;
        self.check_process()
    }

    fn resume(&mut self, py: Python<'_>, key: u64) -> PyResult<()> {
        let Some(mut task) = self.tasks.take(key) else { return Ok(()) };
        let pending = task.pending.take();
        let step = self.contexts.run(py, &task.context, || match pending {
            None => coroutine::send(py, &task.iterator),
            Some(exception) => coroutine::throw(py, &task.iterator, exception),
        })?;
        self.stepped(py, key, task, step, now())
    }

    /// A task that was taken out of its place with `key` has made a step.
    fn stepped(
        &mut self,
        py: Python<'_>,
        key: u64,
        mut task: Task,
        step: Step,
        time: u64,
    ) -> PyResult<()> {
        let next = self.tasks.next_key(key);
        task.waiting = match step {
            Step::Asked(want) => match self.waits.begin(want, next, time) {
                Ok(waiting) => waiting,
                Err(error) => {
                    task.pending = Some(error.into_value(py));
                    Waiting::Nothing
                }
            },
            Step::Passed => Waiting::Nothing,
            Step::Foreign(yielded) => {
                let name = coroutine::name(self.function.bind(py));
                task.pending = Some(ending::foreign(&name, yielded.bind(py)));
                Waiting::Nothing
            }
            Step::Returned(value) => return self.end(py, key, task, Ok(value), time),
            Step::Raised(error) => return self.end(py, key, task, Err(error), time),
        };
        if let Waiting::Nothing = task.waiting {
            self.ready.push_back(next);
        }
        self.tasks.put(key, task);
        Ok(())
    }

    fn end(&mut self, py: Python<'_>, key: u64, task: Task, end: End, time: u64) -> PyResult<()> {
        self.tasks.release(key);
        if self.timeout.is_some() {
            let tasks = &self.tasks;
            self.timeouts.forget(|birth| tasks.is_running(birth));
        }
        match (task.outcome, end) {
            (Some(outcome), end) => self.finish(py, outcome, task.cancelled, end, time),
            // It goes on unwatched, or closes a generator.
            (None, Err(error)) if !error.is_instance_of::<Cancelled>(py) => {
                error.write_unraisable(py, Some(self.function.bind(py)));
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn finish(
        &mut self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        cancelled: Option<Why>,
        end: End,
        time: u64,
    ) -> PyResult<()> {
        self.ended += 1;
        let dispatcher = self.dispatcher.get();
        let exception = match (cancelled, end) {
            (Some(Why::TimedOut), end) => ending::timed_out(py, self.patience(), Some(end)),
            (_, Ok(value)) => {
                dispatcher.end_well(outcome, value, time);
                return Ok(());
            }
            (_, Err(error)) => {
                ending::advise(py, &error);
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    self.raised = Some(error.clone_ref(py));
                }
                error.into_value(py)
            }
        };
        dispatcher.end_badly(py, outcome, exception, false, time)
    }

    fn patience(&self) -> f64 {
        self.timeout.map_or(f64::INFINITY, seconds)
    }

    /// A task has taken too long: the first time it is cancelled, the second time given up.
    fn is_over_time(&mut self, py: Python<'_>, birth: u64, time: u64) -> PyResult<()> {
        let Some((_, task)) = self.tasks.born(birth) else { return Ok(()) };
        if task.cancelled.is_none() {
            self.timeouts.add(time + GRACE, birth);
            self.cancel(py, birth, Why::TimedOut);
            return Ok(());
        }
        let Some(outcome) = task.outcome.take() else { return Ok(()) };
        self.ended += 1;
        let exception = ending::timed_out(py, self.patience(), None);
        self.dispatcher.get().end_badly(py, outcome, exception, true, time)
    }

    /// Raises [`Cancelled`] where a task waits.
    fn cancel(&mut self, py: Python<'_>, birth: u64, why: Why) {
        let Some((key, task)) = self.tasks.born(birth) else { return };
        task.cancelled = Some(why);
        task.pending = Some(ending::cancellation(py));
        let waiting = mem::replace(&mut task.waiting, Waiting::Nothing);
        let tasks = &self.tasks;
        self.waits.end(waiting, key, |key| tasks.is_current(key));
        self.ready.push_back(key);
    }

    fn close_generator(&mut self, py: Python<'_>, generator: &Py<PyAny>) -> PyResult<()> {
        let closing = generator.call_method0(py, "aclose")?;
        let birth = self.tasks.place();
        let task = Task {
            iterator: closing,
            context: self.contexts.copy(py)?,
            outcome: None,
            waiting: Waiting::Nothing,
            pending: None,
            cancelled: None,
            is_closing: true,
            birth,
        };
        self.ready.push_back(self.tasks.next_key(birth));
        self.tasks.put(birth, task);
        Ok(())
    }

    fn cancel_all(&mut self, py: Python<'_>) -> PyResult<()> {
        let _driving = self.driving()?;
        let generators = self.generators.clone();
        let _watched = generators.watch(py)?;
        for birth in self.tasks.births() {
            // What closes a generator is cleaning up already.
            if self.tasks.born(birth).is_some_and(|(_, task)| !task.is_closing) {
                self.cancel(py, birth, Why::Closed);
            }
        }
        let end = now() + GRACE;
        while !(self.tasks.len() == 0 && self.generators.is_empty()) && now() < end {
            self.go_on(py)?;
            if self.ready.is_empty() && self.tasks.len() > 0 {
                self.wait(py, Some(end))?;
            } else {
                self.waits.look(&mut self.ready)?;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Lean {
    /// What this loop is called.
    #[classattr]
    #[pyo3(name = "name")]
    const NAME: &'static str = "ungil's own loop";

    #[new]
    fn new(
        py: Python<'_>,
        function: Py<PyAny>,
        dispatcher: Py<Dispatcher>,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they saturate"
        )]
        let timeout = timeout.map(|seconds| (seconds * 1e9) as u64);
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            process: process::id(),
            function,
            dispatcher,
            timeout,
            contexts: Contexts::of_caller(py)?,
            generators: Generators::default(),
            tasks: Tasks::default(),
            ready: VecDeque::new(),
            waits: Waits::default(),
            timeouts: Timers::new(),
            raised: None,
            ended: 0,
        })
    }

    /// Runs until something has finished.
    fn advance(slf: &Bound<'_, Self>) -> PyResult<()> {
        borrowed(slf)?.run(slf.py())
    }

    /// Cancels what runs, and gives it a second to end.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let mut this = borrowed(slf)?;
        if this.check_process().is_err() {
            // To end them would say goodbye to peers in the name of the parent.
            mem::forget(this.tasks.drain());
            return Ok(());
        }
        let nothing_is_left = this.tasks.len() == 0 && this.generators.is_empty();
        let cancelled = if nothing_is_left { Ok(()) } else { this.cancel_all(py) };
        let left = this.tasks.drain();
        // What ends with them may come here.
        drop(this);
        drop(left);
        cancelled
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.dispatcher)?;
        visit.call(self.contexts.first())?;
        self.tasks.traverse(&visit)
    }

    fn __clear__(&mut self) {
        let tasks = self.tasks.drain();
        drop(tasks);
    }
}

fn borrowed<'py>(lean: &Bound<'py, Lean>) -> PyResult<PyRefMut<'py, Lean>> {
    lean.try_borrow_mut().map_err(|_| {
        PyRuntimeError::new_err(
            "this fan-out is being iterated: only one thread can do that, and none of its items",
        )
    })
}
