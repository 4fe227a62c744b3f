//! `ungil.share`: objects of a shared heap as Python objects.

mod attached;
mod convert;
mod dict;
mod errors;
mod fork;
mod handle;
mod heap;
mod list;
mod proxy;
mod statistics;

pub use dict::Dict;
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use handle::{receive_handle, send_handle};
pub use heap::Heap;
pub use list::List;
pub use proxy::{Held, set_proxy};
