//! Taking a reference out of an object that somebody else has locked, without waiting for them.
//!
//! A reader that has found an object in another one cannot simply count a reference: the object may
//! have lost its last one meanwhile, and its memory may be anything. So it announces first where it
//! is about to write, as a hazard pointer (Maged Michael, 2004), and looks at the version of the
//! other object once more. If that is what it was, the object was referred to after the
//! announcement was there, so that whoever frees it later sees the announcement, and leaves the
//! memory to the collector, which waits for the reader's operation.
//!
//! | bits of a place | meaning |
//! |---|---|
//! | 12-51 | where the object is, in units of [`GRANULE`] bytes |
//! | 0-11 | number of the reader's lane, plus 1; 0: the place is free |

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence, in_total_order,
};
use crate::{fault, mutation};

/// How many readers can announce something at a time.
pub const PLACES: usize = if cfg!(loom) { 1 } else { 64 };

const LANE_BITS: u32 = 12;
/// Objects are at multiples of it, as [`crate::header`] says.
pub const GRANULE: u64 = 16;
/// The half of an object's life with the references; the other half is its serial number.
const REFERENCES: u64 = u32::MAX as u64;

/// What became of an attempt to take a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// There is one more, to the object with this serial number.
    Serial(u32),
    /// The object in which it was found has changed.
    Changed,
    /// Too many others are at it.
    Crowded,
}

/// What stands in a place when `lane` announces the object at `at`.
const fn word(lane: usize, at: usize) -> u64 {
    ((at as u64 / GRANULE) << LANE_BITS) | (lane as u64 + 1)
}

/// One reference more to the object at `at`, of which `life` is a part, if `version` is still what it
/// was when the caller found it. Whatever else may be at `at` stays as it is.
pub fn retain(
    places: &[AtomicU64],
    lane: usize,
    at: usize,
    version: (&AtomicU32, u32),
    life: &AtomicU64,
) -> Taken {
    let count = places.len();
    // Lanes begin at different places, so that they do not meet.
    let free = (lane..lane + count)
        .map(|number| &places[number % count])
        .find(|place| place.compare_exchange(0, word(lane, at), SeqCst, Relaxed).is_ok());
    let Some(place) = free else { return Taken::Crowded };
    fault::point("hazard: announced");
    // With the fence of `is_announced`: either whoever frees the object sees the announcement, or
    // the version seen here is that of the change that took the object out, or a later one.
    in_total_order();
    let is_same = version.0.load(SeqCst) == version.1 || mutation::is("hazard: a second look");
    let taken = if is_same { one_more(life) } else { Taken::Changed };
    fault::point("hazard: reference added");
    // Release: who sees the place free may use the memory anew.
    place.store(0, Release);
    taken
}

/// One reference more, unless there was none left: then it was taken out after the look at the
/// version.
fn one_more(life: &AtomicU64) -> Taken {
    let more = |life: u64| !matches!(life & REFERENCES, 0 | REFERENCES);
    life.fetch_update(SeqCst, Relaxed, |life| more(life).then(|| life + 1))
        .map_or(Taken::Changed, |life| Taken::Serial((life >> 32) as u32))
}

/// Whether somebody may be about to count a reference to the object at `at`. The caller has taken
/// the last one away, and leaves the memory to the collector then.
pub fn is_announced(places: &[AtomicU64], at: usize) -> bool {
    if mutation::is("hazard: a look at the announcements") {
        return false;
    }
    fence(SeqCst);
    places.iter().any(|place| place.load(Acquire) >> LANE_BITS == at as u64 / GRANULE)
}

