//! The shared memory of one traced process: a header, one slot a thread, one ring a slot.
//!
//! ```text
//! offset 0                header          Header
//! SLOTS_OFFSET            thread slots    [Slot; SLOTS]
//! RINGS_OFFSET            rings           [[Cell; RING_EVENTS]; SLOTS]   (sparse)
//! STACKS_OFFSET           stacks          [Stack; STACKS]                (sparse)
//! ```
//! A process creates one such file in the session directory, or, when nobody records, keeps the
//! same layout in anonymous memory for its own counters. Every field is an atomic with one
//! writer; the reader treats all of it as untrusted. Times are in ticks of the table's own clock,
//! lengths in nanoseconds.

mod counters;
mod ended;
mod header;
mod slot;
mod stack;
mod status;
mod text;

pub use counters::Counters;
pub use ended::{Ended, GROUPS};
pub use header::{GILS, Header, TYPES, TypeName};
pub use slot::{Slot, SlotState};
pub use stack::{FRAMES, PlaceInCode, STACKS, Stack};
pub use status::{GilState, Recording, Status};
pub use text::{load_bytes, load_text, store_bytes, store_text};

use crate::atomic::{AtomicU64, Ordering};
use crate::event::Entry;
use crate::park::ParkEntry;
use crate::ring::{Cell, Consumer, Producer};
use std::marker::PhantomData;

/// Version of this layout and of the event encoding.
pub const ABI: u64 = 7;
/// First word of a table that is ready to be read ("ungiltab" in ASCII), stored last.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ungiltab");
/// How many threads can be recorded at the same time; further ones are counted as unrecorded.
pub const SLOTS: usize = 2048;
/// Events that fit in the ring of one thread.
pub const RING_EVENTS: usize = 32768;
/// Memory of a ring is committed in steps of this many events (16 KiB).
pub const COMMIT_EVENTS: usize = 1024;

/// Bytes of one ring.
pub const RING_BYTES: usize = RING_EVENTS * size_of::<Cell>();
/// Where the slots begin.
pub const SLOTS_OFFSET: usize = 8192;
/// Where the rings begin.
pub const RINGS_OFFSET: usize = SLOTS_OFFSET + SLOTS * size_of::<Slot>();
/// Where the stacks begin.
pub const STACKS_OFFSET: usize = RINGS_OFFSET + SLOTS * RING_BYTES;
/// Length of the whole file.
pub const TABLE_BYTES: usize = STACKS_OFFSET + STACKS * size_of::<Stack>();

const _: () = assert!(size_of::<Header>() <= SLOTS_OFFSET && RINGS_OFFSET.is_multiple_of(4096));

/// A view of a whole table.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    start: *const u8,
    mapping: PhantomData<&'a [AtomicU64]>,
}

// SAFETY: a `Table` is an address; everything behind it is atomics.
unsafe impl Send for Table<'_> {}
// SAFETY: threads that share it share an address, and atomics behind it.
unsafe impl Sync for Table<'_> {}

#[expect(clippy::cast_ptr_alignment, reason = "every part begins at a multiple of its alignment")]
impl<'a> Table<'a> {
    /// The table that begins at `start`.
    ///
    /// # Safety
    /// [`TABLE_BYTES`] from `start`, page-aligned, are mapped readable and writable for `'a`,
    /// began as zeroes, and are touched by others only through this type.
    pub const unsafe fn at(start: *const u8) -> Self {
        Self { start, mapping: PhantomData }
    }

