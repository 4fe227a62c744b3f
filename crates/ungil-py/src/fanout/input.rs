//! Where the items of a fan-out come from.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::{PyTraverseError, PyVisit};

/// Where items come from.
pub enum Input {
    /// They are put in, one by one, when there is room for them.
    Put,
    /// An iterator. Whoever asks for the next item waits for it.
    Iterator(Py<PyIterator>),
    /// An iterator that a thread of its own reads. Nobody else waits for it.
    Read(Py<PyIterator>, Mutex<Stock>),
}

/// What was read and has not come in.
#[derive(Default)]
pub struct Stock {
    pub items: VecDeque<Py<PyAny>>,
    /// Nothing more will be read.
    pub is_over: bool,
}

/// The answer to the question for the next item.
pub enum Pulled<'py> {
    Item(Bound<'py, PyAny>),
    Failed(PyErr),
    /// There is none now, but there may be later.
    NotYet,
    Over,
}

impl Input {
    /// The next item.
    pub fn pull<'py>(&self, py: Python<'py>) -> Pulled<'py> {
        match self {
            Self::Put => Pulled::NotYet,
            Self::Iterator(iterator) => next(py, iterator),
            Self::Read(_, stock) => {
                let mut stock = locked(stock);
                match stock.items.pop_front() {
                    Some(item) => Pulled::Item(item.into_bound(py)),
                    None if stock.is_over => Pulled::Over,
                    None => Pulled::NotYet,
                }
            }
        }
    }

    /// Reads an item, for the stock; false if there is no other. Raises what the iterator raises.
    pub fn read(&self, py: Python<'_>) -> PyResult<bool> {
        let Self::Read(iterator, stock) = self else { return Ok(false) };
        let pulled = next(py, iterator);
        let mut stock = locked(stock);
        match pulled {
            Pulled::Item(item) => {
                stock.items.push_back(item.unbind());
                return Ok(true);
            }
            Pulled::Failed(error) => {
                stock.is_over = true;
                return Err(error);
            }
            Pulled::NotYet | Pulled::Over => stock.is_over = true,
        }
        Ok(false)
    }

    /// How many items are in stock; `None` if no thread of its own reads the input.
    pub fn in_stock(&self) -> Option<usize> {
        match self {
            Self::Read(_, stock) => Some(locked(stock).items.len()),
            Self::Put | Self::Iterator(_) => None,
        }
    }

    /// Takes all out that is in stock.
    pub fn clear(&self) -> VecDeque<Py<PyAny>> {
        match self {
            Self::Read(_, stock) => std::mem::take(&mut locked(stock).items),
            Self::Put | Self::Iterator(_) => VecDeque::new(),
        }
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Put => Ok(()),
            Self::Iterator(iterator) => visit.call(iterator),
            Self::Read(iterator, stock) => {
                visit.call(iterator)?;
                // It is locked for moments only, and never while Python runs.
                locked(stock).items.iter().try_for_each(|item| visit.call(item))
            }
        }
    }
}

fn next<'py>(py: Python<'py>, iterator: &Py<PyIterator>) -> Pulled<'py> {
    match iterator.bind(py).clone().next() {
        Some(Ok(item)) => Pulled::Item(item),
        Some(Err(error)) => Pulled::Failed(error),
        None => Pulled::Over,
    }
}

fn locked(stock: &Mutex<Stock>) -> MutexGuard<'_, Stock> {
    stock.lock().unwrap_or_else(PoisonError::into_inner)
}
