//! Bytes that a program sees as memory: the heap itself neither reads nor changes them.
//!
//! A buffer never moves and never gets another size. So whoever has a reference to one can have a
//! view of its bytes for as long, also while the process that made it dies. What views write is under
//! no lock and in no log: it is seen by everybody at once, as between threads, and no part of a
//! transaction.
//!
//! The bytes are a block of their own that begins at a multiple of [`ALIGNMENT`], and at a page if it
//! is larger than what comes from a slab.
//!
//! | word of the body | what |
//! |---|---|
//! | 0 | where the bytes are |
//! | 1 | how many there are |
//!
//! The flags are 1 where views may write. Nothing of this ever changes, so that it is read without a
//! look at the version.

use std::ptr::NonNull;

use crate::atomic::Ordering::Relaxed;
use crate::lock::Holder;
use crate::object::{self, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::size_class;
use crate::{Error, Heap, Result, fault};

/// Where bytes begin: at a cache line, which is what vector instructions want, too.
pub const ALIGNMENT: usize = 64;

/// Writes bytes from a place on, all that are asked for. What it returns ends the operation.
pub type Fill<'f> = &'f mut dyn FnMut(NonNull<u8>) -> Result<()>;

/// The bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where they begin.
    pub at: Offset,
    /// How many there are.
    pub bytes: usize,
    /// Whether views may write.
    pub is_writable: bool,
}

/// How many bytes are taken for a buffer of `bytes`.
fn room(bytes: usize) -> Result<usize> {
    let room = bytes.max(1).checked_next_multiple_of(ALIGNMENT);
    room.ok_or(Error::Full { wanted: bytes, limit: "no heap is so large" })
}

/// How many bytes a buffer for `bytes` can have without taking more memory.
pub fn roomy(bytes: usize) -> usize {
    room(bytes).map_or(bytes, crate::memory::rounded)
}

// Blocks of a class begin at multiples of its size, so that those of each class that a buffer gets
// are aligned.
const _: () = {
    let mut bytes = ALIGNMENT;
    while bytes <= size_class::LARGEST && !cfg!(loom) {
        if let Some(class) = size_class::of(bytes) {
            assert!(size_class::SIZES[class as usize].is_multiple_of(ALIGNMENT));
        }
        bytes += ALIGNMENT;
    }
};

/// A new buffer. `fill` writes its bytes, all of them, from there on; it may be called in an operation
/// that fails.
pub fn create(op: &mut Op<'_>, bytes: usize, is_writable: bool, fill: Fill<'_>) -> Result<Offset> {
    let room = room(bytes)?;
    let data = op.take(room)?;
    fill(op.heap().segment().pointer(data, room)?)?;
    fault::point("buffer: filled");
    let at = op.create(Kind::Buffer, object::SIZE)?;
    let head = object::head(op.heap().segment(), at)?;
    head.set_flags(u32::from(is_writable));
    head.body[0].store(data as u64, Relaxed);
    head.body[1].store(bytes as u64, Relaxed);
    fault::point("buffer: made");
    Ok(at)
}

/// The bytes of the buffer at `at`, which are inside of the heap.
#[inline]
pub fn memory(segment: &Segment, at: Offset) -> Result<Memory> {
    let head = object::head(segment, at)?;
    if !head.is(Kind::Buffer) {
        return Err(head.mistaken("an object is no buffer"));
    }
    let memory = unchecked(head);
    segment.check(memory.at, memory.bytes)?;
    if memory.at < segment.layout().data || !memory.at.is_multiple_of(ALIGNMENT) {
        return Err(Error::Corrupt("the bytes of a buffer are not where they can be"));
    }
    Ok(memory)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn unchecked(head: &Head) -> Memory {
    let [at, bytes, ..] = &head.body;
    Memory {
        at: at.load(Relaxed) as Offset,
        bytes: bytes.load(Relaxed) as usize,
        is_writable: head.flags() & 1 == 1,
    }
}

/// The bytes of a buffer that the caller holds, for a view that lasts longer than any operation.
///
/// # Errors
/// [`Error::Misuse`] for one that was made in a transaction that has not ended: it goes if that
/// fails, and its memory with it. [`Error::Stale`] if that has happened.
pub fn lasting(heap: &Heap, at: Offset) -> Result<Memory> {
    let lock = &object::head(heap.segment(), at)?.lock;
    // Nobody locks a buffer but the transaction that makes it (`Op::create`).
    if lock.load(Relaxed) != 0 {
        let mut op = heap.op()?;
        if Holder::of(lock.load(Relaxed)) == Some(op.me()) {
            return Err(Error::Misuse(
                "memory that was made in a block of heap.atomic() can have views only after the \
                 block has ended, because the block may fail",
            ));
        }
        op.guard(at)?;
        op.commit()?;
    }
    memory(heap.segment(), at)
}

/// Calls `visit` with all that the buffer at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    visit(Owned::Block { at, bytes: object::SIZE })?;
    let Memory { at, bytes, .. } = unchecked(object::head(segment, at)?);
    let room = room(bytes).map_err(|_| Error::Corrupt("a buffer of an impossible size"))?;
    visit(Owned::Block { at, bytes: room })
}
