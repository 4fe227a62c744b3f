//! Queues: the methods of `queue.Queue` on one that is shared.

mod lease;
mod putting;
mod taking;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use ungil_heap::Error;
use ungil_heap::op::Op;
use ungil_heap::queue::{self, Options, Put};
use ungil_heap::segment::{Offset, Segment};

use super::argument::{count, truth};
use super::errors::raised;
use super::proxy::{Held, Hold};
use super::sync::{Place, deadline};
use crate::guarded::of_one_moment;
use putting::{put, put_many};
use taking::{get, get_many};

pub use lease::{Lease, give_back_left};

pyo3::import_exception!(queue, Empty);
pyo3::import_exception!(queue, Full);

/// A queue that is to be made.
#[derive(Clone, Copy)]
pub struct Making(Options);

impl Making {
    pub fn create(self, op: &mut Op<'_>) -> ungil_heap::Result<Offset> {
        queue::create(op, self.0)
    }
}

/// For how long who waits looks before it sleeps, of an argument in seconds.
fn spin(seconds: f64) -> PyResult<Duration> {
    let longest = queue::LONGEST_SPIN.as_secs_f64();
    if (0.0..=longest).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let what = "'spin' is the number of seconds for which a thread looks before it sleeps";
    Err(PyValueError::new_err(format!("{what}, from 0 to {longest}, not {seconds}")))
}

/// What many put in and many take out.
#[pyclass(frozen, generic, subclass, weakref, module = "ungil._native", name = "SharedQueue")]
pub struct Queue(Place<Making>);

/// What is to be made of `given`, if it is a queue that is nowhere yet.
pub fn wanted(given: &Bound<'_, PyAny>) -> Option<Making> {
    match &given.cast::<Queue>().ok()?.get().0 {
        Place::Wanted(making) => Some(*making),
        Place::Shared(_) => None,
    }
}

/// What `given` consists of, if it is a shared queue.
pub fn hold<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a Hold> {
    given.cast::<Queue>().ok()?.get().0.hold()
}

/// The classes of the proxies: of queues, and of those in which the least item comes first. Python
/// declares them.
static CLASSES: [PyOnceLock<Py<PyType>>; 2] = [const { PyOnceLock::new() }; 2];

/// Where the class of the proxy of the queue at `at` is.
pub fn class(segment: &Segment, at: Offset) -> PyResult<&'static PyOnceLock<Py<PyType>>> {
    let is_ordered = queue::is_least_first(segment, at).map_err(raised)?;
    Ok(&CLASSES[usize::from(is_ordered)])
}

/// Where the class with this name is.
pub fn class_named(name: &str) -> Option<&'static PyOnceLock<Py<PyType>>> {
    let names = ["Queue", "PriorityQueue"];
    names.iter().position(|known| *known == name).map(|number| &CLASSES[number])
}

/// Looks up the exceptions of the module `queue`: while the interpreter ends it imports nothing.
pub fn prepare(py: Python<'_>) {
    let _ = (py.get_type::<Empty>(), py.get_type::<Full>());
}

/// How long somebody waits: as the arguments `block` and `timeout` of `queue.Queue` say.
#[derive(Clone, Copy)]
struct Patience {
    block: bool,
    timeout: Option<f64>,
}

impl Patience {
    #[inline]
    fn deadline(self) -> PyResult<Option<Instant>> {
        match self {
            Self { block: false, .. } => Ok(Some(Instant::now())),
            Self { timeout: Some(timeout), .. } if timeout < 0.0 => {
                let what = "'timeout' must be a non-negative number of seconds";
                Err(PyValueError::new_err(format!("{what}, not {timeout}")))
            }
            Self { timeout, .. } => deadline(timeout),
        }
    }

