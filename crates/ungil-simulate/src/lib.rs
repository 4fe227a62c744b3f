//! What a trace recorded, replayed in virtual time under other rules: another policy or switch
//! interval, fewer threads, more processors, no GIL. Knows no Python.
//!
//! [`Demand::of`] takes from a trace what its threads wanted; [`predict`] says what they would have
//! met under some [`Rules`]. docs/simulate.md says what that is worth.

mod delays;
mod lengths;
mod figures;
mod demand;
mod rules;
mod plan;
mod machine;
mod prediction;

pub use demand::{Burst, Collector, Demand, Thread};
pub use delays::Delays;
pub use figures::{Figures, ThreadFigures};
pub use lengths::Summary;
pub use prediction::{Prediction, Unpredictable, predict};
pub use rules::{Change, Gil, Rules};
