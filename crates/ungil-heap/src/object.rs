//! What every object begins with.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | kind |
//! | 1-3 | flags of the kind; in the upper two bits who wants to know of changes ([`crate::watch`]) |
//! | 4-7 | monitor: a lock word for the user ([`crate::monitor`]) |
//! | 8-11 | references: from other objects, and one from each process that has it |
//! | 12-15 | serial number: an object of the same place is not the same object |
//! | 16-19 | lock word, held by who changes it |
//! | 20-23 | version: odd while it changes, so that readers need no lock ([`crate::Heap::read`]) |
//! | 24-55 | body: four words, by kind |
//! | 56-59 | how often the monitor's holder entered it |
//! | 60-63 | 1 if a holder of the monitor died with it and nobody has noticed |

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use crate::segment::{Offset, Part, Segment};
use crate::{Error, Result, mutation};

/// Bytes of the common part; also the size of an object whose kind adds nothing.
pub const SIZE: usize = 64;
/// Where the body is.
pub const BODY: usize = 24;
/// The bits of the first word that say who wants to know of changes.
pub(crate) const WATCHED: u32 = 0b11 << 30;

/// What an object is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mapping in the order of insertion.
    Dict = 1,
    /// A sequence.
    List = 2,
    /// Members without an order.
    Set = 3,
    /// A double-ended queue.
    Deque = 4,
    /// Fields of a class that Python declared.
    Struct = 5,
    /// What threads and processes wait for: locks, events, and so on.
    Sync = 6,
    /// No more: it was made in a transaction that failed, and somebody holds it still. The flags are
    /// its size in bytes.
    Gone = 7,
    /// What many put in and many take out.
    Queue = 8,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Dict,
        Self::List,
        Self::Set,
        Self::Deque,
        Self::Struct,
        Self::Sync,
        Self::Gone,
        Self::Queue,
    ];

    /// From what is stored.
    pub fn from_byte(byte: u8) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| *kind as u8 == byte)
            .ok_or(Error::Corrupt("an object of an unknown kind"))
    }
}

/// Something that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Memory, of as many bytes as were asked for when it was taken. Freed with the object.
    Block {
        /// Where it begins.
        at: Offset,
        /// How long it is.
        bytes: usize,
    },
    /// A reference to an object. Lost with this one.
    Object(Offset),
}

/// Is told of one thing after the other. Its error ends the walk.
pub type Visit<'v> = dyn FnMut(Owned) -> Result<()> + 'v;

/// Knows what an object owns. [`Kind`] does: `kinds`, above all kinds of objects, implements it, so
/// that what is below them can walk and free objects of every kind.
pub(crate) trait Owner {
    /// Calls `visit` with everything that the object at `at` owns, its own memory first.
    fn owned(self, segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()>;
}

/// Calls `visit` with everything that the object at `at` owns, its own memory first: what the
/// collector, the check, the statistics and whoever frees it ask.
///
/// The object does not change meanwhile: it is locked, or nobody else can reach it, or the world
/// stands still.
///
/// # Errors
/// [`Error::Corrupt`] if it is no object; and those of `visit`.
#[inline]
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    head(segment, at)?.kind()?.owned(segment, at, visit)
}

/// The common part of an object.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct Head {
    /// Kind and flags.
    pub identity: AtomicU32,
    /// The user's lock word.
    pub monitor: AtomicU32,
    /// References in the low half, serial number in the high. One word, so that a reference can be
    /// taken by somebody who only hopes that the object is still there ([`retain_if_alive`]).
    pub life: AtomicU64,
    /// The lock word.
    pub lock: AtomicU32,
    /// Odd while it changes.
    pub version: AtomicU32,
    /// By kind.
    pub body: [AtomicU64; 4],
    /// How often the monitor was entered.
    pub depth: AtomicU32,
    /// Whether a holder of the monitor died.
    pub owner_died: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Head>() == SIZE);

// SAFETY: the common part is made of atomics and aligned like a word.
unsafe impl Part for Head {}

impl Head {
    /// What it is.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
    pub fn kind(&self) -> Result<Kind> {
        Kind::from_byte(self.identity.load(Relaxed) as u8)
    }

    /// Whether it is of this kind.
    #[inline]
    pub fn is(&self, kind: Kind) -> bool {
        self.identity.load(Relaxed) & 0xff == kind as u32
    }

    /// What to say to who takes it for another kind, in the words of that kind.
    #[cold]
    pub(crate) fn mistaken(&self, what: &'static str) -> Error {
        if self.is(Kind::Gone) { Error::Stale } else { Error::Corrupt(what) }
    }

    /// The flags of its kind: 22 bits.
    #[inline]
    pub fn flags(&self) -> u32 {
        (self.identity.load(Relaxed) & !WATCHED) >> 8
    }

