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
//! What must hold for every interleaving of threads is checked by loom, for which all of this is
//! built with its atomics, on a segment of its own (`segment/model.rs`). [`lock`], `bitmap` (blocks
//! of a slab), `version` (reading without a lock), `hazard` (taking a reference without one) and
//! `gate` (stopping the world) know nothing of the heap and are checked alone; what callers make of
//! them is in `model`.

#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "a model uses a part of it"))]
#![cfg_attr(
    loom,
    allow(
        clippy::arc_with_non_send_sync,
        clippy::inline_always,
        clippy::unnecessary_wraps,
        clippy::useless_vec,
        reason = "a model runs in one thread, and stands for what is larger and can fail"
    )
)]
#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod atomic;
mod bitmap;
pub mod brief;
mod cells;
mod change;
pub mod chunk;
mod clock;
pub mod collect;
pub mod deque;
pub mod dict;
pub mod error;
pub mod fault;
mod futex;
mod gate;
mod hazard;
pub mod header;
pub mod heap;
mod hold;
pub mod lane;
pub mod list;
pub mod lock;
mod mark;
pub mod memory;
#[cfg(all(test, loom))]
mod model;
pub mod monitor;
mod mutation;
pub mod object;
pub mod op;
pub mod pin;
mod poke;
pub mod process;
pub mod reclaim;
mod room;
pub mod roots;
#[cfg_attr(loom, path = "segment/model.rs")]
pub mod segment;
pub mod set;
pub mod slab;
pub mod slice;
pub mod stack;
pub mod statistics;
pub mod structs;
pub mod sync;
pub mod table;
pub mod transaction;
pub mod value;
pub mod verify;
mod version;
mod world;

pub use error::Error;
pub use heap::Heap;

/// What an operation on a heap returns.
pub type Result<T> = std::result::Result<T, Error>;
