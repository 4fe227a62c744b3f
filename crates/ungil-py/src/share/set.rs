//! A shared set: what reads or changes it. What computes with copies is Python's (`ungil.share`).

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyIterator, PyList, PySet, PyTuple};
use ungil_heap::set;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;

use super::draft::{self, Drafts};
use super::errors::raised;
use super::making::{Draft, finished};
use super::proxy::{Held, Hold};
use super::sought;
use crate::guarded::of_one_moment;

/// The proxy of a shared set.
#[pyclass(frozen, generic, subclass, weakref, module = "ungil._native", name = "SharedSet")]
pub struct Set(pub Hold);

#[pymethods]
impl Set {
    #[new]
    #[pyo3(signature = (held = None, /))]
    fn new(held: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Held::given(held).map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        set::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    #[inline]
    fn __contains__(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_member(given, |member| set::contains(&self.0.shared.heap, self.0.at, member))
    }

    /// Goes through the members of this moment.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.members(py)?)?.try_iter()
    }

    /// Makes something a member.
    #[inline]
    #[pyo3(signature = (member, /))]
    fn add(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        let (shared, at) = (&self.0.shared, self.0.at);
        let add = |member: &Value<'_>| set::add(&shared.heap, at, member).map_err(raised);
        draft::with_key(shared, member, |drafts| drafts.draft_key(member).map(Some), add).map(drop)
    }

    /// Makes something no member.
    #[pyo3(signature = (member, /))]
    fn discard(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take_out(member).map(|_| ())
    }

    /// Makes a member none.
    #[pyo3(signature = (member, /))]
    fn remove(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.take_out(member)? {
            Ok(())
        } else {
            // In a tuple, because one alone would be taken for the arguments.
            Err(PyKeyError::new_err((member.clone().unbind(),)))
        }
    }

    /// Takes any member out.
    fn pop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let member = self.0.take_out(py, |op| set::pop_in(op, self.0.at))?;
        member.ok_or_else(|| PyKeyError::new_err("pop from an empty set"))
    }

    /// Takes all members out.
    fn clear(&self) -> PyResult<()> {
        set::clear(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// Makes all of these members, in one step.
    #[pyo3(signature = (*others))]
    fn update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut drafts = Drafts::new(&self.0.shared);
        let mut members = Vec::new();
        for other in others {
            for member in of_one_moment(&other)?.try_iter()? {
                members.push(finished(&drafts.draft_key(&member?)?, &[]));
            }
        }
        set::update(&self.0.shared.heap, self.0.at, &members).map_err(raised)
    }

    /// Keeps only members that are in all of these, in one step.
    #[pyo3(signature = (*others))]
    fn intersection_update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = others.py();
        let Ok(first) = others.get_item(0) else { return Ok(()) };
        let kept = if others.len() == 1 {
            first
        } else {
            let rest = others.get_slice(1, others.len());
            py.get_type::<PySet>().call1((first,))?.call_method1("intersection", rest)?
        };
        let mut drafts = Drafts::new(&self.0.shared);
        let kept = self.known(&mut drafts, &kept)?;
        set::intersection_update(&self.0.shared.heap, self.0.at, &kept).map_err(raised)
    }

    /// Takes all of these out, in one step.
    #[pyo3(signature = (*others))]
    fn difference_update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut drafts = Drafts::new(&self.0.shared);
        let mut gone = Vec::new();
        for other in others {
            gone.extend(self.known(&mut drafts, &other)?);
        }
        set::difference_update(&self.0.shared.heap, self.0.at, &gone).map_err(raised)
    }

    /// Takes those of these out that are members and makes the others members, in one step.
    #[pyo3(signature = (other, /))]
    fn symmetric_difference_update(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut drafts = Drafts::new(&self.0.shared);
        let mut members = Vec::new();
        for member in of_one_moment(other)?.try_iter()? {
            members.push(finished(&drafts.draft_key(&member?)?, &[]));
        }
        set::symmetric_difference_update(&self.0.shared.heap, self.0.at, &members).map_err(raised)
    }
}

impl Set {
    /// All members, of one moment.
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        self.0.snapshot(py, || set::batch(heap, at, &mut Cursor::default(), usize::MAX))
    }

    fn take_out(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_member(given, |member| set::discard(&self.0.shared.heap, self.0.at, member))
    }

    /// Calls `with` with the value of what may be a member; false: it can be none.
    #[inline]
    fn with_member(
        &self,
        given: &Bound<'_, PyAny>,
        with: impl FnOnce(&Value<'_>) -> ungil_heap::Result<bool>,
    ) -> PyResult<bool> {
        let with = |member: &Value<'_>| with(member).map_err(raised);
        draft::with_key(&self.0.shared, given, |drafts| self.look(drafts, &meant(given)?), with)
            .map(Option::unwrap_or_default)
    }

    /// The values of those that may be members.
    fn known<'a, 'py>(
        &'a self,
        drafts: &mut Drafts<'a, 'py>,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Value<'a>>> {
        let mut values = Vec::new();
        for given in of_one_moment(given)?.try_iter()? {
            values.extend(self.look(drafts, &given?)?.map(|draft| finished(&draft, &[])));
        }
        Ok(values)
    }

    /// The draft of what may be a member.
    fn look<'a, 'py>(
        &'a self,
        drafts: &mut Drafts<'a, 'py>,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Draft<'a>>> {
        sought::known(drafts, given, || self.members(given.py()))
    }
}

/// The member that is meant: as for a builtin set, by a set the frozenset that equals it.
fn meant<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if given.is_instance_of::<PySet>() || given.is_instance_of::<Set>() {
        return given.py().get_type::<PyFrozenSet>().call1((given,));
    }
    Ok(given.clone())
}
