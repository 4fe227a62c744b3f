//! A thread that sleeps for a lock, or in a free-threaded interpreter for anything: what it waits
//! for, in 16 bytes, and what ended that, in 16 more.
//!
//! They lie in the rings between the events of GILs ([`crate::event`]), from which their kind tells
//! them. They have no order of their own: a park concerns its thread and the one that woke it.

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// The lock that every object has, which the interpreter takes to change the object.
    Object = 1,
    /// A lock of the program: `threading.Lock`, `RLock`, and what is made of them.
    Lock = 2,
    /// A lock inside the interpreter, or of an extension module.
    Internal = 3,
    /// Another thread has stopped the world, most often to collect garbage.
    Pause = 4,
    /// It has asked all others to stop, and some still run.
    Stopping = 5,
    /// Something that is to happen: a thread's end, an item in a queue.
    Event = 6,
    /// A lock of the program in an interpreter that has its GIL: the thread let go of that before.
    OffGil = 7,
}

impl Cause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Object,
        Self::Lock,
        Self::Internal,
        Self::Pause,
        Self::Stopping,
        Self::Event,
        Self::OffGil,
    ];

    /// The cause with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// As traces and reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Lock => "lock",
            Self::Internal => "internal",
            Self::Pause => "pause",
            Self::Stopping => "stopping",
            Self::Event => "event",
            Self::OffGil => "lock off the GIL",
        }
    }

    /// The cause of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Of a [`Cause::Pause`]: garbage is being collected.
pub const COLLECTION: u8 = 1;

/// What ended a park.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ending {
    /// Another thread woke it, and it is not known to have had what this one wanted.
    Woken = 1,
    /// Its time was over, or a signal came.
    Alone = 2,
    /// Nothing: it went on when its thread, or the recording, ended.
    Unfinished = 3,
    /// Another thread that had the lock has let go of it.
    LetGo = 4,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Woken, Self::Alone, Self::Unfinished, Self::LetGo];

    /// The ending with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// As traces name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Woken => "woken",
            Self::Alone => "alone",
            Self::Unfinished => "unfinished",
            Self::LetGo => "let go",
        }
    }

    /// The ending of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// How a park begins or ends, as it lies in its thread's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkEntry {
    /// The thread cannot go on.
    Began {
        /// When, in ticks of the table's clock.
        at_ticks: u64,
        /// Why.
        cause: Cause,
        /// Number of the object's type in the header's names, counted from 1; of a pause
        /// [`COLLECTION`]; 0 if it is not known.
        of: u8,
        /// Number of the Python stack that it sleeps in ([`crate::table::Stack`]), 0 if not known.
        stack: u16,
        /// A number made of the address of what it waits for. Two locks have the same one once in
        /// four thousand million.
        lock: u32,
    },
    /// It goes on.
    Ended {
        /// When, likewise.
        at_ticks: u64,
        /// Why.
        ending: Ending,
        /// Kernel thread id of the thread that woke it, 0 if that is not known.
        waker: u32,
        /// Number of the Python stack from which that did, 0 if not known.
        stack: u16,
    },
}

/// Numbers of stacks are below this one.
pub const STACK_NUMBERS: u16 = 1 << STACK_BITS;
const STACK_BITS: u32 = 13;
/// Thread ids are below 2^22 (`PID_MAX_LIMIT` in `include/linux/threads.h`).
const TID_BITS: u32 = 22;
const CAUSE_BITS: u32 = 3;

/// Kinds in the lowest byte of the second word, beyond those of [`crate::Kind`].
const BEGAN: u64 = 16;
const ENDED: u64 = 17;

impl ParkEntry {
    /// When, in ticks of the table's clock.
    pub const fn at_ticks(self) -> u64 {
        let (Self::Began { at_ticks, .. } | Self::Ended { at_ticks, .. }) = self;
        at_ticks
    }

    /// The two words that lie in the ring: the time, then from the highest bits on
    /// * lock (32 bits), type (8), stack (13), cause (3), kind (8), or
    /// * waker (22), its stack (13), nothing, ending (8), kind (8).
    pub const fn to_words(self) -> [u64; 2] {
        match self {
            Self::Began { at_ticks, cause, of, stack, lock } => {
                let stack = (stack as u64 % STACK_NUMBERS as u64) << (8 + CAUSE_BITS);
                let rest = (lock as u64) << 32 | (of as u64) << 24 | stack;
                [at_ticks, rest | (cause as u64) << 8 | BEGAN]
            }
            Self::Ended { at_ticks, ending, waker, stack } => {
                let waker = (waker as u64) << (64 - TID_BITS);
                let stack = (stack as u64 % STACK_NUMBERS as u64) << (64 - TID_BITS - STACK_BITS);
                [at_ticks, waker | stack | (ending as u64) << 8 | ENDED]
            }
        }
    }

    /// The entry in these words, or `None` if they hold none.
    #[allow(clippy::cast_possible_truncation, reason = "each cast takes exactly its field")]
    pub fn from_words([at_ticks, rest]: [u64; 2]) -> Option<Self> {
        let field = |from: u32, bits: u32| (rest >> from) & ((1 << bits) - 1);
        match rest & 0xff {
            BEGAN => {
                let cause = Cause::from_number(field(8, CAUSE_BITS) as u8)?;
                let stack = field(8 + CAUSE_BITS, STACK_BITS) as u16;
                let (of, lock) = (field(24, 8) as u8, (rest >> 32) as u32);
                Some(Self::Began { at_ticks, cause, of, stack, lock })
            }
            ENDED => {
                let ending = Ending::from_number(field(8, 8) as u8)?;
                let waker = (rest >> (64 - TID_BITS)) as u32;
                let stack = field(64 - TID_BITS - STACK_BITS, STACK_BITS) as u16;
                Some(Self::Ended { at_ticks, ending, waker, stack })
            }
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::Entry;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_survives_its_words(
            at_ticks: u64, cause in 0usize..7, ending in 0usize..4, of: u8, stack in 0..STACK_NUMBERS,
            lock: u32, waker in 0u32..1 << TID_BITS, begins: bool,
        ) {
            let entry = if begins {
                ParkEntry::Began { at_ticks, cause: Cause::ALL[cause], of, stack, lock }
            } else {
                ParkEntry::Ended { at_ticks, ending: Ending::ALL[ending], waker, stack }
            };
            prop_assert_eq!(ParkEntry::from_words(entry.to_words()), Some(entry));
            prop_assert_eq!(Entry::from_words(entry.to_words()), None, "it is none of a GIL");
            prop_assert_eq!(entry.at_ticks(), at_ticks);
        }

        #[test]
        fn no_words_are_both(at_ticks: u64, rest: u64) {
            let words = [at_ticks, rest];
            prop_assert!(Entry::from_words(words).is_none() || ParkEntry::from_words(words).is_none());
        }
    }

    #[test]
    fn causes_and_endings_are_known_by_their_names() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
            assert_eq!(Cause::from_number(cause as u8), Some(cause));
        }
        for ending in Ending::ALL {
            assert_eq!(Ending::from_name(ending.name()), Some(ending));
        }
        assert_eq!((Cause::from_number(0), Ending::from_name("")), (None, None));
    }
}
