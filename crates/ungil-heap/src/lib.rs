//! Objects in shared memory that several processes use as threads use objects, and that survive
//! the death of any of them at any instruction.
//!
//! The modules below stand in the order of their dependencies: each uses those above it and no
//! others (`make lint` looks). A [`Heap`] is declared early; what is done with one is in methods that
//! later modules add.
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

// What is made of words that processes share, whatever lies around them.
pub mod error;
pub mod fault;
mod mutation;
mod atomic;
mod clock;
mod futex;
mod bitmap;
mod version;
mod gate;
mod hazard;
pub mod lock;

// The segment, and the tables of processes and of their threads.
pub mod header;
mod available_memory;
#[cfg_attr(loom, path = "segment/model.rs")]
pub mod segment;
pub mod process_table;
pub mod lane;

// Memory: chunks, and blocks of them.
pub mod size_class;
pub mod chunk;
pub mod slab;
pub mod memory;

// Objects, what processes hold of them, and what dead ones leave.
pub mod object;
mod root_table;
mod cleanup;
pub mod watch;

// The heap, its threads, and their changes.
pub mod heap;
mod liveness;
mod work;
mod thread;
mod allocator;
pub mod op;
mod read;

// Holding objects, while the process comes, forks and goes.
pub mod roots;
mod attach;
pub mod fork;

// The whole heap, while the world stands still.
mod world;
mod mark;
pub mod collect;
pub mod verify;
pub mod statistics;

// Changes that are begun again if garbage was in their way, and several of them as one.
mod change;
pub mod transaction;

// Values and the cells they are kept in, and what is read and changed without an operation.
pub mod stack;
pub mod slice;
pub mod value;
mod cells;
mod poke;
pub mod brief;
mod hold;
pub mod pin;

// The kinds of objects.
pub mod table;
pub mod dict;
pub mod set;
pub mod list;
pub mod deque;
pub mod structs;
pub mod monitor;
pub mod changes;
pub mod sync;
pub mod queue;
mod kinds;

#[cfg(all(test, loom))]
mod model;

pub use error::Error;
pub use heap::Heap;

/// What an operation on a heap returns.
pub type Result<T> = std::result::Result<T, Error>;
