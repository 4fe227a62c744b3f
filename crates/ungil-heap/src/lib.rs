//! Objects in shared memory that several processes use as threads use objects, and that survive
//! the death of any of them at any instruction.
//!
//! The order of the modules is the order of the dependencies:
//! [`segment`] (a file, mapped once, addressed by offsets) → [`process`] (who is attached and who
//! is dead) → [`lane`] (what a thread is changing, and how to undo it) → [`lock`] → [`chunk`],
//! [`slab`], [`memory`] → [`object`] → [`op`] (a change, whole or not at all) → [`heap`] →
//! [`value`] → the containers ([`list`], [`deque`], [`structs`]), [`monitor`] and [`sync`].
//!
//! What must hold for every interleaving of threads is in [`lock`], `bitmap` (blocks of a slab),
//! `version` (reading without a lock) and `gate` (stopping the world). They know nothing of the
//! heap, and are all that is built for loom, which checks them.

#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod atomic;
mod bitmap;
#[cfg(not(loom))]
mod cells;
#[cfg(not(loom))]
pub mod chunk;
#[cfg(not(loom))]
pub mod deque;
pub mod error;
pub mod fault;
mod gate;
#[cfg(not(loom))]
pub mod header;
#[cfg(not(loom))]
pub mod heap;
#[cfg(not(loom))]
pub mod lane;
#[cfg(not(loom))]
pub mod list;
pub mod lock;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod monitor;
#[cfg(not(loom))]
pub mod object;
#[cfg(not(loom))]
pub mod op;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod reclaim;
#[cfg(not(loom))]
mod room;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod slab;
#[cfg(not(loom))]
pub mod slice;
#[cfg(not(loom))]
pub mod structs;
#[cfg(not(loom))]
pub mod sync;
#[cfg(not(loom))]
pub mod value;
mod version;

pub use error::Error;
#[cfg(not(loom))]
pub use heap::Heap;

/// What an operation on a heap returns.
pub type Result<T> = std::result::Result<T, Error>;
