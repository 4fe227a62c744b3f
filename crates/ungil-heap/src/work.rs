//! What an operation has done so far, beside what its log says: what is to be freed when it has
//! happened, and what if it has not.

use crate::header::GRANULE;
use crate::lane::Position;
use crate::memory::Hints;
use crate::object::Owned;
use crate::segment::{Offset, Segment};
use crate::{Error, Result, fault, hazard, memory, object};

/// What the operation under way has done. Its room is used again by the next one.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Objects that are locked, and whose version is odd.
    pub(crate) locked: Vec<Offset>,
    /// Objects that are locked, but may be read. Those that were changed later are among the locked
    /// ones, too.
    pub(crate) guarded: Vec<Offset>,
    /// Objects that were made in a transaction, and their sizes.
    pub(crate) made: Vec<(Offset, usize)>,
    /// Memory that was taken: freed if the operation fails.
    pub(crate) taken: Vec<(Offset, usize)>,
    /// Memory that is to be freed when the operation has succeeded.
    pub(crate) doomed: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation has succeeded.
    pub(crate) forgone: Vec<Offset>,
    /// Objects that got a reference, with their serial numbers: lost again if the operation fails.
    pub(crate) retained: Vec<(Offset, u32)>,
    /// Memory that is to be freed when the operation ends, even if it fails: what was made in a
    /// part of it that failed, and the continuations of the log.
    pub(crate) undone: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation ends, even if it fails, and if they are
    /// still there.
    pub(crate) released: Vec<(Offset, u32)>,
}

impl Work {
    /// How far it has come, with a log that stands at `position`.
    #[inline]
    pub(crate) fn savepoint(&self, position: Position) -> Savepoint {
        Savepoint {
            position,
            taken: self.taken.len(),
            doomed: self.doomed.len(),
            forgone: self.forgone.len(),
            retained: self.retained.len(),
            made: self.made.len(),
        }
    }

    /// Whether the object at `at` was made by it.
    pub(crate) fn is_new(&self, at: Offset) -> bool {
        let is_it = |(made, _): &(Offset, usize)| *made == at;
        self.taken.iter().any(is_it) || self.made.iter().any(is_it)
    }

    /// Puts the objects that it made before the others that are locked. In this order they are
    /// unlocked: as soon as one that refers to them is, others find them there, and may free them.
    #[cold]
    pub(crate) fn put_new_first(&mut self) {
        let new = &mut self.taken;
        new.sort_unstable();
        self.locked.sort_by_key(|at| new.binary_search_by_key(at, |(new, _)| *new).is_err());
    }

    /// What was made since `start` is no more: its memory is freed at the end, and the references
    /// that were added are lost. There is less than at `start` if the whole was undone before a part.
    pub(crate) fn unmake(&mut self, segment: &Segment, start: &Savepoint) -> Result<()> {
        self.doomed.truncate(start.doomed);
        self.forgone.truncate(start.forgone);
        for (at, bytes) in self.taken.drain(start.taken.min(self.taken.len())..) {
            // References to objects that were made lead nowhere from now on.
            if bytes >= object::SIZE {
                object::forget(segment, at)?;
            }
            self.undone.push((at, bytes));
        }
        let retained = start.retained.min(self.retained.len());
        self.released.extend(self.retained.drain(retained..));
        for (at, bytes) in self.made.drain(start.made.min(self.made.len())..) {
            object::bury(segment, at, bytes)?;
        }
        Ok(())
    }

    /// Forgets what was made since `start`, where it cannot be said any more what refers to it.
    pub(crate) fn leak(&mut self, start: &Savepoint) {
        self.doomed.truncate(start.doomed);
        self.forgone.truncate(start.forgone);
        self.taken.truncate(start.taken);
        self.retained.truncate(start.retained);
        self.made.truncate(start.made);
    }

    /// Gives back what nobody needs any more. Goes on after an error, and returns the first: what
    /// is not freed then is left to the collector.
    #[inline]
    pub(crate) fn clear(&mut self, segment: &Segment, hints: &Hints) -> Result<()> {
        self.taken.clear();
        self.retained.clear();
        self.made.clear();
        let is_clear = self.doomed.is_empty()
            && self.forgone.is_empty()
            && self.undone.is_empty()
            && self.released.is_empty();
        if is_clear { Ok(()) } else { self.give_back(segment, hints) }
    }

    fn give_back(&mut self, segment: &Segment, hints: &Hints) -> Result<()> {
        let Self { doomed, forgone, undone, released, .. } = self;
        let mut result = Ok(());
        let mut lose = |at, last: Result<bool>, forgone: &mut _, doomed: &mut Vec<_>| {
            let lost = last.and_then(|last| {
                if last {
                    fault::point("op: last reference gone");
                    let first = doomed.len();
                    dismantle(segment, at, forgone, doomed)?;
                    if hazard::is_announced(&*segment.header().hazards, at) {
                        leave_to_collector(segment, doomed, first)?;
                    }
                }
                Ok(())
            });
            if result.is_ok() {
                result = lost;
            }
        };
        while let Some((at, serial)) = released.pop() {
            lose(at, object::forgo_if_alive(segment, at, serial), forgone, doomed);
        }
        while let Some(at) = forgone.pop() {
            lose(at, object::forgo(segment, at), forgone, doomed);
        }
        for list in [undone, doomed] {
            while let Some((at, bytes)) = list.pop() {
                let freed = memory::free(segment, hints, at, bytes);
                if result.is_ok() {
                    result = freed;
                }
            }
        }
        result
    }
}

/// Keeps the memory of an object whose last reference is gone from being used anew: somebody may be
/// about to look at it. Its own memory is the first that it owns.
#[cold]
fn leave_to_collector(
    segment: &Segment,
    doomed: &mut Vec<(Offset, usize)>,
    first: usize,
) -> Result<()> {
    let (at, bytes) = doomed.remove(first);
    object::bury(segment, at, bytes)
}

/// How far the work of a thread had come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Savepoint {
    /// Of the log.
    pub(crate) position: Position,
    taken: usize,
    doomed: usize,
    forgone: usize,
    retained: usize,
    made: usize,
}

/// Notes all that the object at `at` owns: the objects it refers to lose a reference, its memory is
/// freed. Nobody else can reach it.
///
/// The caller goes on with what is noted in `forgone`, so that a chain of any length needs no stack.
// Out of the way of references that are not the last, which most are.
#[inline(never)]
fn dismantle(
    segment: &Segment,
    at: Offset,
    forgone: &mut Vec<Offset>,
    doomed: &mut Vec<(Offset, usize)>,
) -> Result<()> {
    // More than a heap can hold is owned only where two objects claim the same.
    let most = segment.layout().end / GRANULE;
    object::owned(segment, at, &mut |owned| {
        match owned {
            Owned::Block { at, bytes } => doomed.push((at, bytes)),
            Owned::Object(at) => forgone.push(at),
        }
        if doomed.len() > most || forgone.len() > most {
            return Err(Error::Corrupt("objects own more than the heap has"));
        }
        Ok(())
    })
}
