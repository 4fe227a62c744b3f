//! `Slot`: what a task of asyncio runs, items one after the other.
//!
//! To a task it is a coroutine. Were it one, ten thousand would be as many frames more, and each
//! step of an item would go through two. What is rare is left to Python: `Slots` of
//! `ungil.fanout._asyncio` is a subclass of the one here.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyBaseException, PyException, PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::coroutine::{self, Step};
use super::dispatcher::Dispatcher;
use super::outcome::Outcome;
use crate::clock::now;

/// What the slots of one fan-out have in common.
#[pyclass(frozen, subclass, module = "ungil._native")]
pub struct Slots {
    function: Py<PyAny>,
    dispatcher: Py<Dispatcher>,
    /// Whether items have to end within a time, which is Python's to watch.
    is_timed: bool,
    waits_for_time: bool,
    is_announced: AtomicBool,
    is_closing: AtomicBool,
    is_waited_for: AtomicBool,
}

#[pymethods]
impl Slots {
    #[new]
    #[pyo3(signature = (r#loop, r#fn, dispatcher, timeout, arrived))]
    #[expect(unused_variables, reason = "they are the subclass's")]
    fn new(
        r#loop: &Bound<'_, PyAny>,
        r#fn: Py<PyAny>,
        dispatcher: Py<Dispatcher>,
        timeout: Option<&Bound<'_, PyAny>>,
        arrived: &Bound<'_, PyAny>,
    ) -> Self {
        Self {
            function: r#fn,
            is_timed: timeout.is_some(),
            waits_for_time: dispatcher.get().waits_for_time(),
            dispatcher,
            is_announced: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_waited_for: AtomicBool::new(false),
        }
    }

    /// Whether it has been said, or will be, that something may have finished.
    #[getter]
    fn announced(&self) -> bool {
        self.is_announced.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_announced(&self, announced: bool) {
        self.is_announced.store(announced, Ordering::Relaxed);
    }

    /// Whether nothing starts any more.
    #[getter]
    fn closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_closing(&self, closing: bool) {
        self.is_closing.store(closing, Ordering::Relaxed);
    }

    /// Whether somebody waits for a slot to close, and is to be told by `closed`.
    #[getter]
    fn waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_waited_for(&self, waited_for: bool) {
        self.is_waited_for.store(waited_for, Ordering::Relaxed);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.dispatcher)
    }
}

/// Where a slot is.
enum Place {
    /// Before an item.
    Before(Py<Outcome>),
    /// Within one: its attempt, that attempt's number, and what drives it.
    Within(Py<Outcome>, u32, Py<PyAny>),
    /// Somewhere in a step.
    Running,
    /// There is nothing more to run.
    Closed,
}

/// One of the slots: a coroutine to the task that runs it.
#[pyclass(frozen, weakref, module = "ungil._native")]
pub struct Slot {
    slots: Py<Slots>,
    place: Mutex<Place>,
}

impl Slot {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until an item waits for something, which is given, or none is left.
    fn step(
        &self,
        py: Python<'_>,
        thrown: Option<Py<PyBaseException>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let place = {
            let mut place = self.place();
            if let Place::Running = *place {
                return Err(PyRuntimeError::new_err("the slot is running already"));
            }
            mem::replace(&mut *place, Place::Running)
        };
        let stepped = self.run(py, place, thrown);
        let (place, yielded) = match stepped {
            Ok(Some((place, yielded))) => (place, Ok(Some(yielded))),
            Ok(None) => (Place::Closed, Ok(None)),
            Err(error) => (Place::Closed, Err(error)),
        };
        *self.place() = place;
        yielded
    }

    fn run(
        &self,
        py: Python<'_>,
        mut place: Place,
        mut thrown: Option<Py<PyBaseException>>,
    ) -> PyResult<Option<(Place, Py<PyAny>)>> {
        loop {
            let (outcome, number, end) = match place {
                Place::Before(outcome) => {
                    if let Some(exception) = thrown {
                        return Err(PyErr::from_value(exception.into_bound(py).into_any()));
                    }
                    let number = self.watch(py, &outcome)?;
                    match self.begin(py, &outcome) {
                        Ok(iterator) => {
                            place = Place::Within(outcome, number, iterator);
                            continue;
                        }
                        Err(error) => (outcome, number, Err(error)),
                    }
                }
                Place::Within(outcome, number, iterator) => {
                    let step = match thrown.take() {
                        None => coroutine::send(py, &iterator),
                        Some(exception) => coroutine::throw(py, &iterator, exception),
                    };
                    match step {
                        Step::Yielded(object) => {
                            return Ok(Some((Place::Within(outcome, number, iterator), object)));
                        }
                        Step::Returned(value) => (outcome, number, Ok(value)),
                        Step::Raised(error) => (outcome, number, Err(error)),
                    }
                }
                Place::Running | Place::Closed => {
                    return Err(PyRuntimeError::new_err("the slot has ended"));
                }
            };
            match self.following(py, outcome, number, end)? {
                Some(outcome) => place = Place::Before(outcome),
                None => return self.ended(py).map(|()| None),
            }
        }
    }

