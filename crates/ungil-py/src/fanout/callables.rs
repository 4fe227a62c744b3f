//! What a dispatcher asks the user's functions: about an item, and about an exception.

use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::attempt::After;
use ungil_fanout::dispatch::Membership;

use super::hosts::host_of;
use super::lean::CutOff;
use super::outcome::Outcome;
use crate::clock::nanoseconds;

/// The functions of one fan-out. They may come back to its dispatcher.
pub struct Callables {
    /// Whether an exception is worth another attempt; without it, all are that can be.
    pub retry_if: Option<Py<PyAny>>,
    /// Gives `(seconds, exactly)` to wait after an exception and the number of its attempt, or None:
    /// as the backoff says. Where it is not exact, the backoff's wait is added.
    pub wait: Option<Py<PyAny>>,
    /// Gives `(group, most)` or None for an item.
    pub group: Option<Py<PyAny>>,
    /// Gives the seconds after which whoever has caused an exception wants to be asked again, zero
    /// if it does not tell, or None if it does not say that it is too much.
    pub too_much: Option<Py<PyAny>>,
    /// Gives `(value,)` for an item that an earlier run has done, else None.
    pub resume: Option<Py<PyAny>>,
    /// Is told each outcome, before it can be taken.
    pub finished: Option<Py<PyAny>>,
    /// Gives the name of the way in which an exception makes an item fail; without it, that is the
    /// name of the exception.
    pub name: Option<Py<PyAny>>,
    /// Of `limit="auto"`, for which a URL is of the group of its host, if there is no `group`.
    pub adapts: bool,
    /// The number of each group, as groups are whatever is hashable.
    pub groups: Py<PyDict>,
}

impl Callables {
    /// The value of an item that an earlier run has done.
    pub fn resumed(&self, item: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let Some(resume) = &self.resume else { return Ok(None) };
        let known: Option<(Py<PyAny>,)> = resume.bind(item.py()).call1((item,))?.extract()?;
        Ok(known.map(|(value,)| value))
    }

    /// The group of an item.
    pub fn membership(&self, item: &Bound<'_, PyAny>) -> PyResult<Membership> {
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

    /// After how many nanoseconds, at least one, whoever was asked wants to be asked again, if that
    /// is what the exception says.
    pub fn says_too_much(&self, exception: &Bound<'_, PyBaseException>) -> PyResult<Option<u64>> {
        let Some(too_much) = &self.too_much else { return Ok(None) };
        let asked: Option<f64> = too_much.bind(exception.py()).call1((exception,))?.extract()?;
        Ok(asked.map(|seconds| nanoseconds(seconds).max(1)))
    }

    /// When an item is to be tried again after so many failures; `None` if it is not to be.
    pub fn another(
        &self,
        exception: &Bound<'_, PyBaseException>,
        failures: u32,
    ) -> PyResult<Option<After>> {
        if !self.is_worth_another(exception)? {
            return Ok(None);
        }
        let Some(wait) = &self.wait else { return Ok(Some(After::AgainLater(0))) };
        let asked = wait.bind(exception.py()).call1((exception, failures))?;
        let asked: Option<(f64, bool)> = asked.extract()?;
        Ok(Some(match asked {
            Some((seconds, true)) => After::Again(nanoseconds(seconds)),
            Some((seconds, false)) => After::AgainLater(nanoseconds(seconds)),
            None => After::AgainLater(0),
        }))
    }

    fn is_worth_another(&self, exception: &Bound<'_, PyBaseException>) -> PyResult<bool> {
        // Whoever has stopped it does not want more of it. A SystemExit is as good a failure as any.
        if exception.is_instance_of::<CutOff>() || exception.is_instance_of::<PyKeyboardInterrupt>()
        {
            return Ok(false);
        }
        match &self.retry_if {
            None => Ok(true),
            Some(retry_if) => retry_if.bind(exception.py()).call1((exception,))?.is_truthy(),
        }
    }

    /// Under which name a failure is counted, if they say.
    pub fn name_of(&self, exception: &Bound<'_, PyBaseException>) -> PyResult<Option<String>> {
        let Some(name) = &self.name else { return Ok(None) };
        Ok(Some(name.bind(exception.py()).call1((exception,))?.extract()?))
    }

    /// An outcome can be taken soon.
    pub fn tell(&self, outcome: &Bound<'_, Outcome>) -> PyResult<()> {
        match &self.finished {
            Some(finished) => finished.bind(outcome.py()).call1((outcome,)).map(drop),
            None => Ok(()),
        }
    }

    /// For the collector of cycles.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.retry_if)?;
        visit.call(&self.wait)?;
        visit.call(&self.group)?;
        visit.call(&self.too_much)?;
        visit.call(&self.resume)?;
        visit.call(&self.finished)?;
        visit.call(&self.name)?;
        visit.call(&self.groups)
    }
}
