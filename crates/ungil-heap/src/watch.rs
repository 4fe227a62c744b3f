//! Sleeping until one of several objects has changed, with one word for all of a heap.
//!
//! Who wants to be told of an object's changes sets a bit of its head, looks at the object once more,
//! and sleeps on the bell of the heap. Whoever changes the object looks at the bit after it has let go
//! of what it had locked; if it is set, it clears it, rings and wakes all who sleep at the bell: each
//! of them looks at what it watches, and sets the bits anew. So a change that nobody watches costs a
//! look at a word that is at hand, and one that is watched costs as much as there are watchers in the
//! heap. Who waits for a single object, and knows what it waits for, sleeps elsewhere.
//!
//! Both sides touch the lock of the object in between, so that one sees the other.

use std::time::Duration;

use crate::atomic::Ordering::{AcqRel, Acquire};
use crate::object::Head;
use crate::segment::Segment;
use crate::{fault, lock, mutation};

/// Somebody wants to know when the object has changed; of a queue, when there are more values.
pub(crate) const CHANGE: u32 = 1 << 31;
/// Of a queue: somebody wants to know when there is more room.
pub(crate) const ROOM: u32 = 1 << 30;

/// The longest sleep without a look: a call can die with who was about to make it.
pub const LONGEST: Duration = Duration::from_millis(100);

/// Wants to be told of the next change of an object. The caller touches the lock under which it
/// changes, and looks at it then.
pub(crate) fn ask(head: &Head, what: u32) {
    head.identity.fetch_or(what, AcqRel);
}

/// Tells those who asked of a change that was just made, whose lock the caller has let go of.
#[inline]
pub(crate) fn tell(segment: &Segment, head: &Head, what: u32) {
    if is_asked(head, what) && !mutation::is("watch: a call") {
        tell_all(segment, head, what);
    }
}

/// Whether somebody asked.
#[inline]
pub(crate) fn is_asked(head: &Head, what: u32) -> bool {
    head.identity.load(Acquire) & what != 0
}

#[cold]
fn tell_all(segment: &Segment, head: &Head, what: u32) {
    if head.identity.fetch_and(!what, AcqRel) & what == 0 {
        // Somebody else is telling.
        return;
    }
    fault::point("watch: about to ring");
    let bell = &*segment.header().watch;
    bell.fetch_add(1, AcqRel);
    fault::point("watch: rung, nobody woken");
    lock::wake(bell, i32::MAX);
}

/// What the bell of a heap says: looked at before the objects are.
pub fn now(segment: &Segment) -> u32 {
    segment.header().watch.load(Acquire)
}

/// Sleeps until the bell says something else than `seen`, for at most so long; false: nobody rang.
pub fn sleep(segment: &Segment, seen: u32, longest: Duration) -> bool {
    lock::wait(&segment.header().watch, seen, longest)
}

/// Wakes all who sleep at the bell of a heap, for nothing.
pub fn disturb(segment: &Segment) {
    let bell = &*segment.header().watch;
    bell.fetch_add(1, AcqRel);
    lock::wake(bell, i32::MAX);
}
