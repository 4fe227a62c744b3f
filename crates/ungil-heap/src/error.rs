//! What can go wrong with a heap.

use std::fmt;
use std::io;
use std::path::Path;

/// Why an operation on a heap failed. Nothing was changed, unless a variant says otherwise.
#[derive(Debug)]
pub enum Error {
    /// The heap cannot grow: its own limit, the file system's or the machine's memory.
    Full {
        /// Bytes that were asked for.
        wanted: usize,
        /// Which limit it was, for a person.
        limit: &'static str,
    },
    /// The heap would grow, but first garbage is to be collected: seen by [`Heap::change`] alone, and
    /// only in operations that it can begin once more.
    ///
    /// [`Heap::change`]: crate::Heap::change
    Due,
    /// The segment holds something that no ungil process writes.
    Corrupt(&'static str),
    /// The segment must not be used: another version, something else, or cut off.
    Refused(String),
    /// The segment belongs to somebody else, or others can use it.
    Untrusted(String),
    /// All places of the table are taken by living processes or threads.
    Crowded {
        /// What there are too many of.
        what: &'static str,
        /// How many there can be.
        limit: usize,
    },
    /// The object that the handle meant is no more.
    Stale,
    /// Only the caller can tell whether something in the heap equals what is looked for: see
    /// [`crate::value::OPINION`].
    Untold,
    /// An operation does not work on a value of this type or size.
    Unfit(&'static str),
    /// A value is nested too deep, for this thread's stack or for any.
    TooDeep(&'static str),
    /// The caller may not do this now: it does not hold the lock, for instance.
    Misuse(&'static str),
    /// A wait was given up, because [`crate::lock::Pause::pause`] said so.
    Interrupted,
    /// There is no `/proc`, under which a process opens its own files a second time.
    NoProc,
    /// The operating system refused.
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl Error {
    /// The last error of the operating system, while doing `what`.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::Io { what, error: io::Error::last_os_error() }
    }

    /// Of an own file that was not found under `/proc`: whether there is a `/proc` at all.
    pub(crate) fn or_no_proc(self) -> Self {
        let is_missing = matches!(&self, Self::Io { error, .. }
            if error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self").exists());
        if is_missing { Self::NoProc } else { self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { wanted, limit } => {
                write!(f, "no room for {wanted} bytes in the heap: {limit}")
            }
            Self::Due => f.write_str("garbage must be collected before the heap grows"),
            Self::Corrupt(what) => write!(f, "the heap is damaged: {what}"),
            Self::Refused(why) | Self::Untrusted(why) => f.write_str(why),
            Self::Unfit(why) | Self::TooDeep(why) | Self::Misuse(why) => f.write_str(why),
            Self::Crowded { what, limit } => {
                write!(f, "a heap serves at most {limit} {what} at a time")
            }
            Self::Stale => f.write_str("the shared object no longer exists"),
            Self::Untold => f.write_str("only comparing the objects tells whether they are equal"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::NoProc => f.write_str(
                "shared heaps need /proc, which is not mounted here; mount it \
                 (mount -t proc proc /proc)",
            ),
            Self::Io { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
