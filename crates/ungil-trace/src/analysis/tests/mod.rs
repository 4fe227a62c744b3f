//! Tests of the analysis as a whole.

mod counting;
mod finding;
mod kernel;
mod folding;
mod illegal;
mod looking;
mod judged;
mod measured;
mod naive;
mod on_loop;
mod parking;
mod part;
mod scenario;
mod run_time;
mod schema;
mod sentences;
mod startup;
mod switched_on;
mod unrecorded;
mod window;
