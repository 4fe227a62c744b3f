//! What a trace recorded, replayed in virtual time under other rules: another policy or switch
//! interval, fewer threads, more processors, no GIL. Knows no Python.
//!
//! [`Demand::of`] takes from a trace what its threads wanted; [`predict`] says what they would have
//! met under some [`Rules`]. docs/simulate.md says what that is worth.

mod lengths;
mod sample;
mod coldness;
mod delays;
mod naps;
mod figures;
mod demand;
mod rules;
mod plan;
mod machine;
mod ranges;
mod prediction;
mod answer;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Changed, Listed, SCHEMA, Scheduling, Told};
pub use delays::Delays;
pub use demand::{Burst, Collector, Demand, Steady, Thread};
pub use figures::{Figures, ThreadFigures};
pub use lengths::Summary;
pub use prediction::{Prediction, Unpredictable, predict};
pub use ranges::{Range, Ranges, ThreadRanges, WAKE_UP_US};
pub use rules::{Change, Gil, Rules};
