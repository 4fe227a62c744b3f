//! Tests of a page as a whole.

mod read;
mod same_numbers;
mod bounds;
mod files;
mod looks;
mod sleeps;
