//! What operations on lists, structs, deques and locks cost, in ns of CPU time: the median of some
//! rounds, uncontended, in one process.
//!
//! `cargo run --release -p ungil-heap --example list_speed`

#![allow(clippy::print_stdout, reason = "it prints its result")]

use std::hint::black_box;

use ungil_heap::deque::{self, End};
use ungil_heap::lock::Sleep;
use ungil_heap::slice::Slice;
use ungil_heap::sync::{bounded, event, lock, semaphore};
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, list, monitor, structs};

/// How often what is quick is done in a round.
const MANY: u64 = 300_000;

/// Nanoseconds that this thread has run.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn measure(what: &str, count: u64, mut work: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..15 {
        let begin = cpu_time();
        for number in 0..count {
            work(number)?;
        }
        rounds.push((cpu_time() - begin) as f64 / count as f64);
    }
    rounds.sort_by(f64::total_cmp);
    println!("{what:40} {:8.1} ns  ({:.1} to {:.1})", rounds[7], rounds[0], rounds[14]);
    Ok(())
}

#[expect(clippy::cast_possible_wrap, reason = "small numbers")]
fn main() -> Result<()> {
    let heap = Heap::anonymous(1 << 30, Box::new(Sleep))?;
    let heap = &*heap;
    let row: Vec<_> = (0..1000).map(Value::Int).collect();
    let at = heap.change(list::create)?;
    list::extend(heap, at, &row)?;
    measure("list get, int", MANY, |number| {
        black_box(&list::get(heap, at, (number % 1000) as isize)?);
        Ok(())
    })?;
    measure("list set, int", MANY, |number| {
        black_box(list::set(heap, at, (number % 1000) as isize, &Value::Int(number as i64))?);
        Ok(())
    })?;
    measure("list increment", MANY, |_| {
        black_box(list::increment(heap, at, 5, &Value::Int(1))?);
        Ok(())
    })?;
    measure("list slice of 1000 ints, a value", 3000, |_| {
        black_box(list::get_slice(heap, at, Slice::ALL)?);
        Ok(())
    })?;
    measure("list slice of 1000 ints, a sum", 3000, |_| {
        let mut sum = 0;
        list::each(heap, at, Slice::ALL, |value| {
            if let Value::Int(number) = value {
                sum += number;
            }
            Ok(())
        })?;
        black_box(sum);
        Ok(())
    })?;
    let growing = heap.change(list::create)?;
    measure("list append, int", MANY, |number| {
        list::append(heap, growing, &Value::Int(number as i64))
    })?;
    measure("list pop, int", MANY, |_| {
        black_box(list::pop(heap, growing, -1)?);
        Ok(())
    })?;
    measure("list insert in the middle of 1000", 3000, |_| {
        list::insert(heap, at, 500, &Value::Int(1))?;
        black_box(list::pop(heap, at, 500)?);
        Ok(())
    })?;
    let queue = heap.change(|op| deque::create(op, None))?;
    measure("deque append and popleft", MANY, |number| {
        deque::push(heap, queue, End::Right, &Value::Int(number as i64))?;
        black_box(deque::pop(heap, queue, End::Left)?);
        Ok(())
    })?;
    let object = heap.change(|op| structs::create(op, 7, &row[..5]))?;
    measure("struct get", MANY, |_| {
        black_box(&structs::get(heap, object, 7, 3)?);
        Ok(())
    })?;
    measure("struct set", MANY, |number| {
        structs::set(heap, object, 7, 3, &Value::Int(number as i64))
    })?;
    let mutex = heap.change(lock::create)?;
    measure("lock acquire and release", MANY, |_| {
        black_box(monitor::acquire(heap, mutex, None)?);
        monitor::release(heap, mutex)
    })?;
    measure("monitor enter and leave", MANY, |_| {
        black_box(monitor::enter(heap, mutex, None)?);
        monitor::leave(heap, mutex)
    })?;
    let units = heap.change(|op| semaphore::create(op, 4))?;
    measure("semaphore acquire and release", MANY, |_| {
        black_box(semaphore::acquire(heap, units, None)?);
        semaphore::release(heap, units, 1)
    })?;
    let units = heap.change(|op| bounded::create(op, 4))?;
    measure("bounded semaphore acquire and release", MANY, |_| {
        black_box(bounded::acquire(heap, units, None)?);
        black_box(bounded::release(heap, units)?);
        Ok(())
    })?;
    let flag = heap.change(event::create)?;
    measure("event set, test and clear", MANY, |_| {
        event::set(heap, flag)?;
        black_box(event::is_set(heap, flag)?);
        event::clear(heap, flag)
    })
}
