//! Objects in shared memory that several processes use as threads use objects, and that survive
//! the death of any of them at any instruction.
//!
//! The order of the modules is the order of the dependencies:
//! [`segment`] (a file, mapped once, addressed by offsets) → [`process`] (who is attached and who
//! is dead) → [`lane`] (what a thread is changing, and how to undo it) → [`lock`] → [`chunk`],
//! [`slab`], [`memory`] → [`object`] → [`op`] (a change, whole or not at all) → [`heap`] → [`value`]
//! (what containers hold) → [`dict`], [`set`], [`list`], [`deque`], [`structs`], [`sync`] →
//! [`reclaim`] (what objects own) → [`roots`] and [`pin`] (what processes hold) → [`collect`],
//! [`verify`], [`statistics`] (the whole heap, while the world stands still).

mod cells;
mod change;
pub mod chunk;
pub mod collect;
pub mod deque;
pub mod dict;
pub mod error;
pub mod fault;
pub mod header;
pub mod heap;
pub mod lane;
pub mod list;
pub mod lock;
mod mark;
pub mod memory;
pub mod monitor;
pub mod object;
pub mod op;
pub mod pin;
pub mod process;
pub mod reclaim;
mod room;
pub mod roots;
pub mod segment;
pub mod set;
pub mod slab;
pub mod slice;
pub mod statistics;
pub mod structs;
pub mod sync;
pub mod table;
pub mod value;
pub mod verify;
mod world;

pub use error::Error;
pub use heap::Heap;

/// What an operation on a heap returns.
pub type Result<T> = std::result::Result<T, Error>;
