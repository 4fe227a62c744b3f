//! Python objects on their way into a heap: what is taken from Python, and what has to be made.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyTuple, PyType};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::stack;
use ungil_heap::value::{self, Value};

use super::array::Array;
use super::buffer::Buffer;
use super::convert::simple;
use super::errors::raised;
use super::extension::{self, Taken};
use super::frozen;
use super::making::{self, Draft, New, finished};
use super::proxy::{Shared, hold};
use super::queue;
use super::structs::{self, Struct};
use super::sync;
use crate::guarded::of_one_moment;

/// Python objects on their way into a heap.
///
/// Everything is taken from Python first, and the heap is changed afterwards: no Python code runs
/// inside of an operation.
pub struct Drafts<'a, 'py> {
    shared: &'a Arc<Shared>,
    new: Vec<New<'a>>,
    /// By their addresses: what occurs twice is shared once.
    seen: HashMap<*mut ffi::PyObject, usize>,
    /// Keeps alive what the drafts borrow from.
    kept: Vec<Bound<'py, PyAny>>,
    path: Vec<Step<'py>>,
    /// How many tuples and frozensets the one is in that is looked at.
    nested: usize,
    /// Whether that is a key, or in one.
    is_key: bool,
}

/// From a container to what is in it.
enum Step<'py> {
    Index(usize),
    Key(Bound<'py, PyAny>),
    Field(String),
    Member(Bound<'py, PyAny>),
}

impl<'a, 'py> Drafts<'a, 'py> {
    /// For values that go to this heap.
    pub fn new(shared: &'a Arc<Shared>) -> Self {
        let (new, kept, path) = (Vec::new(), Vec::new(), Vec::new());
        Self { shared, new, seen: HashMap::new(), kept, path, nested: 0, is_key: false }
    }

    /// The draft of a Python object, which stays alive as long as the drafts do.
    ///
    /// # Errors
    /// `TypeError` that names the place of what cannot be shared; `RecursionError` for what is nested
    /// too deep.
    pub fn draft(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Draft<'a>> {
        if let Some(value) = simple(given)? {
            // What it borrows from.
            self.kept.push(given.clone());
            return Ok(Draft::Value(value));
        }
        if let Some(at) = self.object(given)? {
            // Its proxy, because nobody else may have the object.
            self.kept.push(given.clone());
            return Ok(Draft::Value(Value::Object(at)));
        }
        if let Some(&number) = self.seen.get(&given.as_ptr()) {
            return Ok(Draft::New(number));
        }
        if let Ok(tuple) = given.cast_exact::<PyTuple>() {
            return self.nested(given.py(), |drafts| drafts.tuple(tuple));
        }
        if let Ok(members) = given.cast_exact::<PyFrozenSet>() {
            return self.nested(given.py(), |drafts| drafts.frozen_set(members));
        }
        // As a value it stays where it is; as a key it is found by what it equals.
        if self.is_key
            && let Some(ordinary) = frozen::ordinary(given)?
        {
            return self.draft(&ordinary);
        }
        let _deeper = Deeper::new(given.py())?;
        let number = self.new.len();
        if let Ok(items) = given.cast_exact::<PyList>() {
            self.begin(given, New::List(Vec::new()));
            self.new[number] = New::List(self.items(items)?);
        } else if let Ok(items) = given.cast_exact::<PyDict>() {
            self.begin(given, New::Dict(Vec::new()));
            self.new[number] = New::Dict(self.pairs(items)?);
        } else if let Ok(object) = given.cast::<Struct>() {
            return self.structure(given, object);
        } else if let Some((making, lock)) = sync::wanted(given) {
            // The lock is the first to be made.
            let lock = lock.map(|lock| self.draft(&lock)).transpose()?;
            let number = self.new.len();
            self.begin(given, New::Sync(making, lock));
            return Ok(Draft::New(number));
        } else if let Some(making) = queue::wanted(given) {
            self.begin(given, New::Queue(making));
        } else if let Ok(members) = given.cast_exact::<PySet>() {
            self.begin(given, New::Set(Vec::new()));
            self.new[number] = New::Set(self.members(members)?);
        } else if is_deque(given)? {
            let limit = given.getattr("maxlen")?.extract()?;
            self.begin(given, New::Deque(Vec::new(), limit));
            let items = given.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let items = PyList::new(given.py(), items)?;
            self.new[number] = New::Deque(self.items(&items)?, limit);
        } else if let Ok(array) = given.cast::<Array>() {
            self.begin(given, New::Array(array.clone().unbind()));
        } else if let Ok(buffer) = given.cast::<Buffer>() {
            self.begin(given, New::Buffer(buffer.clone().unbind()));
        } else {
            return match extension::take(given)? {
                Taken::Value(value) => Ok(Draft::Value(value)),
                Taken::Unfit(reason) => Err(self.unfit_because(&reason)),
            };
        }
        Ok(Draft::New(number))
    }

    /// Looks into a tuple or frozenset.
    fn nested<T>(
        &mut self,
        py: Python<'_>,
        look: impl FnOnce(&mut Self) -> PyResult<T>,
    ) -> PyResult<T> {
        let _deeper = Deeper::new(py)?;
        if self.nested > value::DEPTH {
            return Err(raised(value::NESTED_TOO_DEEP));
        }
        // What is done with the value afterwards nests as well.
        stack::check(self.nested).map_err(raised)?;
        self.nested += 1;
        let looked = look(self);
        self.nested -= 1;
        looked
    }

    /// The draft of a key of a dict or a member of a set, in which nothing can be made.
    ///
    /// # Errors
    /// `TypeError` for what is not hashable.
    pub fn draft_key(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Draft<'a>> {
        if let Some(value) = simple(given)? {
            self.kept.push(given.clone());
            return Ok(Draft::Value(value));
        }
        let made = self.new.len();
        // First, because Python's hash of a nested tuple looks at no stack; it needs less than this.
        self.is_key = true;
        let draft = self.draft(given);
        self.is_key = false;
        let is_too_deep = |error: &PyErr| error.is_instance_of::<PyRecursionError>(given.py());
        if !draft.as_ref().is_err_and(is_too_deep) {
            // Python says so of its own containers, and their proxies of theirs.
            given.hash()?;
        }
        let draft = draft?;
        if self.new.len() == made { Ok(draft) } else { Err(self.unfit(given)) }
    }

    /// As [`Self::draft_key`], of what is only looked for. `None`: it cannot be shared.
    ///
    /// # Errors
    /// `TypeError` for what is not hashable.
    pub fn draft_known(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Option<Draft<'a>>> {
        let (depth, nested) = (self.path.len(), self.nested);
        match self.draft_key(given) {
            Err(error) if error.is_instance_of::<PyTypeError>(given.py()) => {
                given.hash()?;
                self.path.truncate(depth);
                self.nested = nested;
                Ok(None)
            }
            draft => draft.map(Some),
        }
    }

    /// The draft of a value that one in the heap is to be compared with, in which nothing can be
    /// made.
    ///
    /// # Errors
    /// `TypeError` for what only a new object could be.
    pub fn draft_old(&mut self, given: &Bound<'py, PyAny>) -> PyResult<Draft<'a>> {
        let made = self.new.len();
        let draft = self.draft(given)?;
        if self.new.len() == made {
            return Ok(draft);
        }
        let name = given.get_type().name()?;
        let why = format!("cas compares containers by identity: this {name} is not shared");
        Err(PyTypeError::new_err(why))
    }

    /// The drafts of what a list has in it.
    pub fn items(&mut self, items: &Bound<'py, PyList>) -> PyResult<Vec<Draft<'a>>> {
        let mut drafts = Vec::with_capacity(items.len());
        let items = of_one_moment(items)?.cast_into::<PyList>()?;
        for (index, item) in items.iter().enumerate() {
            self.path.push(Step::Index(index));
            drafts.push(self.draft(&item)?);
            self.path.pop();
        }
        Ok(drafts)
    }

    /// The drafts of the keys and values of a dict.
    pub fn pairs(&mut self, items: &Bound<'py, PyDict>) -> PyResult<Vec<(Draft<'a>, Draft<'a>)>> {
        let mut drafts = Vec::with_capacity(items.len());
        // A copy, because the hash of a key is code that could change the dict.
        for pair in items.items() {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair.extract()?;
            self.path.push(Step::Key(key.clone()));
            drafts.push((self.draft_key(&key)?, self.draft(&value)?));
            self.path.pop();
        }
        Ok(drafts)
    }

    fn structure(
        &mut self,
        given: &Bound<'py, PyAny>,
        object: &Bound<'py, Struct>,
    ) -> PyResult<Draft<'a>> {
        let number = self.new.len();
        let (making, values) = structs::Making::begin(self.shared, object)?;
        self.begin(given, New::Struct(making, Vec::new()));
        let mut drafts = Vec::with_capacity(values.len());
        for (name, value) in values {
            self.path.push(Step::Field(name));
            drafts.push(self.draft(&value)?);
            self.path.pop();
        }
        if let New::Struct(_, fields) = &mut self.new[number] {
            *fields = drafts;
        }
        Ok(Draft::New(number))
    }

    /// The drafts of the members of a set.
    fn members(&mut self, members: &Bound<'py, PySet>) -> PyResult<Vec<Draft<'a>>> {
        let mut drafts = Vec::with_capacity(members.len());
        // A copy, because the hash of a member is code that could change the set.
        for member in of_one_moment(members)?.try_iter()?.collect::<PyResult<Vec<_>>>()? {
            self.path.push(Step::Member(member.clone()));
            drafts.push(self.draft_key(&member)?);
            self.path.pop();
        }
        Ok(drafts)
    }

    fn begin(&mut self, given: &Bound<'py, PyAny>, new: New<'a>) {
        self.seen.insert(given.as_ptr(), self.new.len());
        self.kept.push(given.clone());
        self.new.push(new);
    }

    fn frozen_set(&mut self, members: &Bound<'py, PyFrozenSet>) -> PyResult<Draft<'a>> {
        let mut values = Vec::with_capacity(members.len());
        for member in members.try_iter()? {
            match self.draft(&member?)? {
                Draft::Value(value) => values.push(value),
                _ => return Err(self.unfit(members)),
            }
        }
        Ok(Draft::Value(Value::FrozenSet(values)))
    }

    fn tuple(&mut self, tuple: &Bound<'py, PyTuple>) -> PyResult<Draft<'a>> {
        let mut drafts = Vec::with_capacity(tuple.len());
        for (index, item) in tuple.iter().enumerate() {
            self.path.push(Step::Index(index));
            drafts.push(self.draft(&item)?);
            self.path.pop();
        }
        if drafts.iter().any(|draft| !matches!(draft, Draft::Value(_))) {
            return Ok(Draft::Tuple(drafts));
        }
        let values = drafts.into_iter().map(|draft| match draft {
            Draft::Value(value) => value,
            Draft::New(_) | Draft::Tuple(_) => Value::None,
        });
        Ok(Draft::Value(Value::Tuple(values.collect())))
    }

    /// Where an object of this heap is, if `given` is its proxy.
    fn object(&self, given: &Bound<'py, PyAny>) -> PyResult<Option<Offset>> {
        let Some(hold) = hold(given) else { return Ok(None) };
        if Arc::ptr_eq(&hold.shared, self.shared) {
            return Ok(Some(hold.at));
        }
        let subject = self.subject();
        Err(PyTypeError::new_err(format!(
            "{subject} is in another heap: share a copy instead (its copy() is an ordinary object)"
        )))
    }

    /// Where in what was given the draft is, as Python would write it.
    fn place(&self) -> String {
        let step = |step: &Step<'_>| match step {
            Step::Index(index) => format!("[{index}]"),
            Step::Field(name) => format!(".{name}"),
            Step::Key(key) => {
                key.repr().map_or_else(|_| "[?]".to_owned(), |key| format!("[{key}]"))
            }
            Step::Member(member) => {
                member.repr().map_or_else(|_| "{?}".to_owned(), |member| format!("{{{member}}}"))
            }
        };
        self.path.iter().map(step).collect()
    }

    fn unfit_because(&self, reason: &str) -> PyErr {
        PyTypeError::new_err(format!("{} cannot be shared: {reason}", self.subject()))
    }

    /// As [`Self::place`], also of what was given itself.
    fn subject(&self) -> String {
        let place = self.place();
        if place.is_empty() { "the object".to_owned() } else { place }
    }

    fn unfit(&self, given: &Bound<'py, PyAny>) -> PyErr {
        let place = self.place();
        let name = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(if place.is_empty() {
            format!("an object of type {name} cannot be shared")
        } else {
            format!("{place} is of type {name}, which cannot be shared")
        })
    }

    /// Makes what has to be made, as part of an operation; where the objects are, by their numbers.
    pub fn make(&self, op: &mut Op<'_>) -> ungil_heap::Result<Vec<Offset>> {
        making::make(&self.new, op)
    }
}

/// One step deeper in what nests, as long as this lives.
struct Deeper;

impl Deeper {
    /// # Errors
    /// `RecursionError` where Python would raise it too, or where the stack ends.
    fn new(py: Python<'_>) -> PyResult<Self> {
        stack::check(0).map_err(raised)?;
        // SAFETY: the GIL is held, and the text ends with a zero.
        if unsafe { ffi::Py_EnterRecursiveCall(c" while sharing an object".as_ptr()) } == 0 {
            Ok(Self)
        } else {
            Err(PyErr::fetch(py))
        }
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        // SAFETY: it was entered, by this thread: drafts do not leave it.
        unsafe { ffi::Py_LeaveRecursiveCall() };
    }
}

/// Whether this is a `collections.deque`, and of no subclass.
fn is_deque(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(given.get_type().is(CLASS.import(given.py(), "collections", "deque")?))
}

/// Calls `put` with the value of a Python object, in one operation with the making of what has to be
/// made for it. May be called twice, if garbage had to be collected.
///
/// # Errors
/// Those of `put`; `TypeError` that names the place of what cannot be shared.
#[inline]
pub fn put<T>(
    shared: &Arc<Shared>,
    given: &Bound<'_, PyAny>,
    mut put: impl FnMut(&Value<'_>) -> ungil_heap::Result<T>,
) -> PyResult<T> {
    if let Some(value) = simple(given)? {
        return put(&value).map_err(raised);
    }
    let mut drafts = Drafts::new(shared);
    let draft = drafts.draft(given)?;
    let done = shared.heap.change(|op| {
        let made = drafts.make(op)?;
        put(&finished(&draft, &made))
    });
    done.map_err(raised)
}

/// Calls `with` with the value of a key, of which `draft` makes the draft unless it is simple.
/// `None`: there is none.
///
/// # Errors
/// Those of both.
#[inline]
pub fn with_key<'a, 'py, T>(
    shared: &'a Arc<Shared>,
    key: &Bound<'py, PyAny>,
    draft: impl FnOnce(&mut Drafts<'a, 'py>) -> PyResult<Option<Draft<'a>>>,
    with: impl FnOnce(&Value<'_>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    if let Some(value) = simple(key)? {
        return with(&value).map(Some);
    }
    let mut drafts = Drafts::new(shared);
    draft(&mut drafts)?.map(|draft| with(&finished(&draft, &[]))).transpose()
}
