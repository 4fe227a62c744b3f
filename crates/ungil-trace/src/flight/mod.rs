//! The flight recorder: only the last seconds are kept, in memory that does not grow, and become a
//! trace when somebody asks, or when a thread waited or held for too long.
//!
//! ```text
//! records ──► stalls.rs   who waits and holds since when: has it been too long?
//!         └─► kept.rs     the chunks of the last seconds, some 4 bytes an event (chunk.rs);
//!                │        what leaves them is folded into what stood then (standing.rs)
//!                ▼
//!             snapshot.rs that state and the chunks as records again, for analysis and file
//! ```
//! A snapshot begins where a chunk begins. What stood then is told first, as a few records of that
//! moment, then [`Record::Snapshot`](crate::Record::Snapshot), and then what happened since. So its
//! report is that of this part of a whole trace.

mod ids;
mod bytes;
mod chunk;
mod standing;
mod kept;
mod stalls;
mod snapshot;

#[cfg(test)]
mod tests;

pub use kept::{Frozen, Kept};
pub use snapshot::{Cause, Snapshot};
pub use stalls::{Condition, Limit, Stall, Stalls};
