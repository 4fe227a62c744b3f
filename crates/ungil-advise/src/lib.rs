//! What to do about a trace: each piece of advice with its command or its line of code, what it is
//! predicted to gain, how sure that is, and what the trace shows for it. Knows no Python.
//!
//! Where threads wait for a GIL, `remedies` has what could help, and the simulator says by how much.
//! Where they do not, `elsewhere` says what the threads did instead: advice has to say that it is
//! not the GIL, and what it is, as far as the trace shows it.

mod shell;
mod advice;
mod place;
mod groups;
mod scene;
mod supply;
mod functions;
mod workers;
mod loops;
mod servers;
mod pools;
mod predicted;
mod remedies;
mod repeats;
mod lost;
mod elsewhere;
mod advise;

#[cfg(test)]
mod tests;

pub use advice::{
    Action, Advice, Advised, Cause, Confidence, Evidence, Gain, Kind, Measure, SCHEMA, Subject,
    Sure, Unit,
};
pub use advise::{advise, advise_until};