    /// For a message.
    fn told(self) -> String {
        match self {
            Self { block: true, timeout: Some(timeout) } => format!(" within {timeout} s"),
            _ => String::new(),
        }
    }
}

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (held = None, /, *, maxsize = 0, ordered = false, spin = 0.0))]
    fn new(held: Option<&Held>, maxsize: i64, ordered: bool, spin: f64) -> PyResult<Self> {
        let wanted = || {
            let limit = usize::try_from(maxsize).ok().filter(|limit| *limit > 0);
            if limit.is_some_and(|limit| limit > queue::MOST) {
                let most = queue::MOST;
                let what = format!("a queue has at most {most} items, not {maxsize}");
                return Err(PyValueError::new_err(what));
            }
            Ok(Making(Options { limit, is_ordered: ordered, spin: self::spin(spin)? }))
        };
        Place::new(held, wanted).map(Self)
    }

    /// How many items it can have; 0: any number.
    #[getter]
    fn maxsize(&self) -> PyResult<usize> {
        if let Place::Wanted(making) = &self.0 {
            return Ok(making.0.limit.unwrap_or(0));
        }
        let (heap, at) = self.0.found()?;
        Ok(queue::limit(heap, at).map_err(raised)?.unwrap_or(0))
    }

    /// For how many seconds who waits looks before it sleeps.
    #[getter]
    fn spin(&self) -> PyResult<f64> {
        if let Place::Wanted(making) = &self.0 {
            return Ok(making.0.spin.as_secs_f64());
        }
        let (heap, at) = self.0.found()?;
        Ok(queue::spin(heap, at).map_err(raised)?.as_secs_f64())
    }

    /// How many items it has at this moment.
    fn qsize(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        queue::len(heap, at).map_err(raised)
    }

    /// Whether it has none at this moment.
    fn empty(&self) -> PyResult<bool> {
        Ok(self.qsize()? == 0)
    }

    /// Whether it has as many as it can at this moment.
    fn full(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        let limit = queue::limit(heap, at).map_err(raised)?;
        Ok(limit.is_some_and(|limit| queue::len(heap, at).is_ok_and(|length| length >= limit)))
    }

    /// Puts an item in, and waits for room.
    #[pyo3(signature = (item, block = true, timeout = None))]
    fn put(
        &self,
        item: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = truth)] block: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let patience = Patience { block, timeout };
        let deadline = patience.deadline()?;
        let hold = self.shared()?;
        match put(hold, item, deadline)? {
            Put::Done => Ok(()),
            Put::Full => Err(self.full_error(patience)),
            Put::Closed => {
                Err(shut_down(item.py(), "the queue is closed: it accepts no more items"))
            }
        }
    }

    /// Puts an item in if there is room.
    fn put_nowait(&self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(item, false, None)
    }

    /// Takes the first item out, and waits for one.
    #[pyo3(signature = (block = true, timeout = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = truth)] block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patience = Patience { block, timeout };
        let deadline = patience.deadline()?;
        let hold = self.shared()?;
        get(py, hold, deadline)?.ok_or_else(|| empty_error(patience))
    }

    /// Takes the first item out if there is one.
    fn get_nowait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get(py, false, None)
    }

    /// Puts items in, in their order; how many are in when the time is over.
    #[pyo3(signature = (items, timeout = None))]
    fn put_many(&self, items: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<usize> {
        let deadline = Patience { block: true, timeout }.deadline()?;
        let items = of_one_moment(items)?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let (done, put) = put_many(self.shared()?, &items, deadline)?;
        match put {
            Put::Closed if done < items.len() => Err(closed_to_putters(&items[done], done)),
            _ => Ok(done),
        }
    }

    /// Takes up to `most` items out, and waits for the first one.
    #[pyo3(signature = (most, timeout = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        most: isize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let most = count("most", most)?;
        let patience = Patience { block: true, timeout };
        let deadline = patience.deadline()?;
        let hold = self.shared()?;
        let list = PyList::empty(py);
        if most > 0 && !get_many(&list, hold, most, deadline)? {
            return Err(empty_error(patience));
        }
        Ok(list)
    }

    /// Takes the first item out on a lease, and waits for one.
    #[pyo3(signature = (block = true, timeout = None))]
    fn lease(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = truth)] block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Lease> {
        let patience = Patience { block, timeout };
        let deadline = patience.deadline()?;
        lease::take(slf, deadline)?.ok_or_else(|| empty_error(patience))
    }

    /// Puts items back that are leased by processes that have died; how many.
    fn recover(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        queue::recover(heap, at).map_err(raised)
    }

    /// How many items are leased.
    #[getter]
    fn leased(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        queue::leased(heap, at).map_err(raised)
    }

    /// Says that an item that was taken out is done.
    fn task_done(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        if queue::task_done(heap, at).map_err(raised)? {
            return Ok(());
        }
        Err(PyValueError::new_err("task_done() called too many times: all items are done"))
    }

    /// How many items were put in and are not yet done.
    #[getter]
    fn unfinished(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        queue::unfinished(heap, at).map_err(raised)
    }

    /// Waits until all items are done; whether they were in time.
    #[pyo3(signature = (timeout = None))]
    fn join(&self, timeout: Option<f64>) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        queue::join(heap, at, deadline(timeout)?).map_err(raised)
    }

    /// Puts nothing more in: who puts is told at once, who takes when there is nothing left, or, if
    /// it is `immediate`, at once.
    #[pyo3(signature = (immediate = false))]
    fn shutdown(&self, #[pyo3(from_py_with = truth)] immediate: bool) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        queue::close(heap, at, immediate).map_err(raised)
    }

    /// Closes it as `shutdown()`.
    fn close(&self) -> PyResult<()> {
        self.shutdown(false)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        queue::is_closed(heap, at).map_err(raised)
    }
}

