//! What can be reached, and how often.
//!
//! The walk begins at the root object and at what the attached processes hold ([`crate::root_table`]),
//! while the world stands still. What it finds is kept in this process's own memory: a bit for each
//! block and a count for each object. So nothing in the heap says that a walk was under way, and one
//! that is killed has never happened.
//!
//! The walk ends on any bytes: each block can have one owner, each object is visited once, and
//! whatever contradicts that is an error.

use crate::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use crate::chunk::{self, State};
use crate::header::{BITMAP_SIZE, CHUNK, PROCESSES};
use crate::object::{self, Kind, Owned};
use crate::process_table::{self, LEFT, TAKEN};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, memory, root_table, size_class, slab};

/// Words of the bitmap of a chunk.
const WORDS: usize = BITMAP_SIZE / 8;
/// How far ahead of the walk the processor is told of the objects to come.
pub(crate) const AHEAD: usize = 8;

/// What a chunk is, when the world stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing.
    Free,
    /// Blocks of a class.
    Slab(u8),
    /// The first of a run of so many.
    Run(usize),
    /// Not the first of a run.
    Inner,
}

/// All that can be reached.
#[derive(Debug)]
pub(crate) struct Reached {
    /// What the chunks are.
    pub(crate) chunks: Vec<Use>,
    /// For each chunk [`WORDS`], a bit for each block, as in the bitmaps of the heap. A run has the
    /// first bit of its first chunk.
    marks: Vec<u64>,
    /// How often an object is referred to, by its offset in units of the smallest object.
    counts: Vec<u32>,
    /// The objects, in the order in which they were found.
    pub(crate) objects: Vec<Offset>,
    /// How many objects of each kind there are, in the order of [`Kind::ALL`], and how many bytes
    /// were taken for them.
    pub(crate) kinds: [(usize, usize); Kind::ALL.len()],
    /// Where the chunks begin.
    data: Offset,
}

impl Reached {
    /// Walks the heap. The world stands still.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; the heap is as it was.
    pub(crate) fn walk(segment: &Segment) -> Result<Self> {
        let chunks = uses(segment)?;
        let mut reached = Self {
            marks: vec![0; chunks.len() * WORDS],
            counts: vec![0; chunks.len() * (CHUNK / object::SIZE)],
            chunks,
            objects: Vec::new(),
            kinds: Default::default(),
            data: segment.layout().data,
        };
        let root = offset(segment.header().root.load(Acquire));
        if root != 0 {
            reached.refer(root)?;
        }
        for index in 0..PROCESSES {
            let slot = process_table::slot(segment, index)?;
            match slot.state.load(Acquire) {
                TAKEN => reached.enter_table(segment, slot, |_| true)?,
                LEFT => reached.enter_table(segment, slot, |entry| entry.nonce != 0)?,
                _ => {}
            }
        }
        let mut next = 0;
        while let Some(&at) = reached.objects.get(next) {
            if let Some(&later) = reached.objects.get(next + AHEAD) {
                segment.prefetch(later);
            }
            next += 1;
            let mut taken = 0;
            object::owned(segment, at, &mut |owned| match owned {
                Owned::Block { at, bytes } => {
                    taken += memory::rounded(bytes);
                    reached.mark(at, bytes)
                }
                Owned::Object(at) => reached.refer(at),
            })?;
            // The kinds are numbered from 1 on.
            let (objects, bytes) =
                &mut reached.kinds[object::head(segment, at)?.kind()? as usize - 1];
            *objects += 1;
            *bytes += taken;
            if !reached.is_marked(at)? {
                return Err(Error::Corrupt("an object does not own its own memory"));
            }
        }
        reached.check_taken(segment)?;
        Ok(reached)
    }

    /// Marks a process's table, and refers to what is in it and counts.
    fn enter_table(
        &mut self,
        segment: &Segment,
        slot: &process_table::Slot,
        counts: impl Fn(&root_table::Entry) -> bool,
    ) -> Result<()> {
        let Some((at, bytes)) = root_table::location(slot) else { return Ok(()) };
        self.mark(at, bytes)?;
        for entry in root_table::entries(segment, slot)? {
            // An object that was made in a transaction and held there is no more if that failed.
            if counts(&entry) && entry.is_alive(segment)? {
                self.refer(entry.at)?;
            }
        }
        Ok(())
    }

