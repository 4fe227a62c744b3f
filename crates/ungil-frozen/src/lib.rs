//! Immutable structures in one file, which any number of processes map and read without a lock.
//!
//! A [`Writer`] appends a structure to a file, what is inside first; [`Frozen`] maps such a file and
//! reads it where it lies. `docs/frozen-format.md` describes the format. Values, their equality and
//! their hashes are those of the heap ([`ungil_heap::value`]).
//!
//! Whatever is in the file, reading it ends with an error at worst: every offset is checked, and a
//! container refers only to what lies before it, so that nothing contains itself.
//!
//! The modules below stand in the order of their dependencies.

pub mod error;
pub mod cell;
pub mod header;
mod schema;
pub mod order;
pub mod table;
mod texts;
pub mod writer;
pub mod file;
pub mod frozen;
pub mod lookup;
pub mod check;

pub use error::Error;
pub use frozen::Frozen;
pub use writer::Writer;

/// What writing and reading return.
pub type Result<T> = std::result::Result<T, Error>;
