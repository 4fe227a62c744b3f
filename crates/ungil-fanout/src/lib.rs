//! The engine of a fan-out, without Python: what may start now, and what is handed out.
//!
//! Nothing here reads a clock: times are nanoseconds that the caller gives, on one clock that never
//! goes back.

pub mod backoff;
pub mod bucket;
pub mod dispatch;
mod groups;
pub mod limit;
mod order;
pub mod reactor;
pub mod timers;
