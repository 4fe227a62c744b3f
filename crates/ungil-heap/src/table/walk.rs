//! Going through a table while others change it.
//!
//! Entries bear stamps that only grow, and a rebuilt table keeps them; so a walk that remembers the
//! stamp of the entry to come finds its place again, wherever that entry is by then.

use super::Table;
use crate::atomic::Ordering::Relaxed;
use crate::object::Kind;
use crate::segment::Offset;
use crate::{Heap, Result};

/// How far a walk through a dict or set has come. The default is its beginning (or its end, for a
/// walk backwards).
///
/// A walk sees each member exactly once that is there from the first step to the last. It ends,
/// however fast others insert: what is put in after its first step, it does not see. What is
/// deleted and put in again is new. After 2³² insertions stamps begin anew, and a walk that is
/// under way then begins again as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(Option<Range>);

/// The stamps that are still to be seen.
#[derive(Clone, Copy, Debug)]
struct Range {
    epoch: u32,
    from: u32,
    to: u32,
}

impl<const WIDTH: usize> Table<'_, WIDTH> {
    fn stamp(&self, number: usize) -> Result<u32> {
        Ok((self.entry(number)?[0].load(Relaxed) >> 32) as u32)
    }

    /// The first entry in use whose stamp is at least `stamp`.
    fn position(&self, stamp: u32) -> Result<usize> {
        let (mut low, mut high) = (0, self.counts.used as usize);
        while low < high {
            let middle = low.midpoint(high);
            if self.stamp(middle)? < stamp {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn range(&self, cursor: Cursor) -> Range {
        match cursor.0 {
            Some(range) if range.epoch == self.counts.epoch => range,
            _ => Range { epoch: self.counts.epoch, from: 0, to: self.counts.stamp },
        }
    }

    fn is_live(&self, number: usize) -> Result<bool> {
        Ok(!self.key(number)?.is_nothing())
    }
}

/// The next members of a walk, at most `max`; none: it has ended. All of them were there at the
/// same moment.
pub(crate) fn batch<const WIDTH: usize, T>(
    heap: &Heap,
    at: Offset,
    kind: Kind,
    cursor: &mut Cursor,
    max: usize,
    mut take: impl FnMut(&Table<'_, WIDTH>, usize) -> Result<T>,
) -> Result<Vec<T>> {
    let (taken, range) = heap.read(at, || {
        let table = Table::<WIDTH>::open(heap.segment(), at, kind)?;
        let mut range = table.range(*cursor);
        let mut taken = Vec::new();
        for number in table.position(range.from)?..table.counts.used as usize {
            let stamp = table.stamp(number)?;
            if taken.len() == max || stamp >= range.to {
                break;
            }
            range.from = stamp.saturating_add(1);
            if table.is_live(number)? {
                taken.push(take(&table, number)?);
            }
        }
        Ok((taken, range))
    })?;
    *cursor = Cursor(Some(range));
    Ok(taken)
}

/// As [`batch`], from the end to the beginning.
pub(crate) fn batch_back<const WIDTH: usize, T>(
    heap: &Heap,
    at: Offset,
    kind: Kind,
    cursor: &mut Cursor,
    max: usize,
    mut take: impl FnMut(&Table<'_, WIDTH>, usize) -> Result<T>,
) -> Result<Vec<T>> {
    let (taken, range) = heap.read(at, || {
        let table = Table::<WIDTH>::open(heap.segment(), at, kind)?;
        let mut range = table.range(*cursor);
        let mut taken = Vec::new();
        for number in (0..table.position(range.to)?).rev() {
            if taken.len() == max {
                break;
            }
            range.to = table.stamp(number)?;
            if table.is_live(number)? {
                taken.push(take(&table, number)?);
            }
        }
        Ok((taken, range))
    })?;
    *cursor = Cursor(Some(range));
    Ok(taken)
}