    /// Notes a block, which nobody has noted yet.
    fn mark(&mut self, at: Offset, bytes: usize) -> Result<()> {
        let chunk = self.chunk(at)?;
        let fits = match self.chunks[chunk] {
            Use::Slab(class) => size_class::of(bytes) == Some(class),
            Use::Run(chunks) => bytes > size_class::LARGEST && bytes.div_ceil(CHUNK) == chunks,
            Use::Free | Use::Inner => false,
        };
        if !fits {
            return Err(Error::Corrupt("an object owns memory that was not taken for it"));
        }
        let (word, bit) = self.place(chunk, at)?;
        if self.marks[word] & bit != 0 {
            return Err(Error::Corrupt("two objects own the same memory"));
        }
        self.marks[word] |= bit;
        Ok(())
    }

    /// Counts a reference to an object.
    fn refer(&mut self, at: Offset) -> Result<()> {
        let chunk = self.chunk(at)?;
        self.place(chunk, at)?;
        if matches!(self.chunks[chunk], Use::Slab(class) if size_class::SIZES[usize::from(class)] < object::SIZE)
        {
            return Err(Error::Corrupt("a reference points to something too small for an object"));
        }
        let count = &mut self.counts[(at - self.data) / object::SIZE];
        if *count == 0 {
            self.objects.push(at);
        }
        *count = count
            .checked_add(1)
            .ok_or(Error::Corrupt("an object has more references than can be counted"))?;
        Ok(())
    }

    /// How often an object that was found is referred to.
    pub(crate) fn references(&self, at: Offset) -> u32 {
        self.counts[(at - self.data) / object::SIZE]
    }

    /// The bits of the reached blocks of a chunk, as they would be in its bitmap.
    pub(crate) fn marks(&self, chunk: usize) -> &[u64] {
        &self.marks[chunk * WORDS..(chunk + 1) * WORDS]
    }

    fn is_marked(&self, at: Offset) -> Result<bool> {
        let (word, bit) = self.place(self.chunk(at)?, at)?;
        Ok(self.marks[word] & bit != 0)
    }

    /// The number of the chunk that an offset is in.
    fn chunk(&self, at: Offset) -> Result<usize> {
        let chunk = at.wrapping_sub(self.data) / CHUNK;
        if at < self.data || chunk >= self.chunks.len() {
            return Err(Error::Corrupt("a reference points outside of the heap's memory"));
        }
        Ok(chunk)
    }

    /// Which word and bit of the marks stand for the block that begins at `at`.
    #[expect(clippy::cast_possible_truncation, reason = "less than a chunk, which divides faster")]
    fn place(&self, chunk: usize, at: Offset) -> Result<(usize, u64)> {
        const INSIDE: Error = Error::Corrupt("a reference points into the midst of something");
        let inside = (at - self.data) % CHUNK;
        let block = match self.chunks[chunk] {
            Use::Slab(class) => {
                let size = size_class::SIZES[usize::from(class)] as u32;
                let (block, rest) = (inside as u32 / size, inside as u32 % size);
                if rest != 0 || block as usize >= size_class::capacity(class) {
                    return Err(INSIDE);
                }
                block as usize
            }
            Use::Run(_) if inside == 0 => 0,
            Use::Free => return Err(Error::Corrupt("a reference points to free memory")),
            Use::Run(_) | Use::Inner => return Err(INSIDE),
        };
        Ok((chunk * WORDS + block / 64, 1 << (block % 64)))
    }

    /// Whether all blocks that were reached are taken.
    fn check_taken(&self, segment: &Segment) -> Result<()> {
        for (chunk, used) in self.chunks.iter().enumerate() {
            if !matches!(used, Use::Slab(_)) {
                continue;
            }
            let taken = slab::bitmap(segment, chunk)?;
            let is_free = |(mark, taken): (&u64, &AtomicU64)| mark & !taken.load(Relaxed) != 0;
            if self.marks(chunk).iter().zip(taken).any(is_free) {
                return Err(Error::Corrupt("an object owns a block that is free"));
            }
        }
        Ok(())
    }
}

/// What the chunks are used for.
fn uses(segment: &Segment) -> Result<Vec<Use>> {
    let total = chunk::count(segment);
    let mut uses = Vec::with_capacity(total);
    while uses.len() < total {
        match State::from_word(chunk::state(segment, uses.len())?.load(Acquire))? {
            State::Free | State::Hole => uses.push(Use::Free),
            State::Slab(class) | State::Retiring(class) => uses.push(Use::Slab(class)),
            State::Run(chunks) => {
                if chunks > total - uses.len() {
                    return Err(Error::Corrupt("a run is longer than the heap"));
                }
                uses.push(Use::Run(chunks));
                uses.resize(uses.len() + chunks - 1, Use::Inner);
            }
        }
    }
    Ok(uses)
}

#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; and it is checked")]
const fn offset(word: u64) -> Offset {
    word as Offset
}
