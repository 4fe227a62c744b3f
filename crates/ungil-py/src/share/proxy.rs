//! One Python object for each shared object that a process has in hand.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use ungil_heap::brief::Seen;
use ungil_heap::object::Kind;
use ungil_heap::op::Op;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, object, stack};

use super::array::Array;
use super::buffer::Buffer;
use super::classes;
use super::convert;
use super::deque::Deque;
use super::dict::Dict;
use super::errors::{interrupted, raised};
use super::list::List;
use super::proxies::Proxies;
use super::queue;
use super::set::Set;
use super::structs::{self, Struct};
use super::sync;
use super::{parked, recent};
use crate::guarded;
use crate::this_thread::attached;

/// A heap, and the proxies of its objects in this process.
pub struct Shared {
    pub heap: Arc<Heap>,
    /// The file that it was made or opened as, if it has a name.
    pub path: Option<PathBuf>,
    proxies: Proxies,
    pub labels: structs::Labels,
}

/// An object that this process holds until the proxy that was made with it is gone.
#[pyclass(frozen, module = "ungil._native")]
pub struct Held {
    pub shared: Arc<Shared>,
    root: Mutex<Option<Root>>,
}

/// What a proxy consists of.
pub struct Hold {
    pub shared: Arc<Shared>,
    pub at: Offset,
    root: Option<Root>,
}

impl Held {
    /// For the proxy that is being made of what its class was called with.
    ///
    /// # Errors
    /// `TypeError` that says how to do it if that is anything else, as when a user calls the class.
    pub fn given(held: Option<&Bound<'_, PyAny>>) -> PyResult<Hold> {
        match held.and_then(|held| held.cast::<Self>().ok()) {
            Some(held) => held.get().take(),
            None => Err(PyTypeError::new_err(
                "make a shared object with heap.share(...), or by putting an object into a shared \
                 one",
            )),
        }
    }

    /// For the proxy that is being made; each can be used once.
    pub fn take(&self) -> PyResult<Hold> {
        let root = self.root.lock().unwrap_or_else(PoisonError::into_inner).take();
        let root =
            root.ok_or_else(|| PyRuntimeError::new_err("this object already has a proxy"))?;
        Ok(Hold::new(&self.shared, root))
    }
}

impl Hold {
    /// Of an object that this process holds.
    pub fn new(shared: &Arc<Shared>, root: Root) -> Self {
        Self { shared: shared.clone(), at: root.at(), root: Some(root) }
    }

    /// With what this process holds the object; `None` while it lets go.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Holds the object no longer, whose proxy is gone.
    pub fn let_go(&mut self, py: Python<'_>) {
        if let Some(root) = self.root.take() {
            self.shared.proxies.forget(py, self.at);
            // A damaged heap keeps the object, and there is nobody to tell.
            drop(self.shared.heap.release(root));
        }
    }

