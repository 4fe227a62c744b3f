//! `Lean`: the loop.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::lean::EventLoop;
use ungil_fanout::lean::hand::{self, Driving};
use ungil_fanout::lean::lag::Lag;

use super::asyncgens::Generators;
use super::context::Contexts;
use super::ending::Why;
use super::steps::GRACE;
use super::task::Task;
use crate::clock::{nanoseconds, now};
use crate::fanout::dispatcher::Dispatcher;

/// How long items begin before those that run have a turn.
const STARTS: u64 = 1_000_000;

/// So many outcomes are handed out although more could be done first.
const MANY: usize = 1000;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Drives the coroutines of one fan-out: `Lean(function, dispatcher, timeout)`.
#[pyclass(subclass, weakref, module = "ungil._native")]
pub struct Lean {
    pub(super) number: u64,
    /// The process that it is of: a forked child has the coroutines, but they are not its own.
    pub(super) process: u32,
    pub(super) function: Py<PyAny>,
    pub(super) dispatcher: Py<Dispatcher>,
    pub(super) timeout: Option<u64>,
    pub(super) contexts: Contexts,
    pub(super) generators: Generators,
    pub(super) tasks: EventLoop<Task>,
    /// What ends the fan-out.
    pub(super) raised: Option<PyErr>,
    /// How many have ended since the caller last had a look.
    pub(super) ended: usize,
    lag: Lag,
}

impl Lean {
    fn run(&mut self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        if hand::driver().is_some() {
            return Err(PyRuntimeError::new_err(
                "a fan-out inside a coroutine of a lean fan-out would block all other coroutines: \
                 give the outer fan-out the items of the inner one, or use Fanout on asyncio",
            ));
        }
        let _driving = Driving::begin(self.number);
        let generators = self.generators.clone();
        let _watched = generators.watch(py)?;
        self.ended = 0;
        let mut begun = now();
        loop {
            let may_start_more = self.start(py)?;
            self.go_on(py)?;
            // What happened at the beginning of the round is seen now.
            let dispatcher = self.dispatcher.get();
            if let Some(lag) = self.lag.note(begun, now()) {
                dispatcher.late(lag);
            }
            if !may_start_more && dispatcher.in_the_dark() && self.tasks.all_sleep() {
                dispatcher.asleep();
                continue;
            }
            let is_busy = may_start_more || self.tasks.ready() > 0;
            if self.ended >= MANY || (!is_busy && dispatcher.is_ready()) {
                return Ok(());
            }
            if is_busy {
                begun = now();
                self.look()?;
                continue;
            }
            let until = dispatcher.pauses_until(now());
            if until.is_none() && self.tasks.is_empty() {
                return Ok(());
            }
            self.wait(py, until)?;
            begun = now();
        }
    }

    fn check_process(&self) -> PyResult<()> {
        if process::id() == self.process {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "this fan-out belongs to process {}, which forked this one: end a forked child with \
             os._exit(), or use subprocess",
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

    /// Lets those go on whose wait is over.
    fn go_on(&mut self, py: Python<'_>) -> PyResult<()> {
        let time = now();
        while let Some(key) = self.tasks.due(time) {
            self.resume(py, key)?;
        }
        for generator in self.generators.take() {
            self.close_generator(py, &generator)?;
        }
        // Those that get ready meanwhile have their turn in the next round.
        for _ in 0..self.tasks.ready() {
            let Some(key) = self.tasks.next_ready() else { break };
            self.resume(py, key)?;
        }
        // After those: who has come to its end in this round has done so in time.
        while let Some(birth) = self.tasks.over_time() {
            self.is_over_time(py, birth, time);
        }
        match self.raised.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Looks who has become ready.
    fn look(&mut self) -> PyResult<()> {
        self.tasks.look()?;
        self.tasks.looked(now());
        Ok(())
    }

    /// Waits until somebody is ready, or until this time; at times for nothing. Others may have the
    /// GIL meanwhile.
    fn wait(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<()> {
        let time = now();
        let until = self.tasks.rest(until, time);
        if until > time {
            py.detach(|| self.tasks.wait(until, time))?;
            py.check_signals()?;
        } else {
            self.tasks.look()?;
        }
        self.tasks.looked(now());
        self.check_process()
    }

    fn cancel_all(&mut self, py: Python<'_>) -> PyResult<()> {
        let _driving = Driving::begin(self.number);
        let generators = self.generators.clone();
        let _watched = generators.watch(py)?;
        for birth in self.tasks.births() {
            // What closes a generator is cleaning up already.
            if self.tasks.born(birth).is_some_and(|task| !task.is_closing) {
                self.cancel(py, birth, Why::Closed);
            }
        }
        let end = now() + GRACE;
        while !(self.tasks.is_empty() && self.generators.is_empty()) && now() < end {
            self.go_on(py)?;
            if self.tasks.ready() == 0 && !self.tasks.is_empty() {
                self.wait(py, Some(end))?;
            } else {
                self.look()?;
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
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            process: process::id(),
            function,
            dispatcher,
            timeout: timeout.map(nanoseconds),
            contexts: Contexts::of_caller(py)?,
            generators: Generators::default(),
            tasks: EventLoop::default(),
            raised: None,
            ended: 0,
            lag: Lag::default(),
        })
    }

    /// Runs until something has finished.
    fn advance(slf: &Bound<'_, Self>) -> PyResult<()> {
        borrowed(slf)?.run(slf.py())
    }

    /// Cancels what runs, gives it a second to end, and lets go of descriptors and threads.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let mut this = borrowed(slf)?;
        if this.check_process().is_err() {
            // To end them would say goodbye to peers in the name of the parent, whose threads may
            // have held locks when it forked.
            mem::forget(mem::take(&mut this.tasks));
            return Ok(());
        }
        let nothing_is_left = this.tasks.is_empty() && this.generators.is_empty();
        let cancelled = if nothing_is_left { Ok(()) } else { this.cancel_all(py) };
        let left = this.tasks.close();
        // What ends with them may come here.
        drop(this);
        drop(left);
        cancelled
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.dispatcher)?;
        visit.call(self.contexts.first())?;
        self.tasks.tasks().try_for_each(|task| task.traverse(&visit))
    }

    fn __clear__(&mut self) {
        let tasks = self.tasks.close();
        drop(tasks);
    }
}

fn borrowed<'py>(lean: &Bound<'py, Lean>) -> PyResult<PyRefMut<'py, Lean>> {
    lean.try_borrow_mut().map_err(|_| {
        PyRuntimeError::new_err(
            "this fan-out is already being iterated: only one thread can do that, and none of its \
             items can",
        )
    })
}
