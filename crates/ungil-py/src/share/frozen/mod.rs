//! `ungil.share.freeze`: structures of a frozen file as Python objects.

mod dict;
mod errors;
mod freezing;
mod iterator;
mod key;
mod list;
mod made;
mod object;
mod opened;
mod range;
mod set;
mod sharing;
mod texts;
mod thaw;

use pyo3::prelude::*;
use pyo3::types::PyTypeMethods;

pub use freezing::freeze;
pub use iterator::FrozenIterator;
pub use key::ordinary;
pub use opened::open_frozen;
pub use sharing::{frozen_parts, receive_frozen, set_frozen_views};

/// Whether an object is a view of what is frozen.
pub fn is(object: &Bound<'_, PyAny>) -> bool {
    dict::is(object) || list::is(object) || set::is(object)
}

/// Adds the classes of what is frozen.
pub fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for class in [dict::class(py)?, list::class(py)?, list::tuple_class(py)?, set::class(py)?] {
        module.add(class.name()?, class)?;
    }
    Ok(())
}
