//! `ungil.share`: objects of a shared heap as Python objects.

mod convert;
mod deque;
mod dict;
mod errors;
mod fork;
mod heap;
mod list;
mod proxy;
mod set;

pub use deque::Deque;
pub use dict::Dict;
pub use fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub use heap::Heap;
pub use list::List;
pub use proxy::{Held, set_proxy};
pub use set::Set;
