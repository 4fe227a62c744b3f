//! What can go wrong with a frozen file.

use std::io;

/// Why a structure could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error("this is not a frozen file: its first bytes are different")]
    Foreign,
    /// The file is of a version that this code does not know.
    #[error(
        "this file has format {found}, but this ungil reads format {known}: freeze the data \
         again, or use the ungil that made the file"
    )]
    Version {
        /// The one of the file.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// The file is shorter or longer than it says.
    #[error("this frozen file is cut off: it has {found} bytes of {expected}")]
    Length {
        /// What it has.
        found: u64,
        /// What its header says.
        expected: u64,
    },
    /// The file holds something that nobody writes.
    #[error("this frozen file is damaged: {0}")]
    Damaged(&'static str),
    /// There is more of something than the format has room for.
    #[error("{0}")]
    TooMany(&'static str),
    /// It is nested too deep, for this thread's stack or for any.
    #[error("{0}")]
    TooDeep(&'static str),
    /// The operating system refused.
    #[error("{what}: {error}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl Error {
    /// For `map_err`: an error of the operating system, while doing `what`.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

impl From<ungil_heap::Error> for Error {
    fn from(error: ungil_heap::Error) -> Self {
        match error {
            ungil_heap::Error::TooDeep(why) => Self::TooDeep(why),
            _ => Self::Damaged("a value consists of parts that do not fit together"),
        }
    }
}
