//! `ungil.share`: objects of a shared heap as Python objects.

mod convert;
mod dict;
mod errors;
mod fork;
mod heap;
mod list;
mod monitor;
mod proxy;
mod structs;
mod sync;

pub use dict::Dict;
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use heap::Heap;
pub use list::List;
pub use monitor::{Monitor, owner_died};
pub use proxy::{Held, set_proxy};
pub use structs::{Schema, Struct, struct_cas, struct_incr};
pub use sync::{Barrier, Condition, Event, Lock, Semaphore};
