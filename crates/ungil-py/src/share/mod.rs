//! `ungil.share`: objects of a shared heap as Python objects.

mod argument;
mod convert;
mod dict;
mod dict_walk;
mod errors;
mod extension;
mod fork;
mod heap;
mod list;
mod list_iterator;
mod proxy;
mod transaction;

pub use dict::Dict;
pub use dict_walk::Walk;
pub use extension::set_values;
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use heap::Heap;
pub use list::List;
pub use list_iterator::ListIterator;
pub use proxy::{Held, set_proxy};
pub use transaction::Transaction;
