//! The trace file: a Perfetto trace that opens in the Perfetto UI, answers `trace_processor` SQL,
//! and reads back into the very [`Record`](crate::Record)s that were written.
//!
//! What a trace looks like, on the outside and in the UI:
//!
//! ```text
//! first packet      the track `ungil`; the same bytes in every trace, so they identify the format
//! clock snapshot    MONOTONIC, BOOTTIME and REALTIME at one moment
//! instant `ungil`   schema=1, version
//! chunks            deflated packets, 256 KiB each before deflation
//!   track `ungil`     instants `note`; `snapshot`, where what was kept begins;
//!                     `end` is the last event of a whole trace
//!   process tracks    instants `process started` (with the processors that it may use, except in
//!                     older traces), `throttled`, `process totals`
//!   thread tracks     slices `wait` and `hold`;
//!                     instants `thread started`, `thread named`, `thread totals`,
//!                     `drop request`, `stack` (with the native frames above it, if they were seen),
//!                     `stopped` (to see them), `scheduled` (what the kernel had counted), `ran`
//!                     (for how long in a long hold), and `release` for one without a hold
//! ```
//! The analysis reads instants and slices only; track descriptors are for the UI.
//! Field numbers and names are in `schema`, what each record becomes is in `encode` and `slices`,
//! and `decode` turns it back. `ungil` writes and reads this small part of the format itself: an event costs
//! tens of nanoseconds, and a hostile file cannot make the reader allocate more than it holds.

mod wire;
mod frame;
mod native_frame;
mod schema;
mod packet;
mod anchor;
mod slices;
mod text_bytes;
mod encode;
mod decode;
mod unfinished;
mod behind;
mod writer;
mod reader;
mod ahead;

pub use ahead::read_ahead;
pub use anchor::wall_clock;
pub use reader::{Ending, ReadError, read};
pub use schema::SCHEMA;
pub(crate) use unfinished::temporary_name;
pub use unfinished::{Unfinished, what_is_cut, why_cut};
pub use writer::{Incomplete, Overwrite, Writer};