impl Queue {
    fn shared(&self) -> PyResult<&Hold> {
        self.0.found()?;
        self.0.hold().ok_or_else(|| raised(Error::Stale))
    }

    #[cold]
    fn full_error(&self, patience: Patience) -> PyErr {
        let limit = self.maxsize().unwrap_or(0);
        Full::new_err(format!(
            "the queue is full with {limit} items (its maxsize), and none was taken out{}",
            patience.told()
        ))
    }
}

#[cold]
fn empty_error(patience: Patience) -> PyErr {
    Empty::new_err(format!("nothing was put into the queue{}", patience.told()))
}

/// The exception for a queue that is closed.
#[cold]
fn shut_down(py: Python<'_>, what: &'static str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ungil.share", "ShutDown") {
        Ok(class) => PyErr::from_type(class.clone(), what),
        Err(error) => error,
    }
}

/// The exception for who takes something out of a queue that is closed.
#[cold]
fn closed_to_getters(py: Python<'_>) -> PyErr {
    shut_down(py, "the queue is closed and empty")
}

#[cold]
fn closed_to_putters(item: &Bound<'_, PyAny>, done: usize) -> PyErr {
    let what = "the queue is closed: it accepts no more items";
    let error = shut_down(item.py(), what);
    if done > 0 {
        let note = format!("{done} of the items were put in before");
        // A note is a courtesy.
        drop(error.value(item.py()).call_method1("add_note", (note,)));
    }
    error
}

/// Waits until one of several queues has something, or will have nothing; the numbers of those,
/// none if that was not before the deadline.
#[pyfunction]
#[pyo3(signature = (queues, timeout = None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn wait_for_queues(
    queues: Vec<Bound<'_, Queue>>,
    timeout: Option<f64>,
) -> PyResult<Vec<usize>> {
    let holds = queues.iter().map(|queue| queue.get().shared()).collect::<PyResult<Vec<_>>>()?;
    let Some(first) = holds.first() else { return Ok(Vec::new()) };
    if let Some(number) = holds.iter().position(|hold| !Arc::ptr_eq(&hold.shared, &first.shared)) {
        let what = format!(
            "queues that are waited for together must be in one heap: number {number} is in \
             another heap than number 0"
        );
        return Err(PyValueError::new_err(what));
    }
    let places: Vec<_> = holds.iter().map(|hold| hold.at).collect();
    queue::wait(&first.shared.heap, &places, deadline(timeout)?).map_err(raised)
}

/// Whether somebody who takes an item out of a queue would not wait; or, if `room`, somebody who
/// puts one in. If not, the heap's bell rings when that has changed.
#[pyfunction]
pub fn watch_queue(queue: &Bound<'_, Queue>, room: bool) -> PyResult<bool> {
    let hold = queue.get().shared()?;
    let watch = if room { queue::watch_room } else { queue::watch_values };
    watch(&hold.shared.heap, hold.at).map_err(raised)
}
