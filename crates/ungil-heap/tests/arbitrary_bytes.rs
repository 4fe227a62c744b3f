//! Arbitrary bytes in the segment: an error or a wrong value, never a crash, and an end.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use proptest::prelude::*;
use ungil_heap::header::{BITMAP_SIZE, CHUNK, LANE_SIZE, LOG_SIZE, PROCESS_SIZE};
use ungil_heap::lock::Pause;
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap, Result};

/// Gives up after some waits: a lock word may name a living thread that knows nothing of it.
struct Impatient(AtomicU32);

impl Pause for Impatient {
    fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
        if self.0.fetch_add(1, Relaxed) > 20 { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Where the damage is done.
#[derive(Clone, Debug)]
enum Place {
    Header(usize),
    Process(usize),
    Lane(usize),
    Log(usize),
    State(usize),
    Bitmap(usize),
    Data(usize),
}

fn places() -> impl Strategy<Value = Place> {
    prop_oneof![
        // All but the size, with which the segment was mapped and which is not looked at again.
        (8..90_usize).prop_map(Place::Header),
        (0..4 * PROCESS_SIZE / 8).prop_map(Place::Process),
        (0..4 * LANE_SIZE / 8).prop_map(Place::Lane),
        (0..4 * LOG_SIZE / 8).prop_map(Place::Log),
        (0..40_usize).prop_map(Place::State),
        (0..8 * BITMAP_SIZE / 8).prop_map(Place::Bitmap),
        (0..3 * CHUNK / 8).prop_map(Place::Data),
    ]
}

/// Words that mean something somewhere: small numbers, offsets, locks, states of chunks.
fn words() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..100_u64,
        (0..1_u64 << 23).prop_map(|offset| offset & !7),
        (0..4_u64, 0..100_u64).prop_map(|(kind, value)| kind << 56 | value),
        (0..64_u64, 0..1_u64 << 20).prop_map(|(count, at)| count << 48 | at),
        Just(u64::MAX),
    ]
}

fn damage(heap: &Heap, place: &Place, word: u64) {
    let layout = heap.segment().layout();
    let at = match place {
        Place::Header(index) => index * 8,
        Place::Process(index) => layout.processes + index * 8,
        Place::Lane(index) => layout.lanes + index * 8,
        Place::Log(index) => layout.logs + index * 8,
        Place::State(index) => layout.states + index * 8,
        Place::Bitmap(index) => layout.bitmaps + index * 8,
        Place::Data(index) => layout.data + index * 8,
    };
    heap.segment().word(at).unwrap().store(word, Relaxed);
}

/// Uses everything that the core has.
fn use_all(heap: &Arc<Heap>, objects: &[Offset]) {
    // What comes out is of no interest. That it comes out is.
    for &at in objects {
        let look = || heap.segment().word(at + BODY).map(|word| word.load(Relaxed));
        drop(heap.read(at, look));
        let change = |op: &mut Op<'_>| {
            op.lock(at)?;
            op.store(at + BODY, 1)?;
            let bytes = 50 + at % 3000;
            let new = op.take(bytes)?;
            op.store_all(at + BODY, &[new as u64, 1])?;
            op.retain(at)?;
            op.forgo(at);
            op.free(new, bytes);
            Ok(())
        };
        drop(heap.change(change));
        let failing = |op: &mut Op<'_>| -> Result<()> {
            op.lock(at)?;
            op.take(100 << 10)?;
            op.create(Kind::List, object::SIZE)?;
            op.store_all(at, &[0; 200])?;
            Err(Error::Stale)
        };
        drop(heap.change(failing));
    }
    drop(heap.clean());
    let path = format!("/proc/self/fd/{}", heap.descriptor());
    drop(Heap::open(path.as_ref(), Box::new(Impatient(AtomicU32::new(0)))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_are_errors_and_no_crash_and_no_endless_loop(
        damages in prop::collection::vec((places(), words()), 1..12)
    ) {
        let pause = Box::new(Impatient(AtomicU32::new(0)));
        let heap = Heap::anonymous(4 << 20, pause).unwrap();
        let make = |op: &mut Op<'_>| op.create(Kind::Struct, 2000);
        let objects: Vec<Offset> = (0..4).map(|_| heap.change(make).unwrap()).collect();
        // Somebody dies in the middle of a change, so that there is a log to be damaged.
        let child = support::Child::fork(&heap, || {
            let mut op = heap.op().unwrap();
            op.lock(objects[0]).unwrap();
            op.store_all(objects[0] + BODY, &[1; 150]).unwrap();
            op.store_all(objects[0] + BODY, &[2; 4]).unwrap();
            std::mem::forget(op);
        });
        child.wait();
        for (place, word) in &damages {
            damage(&heap, place, *word);
        }
        use_all(&heap, &objects);
    }
}
