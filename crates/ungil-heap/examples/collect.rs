//! How long the world stands still for a collection of a million blocks.
//!
//! `cargo run --release -p ungil-heap --example collect`

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::sync::Arc;
use std::time::Duration;

use ungil_heap::collect::Collected;
use ungil_heap::lock::Sleep;
use ungil_heap::roots::Root;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, list};

const BLOCKS: usize = 1_000_000;
const ROUNDS: usize = 7;

fn main() -> Result<()> {
    println!("{BLOCKS} blocks, {ROUNDS} rounds: milliseconds that the world stands still");
    println!("{:52} {:>8} {:>8} {:>8}", "", "median", "least", "most");
    let heap = Heap::anonymous(1 << 30, Box::new(Sleep))?;
    let kept = texts(&heap)?;
    report("strings in lists of 1000, all alive", || Ok(collect(&heap)?.standstill))?;
    report("strings in lists of 1000, all lost in cycles", || {
        let lost = texts(&heap)?;
        list::append(&heap, lost.at(), &Value::Object(lost.at()))?;
        heap.release(lost)?;
        let done = collect(&heap)?;
        assert!(done.freed >= BLOCKS);
        Ok(done.standstill)
    })?;
    heap.release(kept)?;
    let heap = Heap::anonymous(1 << 30, Box::new(Sleep))?;
    let kept = objects(&heap)?;
    report("empty lists in one list, all alive", || Ok(collect(&heap)?.standstill))?;
    heap.release(kept)
}

fn report(what: &str, mut round: impl FnMut() -> Result<Duration>) -> Result<()> {
    let mut times = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    let [median, least, most] =
        [times[ROUNDS / 2], times[0], times[ROUNDS - 1]].map(|time| time.as_secs_f64() * 1e3);
    println!("{what:52} {median:8.1} {least:8.1} {most:8.1}");
    Ok(())
}

fn collect(heap: &Heap) -> Result<Collected> {
    Ok(heap.collect(Duration::from_secs(10))?.expect("nobody else is there"))
}

/// A list of lists of strings, each in a block of its own.
fn texts(heap: &Arc<Heap>) -> Result<Root> {
    let all = heap.make(list::create)?;
    for first in (0..BLOCKS).step_by(1000) {
        let some = heap.make(list::create)?;
        for number in first..first + 1000 {
            let text = format!("a string with number {number}");
            list::append(heap, some.at(), &Value::Str(text.into_bytes().into()))?;
        }
        list::append(heap, all.at(), &Value::Object(some.at()))?;
        heap.release(some)?;
    }
    Ok(all)
}

/// A list of lists with nothing in them.
fn objects(heap: &Arc<Heap>) -> Result<Root> {
    let all = heap.make(list::create)?;
    for _ in 0..BLOCKS {
        heap.change(|op| {
            let one = list::create(op)?;
            list::append(heap, all.at(), &Value::Object(one))
        })?;
    }
    Ok(all)
}
