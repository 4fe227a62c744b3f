//! A trace in the formats of other tools: the Firefox Profiler, speedscope, collapsed stacks, and
//! rows for SQL. Each takes the records of a trace one by one, in memory that grows with its
//! threads and stacks, and not with its length.

mod stacks;
mod running;
mod known;
mod stretches;
mod parts;
mod weights;
mod collapsed;
mod speedscope;
mod longest;
mod markers;
mod functions;
mod firefox;
mod rows;

pub use collapsed::Collapsed;
pub use firefox::{Firefox, Omitted};
pub use rows::{Batch, Cell, Rows};
pub use speedscope::Speedscope;
pub use weights::Weight;
