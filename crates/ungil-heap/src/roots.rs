//! What a process holds: a reference for each object that it has something in hand for, in its table
//! ([`crate::root_table`]).

use crate::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
};
use crate::lock::{self, Holder};
use crate::op::Op;
use crate::process_table::{self, Membership, Slot};
use crate::root_table::{self, ENTRY, ENTRY_SIZE, Entry};
use crate::segment::Offset;
use crate::{Error, Heap, Result, allocator, fault, memory, mutation, object};

/// Bytes of a process's first table.
const FIRST_SIZE: usize = memory::rounded(if cfg!(loom) { 2 } else { 32 } * ENTRY_SIZE);

/// An object that this process holds, until it gives this to [`Heap::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the object is held until the process ends"]
pub struct Root {
    at: Offset,
    serial: u32,
    index: u32,
}

impl Root {
    /// Where the object is.
    pub const fn at(&self) -> Offset {
        self.at
    }

    /// Its serial number: with the offset, what tells it from all other objects of the heap.
    pub const fn serial(&self) -> u32 {
        self.serial
    }
}

/// The roots of a process, locked.
pub(crate) struct Roots<'o> {
    heap: &'o Heap,
    me: Holder,
    pub(crate) slot: &'o Slot,
    /// Whether this took the lock, which the thread may have had already.
    is_first: bool,
}

impl<'o> Roots<'o> {
    /// Locks the table of the process in slot `index`.
    pub(crate) fn lock(op: &Op<'o>, index: usize) -> Result<Self> {
        Self::lock_by(op.heap(), op.me(), index)
    }

    /// The same for `me`, who has an operation under way.
    pub(crate) fn lock_by(heap: &'o Heap, me: Holder, index: usize) -> Result<Self> {
        let slot = process_table::slot(&heap.segment, index)?;
        let is_first = Holder::of(slot.roots_lock.load(Relaxed)) != Some(me);
        if mutation::is("roots: a lock") {
            return Ok(Self { heap, me, slot, is_first: false });
        }
        if is_first && !lock::try_acquire(&slot.roots_lock, me) {
            let _ = heap.acquire(&slot.roots_lock, me)?;
        }
        fault::point("roots: table locked");
        Ok(Self { heap, me, slot, is_first })
    }

    /// Locks the table of this process, if it is free.
    #[inline]
    pub(crate) fn lock_free(heap: &'o Heap, me: Holder) -> Result<Option<Self>> {
        let slot = process_table::slot(&heap.segment, heap.slot())?;
        let is_got = lock::try_acquire(&slot.roots_lock, me) || mutation::is("roots: a free lock");
        // Made only then: it lets go of the lock when it is dropped.
        Ok(is_got.then(|| Self { heap, me, slot, is_first: true }))
    }

    /// Whether the next entry needs no memory.
    pub(crate) fn has_room(&self) -> bool {
        self.slot.roots_free.load(Relaxed) != 0
    }

    /// Whether this is what is held in its entry. If it is not, it is from before a fork that began
    /// while another thread made it.
    pub(crate) fn has(&self, root: &Root) -> Result<bool> {
        let Some(entry) = self.get(root.index)? else { return Ok(false) };
        Ok((entry.at, entry.serial, entry.nonce) == (root.at, root.serial, 0))
    }

    /// Enters an object to which the caller has added a reference, for this process.
    pub(crate) fn hold(&self, at: Offset, serial: u32) -> Result<Root> {
        let index = self.enter(Entry { at, serial, nonce: 0 })?;
        Ok(Root { at, serial, index })
    }

    /// Frees the entry of what was held.
    pub(crate) fn release(&self, root: &Root) -> Result<()> {
        self.remove(root.index)
    }

    /// Enters an object to which the caller has added a reference.
    pub(crate) fn enter(&self, entry: Entry) -> Result<u32> {
        self.make_sure_of_room()?;
        let free = self.slot.roots_free.load(Relaxed);
        let words = self.entry(free.wrapping_sub(1))?;
        if words[0].load(Relaxed) != 0 {
            return Err(Error::Corrupt("an entry of a process's table is taken and free"));
        }
        let next = u32::try_from(words[1].load(Relaxed))
            .map_err(|_| Error::Corrupt("an entry of a process's table is not linked"))?;
        self.slot.roots_free.store(next, Relaxed);
        entry.write(words);
        fault::point("roots: entered");
        Ok(free - 1)
    }