    /// Gives a new object, which nobody refers to yet, its flags.
    pub fn set_flags(&self, flags: u32) {
        self.identity.store(flags << 8 | self.identity.load(Relaxed) & 0xff, Relaxed);
    }

    /// Its serial number.
    #[inline]
    pub fn serial(&self) -> u32 {
        (self.life.load(Relaxed) >> 32) as u32
    }

    /// How many references there are to it.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub fn references(&self) -> u32 {
        self.life.load(Relaxed) as u32
    }
}

/// The object at `at`.
#[inline]
pub fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    if at < segment.layout().data {
        return Err(Error::Corrupt("an object is not where objects are"));
    }
    segment.part(at)
}

/// Writes the common part of a new object, which nobody refers to yet.
pub fn initialise(segment: &Segment, at: Offset, kind: Kind) -> Result<()> {
    let serial = segment.header().serial.fetch_add(1, Relaxed);
    let head = head(segment, at)?;
    head.life.store(u64::from(serial) << 32, Relaxed);
    head.identity.store(u32::from(kind as u8), Relaxed);
    for word in [&head.monitor, &head.lock, &head.version, &head.depth, &head.owner_died] {
        word.store(0, Relaxed);
    }
    for word in &head.body {
        word.store(0, Relaxed);
    }
    Ok(())
}

/// One reference more; returns the serial number. The caller has a reference, or holds the lock of
/// an object that has.
pub fn retain(segment: &Segment, at: Offset) -> Result<u32> {
    let one_more = |life: u64| (life & REFERENCES != REFERENCES).then(|| life + 1);
    let life = head(segment, at)?
        .life
        .fetch_update(SeqCst, Relaxed, one_more)
        .map_err(|_| Error::Corrupt("an object has more references than can be counted"))?;
    Ok((life >> 32) as u32)
}

/// One reference more, if the object with this serial number still has one. Whatever else is at
/// `at` stays as it is.
///
/// Memory that was an object and is none any more has no references in its [`Head::life`]: see
/// [`forget`].
pub fn retain_if_alive(segment: &Segment, at: Offset, serial: u32) -> Result<bool> {
    let one_more = |life: u64| {
        let is_alive = life >> 32 == u64::from(serial)
            && (life & REFERENCES != 0 || mutation::is("retain: only if alive"));
        is_alive.then_some(life + 1)
    };
    Ok(head(segment, at)?.life.fetch_update(SeqCst, Relaxed, one_more).is_ok())
}

/// One reference less; true: there is none left, and the object is the caller's to destroy.
pub fn forgo(segment: &Segment, at: Offset) -> Result<bool> {
    let one_less = |life: u64| (life & REFERENCES != 0).then(|| life - 1);
    let before = head(segment, at)?
        .life
        .fetch_update(SeqCst, Relaxed, one_less)
        .map_err(|_| Error::Corrupt("an object has fewer references than there are to it"))?;
    Ok(before & REFERENCES == 1)
}

/// One reference less to the object with this serial number, if it is still there; true: there is
/// none left, and the object is the caller's to destroy.
pub fn forgo_if_alive(segment: &Segment, at: Offset, serial: u32) -> Result<bool> {
    let one_less = |life: u64| {
        let is_alive = life >> 32 == u64::from(serial) && life & REFERENCES != 0;
        is_alive.then(|| life - 1)
    };
    let before = head(segment, at)?.life.fetch_update(SeqCst, Relaxed, one_less);
    Ok(before.is_ok_and(|life| life & REFERENCES == 1))
}

/// One reference less to the object with this serial number, if it is still there and has another
/// one; false: nothing has happened.
pub(crate) fn forgo_one_of_several(segment: &Segment, at: Offset, serial: u32) -> Result<bool> {
    let one_less = |life: u64| {
        let is_alive = life >> 32 == u64::from(serial) && life & REFERENCES > 1;
        is_alive.then(|| life - 1)
    };
    Ok(head(segment, at)?.life.fetch_update(SeqCst, Relaxed, one_less).is_ok())
}

/// Marks memory as no object, before it is freed without having lost its last reference.
pub fn forget(segment: &Segment, at: Offset) -> Result<()> {
    head(segment, at)?.life.store(0, SeqCst);
    Ok(())
}

/// Makes an object of so many bytes one that is no more, and that has nothing but its own memory:
/// who holds it, or reads it at this moment, finds nothing else in its place.
pub(crate) fn bury(segment: &Segment, at: Offset, bytes: usize) -> Result<()> {
    let bytes = u32::try_from(bytes).unwrap_or(0);
    head(segment, at)?.identity.store(bytes << 8 | Kind::Gone as u32, SeqCst);
    Ok(())
}

/// The memory of an object that is no more.
pub(crate) fn owned_by_gone(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    visit(Owned::Block { at, bytes: head(segment, at)?.flags() as usize })
}

/// The half of [`Head::life`] with the references.
const REFERENCES: u64 = u32::MAX as u64;
