//! The page of a trace: one HTML file with everything that a browser needs to show it, and to
//! compute every number again for a part of it.
//!
//! `web/FORMAT.md` says what is in it. One pass over the records feeds the analysis, which counts
//! the report and tells each hold and wait as it ends ([`Ended`]). From these come, for each GIL:
//! columns of the holds with their waits (`holds.rs`), sums by lane and bucket of time in widths
//! that grow by four (`buckets.rs`), and stacks of holders (`looks.rs`, `stacks.rs`). Memory is bounded
//! by what the page may have: holds that matter least are left out, and their sums stay.

mod table;
mod buckets;
mod lanes;
mod stacks;
mod looks;
mod sums;
mod holds;
mod gil;
mod adviser;
mod summary;
mod bounded;
mod collected;
mod sleeps;
mod shell;
mod assembled;
mod written;

#[cfg(test)]
mod tests;

pub use adviser::Adviser;
pub use written::{Options, PageError, write};
