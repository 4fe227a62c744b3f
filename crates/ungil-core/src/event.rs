//! One thing that happened to a GIL, in 16 bytes.

/// What happened. The numbers travel in shared memory between versions that agree on
/// [`crate::table::ABI`], so they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The thread asked for the GIL and did not get it at once.
    Wait = 1,
    /// The thread got the GIL: a hold begins, and its wait, if there was one, ends.
    Acquire = 2,
    /// The waiting thread timed out and asked the holder to let go.
    DropRequest = 3,
    /// The holder let go and nobody had asked it to.
    ReleaseVoluntary = 4,
    /// The holder let go while a drop request was pending.
    ReleaseForced = 5,
    /// The holder is about to let go after a long hold, in which it never blocked. `at_ns` tells
    /// for how long the kernel ran it: the hold would have ended then if it had run all the time.
    Ran = 6,
    /// As [`Kind::Ran`], but the holder blocked meanwhile, or right before the hold.
    RanAndBlocked = 7,
}

impl Kind {
    /// The kind with this number, if there is one.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Wait,
            2 => Self::Acquire,
            3 => Self::DropRequest,
            4 => Self::ReleaseVoluntary,
            5 => Self::ReleaseForced,
            6 => Self::Ran,
            7 => Self::RanAndBlocked,
            _ => return None,
        })
    }

    /// Whether this event changes who holds the GIL, and so takes a number of its own in the
    /// order of that GIL ([`Event::seq`]).
    pub const fn changes_holder(self) -> bool {
        matches!(self, Self::Acquire | Self::ReleaseVoluntary | Self::ReleaseForced)
    }
}

/// One event of one thread, as it lies in the thread's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in ticks of the table's clock ([`crate::tick`]).
    pub at_ticks: u64,
    /// What.
    pub kind: Kind,
    /// Which GIL of the process: 0 is the main interpreter's, further ones belong to
    /// sub-interpreters with a GIL of their own (PEP 684).
    pub gil: u8,
    /// Position in the order of that GIL, counting modulo 2^32: acquires and releases each take
    /// the next number, other events repeat the number of the last one before them.
    pub seq: u32,
}

/// One event of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What.
    pub kind: Kind,
    /// Which GIL, as in [`Entry`].
    pub gil: u8,
    /// Position in the order of that GIL, as in [`Entry`].
    pub seq: u32,
}

impl Entry {
    /// The event that this entry tells of, which happened at `at_ns`.
    pub const fn at(self, at_ns: u64) -> Event {
        Event { at_ns, kind: self.kind, gil: self.gil, seq: self.seq }
    }

    /// The two words that lie in the ring: the time, then sequence number, GIL and kind.
    pub const fn to_words(self) -> [u64; 2] {
        [self.at_ticks, (self.seq as u64) << 32 | (self.gil as u64) << 8 | self.kind as u64]
    }

    /// The entry in these words, or `None` if they hold no known kind (a foreign writer).
    #[allow(clippy::cast_possible_truncation, reason = "each cast takes exactly its field")]
    pub const fn from_words(words: [u64; 2]) -> Option<Self> {
        let Some(kind) = Kind::from_number(words[1] as u8) else { return None };
        Some(Self {
            at_ticks: words[0],
            kind,
            gil: (words[1] >> 8) as u8,
            seq: (words[1] >> 32) as u32,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_survives_its_words(at_ticks: u64, number in 1u8..=7, gil: u8, seq: u32) {
            let entry = Entry { at_ticks, kind: Kind::from_number(number).unwrap(), gil, seq };
            prop_assert_eq!(Entry::from_words(entry.to_words()), Some(entry));
        }

        #[test]
        fn words_of_an_unknown_kind_are_no_entry(at_ticks: u64, number in 8u8.., rest: u32) {
            let words = [at_ticks, u64::from(rest) << 32 | u64::from(number)];
            prop_assert_eq!(Entry::from_words(words), None);
        }
    }
}
