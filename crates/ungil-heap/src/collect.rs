//! Finds what cannot be reached any more and frees it: cycles of objects, and what dead processes
//! left.
//!
//! Each step of the sweep frees something that nobody can reach, or corrects one object's count. So
//! a collector can be killed anywhere: the gate opens (who waits there sees that its holder is
//! dead), and what it did not come to is found by the next one.

use std::time::Duration;

use crate::atomic::Ordering::{Relaxed, SeqCst};
use crate::chunk;
use crate::header::CHUNK;
use crate::lock::Holder;
use crate::mark::{Reached, Use};
use crate::segment::Segment;
use crate::world::Stillness;
use crate::{
    Heap, Result, allocator, cleanup, clock, fault, lane, memory, object, size_class, slab,
};

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects that are left.
    pub objects: usize,
    /// Pieces of memory that were freed.
    pub freed: usize,
    /// Bytes of them.
    pub freed_bytes: usize,
    /// Free bytes that the system has back, from this collection or before.
    pub returned_bytes: usize,
    /// Objects that had more references than there are to them: dead processes and cycles had them.
    pub lowered: usize,
    /// Objects that had fewer. Only a damaged heap has any.
    pub raised: usize,
    /// Dead processes that were cleaned up behind.
    pub dead: usize,
    /// How long the world stood still.
    pub standstill: Duration,
}

impl Heap {
    /// Frees what nobody can reach. All other operations wait meanwhile. Handles on their way whose
    /// sender has ended are given up.
    ///
    /// `None`: somebody was busy, with a transaction for example, all through `patience`; nothing
    /// was done.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the heap is damaged; it is as it was then.
    /// [`crate::Error::Refused`] inside of a transaction.
    pub fn collect(&self, patience: Duration) -> Result<Option<Collected>> {
        self.collect_since(patience, Duration::ZERO)
    }

    /// As above, but waiting longer for handles whose sender has ended.
    pub(crate) fn collect_patiently(&self, patience: Duration) -> Result<Option<Collected>> {
        self.collect_since(patience, cleanup::LATE)
    }

    fn collect_since(&self, patience: Duration, ended: Duration) -> Result<Option<Collected>> {
        let Some(_still) = Stillness::begin(self, patience)? else { return Ok(None) };
        let begun = clock::now();
        let deaths = self.segment.header().deaths.load(SeqCst);
        let mut done = Collected { dead: self.clean()?, ..Collected::default() };
        cleanup::give_up(&self.segment, ended)?;
        let reached = Reached::walk(&self.segment)?;
        fault::point("collect: walked");
        correct(&self.segment, &reached, &mut done)?;
        let me = self.thread()?.me;
        allocator::with_chunks(self, me, || sweep(&self.segment, &reached, &mut done))?;
        let header = self.segment.header();
        // Whoever died later than this look is left to the next collection.
        header.collected_deaths.store(u64::from(deaths) + done.dead as u64, Relaxed);
        header.collections.fetch_add(1, Relaxed);
        fault::point("collect: noted");
        done.standstill = begun.elapsed();
        Ok(Some(done))
    }
}

/// Makes the counts of all objects true. What dead holders left in lock words goes too. While the
/// world stands still, nobody alive has an object locked but for a moment: see [`crate::poke`].
fn correct(segment: &Segment, reached: &Reached, done: &mut Collected) -> Result<()> {
    for (index, &at) in reached.objects.iter().enumerate() {
        if let Some(&later) = reached.objects.get(index + crate::mark::AHEAD) {
            segment.prefetch(later);
        }
        let head = object::head(segment, at)?;
        let truth = reached.references(at);
        let counted = head.references();
        if counted != truth {
            done.lowered += usize::from(counted > truth);
            done.raised += usize::from(counted < truth);
            head.life.store(u64::from(head.serial()) << 32 | u64::from(truth), SeqCst);
            fault::point("collect: count corrected");
        }
        let lock = head.lock.load(Relaxed);
        if Holder::of(lock).is_some_and(|holder| lane::is_taken(segment, holder)) {
            continue;
        }
        let version = head.version.load(Relaxed);
        if version & 1 == 1 {
            head.version.store(version.wrapping_add(1), SeqCst);
        }
        if lock != 0 {
            head.lock.store(0, SeqCst);
        }
    }
    done.objects = reached.objects.len();
    Ok(())
}

/// Frees all that was not reached. The caller holds the lock of the chunks.
fn sweep(segment: &Segment, reached: &Reached, done: &mut Collected) -> Result<()> {
    for (chunk, used) in reached.chunks.iter().enumerate() {
        match *used {
            Use::Slab(class) => sweep_slab(segment, reached, chunk, class, done)?,
            Use::Run(chunks) => {
                clear(segment, chunk)?;
                if reached.marks(chunk)[0] == 0 {
                    object::forget(segment, segment.layout().chunk(chunk))?;
                    chunk::free_run(segment, segment.layout().chunk(chunk))?;
                    done.freed += 1;
                    done.freed_bytes += chunks * CHUNK;
                }
            }
            Use::Free | Use::Inner => clear(segment, chunk)?,
        }
    }
    memory::retire_all(segment)?;
    let used = chunk::used(segment)?;
    segment.header().collected_chunks.store(used as u64, Relaxed);
    done.returned_bytes = chunk::give_back(segment, (used / 8).max(32))? * CHUNK;
    Ok(())
}

/// Clears the bits of blocks that were not reached.
fn sweep_slab(
    segment: &Segment,
    reached: &Reached,
    chunk: usize,
    class: u8,
    done: &mut Collected,
) -> Result<()> {
    let size = size_class::SIZES[usize::from(class)];
    let blocks = (0..).step_by(64).zip(slab::bitmap(segment, chunk)?).zip(reached.marks(chunk));
    for ((first, word), &mark) in blocks {
        let lost = word.load(Relaxed) & !mark;
        if lost == 0 {
            continue;
        }
        if size >= object::SIZE {
            let mut left = lost;
            while left != 0 {
                let block: usize = first + left.trailing_zeros() as usize;
                // A damaged bitmap has bits for blocks beyond the last one.
                if block < size_class::capacity(class) {
                    object::forget(segment, segment.layout().chunk(chunk) + block * size)?;
                }
                left &= left - 1;
            }
        }
        word.fetch_and(mark, SeqCst);
        fault::point("collect: bits cleared");
        done.freed += lost.count_ones() as usize;
        done.freed_bytes += lost.count_ones() as usize * size;
    }
    Ok(())
}

/// Clears bits where no blocks are: left by who died before it saw that a slab was none any more.
fn clear(segment: &Segment, chunk: usize) -> Result<()> {
    for word in slab::bitmap(segment, chunk)? {
        if word.load(Relaxed) != 0 {
            word.store(0, SeqCst);
        }
    }
    Ok(())
}
