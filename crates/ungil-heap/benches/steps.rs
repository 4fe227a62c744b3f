//! What the steps of an operation cost, in nanoseconds: `cargo bench -p ungil-heap`.
//!
//! Each figure is the median of 31 samples, which take turns; beside it the lowest and the highest.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use ungil_heap::lock::{self, Holder, Sleep};
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::{Heap, Result};

const SAMPLES: usize = 31;
const ROUNDS: u32 = 100_000;

type Step<'s> = (&'static str, Box<dyn FnMut() + 's>);

#[expect(clippy::print_stdout, reason = "a benchmark's result")]
fn main() -> Result<()> {
    let heap: Arc<Heap> = Heap::anonymous(64 << 20, Box::new(Sleep))?;
    let make = |op: &mut Op<'_>| {
        let at = op.create(Kind::Struct, object::SIZE)?;
        op.retain(at)?;
        Ok(at)
    };
    let at = heap.change(make)?;
    let body = heap.segment().word(at + BODY)?;
    let (word, me) = (AtomicU32::new(0), Holder::new(1, 1));
    let exchanged = AtomicU64::new(0);
    let ok = |result: Result<()>| result.expect("the step works");
    let mut steps: Vec<Step<'_>> = vec![
        (
            "an atomic exchange, for comparison",
            Box::new(|| _ = black_box(exchanged.swap(1, Relaxed))),
        ),
        (
            "lock, unlock",
            Box::new(|| {
                black_box(lock::try_acquire(&word, me));
                lock::release(&word);
            }),
        ),
        (
            "read a word",
            Box::new(|| {
                drop(black_box(heap.read(at, || Ok(body.load(Relaxed)))));
            }),
        ),
        ("op, commit", Box::new(|| ok(heap.change(|_| Ok(()))))),
        ("op, lock, commit", Box::new(|| ok(heap.change(|op| op.lock(at))))),
        (
            "op, lock, store, commit",
            Box::new(|| {
                ok(heap.change(|op| {
                    op.lock(at)?;
                    op.store(at + BODY, 1)
                }));
            }),
        ),
        (
            "op, lock, store 4 words, commit",
            Box::new(|| {
                ok(heap.change(|op| {
                    op.lock(at)?;
                    op.store_all(at + BODY, &[1, 2, 3, 4])
                }));
            }),
        ),
        (
            "op, take 64 bytes, free, commit",
            Box::new(|| {
                ok(heap.change(|op| {
                    let block = op.take(64)?;
                    op.free(block, 64);
                    Ok(())
                }));
            }),
        ),
        (
            "op, take 64 KiB, free, commit",
            Box::new(|| {
                ok(heap.change(|op| {
                    let block = op.take(64 << 10)?;
                    op.free(block, 64 << 10);
                    Ok(())
                }));
            }),
        ),
        (
            "op, retain, forgo, commit",
            Box::new(|| {
                ok(heap.change(|op| {
                    op.retain(at)?;
                    op.forgo(at);
                    Ok(())
                }));
            }),
        ),
    ];
    let mut times = vec![Vec::new(); steps.len()];
    for _ in 0..SAMPLES {
        for ((_, step), times) in steps.iter_mut().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                step();
            }
            times.push(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
        }
    }
    for ((name, _), times) in steps.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let (low, high) = (times[0], times[SAMPLES - 1]);
        println!("{name:36} {:7.1} ns   {low:7.1} to {high:7.1}", times[SAMPLES / 2]);
    }
    Ok(())
}
