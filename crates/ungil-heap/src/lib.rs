//! Objects in shared memory that several processes use as threads use objects, and that survive
//! the death of any of them at any instruction.
//!
//! The order of the modules is the order of the dependencies:
//! [`segment`] (a file, mapped once, addressed by offsets) → [`process`] (who is attached and who
//! is dead) → [`lane`] (what a thread is changing, and how to undo it) → [`lock`] → [`chunk`],
//! [`slab`], [`memory`] → [`object`] → [`op`] (a change, whole or not at all; `poke`, a short one) → [`heap`] → [`value`]
//! (what containers hold, as deep as the `stack` allows) → [`dict`], [`set`], [`list`], [`deque`], [`structs`], [`sync`] →
//! [`reclaim`] (what objects own) → [`roots`], `hold` and [`pin`] (what processes hold) → [`transaction`]
//! (many changes as one) → [`collect`], [`verify`], [`statistics`] (the whole heap, while the world
//! stands still).
//!
//! What must hold for every interleaving of threads is in [`lock`], `bitmap` (blocks of a slab),
//! `version` (reading without a lock), `hazard` (taking a reference without one) and `gate` (stopping
//! the world). They know nothing of the heap, and are all that is built for loom, which checks them.

#![cfg_attr(loom, allow(dead_code, reason = "what uses the protocols is not built"))]
#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod atomic;
mod bitmap;
#[cfg(not(loom))]
mod cells;
#[cfg(not(loom))]
mod change;
#[cfg(not(loom))]
pub mod chunk;
#[cfg(not(loom))]
pub mod collect;
#[cfg(not(loom))]
pub mod deque;
#[cfg(not(loom))]
pub mod dict;
pub mod error;
pub mod fault;
mod gate;
mod hazard;
#[cfg(not(loom))]
pub mod header;
#[cfg(not(loom))]
pub mod heap;
#[cfg(not(loom))]
mod hold;
#[cfg(not(loom))]
pub mod lane;
#[cfg(not(loom))]
pub mod list;
pub mod lock;
#[cfg(not(loom))]
mod mark;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod monitor;
#[cfg(not(loom))]
pub mod object;
#[cfg(not(loom))]
pub mod op;
#[cfg(not(loom))]
pub mod pin;
#[cfg(not(loom))]
mod poke;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod reclaim;
#[cfg(not(loom))]
mod room;
#[cfg(not(loom))]
pub mod roots;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod set;
#[cfg(not(loom))]
pub mod slab;
#[cfg(not(loom))]
pub mod slice;
#[cfg(not(loom))]
pub mod stack;
#[cfg(not(loom))]
pub mod statistics;
#[cfg(not(loom))]
pub mod structs;
#[cfg(not(loom))]
pub mod sync;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
pub mod transaction;
#[cfg(not(loom))]
pub mod value;
#[cfg(not(loom))]
pub mod verify;
mod version;
#[cfg(not(loom))]
mod world;

pub use error::Error;
#[cfg(not(loom))]
pub use heap::Heap;

/// What an operation on a heap returns.
pub type Result<T> = std::result::Result<T, Error>;