/// Takes back what the thread with a lane had announced when it died.
pub fn withdraw(places: &[AtomicU64], lane: usize) {
    for place in places {
        let seen = place.load(Relaxed);
        if seen & ((1 << LANE_BITS) - 1) == lane as u64 + 1 {
            // Who has it by now is somebody else.
            let _ = place.compare_exchange(seen, 0, SeqCst, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const AT: usize = 0x1230;

    fn places() -> [AtomicU64; PLACES] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn a_reference_is_taken_where_nothing_has_changed() {
        let (places, version, life) = (places(), AtomicU32::new(4), AtomicU64::new(7 << 32 | 2));
        assert_eq!(retain(&places, 3, AT, (&version, 4), &life), Taken::Serial(7));
        assert_eq!(life.load(Relaxed), 7 << 32 | 3);
        assert!(!is_announced(&places, AT));
    }

    #[test]
    fn no_reference_is_taken_where_the_container_has_changed_or_the_object_is_gone() {
        let (places, version, life) = (places(), AtomicU32::new(6), AtomicU64::new(7 << 32 | 2));
        assert_eq!(retain(&places, 3, AT, (&version, 4), &life), Taken::Changed);
        assert_eq!(life.load(Relaxed), 7 << 32 | 2);
        life.store(7 << 32, Relaxed);
        assert_eq!(retain(&places, 3, AT, (&version, 6), &life), Taken::Changed);
        assert_eq!(life.load(Relaxed), 7 << 32);
    }

    #[test]
    fn one_that_finds_no_place_takes_nothing() {
        let (places, version, life) = (places(), AtomicU32::new(4), AtomicU64::new(1));
        for place in &places {
            place.store(word(9, AT + 0x10), Relaxed);
        }
        assert_eq!(retain(&places, 3, AT, (&version, 4), &life), Taken::Crowded);
        assert_eq!(life.load(Relaxed), 1);
    }

    #[test]
    fn what_a_dead_thread_announced_is_taken_back_and_nothing_else() {
        let places = places();
        places[0].store(word(5, AT), Relaxed);
        places[1].store(word(4094, AT + 0x10), Relaxed);
        assert!(is_announced(&places, AT));
        assert!(!is_announced(&places, AT + 0x20));
        withdraw(&places, 5);
        assert!(!is_announced(&places, AT));
        assert!(is_announced(&places, AT + 0x10));
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::version;

    const AT: usize = 0x40;
    /// What the memory of the object says when it is something else.
    const OTHER: u64 = 5;

    struct Heap {
        places: [AtomicU64; PLACES],
        version: AtomicU32,
        /// The cell of the container that refers to the object.
        cell: AtomicU64,
        life: AtomicU64,
    }

    /// One takes the object out of the container and frees it, as `op` does; another one reads the
    /// container and takes a reference, as `hold` does. Returns what became of the memory.
    fn race(is_announced: fn(&[AtomicU64], usize) -> bool) -> (Taken, u64) {
        let heap = Arc::new(Heap {
            places: std::array::from_fn(|_| AtomicU64::new(0)),
            version: AtomicU32::new(0),
            cell: AtomicU64::new(AT as u64),
            life: AtomicU64::new(1 << 32 | 1),
        });
        let writer = {
            let heap = heap.clone();
            thread::spawn(move || {
                version::begin(&heap.version);
                heap.cell.store(0, Relaxed);
                version::end(&heap.version);
                if heap.life.fetch_sub(1, SeqCst) & REFERENCES == 1
                    && !is_announced(&heap.places, AT)
                {
                    heap.life.store(OTHER, Relaxed);
                }
            })
        };
        let seen = heap.version.load(Acquire);
        let mut taken = Taken::Changed;
        if seen & 1 == 0 {
            let cell = heap.cell.load(Relaxed);
            fence(Acquire);
            if heap.version.load(Relaxed) == seen && cell == AT as u64 {
                taken = retain(&heap.places, 0, AT, (&heap.version, seen), &heap.life);
            }
        }
        writer.join().unwrap();
        (taken, heap.life.load(Relaxed))
    }

    fn check(is_announced: fn(&[AtomicU64], usize) -> bool) {
        loom::model(move || match race(is_announced) {
            (Taken::Serial(serial), life) => assert_eq!((serial, life), (1, 1 << 32 | 1)),
            (Taken::Changed, life) => assert!([OTHER, 1 << 32].contains(&life), "{life:x}"),
            (Taken::Crowded, _) => unreachable!(),
        });
    }

    // Fails without the fence, without the total order, without the second look at the version, and if the place is freed
    // before the reference is counted.
    #[test]
    fn memory_that_is_something_else_is_never_counted_up() {
        check(is_announced);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn who_frees_without_looking_at_the_announcements_is_found_out() {
        check(|_, _| false);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn who_looks_at_the_announcements_without_a_fence_is_found_out() {
        check(|places, at| {
            places.iter().any(|place| place.load(Acquire) >> LANE_BITS == at as u64 / GRANULE)
        });
    }
}
