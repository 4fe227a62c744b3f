//! Queues: the methods of `queue.Queue` on one that is shared.

use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ungil_heap::Heap;
use ungil_heap::op::Op;
use ungil_heap::queue::{self, Got, Put};
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;

use super::convert::simple;
use super::draft::{Drafts, finished};
use super::errors::raised;
use super::proxy::{Held, Hold, Holds};
use super::recent;
use super::sync::{Place, deadline};

pyo3::import_exception!(queue, Empty);
pyo3::import_exception!(queue, Full);

/// A queue that is to be made.
#[derive(Clone, Copy)]
pub struct Making {
    limit: Option<usize>,
}

impl Making {
    pub fn create(self, op: &mut Op<'_>) -> ungil_heap::Result<Offset> {
        queue::create(op, self.limit)
    }
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
    #[pyo3(signature = (held = None, /, *, maxsize = 0))]
    fn new(held: Option<&Held>, maxsize: i64) -> PyResult<Self> {
        let wanted = || {
            let limit = usize::try_from(maxsize).ok().filter(|limit| *limit > 0);
            if limit.is_some_and(|limit| limit > queue::MOST) {
                let most = queue::MOST;
                let what = format!("a queue has at most {most} items, not {maxsize}");
                return Err(PyValueError::new_err(what));
            }
            Ok(Making { limit })
        };
        Place::new(held, wanted).map(Self)
    }

    /// How many items it can have; 0: any number.
    #[getter]
    fn maxsize(&self) -> PyResult<usize> {
        if let Place::Wanted(making) = &self.0 {
            return Ok(making.limit.unwrap_or(0));
        }
        let (heap, at) = self.0.found()?;
        Ok(queue::limit(heap, at).map_err(raised)?.unwrap_or(0))
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
    fn put(&self, item: &Bound<'_, PyAny>, block: bool, timeout: Option<f64>) -> PyResult<()> {
        let patience = Patience { block, timeout };
        let deadline = patience.deadline()?;
        let hold = self.shared()?;
        match put(hold, item, deadline)? {
            Put::Done => Ok(()),
            Put::Full => Err(self.full_error(patience)),
            Put::Closed => Err(shut_down(item.py(), "the queue is closed: it takes no more items")),
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
        block: bool,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patience = Patience { block, timeout };
        let deadline = patience.deadline()?;
        let hold = self.shared()?;
        get(py, hold, deadline)?.ok_or_else(|| {
            Empty::new_err(format!("nothing was put into the queue{}", patience.told()))
        })
    }

    /// Takes the first item out if there is one.
    fn get_nowait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get(py, false, None)
    }

    /// Puts nothing more in: who puts is told at once, who takes when there is nothing left.
    fn close(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        queue::close(heap, at).map_err(raised)
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
        self.0.hold().ok_or_else(|| raised(ungil_heap::Error::Stale))
    }

    #[cold]
    fn full_error(&self, patience: Patience) -> PyErr {
        let limit = self.maxsize().unwrap_or(0);
        Full::new_err(format!(
            "the queue has {limit} items, which is its maxsize, and none was taken out{}",
            patience.told()
        ))
    }
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

/// Puts a Python object in.
#[inline]
fn put(hold: &Hold, item: &Bound<'_, PyAny>, deadline: Option<Instant>) -> PyResult<Put> {
    let heap = &hold.shared.heap;
    match simple(item)? {
        Some(value) => queue::put(heap, hold.at, &value, deadline).map_err(raised),
        None => put_made(hold, item, deadline),
    }
}

/// Puts a Python object in, of which parts may have to be made first.
#[cold]
fn put_made(hold: &Hold, item: &Bound<'_, PyAny>, deadline: Option<Instant>) -> PyResult<Put> {
    let heap: &Heap = &hold.shared.heap;
    let mut drafts = Drafts::new(&hold.shared);
    let draft = drafts.draft(item)?;
    // What is put in is complete, whoever dies: it is made by an operation that has ended, and held
    // meanwhile by this process.
    let made = heap.make_all(|op| drafts.make(op)).map_err(raised)?;
    let places: Vec<_> = made.iter().map(ungil_heap::roots::Root::at).collect();
    let done = queue::put(heap, hold.at, &finished(&draft, &places), deadline);
    for root in made {
        heap.release(root).map_err(raised)?;
    }
    done.map_err(raised)
}

/// Takes the first item out; `None`: there was none before the deadline.
#[inline]
fn get<'py>(
    py: Python<'py>,
    hold: &Hold,
    deadline: Option<Instant>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let heap = &hold.shared.heap;
    let mut holds = Holds::new(&hold.shared);
    let mut spare = Holds::new(&hold.shared);
    let mut keep = |value: &Value<'static>| {
        holds.hold(value)?;
        spare.hold(value)
    };
    let value = match queue::get(heap, hold.at, deadline, &mut keep).map_err(raised)? {
        Got::Empty => return Ok(None),
        Got::Closed => {
            return Err(shut_down(py, "the queue is closed, and there is nothing left in it"));
        }
        Got::Cell(cell) => match recent::object(py, cell) {
            // SAFETY: `recent::object` gives a new reference, or null with an exception.
            Some(object) => return unsafe { Bound::from_owned_ptr_or_err(py, object) }.map(Some),
            None => cell.whole().ok_or_else(|| raised(ungil_heap::Error::Corrupt("no value")))?,
        },
        Got::Value(value) => value,
    };
    let built = holds.build(py, &value);
    if built.is_err() {
        // It could not be made here; somebody else may be able to.
        queue::put_back(heap, hold.at, &value).map_err(raised)?;
    }
    spare.release().map_err(raised)?;
    built.map(Some)
}
