//! Processes that are killed at random moments, really, while others go on.
//!
//! `UNGIL_KILLS` says how many die (default 150), `UNGIL_SEED` what they do.

mod support;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use support::{Child, End, heap, settle};
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::{Heap, Result};

/// How many objects there are.
const OBJECTS: usize = 8;
/// How many processes work at a time.
const WORKERS: usize = 3;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A generator of Marsaglia's (xorshift): a seed makes a run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

fn word(heap: &Heap, at: Offset) -> u64 {
    heap.segment().word(at).unwrap().load(Relaxed)
}

/// An object's body is: where its block is, how many bytes that has, what each of its words is, and
/// the same number again.
fn replace(heap: &Heap, op: &mut Op<'_>, at: Offset, bytes: usize, mark: u64) -> Result<()> {
    op.lock(at)?;
    check(heap, at);
    let (old, old_bytes) = (word(heap, at + BODY) as usize, word(heap, at + BODY + 8) as usize);
    let new = op.take(bytes)?;
    for word in heap.segment().words(new, bytes / 8)? {
        word.store(mark, Relaxed);
    }
    op.store(at + BODY, new as u64)?;
    op.store(at + BODY + 8, bytes as u64)?;
    op.store_all(at + BODY + 16, &[mark, mark])?;
    op.free(old, old_bytes);
    Ok(())
}

/// Asserts that an object is whole; it is locked.
fn check(heap: &Heap, at: Offset) {
    let body = [0, 8, 16, 24].map(|more| word(heap, at + BODY + more));
    assert_eq!(body[2], body[3], "half of a change is seen");
    let words = heap.segment().words(body[0] as usize, body[1] as usize / 8).unwrap();
    for word in words {
        assert_eq!(word.load(Relaxed), body[2], "a block is somebody else's");
    }
}

fn work(heap: &Heap, objects: &[Offset], mut random: Random) {
    loop {
        let at = objects[random.below(OBJECTS)];
        let bytes = [16, 48, 300, 5000, 40_000, 200_000][random.below(6)];
        let mark = random.below(1 << 40) as u64;
        match random.below(4) {
            0 => {
                let look = || Ok([16, 24].map(|more| word(heap, at + BODY + more)));
                let [first, second] = heap.read(at, look).unwrap();
                assert_eq!(first, second, "half of a change is seen");
            }
            1 => {
                let mut op = heap.op().unwrap();
                replace(heap, &mut op, at, bytes, mark).unwrap();
            }
            _ => heap.change(|op| replace(heap, op, at, bytes, mark)).unwrap(),
        }
    }
}

#[test]
fn random_deaths_neither_tear_nor_stop_anything() {
    let seed = number("UNGIL_SEED", 1);
    let kills = number("UNGIL_KILLS", 150);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // The dead leak, and nobody collects here: room for all that they can have had in hand.
    let heap = heap(64 << 20 | usize::try_from(kills).unwrap() * 400_000);
    let make = |op: &mut Op<'_>| {
        let at = op.create(Kind::Struct, object::SIZE)?;
        let block = op.take(16)?;
        heap.segment().words(block, 2)?.iter().for_each(|word| word.store(0, Relaxed));
        heap.segment().word(at + BODY)?.store(block as u64, Relaxed);
        heap.segment().word(at + BODY + 8)?.store(16, Relaxed);
        op.retain(at)?;
        Ok(at)
    };
    let objects: Vec<Offset> = (0..OBJECTS).map(|_| heap.change(make).unwrap()).collect();
    let start = |random: &mut Random| {
        let own = Random(random.below(1 << 40) as u64 | 1);
        Child::fork(&heap, || work(&heap, &objects, own))
    };
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(&mut random)).collect();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
        let index = random.below(WORKERS);
        let victim = std::mem::replace(&mut workers[index], start(&mut random));
        victim.kill();
        assert_eq!(victim.wait(), End::Killed, "kill {kill} of seed {seed}");
        // This process meets what the dead one held.
        let at = objects[random.below(OBJECTS)];
        heap.change(|op| op.lock(at).map(|()| check(&heap, at))).unwrap();
    }
    for worker in workers {
        worker.kill();
        assert_eq!(worker.wait(), End::Killed);
    }
    for at in objects {
        heap.change(|op| op.lock(at).map(|()| check(&heap, at))).unwrap();
    }
    settle(&heap);
}