    /// Sees to it that the next entry needs no memory.
    pub(crate) fn make_sure_of_room(&self) -> Result<()> {
        if self.has_room() { Ok(()) } else { self.make_room() }
    }

    /// What is held in an entry.
    pub(crate) fn get(&self, index: u32) -> Result<Option<Entry>> {
        let entry = Entry::read(self.entry(index)?);
        Ok((entry.at != 0).then_some(entry))
    }

    /// Empties the entry of a pin in another process's table, which finds it when it needs room;
    /// false: the pin is not there, or no more.
    ///
    /// Whatever becomes of that process at this moment, nothing but the table itself is touched. Who
    /// finds the process table full gives tables up without their locks. So the entry is looked for
    /// once: its memory stays until this operation has ended, as a table that was given up is left to
    /// the collector.
    pub(crate) fn remove_pin(&self, index: u32, pin: &Entry) -> Result<bool> {
        // Whoever sends nonsense is told so later, not that the heap is damaged.
        let Ok(mut words) = self.entry(index) else { return Ok(false) };
        let found = Entry::read(words);
        if pin.nonce == 0 || found != *pin {
            return Ok(false);
        }
        if mutation::is("pin: one look at the table") {
            words = self.entry(index)?;
        }
        if !mutation::is("pin: taken over once") {
            words[0].store(0, Relaxed);
        }
        fault::point("roots: removed by another");
        Ok(true)
    }

    /// Frees an entry.
    pub(crate) fn remove(&self, index: u32) -> Result<()> {
        let words = self.entry(index)?;
        words[1].store(u64::from(self.slot.roots_free.load(Relaxed)), Relaxed);
        words[0].store(0, Relaxed);
        self.slot.roots_free.store(index + 1, Relaxed);
        fault::point("roots: removed");
        Ok(())
    }

    fn entry(&self, index: u32) -> Result<&'o [AtomicU64]> {
        root_table::words(&self.heap.segment, self.slot)?
            .chunks_exact(ENTRY)
            .nth(index as usize)
            .ok_or(Error::Corrupt("an entry beyond a process's table"))
    }

    /// Finds the entries that others emptied; makes the table twice as large if they are few.
    fn make_room(&self) -> Result<()> {
        let Some((at, bytes)) = root_table::location(self.slot) else {
            return self.copy_to(self.slot, FIRST_SIZE, |entry| Ok(Some(entry)));
        };
        let words = root_table::words(&self.heap.segment, self.slot)?;
        let mut free = 0;
        let mut found = 0;
        for (index, words) in (1..).zip(words.chunks_exact(ENTRY)) {
            if words[0].load(Relaxed) == 0 {
                words[1].store(u64::from(free), Relaxed);
                (free, found) = (index, found + 1);
            }
        }
        if found > words.len() / ENTRY / 4 {
            self.slot.roots_free.store(free, Relaxed);
            return Ok(());
        }
        self.copy_to(self.slot, bytes * 2, |entry| Ok(Some(entry)))?;
        memory::free(&self.heap.segment, &self.heap.hints, at, bytes)
    }

    /// Gives `slot` a new table of at least `wanted` bytes, no fewer than this one has, with the
    /// entries of this one that `keep` returns, in the same places.
    fn copy_to(
        &self,
        slot: &Slot,
        wanted: usize,
        mut keep: impl FnMut(Entry) -> Result<Option<Entry>>,
    ) -> Result<()> {
        let segment = &self.heap.segment;
        let bytes = memory::rounded(wanted);
        let at = allocator::take_needed(self.heap, self.me, bytes)?;
        fault::point("roots: table taken");
        let old = root_table::words(segment, self.slot)?;
        let new = segment.words(at, bytes / 8)?;
        let mut free = 0;
        for (index, words) in (1..).zip(new.chunks_exact(ENTRY)) {
            let held = match old.get((index as usize - 1) * ENTRY..index as usize * ENTRY) {
                Some(words) if words[0].load(Relaxed) != 0 => keep(Entry::read(words))?,
                _ => None,
            };
            if let Some(entry) = held {
                entry.write(words);
            } else {
                words[0].store(0, Relaxed);
                words[1].store(u64::from(free), Relaxed);
                free = index;
            }
        }
        fault::point("roots: table filled");
        // Who dies in between has no table. It must not have one of another size: whoever cleans up
        // lets the collector go on before that is noticed.
        slot.roots.store(0, Relaxed);
        fault::point("roots: no table");
        slot.roots_size.store(bytes as u64, Release);
        fault::point("roots: table sized");
        slot.roots_free.store(free, Relaxed);
        slot.roots.store(at as u64, Release);
        fault::point("roots: table published");
        Ok(())
    }
}

