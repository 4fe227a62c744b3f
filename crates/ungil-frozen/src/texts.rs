//! Texts that were written lately, so that those that recur are written once.

use ungil_heap::value::Cell;

/// How many are remembered, a power of two.
const PLACES: usize = 1 << 15;
/// Longer ones are not: at most so many bytes each, so that all take 8 MiB.
const LONGEST: usize = 256;

/// What was written lately, by the hash of its bytes.
pub struct Texts(Vec<Option<(Box<[u8]>, Cell)>>);

impl Texts {
    /// None were.
    pub fn new() -> Self {
        Self(std::iter::repeat_with(|| None).take(PLACES).collect())
    }

    /// The cell of these bytes, if they were written with this tag.
    pub fn find(&self, hash: u64, tag: u8, bytes: &[u8]) -> Option<Cell> {
        let (known, cell) = self.0[place(hash)].as_ref()?;
        (crate::cell::tag(*cell) == tag && **known == *bytes).then_some(*cell)
    }

    /// Remembers that these bytes were written.
    pub fn remember(&mut self, hash: u64, bytes: &[u8], cell: Cell) {
        if bytes.len() <= LONGEST {
            self.0[place(hash)] = Some((bytes.into(), cell));
        }
    }
}

fn place(hash: u64) -> usize {
    usize::try_from(hash >> 32).unwrap_or(0) % PLACES
}