    /// The Python object of a value that was read from this object.
    ///
    /// If it is, or has in it, a shared object that this process does not hold yet, `again` reads
    /// the value again, so that it can be held. Without a GIL it always does: since the value was
    /// read another thread may have let go of the object, and made a proxy of one that is now in its
    /// place.
    ///
    /// # Errors
    /// Those of `again`.
    #[inline]
    pub fn object<'py>(
        &self,
        py: Python<'py>,
        value: &Value<'_>,
        again: impl FnMut() -> ungil_heap::Result<Value<'static>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(object) = convert::object(py, value)? {
            return Ok(object);
        }
        stack::check(0).map_err(raised)?;
        match self.shared.known_in(py, value).filter(|_| guarded::has_gil()) {
            Some(known) => built(py, value, &mut known.into_iter()),
            None => self.held(py, again),
        }
    }

    /// As above, of a cell that was just seen in this object, as a new reference. `None`: it takes
    /// more than that.
    #[inline]
    pub fn seen(&self, py: Python<'_>, seen: Seen) -> Option<*mut ffi::PyObject> {
        if seen.cell.is_whole() { recent::object(py, seen.cell) } else { self.nested(py, seen) }
    }

    /// The proxy of the object that was seen. What fails is done and told again by who asks.
    #[inline(never)]
    fn nested(&self, py: Python<'_>, seen: Seen) -> Option<*mut ffi::PyObject> {
        let at = seen.cell.object()?;
        let heap = &self.shared.heap;
        if let Some(proxy) = self.shared.known(py, at)
            && (guarded::has_gil() || heap.is_as_seen(self.at, seen))
        {
            return Some(proxy.into_ptr());
        }
        let root = heap.hold_seen(self.at, seen).ok()??;
        let hold = Self::new(&self.shared, root);
        self.shared.new_proxy(py, hold).ok().map(Bound::into_ptr)
    }

    /// The Python object of a value whose objects cannot go away: it has none, or they are held.
    pub fn value<'py>(&self, py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
        let known = self.shared.known_in(py, value).ok_or_else(|| raised(Error::Stale))?;
        built(py, value, &mut known.into_iter())
    }

    /// The Python objects of values that were just read; `None` for each that has a shared object
    /// in it which this process does not hold, and without a GIL for each that has any.
    pub fn values<'py>(
        &self,
        py: Python<'py>,
        values: &[Value<'_>],
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        // A repr or comparison of what is nested comes here once a level, from Python.
        stack::check(0).map_err(raised)?;
        // All before the first is built, which may let other threads run: what is not held could
        // become another object at the same place.
        let known = |value| match self.shared.known_in(py, value) {
            Some(known) if known.is_empty() || guarded::has_gil() => Some(known),
            _ => None,
        };
        let known: Vec<_> = values.iter().map(known).collect();
        let built = |(value, known): (&Value<'_>, Option<Vec<_>>)| {
            known.map(|known| built(py, value, &mut known.into_iter())).transpose()
        };
        values.iter().zip(known).map(built).collect()
    }

    /// The Python objects of the values that `read` reads from this object, all of one moment.
    pub fn snapshot<'py>(
        &self,
        py: Python<'py>,
        mut read: impl FnMut() -> ungil_heap::Result<Vec<Value<'static>>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let objects = self.values(py, &read().map_err(raised)?)?;
        match objects.into_iter().collect::<Option<Vec<_>>>() {
            Some(objects) => Ok(objects),
            None => self.held(py, || read().map(Value::Tuple))?.extract(),
        }
    }

    /// The Python object of the value that `again` reads, whose objects are held.
    #[cold]
    pub fn held<'py>(
        &self,
        py: Python<'py>,
        mut again: impl FnMut() -> ungil_heap::Result<Value<'static>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        stack::check(0).map_err(raised)?;
        let look = |found: &mut Vec<Offset>| {
            let value = again()?;
            objects_of(&value, found);
            Ok(value)
        };
        let (value, roots) = self.shared.heap.hold_all(self.at, look).map_err(raised)?;
        Holds { shared: &self.shared, roots }.build(py, &value)
    }

    /// Changes the heap, and the Python object of the value that `work` found in a container that it
    /// has locked: the shared objects in it are held before others could take the last reference.
    ///
    /// # Errors
    /// Those of `work`, which may be called twice.
    pub fn change<'h, 'py>(
        &'h self,
        py: Python<'py>,
        mut work: impl FnMut(&mut Op<'h>) -> ungil_heap::Result<Option<Value<'static>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut holds = Holds::new(&self.shared);
        let found = self.shared.heap.change(|op| holds.of(work(op)?));
        let found = found.map_err(raised)?;
        found.map(|value| holds.build(py, &value)).transpose()
    }

    /// As [`Self::change`], of a value that `work` takes out: that has happened only if the value
    /// has become an object. Where that needs Python (a class that is imported here or is not, a
    /// pickle), it is made before others can see that the value is gone.
    ///
    /// # Errors
    /// Those of `work`, which may be called twice; what Python raises. Then the value is still there.
    pub fn take_out<'h, 'py>(
        &'h self,
        py: Python<'py>,
        mut work: impl FnMut(&mut Op<'h>) -> ungil_heap::Result<Option<Value<'static>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut holds = Holds::new(&self.shared);
        let taken = self.shared.heap.change(|op| {
            let Some(value) = holds.of(work(op)?)? else { return Ok(Ok(None)) };
            if needs_python(&value) {
                let object = holds.build(py, &value).map_err(interrupted)?;
                return Ok(Err(object));
            }
            Ok(Ok(Some(value)))
        });
        match taken.map_err(raised)? {
            Err(object) => Ok(Some(object)),
            Ok(Some(value)) => holds.build(py, &value).map(Some),
            Ok(None) => Ok(None),
        }
    }
}

/// The shared objects in a value that is on its way to Python.
pub struct Holds<'s> {
    shared: &'s Arc<Shared>,
    roots: Vec<Root>,
}

