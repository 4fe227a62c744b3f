//! Processes that are killed at random moments, really, while others go on and garbage is collected.
//!
//! `UNGIL_KILLS` says how many die (default 150), `UNGIL_SEED` what they do.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::time::Duration;

use support::{Child, End, heap};
use ungil_heap::op::Op;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, list};

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
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).expect("48 bits") % limit
    }
}

/// A list has a number, as many bytes as anybody likes that are all like the number, the number
/// again, and a list of its own with the number in it.
fn replace(heap: &Heap, op: &mut Op<'_>, at: Offset, bytes: usize, mark: u8) -> Result<()> {
    // Until the end, so that nobody comes between the three.
    op.lock(at)?;
    check(&[0, 1, 2].map(|index| list::get(heap, at, index).unwrap().unwrap()));
    list::set(heap, at, 0, &Value::Int(mark.into()))?;
    list::set(heap, at, 1, &Value::Bytes(vec![mark; bytes].into()))?;
    list::set(heap, at, 2, &Value::Int(mark.into()))?;
    let inner = list::create(op)?;
    list::append(heap, inner, &Value::Int(mark.into()))?;
    list::set(heap, at, 3, &Value::Object(inner))?;
    Ok(())
}

fn check(seen: &[Value<'_>]) {
    let [Value::Int(first), Value::Bytes(bytes), Value::Int(last), ..] = seen else {
        panic!("not what was stored: {seen:?}")
    };
    assert_eq!(first, last, "half of a change is seen");
    let mark = u8::try_from(*first).expect("a small number");
    assert!(bytes.iter().all(|byte| *byte == mark), "the memory is somebody else's");
}

fn work(heap: &Heap, objects: &[Offset], mut random: Random) {
    loop {
        let at = objects[random.below(OBJECTS)];
        let bytes = [1, 14, 40, 300, 5000, 40_000, 200_000][random.below(7)];
        let mark = u8::try_from(random.below(100)).expect("it is below");
        match random.below(4) {
            0 => check(&list::snapshot(heap, at).unwrap().0),
            1 => {
                let mut op = heap.op().unwrap();
                replace(heap, &mut op, at, bytes, mark).unwrap();
            }
            _ => heap.change(|op| replace(heap, op, at, bytes, mark)).unwrap(),
        }
    }
}

#[test]
fn random_deaths_neither_tear_nor_stop_nor_lose_anything() {
    let seed = number("UNGIL_SEED", 1);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let heap = heap(64 << 20);
    let make = |op: &mut Op<'_>| {
        let at = list::create(op)?;
        list::extend(&heap, at, &[Value::Int(0), Value::Bytes([0].to_vec().into())])?;
        list::extend(&heap, at, &[Value::Int(0), Value::None])?;
        heap.hold(None, || Ok(Some(at)))
    };
    let roots: Vec<_> = (0..OBJECTS).map(|_| heap.change(make).unwrap().unwrap()).collect();
    let objects: Vec<Offset> = roots.iter().map(Root::at).collect();
    let start = |random: &mut Random| {
        let own = Random(random.next() | 1);
        Child::fork(&heap, || work(&heap, &objects, own))
    };
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(&mut random)).collect();
    for kill in 0..number("UNGIL_KILLS", 150) {
        // Not to wait for anything: to die somewhere else each time.
        std::thread::sleep(Duration::from_micros(random.next() % 3000));
        let index = random.below(WORKERS);
        let victim = std::mem::replace(&mut workers[index], start(&mut random));
        victim.kill();
        assert_eq!(victim.wait(), End::Killed, "kill {kill} of seed {seed}");
        // This process meets what the dead one held.
        let at = objects[random.below(OBJECTS)];
        let mut op = heap.op().unwrap();
        op.lock(at).unwrap();
        check(&list::snapshot(&heap, at).unwrap().0);
        op.commit().unwrap();
        if random.below(20) == 0 {
            whole::collect(&heap);
        }
    }
    for worker in workers {
        worker.kill();
        assert_eq!(worker.wait(), End::Killed);
    }
    for at in objects {
        check(&list::snapshot(&heap, at).unwrap().0);
    }
    whole::settled(&heap);
}