    /// The number of the attempt, if Python watches its time.
    fn watch(&self, py: Python<'_>, outcome: &Py<Outcome>) -> PyResult<u32> {
        if !self.slots.get().is_timed {
            return Ok(0);
        }
        self.slots.call_method1(py, "watch", (outcome,))?.extract(py)
    }

    fn begin(&self, py: Python<'_>, outcome: &Py<Outcome>) -> PyResult<Py<PyAny>> {
        let function = self.slots.get().function.bind(py);
        let made = function.call1((outcome.get().item.bind(py),))?;
        coroutine::iterator(function, made).map(Bound::unbind)
    }

    /// What runs next in the place of an item that has ended.
    fn following(
        &self,
        py: Python<'_>,
        outcome: Py<Outcome>,
        number: u32,
        end: PyResult<Py<PyAny>>,
    ) -> PyResult<Option<Py<Outcome>>> {
        let slots = self.slots.get();
        let dispatcher = slots.dispatcher.get();
        let next = match end {
            Ok(value) if !slots.is_timed => {
                let now = now();
                dispatcher.end_well(py, outcome, value, now);
                dispatcher.start(py, now)
            }
            Ok(value) => self.asked(py, "returned", (outcome, number, value)),
            Err(error) => self.asked(py, "raised", (outcome, number, error.into_value(py))),
        };
        let next = match next {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                // Of `group` or `retry_if`, which are the caller's: it goes to whoever consumes.
                dispatcher.ended_by(error);
                None
            }
            next => next?,
        };
        if !slots.announced() {
            self.slots.call_method0(py, "announce")?;
        }
        if next.is_some() {
            if dispatcher.room() > 0 {
                self.slots.call_method0(py, "open_soon")?;
            } else if slots.waits_for_time && dispatcher.is_due_earlier(now()) {
                self.slots.call_method0(py, "rest")?;
            }
        }
        Ok(next)
    }

    fn asked<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Option<Py<Outcome>>> {
        Ok(self.slots.bind(py).call_method1(method, arguments)?.extract()?)
    }

    /// Nothing runs in this slot any more.
    fn ended(&self, py: Python<'_>) -> PyResult<()> {
        let slots = self.slots.get();
        if !slots.closing() && (slots.waits_for_time || slots.dispatcher.get().running() == 0) {
            self.slots.call_method0(py, "rest")?;
        }
        if slots.waited_for() {
            self.slots.call_method0(py, "closed")?;
        }
        Ok(())
    }

    /// Of what is driven now.
    fn attribute(&self, py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
        match &*self.place() {
            Place::Within(_, _, iterator) => iterator.getattr(py, name).ok(),
            _ => None,
        }
    }
}

#[pymethods]
impl Slot {
    #[new]
    fn new(slots: Py<Slots>, attempt: Py<Outcome>) -> Self {
        Self { slots, place: Mutex::new(Place::Before(attempt)) }
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.step(py, None)
    }

    /// Goes on; tasks send nothing but `None`.
    fn send(&self, py: Python<'_>, _value: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.step(py, None)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Raises an exception in the item that runs.
    fn throw(&self, py: Python<'_>, exception: Py<PyBaseException>) -> PyResult<Py<PyAny>> {
        self.step(py, Some(exception))?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Ends it, and the item that runs.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let place = mem::replace(&mut *self.place(), Place::Closed);
        match place {
            Place::Within(_, _, iterator) => match iterator.getattr(py, "close") {
                Ok(close) => close.call0(py).map(|_| ()),
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The frame of the item that runs, for whoever asks the task for its stack.
    #[getter]
    fn cr_frame(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.attribute(py, "cr_frame")
    }

    /// The code of the item that runs.
    #[getter]
    fn cr_code(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.attribute(py, "cr_code")
    }

    /// What the item that runs waits for.
    #[getter]
    fn cr_await(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.attribute(py, "cr_await")
    }

    /// Whether it is in a step.
    #[getter]
    fn cr_running(&self) -> bool {
        matches!(*self.place(), Place::Running)
    }

    /// The name of the function.
    #[getter]
    fn __qualname__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.slots.get().function.getattr(py, "__qualname__")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.slots)?;
        // While it is locked somebody uses it, so it is no garbage.
        if let Ok(place) = self.place.try_lock() {
            match &*place {
                Place::Before(outcome) => visit.call(outcome)?,
                Place::Within(outcome, _, iterator) => {
                    visit.call(outcome)?;
                    visit.call(iterator)?;
                }
                Place::Running | Place::Closed => {}
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let place = mem::replace(&mut *self.place(), Place::Closed);
        drop(place);
    }
}
