//! `ungil.share`: objects of a shared heap as Python objects.

mod absent;
mod argument;
mod array;
mod attached;
mod buffer;
mod changes;
mod classes;
mod convert;
mod declared;
mod deque;
mod dict;
mod dict_walk;
mod draft;
mod errors;
mod extension;
mod fork;
mod frozen;
mod handle;
mod heap;
mod index;
mod lately;
mod list;
mod list_iterator;
mod making;
mod memory;
mod monitor;
mod parked;
mod proxies;
mod proxy;
mod queue;
mod recent;
mod set;
mod slots;
mod sought;
mod statistics;
mod structs;
mod sync;
mod transaction;

use pyo3::prelude::*;
use pyo3::types::PyTypeMethods;

use crate::guarded;

pub use absent::Absent;
pub use array::Array;
pub use buffer::Buffer;
pub use changes::{
    version, wait_for_change, watch_bell, watch_disturb, watch_heap, watch_object, watch_sleep,
};
pub use classes::set_proxy;
pub use deque::Deque;
pub use dict::Dict;
pub use dict_walk::Walk;
pub use extension::set_values;
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use frozen::{
    FrozenIterator, freeze, frozen_parts, open_frozen, receive_frozen, set_frozen_views,
};
pub use handle::{is_shared, receive_handle, send_handle};
pub use heap::Heap;
pub use list::List;
pub use list_iterator::ListIterator;
pub use monitor::{Monitor, owner_died};
pub use proxy::Held;
pub use queue::{Lease, Queue, wait_for_queues, watch_queue};
pub use set::Set;
pub use sought::set_stand_in;
pub use structs::{Schema, Struct, struct_cas, struct_incr};
pub use sync::{Barrier, Condition, Event, Lock, Semaphore};
pub use transaction::{Transaction, leave_transaction, set_watch};

/// Adds the classes that PyO3 does not make.
pub fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    guarded::prepare(py)?;
    module.add("ABSENT", Absent)?;
    for class in [dict::quick(py)?, list::quick(py)?] {
        module.add(class.name()?, class)?;
    }
    frozen::add_classes(module)
}
