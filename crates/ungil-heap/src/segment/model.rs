//! A segment for loom, whose atomics are larger than what they stand for and are made one by one.
//!
//! It has what the fixed parts of a segment need, and of the chunks what the model says.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::atomic::{AtomicU32, AtomicU64};
use crate::header::{
    BITMAP_SIZE, Header, LANE_SIZE, LANES, LOG_SIZE, Layout, PROCESS_SIZE, PROCESSES,
};
use crate::lane::Lane;
use crate::object::{BODY, Head, SIZE};
use crate::process::Slot;
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
}

/// What all processes of a model have mapped.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    layout: Layout,
    header: Header,
    parts: BTreeMap<Offset, Box<dyn Any>>,
    rows: BTreeMap<Offset, Vec<AtomicU64>>,
    halves: BTreeMap<Offset, AtomicU32>,
    lives: Vec<AtomicU32>,
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
            }
        }
        let lives = (0..PROCESSES).map(|_| AtomicU32::default()).collect();
        Self(Arc::new(Shared { layout, header: Header::default(), parts, rows, halves, lives }))
    }

    /// Whose process lives: the kernel's locks, by slot.
    pub(crate) fn lives(&self) -> &[AtomicU32] {
        &self.0.lives
    }

    /// Where its parts are.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    /// Whether a range is inside.
    pub fn check(&self, at: Offset, bytes: usize) -> Result<()> {
        let end = self.0.layout.end;
        if at <= end && bytes <= end - at {
            return Ok(());
        }
        Err(Error::Corrupt("an offset points outside of the heap"))
    }

    /// A word of 32 bits.
    pub fn word32(&self, at: Offset) -> Result<&AtomicU32> {
        Ok(self.0.halves.get(&at).unwrap_or_else(|| panic!("the model has no half at {at}")))
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
        if let Some((from, part)) = self.0.parts.range(..=at).next_back()
            && at < from + SIZE
            && let Some(head) = part.downcast_ref::<Head>()
        {
            let first = (at - from - BODY) / 8;
            return Ok(&head.body[first..first + count]);
        }
        let (from, row) = self.0.rows.range(..=at).next_back().expect("a row");
        let first = (at - from) / 8;
        let found = row.get(first..first + count);
        Ok(found.unwrap_or_else(|| panic!("the model has no {count} words at {at}")))
    }

    /// Words in a row, as what they are.
    pub fn part<T: Part>(&self, at: Offset) -> Result<&T> {
        self.check(at, 8)?;
        let part = self.0.parts.get(&at).and_then(|part| part.downcast_ref());
        Ok(part.unwrap_or_else(|| panic!("the model has no such part at {at}")))
    }

    /// Does nothing.
    pub fn prefetch(&self, _: Offset) {}

    /// All memory is there.
    pub fn provide(&self, _: Offset, _: usize) -> Result<()> {
        Ok(())
    }

    /// Does nothing.
    pub fn give_back(&self, _: Offset, _: usize) {}
}