impl<'s> Holds<'s> {
    /// Those of nothing yet.
    #[inline]
    pub const fn new(shared: &'s Arc<Shared>) -> Self {
        Self { shared, roots: Vec::new() }
    }

    /// Holds the objects in a value that an operation has locked, and no longer those of an earlier
    /// one.
    pub fn hold(&mut self, value: &Value<'static>) -> ungil_heap::Result<()> {
        self.release()?;
        let mut objects = Vec::new();
        objects_of(value, &mut objects);
        for at in objects {
            self.roots.extend(self.shared.heap.hold(None, || Ok(Some(at)))?);
        }
        Ok(())
    }

    /// Holds nothing more, of what can be released.
    pub fn release(&mut self) -> ungil_heap::Result<()> {
        let released = self.roots.drain(..).map(|root| self.shared.heap.release(root));
        released.fold(Ok(()), Result::and)
    }

    /// As above, if there is one.
    fn of(&mut self, value: Option<Value<'static>>) -> ungil_heap::Result<Option<Value<'static>>> {
        match &value {
            Some(value) => self.hold(value)?,
            None => self.release()?,
        }
        Ok(value)
    }

    /// Builds the Python object of the value.
    pub fn build<'py>(
        &mut self,
        py: Python<'py>,
        value: &Value<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let held = self.roots.drain(..).map(|root| self.shared.proxy(py, root));
        // All of them, also if one fails: those that have a proxy are released by it.
        let held: Vec<PyResult<_>> = held.collect();
        let held: Vec<_> = held.into_iter().collect::<PyResult<_>>()?;
        built(py, value, &mut held.into_iter())
    }
}

impl Drop for Holds<'_> {
    /// What was to become an object and did not, nobody else lets go of.
    fn drop(&mut self) {
        drop(self.release());
    }
}

/// Whether code of Python's has to run, and could fail, before the value is an object.
fn needs_python(value: &Value<'_>) -> bool {
    match value {
        Value::Extension { .. } | Value::Object(_) => true,
        Value::Tuple(values) | Value::FrozenSet(values) => values.iter().any(needs_python),
        _ => false,
    }
}

/// What the proxy `given` consists of, if it is one.
pub fn hold<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a Hold> {
    if let Ok(dict) = given.cast::<Dict>() {
        Some(&dict.get().0)
    } else if let Ok(list) = given.cast::<List>() {
        Some(&list.get().0)
    } else if let Ok(set) = given.cast::<Set>() {
        Some(&set.get().0)
    } else if let Ok(deque) = given.cast::<Deque>() {
        Some(&deque.get().0)
    } else if let Ok(object) = given.cast::<Struct>() {
        object.get().hold()
    } else if let Ok(array) = given.cast::<Array>() {
        array.get().hold()
    } else if let Ok(buffer) = given.cast::<Buffer>() {
        buffer.get().hold()
    } else {
        sync::hold(given).or_else(|| queue::hold(given))
    }
}

/// Builds the Python object of a value; `objects` are those in it, in the order of their occurrence.
fn built<'py>(
    py: Python<'py>,
    value: &Value<'_>,
    objects: &mut std::vec::IntoIter<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = convert::object(py, value)? {
        return Ok(object);
    }
    let mut all = |values: &[Value<'_>]| -> PyResult<Vec<_>> {
        values.iter().map(|value| built(py, value, objects)).collect()
    };
    match value {
        Value::Tuple(items) => Ok(PyTuple::new(py, all(items)?)?.into_any()),
        Value::FrozenSet(members) => Ok(PyFrozenSet::new(py, all(members)?)?.into_any()),
        Value::Object(_) => objects.next().ok_or_else(|| raised(Error::Stale)),
        _ => Err(raised(Error::Corrupt("a value of an unknown type"))),
    }
}

