//! The records of the last seconds, and what stood when they began.

use super::chunk::Chunk;
use super::standing::Standing;
use crate::record::Record;
use std::collections::VecDeque;
use std::sync::Arc;

/// The seconds are kept in so many chunks; by one of them more may be kept.
const CHUNKS: u64 = 16;
/// A chunk ends when it has grown this large, or by this part of all memory.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_PART: usize = 16;
/// Where nothing has happened for so long, a chunk ends without an event that begins the next one.
const IDLE_NS: u64 = 1_000_000_000;

/// The records of the last seconds.
#[derive(Debug)]
pub struct Kept {
    last_ns: u64,
    most_bytes: usize,
    /// What stood when the first chunk began.
    standing: Standing,
    /// Those that are complete, the oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    chunks_bytes: usize,
    open: Chunk,
    /// The latest moment that a record told.
    latest_ns: u64,
    /// What the next chunk begins with, once there is to be one.
    next_marks: Option<Vec<Record>>,
    /// Whether something was forgotten that was not too old, for want of room.
    has_forgotten: bool,
}

/// What was kept at one moment.
#[derive(Debug)]
pub struct Frozen {
    pub(super) standing: Standing,
    pub(super) chunks: Vec<Arc<Chunk>>,
    /// The latest moment that a record told.
    pub latest_ns: u64,
    /// Whether something was forgotten that was not too old, for want of room.
    pub has_forgotten: bool,
}

impl Kept {
    /// Keeps the last `last_ns` nanoseconds, or less if these take more than `most_bytes`.
    pub fn new(last_ns: u64, most_bytes: usize, now_ns: u64) -> Self {
        Self {
            last_ns,
            most_bytes,
            standing: Standing::default(),
            chunks: VecDeque::new(),
            chunks_bytes: 0,
            open: Chunk::new(now_ns, Vec::new()),
            latest_ns: 0,
            next_marks: None,
            has_forgotten: false,
        }
    }

    /// Takes in one record.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        if let Some(at_ns) = record.at_ns().filter(|&at_ns| at_ns > self.latest_ns) {
            // Then a part of a whole trace that begins at this moment begins with this record.
            if self.next_marks.is_some() && matches!(record, Record::Gil { .. }) {
                self.begin_chunk(at_ns);
            }
            self.latest_ns = at_ns;
        }
        self.open.push(record);
    }

    /// To be called often. `marks` are asked for when a new chunk is to begin: what would be told
    /// if the recording ended now.
    pub fn tick(&mut self, now_ns: u64, marks: impl FnOnce() -> Vec<Record>) {
        let age_ns = now_ns.saturating_sub(self.open.from_ns);
        let is_due = age_ns >= self.last_ns / CHUNKS || self.open.bytes() >= self.chunk_bytes();
        if is_due && self.next_marks.is_none() {
            self.next_marks = Some(marks());
        }
        let idle_since_ns = now_ns.saturating_sub(IDLE_NS);
        if self.next_marks.is_some() && self.latest_ns.max(self.open.from_ns) < idle_since_ns {
            self.begin_chunk(idle_since_ns);
        }
        self.forget(now_ns);
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES.min(self.most_bytes / CHUNK_PART)
    }

    fn begin_chunk(&mut self, from_ns: u64) {
        let marks = self.next_marks.take().unwrap_or_default();
        let mut full = std::mem::replace(&mut self.open, Chunk::new(from_ns, marks));
        full.seal();
        self.chunks_bytes += full.bytes();
        self.chunks.push_back(Arc::new(full));
    }

    /// Forgets chunks that are too old, or too much.
    fn forget(&mut self, now_ns: u64) {
        loop {
            let second = self.chunks.get(1).map_or(self.open.from_ns, |chunk| chunk.from_ns);
            let is_old = second.saturating_add(self.last_ns) <= now_ns;
            if !is_old && self.bytes() <= self.most_bytes {
                return;
            }
            let Some(oldest) = self.chunks.pop_front() else { return };
            self.has_forgotten |= !is_old;
            self.chunks_bytes -= oldest.bytes();
            oldest.each(|record| self.standing.push(record));
        }
    }

    /// How much memory the records take.
    pub fn bytes(&self) -> usize {
        self.chunks_bytes + self.open.bytes()
    }

    /// What is kept now.
    pub fn freeze(&self) -> Frozen {
        let mut chunks: Vec<_> = self.chunks.iter().cloned().collect();
        chunks.push(Arc::new(self.open.clone()));
        Frozen {
            standing: self.standing.clone(),
            chunks,
            latest_ns: self.latest_ns,
            has_forgotten: self.has_forgotten,
        }
    }
}

impl Frozen {
    /// When the kept seconds begin.
    pub fn from_ns(&self) -> u64 {
        self.chunks.first().map_or(self.latest_ns, |chunk| chunk.from_ns)
    }
}
