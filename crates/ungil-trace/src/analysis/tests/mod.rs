//! Tests of the analysis as a whole.

mod counting;
mod finding;
mod folding;
mod illegal;
mod naive;
mod scenario;
mod schema;
mod share;
