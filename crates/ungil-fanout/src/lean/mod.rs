//! What the loop of mode `lean` is made of: what tasks wait for, who goes on when, and the sockets
//! that they read and write.
//!
//! Tasks are whatever the caller drives, step by step; in Python they are coroutines. A primitive
//! that has to wait leaves a [`Want`] in the [`hand`] of its thread, where the driver finds it and
//! gives it to its [`EventLoop`]. To wake a task without need is legal everywhere.

pub mod connect;
pub mod event_loop;
pub mod hand;
pub mod lag;
mod reactor;
pub mod resolver;
pub mod socket;
pub mod stream;
mod tasks;
mod timers;
mod unread;
pub mod until;
mod waits;
mod waker;
mod want;

pub use event_loop::EventLoop;
pub use reactor::{Direction, Refused};
pub use waits::Waiting;
pub use want::{Belongs, Progress, Want};
