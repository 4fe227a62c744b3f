//! A segment for loom, whose atomics are larger than what they stand for and are made one by one.
//!
//! It has what the fixed parts of a segment need, and of the chunks what the model says.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use crate::header::{
    BITMAP_SIZE, CHUNK, Header, LANE_SIZE, LANES, LOG_SIZE, Layout, PROCESS_SIZE, PROCESSES,
};
use crate::lane::Lane;
use crate::object::{BODY, Head, SIZE};
use crate::process_table::Slot;
use crate::queue::Control;
use crate::{Error, Result};

/// A number of bytes from the beginning of the segment; 0 is nothing.
pub type Offset = usize;

/// What a row of words can be seen as.
///
/// # Safety
/// As that of a real segment.
pub unsafe trait Part: Any {}

/// What is in a chunk.
#[derive(Clone, Copy, Debug)]
pub enum Room {
    /// An object.
    Object(Offset),
    /// So many words.
    Words(Offset, usize),
    /// A word of 32 bits, which may be in the body of an object.
    Half(Offset),
    /// A queue.
    Queue(Offset),
}

/// What all processes of a model have mapped.
#[derive(Debug)]
pub struct Segment {
    shared: Arc<Shared>,
    /// As in a real segment: each process knows by itself how far the heap reaches.
    reach: AtomicUsize,
}

impl Clone for Segment {
    fn clone(&self) -> Self {
        let reach = AtomicUsize::new(self.shared.layout.data);
        Self { shared: self.shared.clone(), reach }
    }
}

#[derive(Debug)]
struct Shared {
    layout: Layout,
    header: Header,
    parts: BTreeMap<Offset, Box<dyn Any>>,
    rows: BTreeMap<Offset, Vec<AtomicU64>>,
    halves: BTreeMap<Offset, AtomicU32>,
    lives: Vec<AtomicU32>,
    /// Which chunks have memory: 1.
    memory: Vec<AtomicU32>,
}

fn row(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::default()).collect()
}

impl Segment {
    /// A new one, made before the threads of the model are.
    pub fn modelled(max_size: usize, rooms: impl Fn(&Layout) -> Vec<Room>) -> Self {
        let layout = Layout::new(max_size);
        let mut parts: BTreeMap<Offset, Box<dyn Any>> = BTreeMap::new();
        let mut rows = BTreeMap::new();
        let mut halves = BTreeMap::new();
        for index in 0..PROCESSES {
            parts.insert(layout.processes + index * PROCESS_SIZE, Box::new(Slot::default()));
        }
        for index in 0..LANES {
            parts.insert(layout.lanes + index * LANE_SIZE, Box::new(Lane::default()));
            rows.insert(layout.logs + index * LOG_SIZE, row(LOG_SIZE / 8));
        }
        for index in 0..layout.chunks {
            rows.insert(layout.states + index * 8, row(1));
            rows.insert(layout.bitmaps + index * BITMAP_SIZE, row(BITMAP_SIZE / 8));
        }
        for room in rooms(&layout) {
            match room {
                Room::Object(at) => drop(parts.insert(at, Box::new(Head::default()))),
                Room::Words(at, count) => drop(rows.insert(at, row(count))),
                Room::Half(at) => drop(halves.insert(at, AtomicU32::default())),
                Room::Queue(at) => {
                    parts.insert(at, Box::new(Head::default()));
                    parts.insert(at + SIZE, Box::new(Control::default()));
                }
            }
        }
        let lives = (0..PROCESSES).map(|_| AtomicU32::default()).collect();
        let memory = (0..layout.chunks).map(|_| AtomicU32::default()).collect();
        let header = Header::default();
        let shared = Shared { layout, header, parts, rows, halves, lives, memory };
        Self { shared: Arc::new(shared), reach: AtomicUsize::new(layout.data) }
    }

    /// Whose process lives: the kernel's locks, by slot.
    pub(crate) fn lives(&self) -> &[AtomicU32] {
        &self.shared.lives
    }

    /// Where its parts are.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.shared.header
    }

    /// Whether a range is inside.
    pub fn check(&self, at: Offset, bytes: usize) -> Result<()> {
        let is_inside = |reach: usize| at <= reach && bytes <= reach - at;
        if is_inside(self.reach.load(Relaxed)) {
            return Ok(());
        }
        let chunks = usize::try_from(self.header().chunks.load(Acquire)).unwrap_or(usize::MAX);
        let reach = self.shared.layout.chunk(chunks.min(self.shared.layout.chunks));
        self.reach.fetch_max(reach, Relaxed);
        let is_known = is_inside(reach);
        if is_known { Ok(()) } else { Err(Error::Corrupt("an offset points outside of the heap")) }
    }

    /// A word of 32 bits.
    pub fn word32(&self, at: Offset) -> Result<&AtomicU32> {
        Ok(self.shared.halves.get(&at).unwrap_or_else(|| panic!("the model has no half at {at}")))
    }

    /// A word of 64 bits.
    pub fn word(&self, at: Offset) -> Result<&AtomicU64> {
        Ok(&self.words(at, 1)?[0])
    }

    /// Words of 64 bits.
    pub fn words(&self, at: Offset, count: usize) -> Result<&[AtomicU64]> {
        self.check(at, count * 8)?;
        if count == 0 {
            return Ok(&[]);
        }
        if let Some((from, part)) = self.shared.parts.range(..=at).next_back()
            && at < from + SIZE
            && let Some(head) = part.downcast_ref::<Head>()
        {
            let first = (at - from - BODY) / 8;
            return Ok(&head.body[first..first + count]);
        }
        let (from, row) = self.shared.rows.range(..=at).next_back().expect("a row");
        let first = (at - from) / 8;
        let found = row.get(first..first + count);
        Ok(found.unwrap_or_else(|| panic!("the model has no {count} words at {at}")))
    }

    /// Words in a row, as what they are.
    pub fn part<T: Part>(&self, at: Offset) -> Result<&T> {
        self.check(at, 8)?;
        let part = self.shared.parts.get(&at).and_then(|part| part.downcast_ref());
        Ok(part.unwrap_or_else(|| panic!("the model has no such part at {at}")))
    }

    /// Does nothing.
    pub fn prefetch(&self, _: Offset) {}

    /// Notes which chunks have memory.
    pub fn provide(&self, at: Offset, bytes: usize) -> Result<()> {
        for memory in self.memory(at, bytes) {
            memory.swap(1, SeqCst);
        }
        Ok(())
    }

    /// Whether there is memory behind a range of the chunks, as the kernel knows.
    pub(crate) fn has_memory(&self, at: Offset, bytes: usize) -> bool {
        self.memory(at, bytes).iter().all(|memory| memory.fetch_add(0, SeqCst) == 1)
    }

    fn memory(&self, at: Offset, bytes: usize) -> &[AtomicU32] {
        let Some(from) = at.checked_sub(self.shared.layout.data) else { return &[] };
        &self.shared.memory[from / CHUNK..(from + bytes).div_ceil(CHUNK)]
    }

    /// Does nothing.
    pub fn give_back(&self, _: Offset, _: usize) {}
}