impl Drop for Roots<'_> {
    fn drop(&mut self) {
        if self.is_first {
            lock::release(&self.slot.roots_lock);
        }
    }
}

impl Heap {
    /// Enters an object to which a reference was added, which is lost again if this fails.
    pub(crate) fn enter(&self, op: &mut Op<'_>, at: Offset, serial: u32) -> Result<Root> {
        let entered = Roots::lock(op, self.slot()).and_then(|roots| roots.hold(at, serial));
        if entered.is_err() {
            op.release(at, serial);
        }
        entered
    }

    /// Holds nothing any more: the process leaves. Handles of it that are on their way stay.
    pub(crate) fn release_all(&self) -> Result<()> {
        let mut op = self.op()?;
        let roots = Roots::lock(&op, self.slot())?;
        if let Some((at, bytes)) = root_table::location(roots.slot) {
            for words in root_table::words(&self.segment, roots.slot)?.chunks_exact(ENTRY) {
                let entry = Entry::read(words);
                if entry.at != 0 && entry.nonce == 0 {
                    words[0].store(0, Relaxed);
                    op.release(entry.at, entry.serial);
                }
            }
            if !root_table::has_pins(&self.segment, roots.slot) {
                roots.slot.roots.store(0, Release);
                fault::point("roots: table withdrawn");
                memory::free(&self.segment, &self.hints, at, bytes)?;
            }
        }
        drop(roots);
        op.commit()
    }

    /// Whether the object that is held is still there. It is not if it was made in a transaction
    /// that failed.
    pub fn is_alive(&self, root: &Root) -> Result<bool> {
        Entry { at: root.at, serial: root.serial, nonce: 0 }.is_alive(&self.segment)
    }

    /// Gives the process that is about to be forked the roots of this one, with a reference each.
    ///
    /// The table stays locked, so that what the child inherits is what its table says, until
    /// [`Self::end_duplication`] after the fork, also if that failed. The child's table is not locked.
    pub(crate) fn duplicate_roots(&self, child: &Membership) -> Result<()> {
        let op = self.op()?;
        let roots = Roots::lock(&op, self.slot())?;
        if let Some((_, bytes)) = root_table::location(roots.slot) {
            let slot = process_table::slot(&self.segment, child.slot)?;
            roots.copy_to(slot, bytes, |entry| {
                // A pin is adopted once, so it stays with the parent.
                if entry.nonce != 0 {
                    return Ok(None);
                }
                object::retain_if_alive(&self.segment, entry.at, entry.serial)?;
                fault::point("roots: retained for a child");
                Ok(Some(entry))
            })?;
        }
        std::mem::forget(roots);
        op.commit()
    }

    /// Lets other threads hold and release again, after a fork, in the parent.
    pub(crate) fn end_duplication(&self) -> Result<()> {
        let slot = process_table::slot(&self.segment, self.slot())?;
        let me = self.thread()?.me;
        if Holder::of(slot.roots_lock.load(Relaxed)) == Some(me) {
            lock::release(&slot.roots_lock);
        }
        Ok(())
    }
}
