//! What is in a heap, who is attached to it and who holds which lock: for people.

use std::time::Duration;

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed},
};
use crate::header::{CHUNK, LANES, PROCESSES};
use crate::lock::Holder;
use crate::mark::Reached;
use crate::object::Kind;
use crate::process_table::TAKEN;
use crate::segment::Offset;
use crate::world::Stillness;
use crate::{Heap, Result, chunk, lane, object, process_table, verify};

/// What is in a heap.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Bytes to which the heap can grow.
    pub max_bytes: usize,
    /// Bytes to which it has grown.
    pub grown_bytes: usize,
    /// Seconds since the epoch when it was made.
    pub created: u64,
    /// Processes that died attached, since then.
    pub deaths: u32,
    /// Collections since then.
    pub collections: u64,
    /// Who is in the process table, dead ones included.
    pub processes: Vec<Attached>,
    /// Which locks of the heap's own are held. More of them in [`Contents::locks`].
    pub locks: Vec<Held>,
    /// What was found by walking the heap; `None` if somebody was busy all the time.
    pub contents: Option<Contents>,
}

/// What can be reached in a heap.
#[derive(Clone, Debug)]
pub struct Contents {
    /// How many objects of each kind there are, and how many bytes were taken for them.
    pub kinds: Vec<(Kind, usize, usize)>,
    /// Bytes that are taken.
    pub taken_bytes: usize,
    /// Of these, bytes that a collection would free.
    pub lost_bytes: usize,
    /// Which objects are locked by their users.
    pub locks: Vec<Held>,
}

/// A process in the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its number in the table.
    pub slot: usize,
    /// Its number in its own namespace.
    pub pid: u32,
    /// Seconds since the epoch when it attached.
    pub since: u64,
    /// False for one that died and was not cleaned up behind yet.
    pub is_alive: bool,
    /// Its threads that have changed the heap.
    pub threads: usize,
}

/// What a lock guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// The whole heap, for a collection.
    Gate,
    /// The chunks.
    Chunks,
    /// Transactions.
    Transaction,
    /// An object, locked by its user.
    Object(Kind, Offset),
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What it guards.
    pub guarded: Guarded,
    /// The number of the holder in the process table; `None` if it died.
    pub slot: Option<usize>,
}

impl Heap {
    /// Looks at everything. The world stands still for a moment, or for no moment if somebody is busy
    /// all through `patience`.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the heap is damaged.
    pub fn statistics(&self, patience: Duration) -> Result<Statistics> {
        // What is locked is looked at before this stops the world itself.
        let overview = self.overview()?;
        Ok(Statistics { contents: self.contents(patience)?, ..overview })
    }

    /// What can be said without walking the heap: [`Statistics::contents`] is `None`.
    pub fn overview(&self) -> Result<Statistics> {
        let header = self.segment.header();
        let locks = [
            (Guarded::Gate, &header.gate),
            (Guarded::Chunks, &header.chunk_lock),
            (Guarded::Transaction, &header.transaction_lock),
        ];
        let locks = self.held(locks);
        let layout = self.segment.layout();
        Ok(Statistics {
            max_bytes: (layout.chunks - layout.reserve) * CHUNK,
            grown_bytes: chunk::grown(&self.segment) * CHUNK,
            created: header.created.load(Relaxed),
            deaths: header.deaths.load(Relaxed),
            collections: header.collections.load(Relaxed),
            processes: self.processes()?,
            locks,
            contents: None,
        })
    }

    /// Who is in the process table.
    pub fn processes(&self) -> Result<Vec<Attached>> {
        let mut threads = vec![0; PROCESSES];
        for index in 0..LANES {
            let owner = lane::lane(&self.segment, index)?.owner.load(Acquire) as usize;
            if let Some(count) = threads.get_mut(owner.wrapping_sub(1)) {
                *count += 1;
            }
        }
        let mut attached = Vec::new();
        for (index, &threads) in threads.iter().enumerate() {
            let slot = process_table::slot(&self.segment, index)?;
            if slot.state.load(Acquire) == TAKEN {
                attached.push(Attached {
                    slot: index,
                    pid: slot.pid.load(Relaxed),
                    since: slot.since.load(Relaxed),
                    is_alive: !process_table::is_dead(&self.segment, index)?,
                    threads,
                });
            }
        }
        Ok(attached)
    }

    fn contents(&self, patience: Duration) -> Result<Option<Contents>> {
        let Some(_still) = Stillness::begin(self, patience)? else { return Ok(None) };
        let reached = Reached::walk(&self.segment)?;
        let found = verify::count(&self.segment, &reached)?;
        let mut locks = Vec::new();
        for &at in &reached.objects {
            let head = object::head(&self.segment, at)?;
            if head.monitor.load(Relaxed) != 0 {
                locks.extend(self.held([(Guarded::Object(head.kind()?, at), &head.monitor)]));
            }
        }
        let kinds = Kind::ALL.into_iter().zip(reached.kinds);
        Ok(Some(Contents {
            kinds: kinds.map(|(kind, (objects, bytes))| (kind, objects, bytes)).collect(),
            taken_bytes: found.taken_bytes,
            lost_bytes: found.lost_bytes(),
            locks,
        }))
    }

    /// Those of some locks that are held, and by whom.
    fn held<'w>(&self, locks: impl IntoIterator<Item = (Guarded, &'w AtomicU32)>) -> Vec<Held> {
        let mut held = Vec::new();
        for (guarded, word) in locks {
            let Some(holder) = Holder::of(word.load(Acquire)) else { continue };
            // A damaged word names a lane that does not exist: nobody's, too.
            let slot = lane::lane(&self.segment, holder.lane()).ok().and_then(|lane| {
                let owner = (lane.owner.load(Acquire) as usize).checked_sub(1);
                owner.filter(|_| lane.generation.load(Acquire) == holder.generation())
            });
            held.push(Held { guarded, slot });
        }
        held
    }
}