    /// The header.
    pub fn header(self) -> &'a Header {
        // SAFETY: `at` promised a mapping that is large enough, aligned and made of zeroes or
        // of earlier atomic stores; every bit pattern is a valid `Header`.
        unsafe { &*self.start.cast::<Header>() }
    }

    /// All slots.
    pub fn slots(self) -> &'a [Slot; SLOTS] {
        // SAFETY: the slots begin at a page inside the mapping that `at` promised, and every bit
        // pattern is a valid `Slot`.
        unsafe { &*self.start.wrapping_add(SLOTS_OFFSET).cast::<[Slot; SLOTS]>() }
    }

    /// The cells of the ring of slot `index`.
    ///
    /// Memory behind a cell may be missing in a full file system; only cells below
    /// [`Slot::committed`] may be touched.
    fn cells(self, index: usize) -> &'a [Cell; RING_EVENTS] {
        assert!(index < SLOTS);
        let ring = self.start.wrapping_add(RINGS_OFFSET + index * RING_BYTES);
        // SAFETY: the ring lies inside the mapping that `at` promised, because `index < SLOTS`, and
        // every bit pattern is a valid `Cell`.
        unsafe { &*ring.cast::<[Cell; RING_EVENTS]>() }
    }

    /// Appends `entry` to the ring of slot `index`, or counts it as lost and returns `false`.
    /// `commit(address, bytes)` is asked to put memory behind a further part of the ring and says
    /// whether it could.
    #[inline]
    pub fn push(
        self,
        index: usize,
        entry: Entry,
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> bool {
        self.push_words(index, entry.to_words(), commit)
    }

    /// The same for how a park begins or ends.
    pub fn push_park(
        self,
        index: usize,
        entry: ParkEntry,
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> bool {
        self.push_words(index, entry.to_words(), commit)
    }

    #[inline]
    fn push_words(
        self,
        index: usize,
        words: [u64; 2],
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> bool {
        let slot = &self.slots()[index];
        let usable = |cell: usize| {
            let committed = slot.committed.load(Ordering::Relaxed) as usize;
            if cell < committed {
                return true;
            }
            if committed >= RING_EVENTS {
                return false;
            }
            let address = (&raw const self.cells(index)[committed]).cast();
            let granted = self.provide(address, COMMIT_EVENTS * size_of::<Cell>(), commit);
            if granted {
                #[allow(clippy::cast_possible_truncation, reason = "below RING_EVENTS")]
                slot.committed.store((committed + COMMIT_EVENTS) as u32, Ordering::Release);
            }
            granted
        };
        let pushed = Producer::new(&slot.positions, self.cells(index)).push_words(words, usable);
        if !pushed {
            let lost = slot.lost.load(Ordering::Relaxed);
            slot.lost.store(lost + 1, Ordering::Relaxed);
        }
        pushed
    }

    /// Has memory put behind a part of the table, and says in its header if there is none.
    fn provide(
        self,
        address: *const u8,
        bytes: usize,
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> bool {
        let granted = commit(address, bytes);
        if !granted {
            self.header().lacks_memory.store(1, Ordering::Relaxed);
        }
        granted
    }

    /// Hands the events of slot `index` to `take`, and its parks to `take_park`, and returns how many
    /// there were. Words that hold nothing known are skipped.
    pub fn drain(
        self,
        index: usize,
        mut take: impl FnMut(Entry),
        mut take_park: impl FnMut(ParkEntry),
    ) -> u64 {
        let consumer = Consumer::new(&self.slots()[index].positions, self.cells(index));
        consumer.drain_words(|words| match Entry::from_words(words) {
            Some(entry) => take(entry),
            None => ParkEntry::from_words(words).into_iter().for_each(&mut take_park),
        })
    }

    /// Claims the first free slot for a thread. The caller fills it in and calls
    /// [`Slot::publish`]. `commit(address, bytes)` as for [`Table::push`], for a slot that was
    /// never used before.
    pub fn claim(self, commit: impl Fn(*const u8, usize) -> bool) -> Option<usize> {
        let used = &self.header().used_slots;
        for (index, slot) in self.slots().iter().enumerate() {
            #[allow(clippy::cast_possible_truncation, reason = "SLOTS fits")]
            let past_index = index as u32 + 1;
            if used.load(Ordering::Acquire) < past_index {
                if !self.provide((&raw const *slot).cast(), size_of::<Slot>(), &commit) {
                    return None;
                }
                used.fetch_max(past_index, Ordering::Release);
            }
            if slot.try_claim() {
                return Some(index);
            }
        }
        None
    }

    /// The stack with this number, which counts from 1. Its memory may be missing unless it has been
    /// [kept](Self::keep_stack).
    pub fn stack(self, number: u16) -> Option<&'a Stack> {
        let index = usize::from(number).checked_sub(1).filter(|&index| index < STACKS)?;
        let stack = self.start.wrapping_add(STACKS_OFFSET + index * size_of::<Stack>());
        // SAFETY: it lies inside the mapping that `at` promised, because `index < STACKS`, and every
        // bit pattern is a valid `Stack`.
        Some(unsafe { &*stack.cast::<Stack>() })
    }

    /// Gives a stack a number; `None` if there is none left, or no memory. `commit(address, bytes)`
    /// as for [`Table::push`].
    pub fn keep_stack(
        self,
        frames: &[PlaceInCode; FRAMES],
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> Option<u16> {
        let stacks = &self.header().stacks;
        let number = stacks.fetch_add(1, Ordering::Relaxed) + 1;
        let kept =
            u16::try_from(number).ok().and_then(|number| Some((number, self.stack(number)?)));
        let Some((number, stack)) = kept else {
            stacks.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        if !commit((&raw const *stack).cast(), size_of::<Stack>()) {
            return None;
        }
        stack.store(frames);
        Some(number)
    }

    /// The slots that were ever used.
    pub fn used_slots(self) -> &'a [Slot] {
        let used = self.header().used_slots.load(Ordering::Acquire) as usize;
        &self.slots()[..used.min(SLOTS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_claimed_once_until_it_is_freed() {
        #[repr(align(4096))]
        #[derive(Clone)]
        struct Page(#[allow(dead_code, reason = "only its size matters")] [u8; 4096]);
        let memory = vec![Page([0; 4096]); RINGS_OFFSET / 4096];
        // SAFETY: only header and slots are used, which lie inside `memory`.
        let table = unsafe { Table::at(memory.as_ptr().cast()) };
        let granted = |_: *const u8, _| true;
        assert_eq!((table.claim(granted), table.claim(granted)), (Some(0), Some(1)));
        assert_eq!(table.used_slots().len(), 2);
        assert_eq!(table.claim(|_, _| false), None, "there is no memory for a third slot");
        let slot = &table.slots()[0];
        slot.publish();
        slot.counters.waits.store(3, Ordering::Relaxed);
        slot.end();
        assert_eq!(table.claim(granted), Some(2));
        slot.free();
        assert_eq!(table.claim(granted), Some(0));
        assert_eq!(slot.counters.waits.load(Ordering::Relaxed), 0);
        assert_eq!(slot.generation.load(Ordering::Relaxed), 2);
        let after = |holds| {
            slot.counters.holds.store(holds, Ordering::Relaxed);
            slot.last_two_waits_ns()
        };
        assert_eq!(after(5), (0, 0), "the slot's last thread waited, this one did not");
        slot.waited(30);
        assert_eq!((after(5), after(6), after(7)), ((30, 0), (0, 30), (0, 0)));
        after(6);
        slot.waited(40);
        assert_eq!((after(6), after(7), after(8)), ((40, 30), (0, 40), (0, 0)));
    }
}