/// The shared objects in a value.
fn objects_of(value: &Value<'_>, found: &mut Vec<Offset>) {
    match value {
        Value::Object(at) => found.push(*at),
        Value::Tuple(values) | Value::FrozenSet(values) => {
            for value in values {
                objects_of(value, found);
            }
        }
        _ => {}
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(root) = self.root.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            drop(self.shared.heap.release(root));
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.root.is_some() {
            // SAFETY: the interpreter takes objects apart in attached threads.
            unsafe { attached(|py| self.let_go(py)) };
        }
    }
}

impl Shared {
    /// A heap without proxies.
    pub fn new(heap: Arc<Heap>, path: Option<PathBuf>) -> Arc<Self> {
        let labels = structs::Labels::default();
        Arc::new(Self { heap, path, proxies: Proxies::default(), labels })
    }

    /// Where other processes find the heap: at its name, or at this process as long as it lives.
    pub fn place(&self) -> PyResult<PathBuf> {
        let segment = self.heap.segment();
        if let Some(path) = self.path.as_deref().filter(|path| segment.is_at(path)) {
            return Ok(path.to_owned());
        }
        let descriptor = segment.file().map_err(raised)?.as_raw_fd();
        Ok(format!("/proc/{}/fd/{descriptor}", std::process::id()).into())
    }

    /// The living proxy of an object, if this process has one.
    pub fn known<'py>(&self, py: Python<'py>, at: Offset) -> Option<Bound<'py, PyAny>> {
        self.proxies.living(py, at)
    }

    /// The living proxies of all objects in a value, in the order of their occurrence, if this
    /// process has all of them.
    fn known_in<'py>(&self, py: Python<'py>, value: &Value<'_>) -> Option<Vec<Bound<'py, PyAny>>> {
        let mut objects = Vec::new();
        objects_of(value, &mut objects);
        objects.into_iter().map(|at| self.known(py, at)).collect()
    }

    /// The proxy of an object that this process holds.
    pub fn proxy<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        root: Root,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hold = Hold::new(self, root);
        match self.known(py, hold.at) {
            // The object is held once, by that.
            Some(proxy) => Ok(proxy),
            None => self.new_proxy(py, hold),
        }
    }

    /// The proxy of an object that has none.
    fn new_proxy<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        hold: Hold,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = hold.at;
        let kind = object::head(self.heap.segment(), at).and_then(object::Head::kind);
        let kind = kind.map_err(raised)?;
        let revived = match kind {
            Kind::Dict => parked::revive::<Dict>(py, hold),
            Kind::List => parked::revive::<List>(py, hold),
            _ => Err(hold),
        };
        let proxy = match revived {
            Ok(proxy) => proxy,
            Err(hold) => self.call_class(py, kind, hold)?,
        };
        self.proxies.enter(at, proxy, classes::class(kind).is_some())
    }

    /// As above, by calling its class.
    fn call_class<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        kind: Kind,
        mut hold: Hold,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = hold.at;
        let class = classes::class_at(self.heap.segment(), kind, at)?;
        let given = Held { shared: self.clone(), root: Mutex::new(hold.root.take()) };
        match class {
            Some(class) => {
                let class = classes::known(py, kind, class)?;
                let native = match kind {
                    Kind::Array => Some(py.get_type::<Array>()),
                    Kind::Buffer => Some(py.get_type::<Buffer>()),
                    _ => None,
                };
                match native {
                    // What Python's half of these classes would do first is for those to be made.
                    Some(native) => {
                        native.call_method1(pyo3::intern!(py, "__new__"), (class, given))
                    }
                    None => class.call1((given,)),
                }
            }
            None => structs::proxy(py, given, at),
        }
    }
}
