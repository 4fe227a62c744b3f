//! What the hook (inside the traced interpreter) and the recorder (outside) agree on:
//! the events, the ring they travel in, and the layout of the shared memory that holds the rings.
//!
//! Pure by design: no Python, no libc hooks, and the clock is never read here;
//! every time comes in as an argument, in nanoseconds of `CLOCK_MONOTONIC`.

pub mod event;
pub mod ring;
pub mod sync;
#[cfg(not(loom))]
pub mod table;

pub use event::{Event, Kind};
