//! How long the operations of a dict take: nanoseconds, the median of some rounds.
//!
//! `cargo run --release -p ungil-heap --example dict_speed`

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::hint::black_box;
use std::time::Instant;

use ungil_heap::lock::Sleep;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, dict};

const KEYS: usize = 1000;
const ROUNDS: usize = 200;

fn main() -> Result<()> {
    let heap = Heap::anonymous(1 << 30, Box::new(Sleep))?;
    let mut op = heap.op()?;
    let at = dict::create(&mut op)?;
    op.commit()?;
    let names: Vec<String> = (0..KEYS).map(|number| format!("key{number}")).collect();
    let keys: Vec<Value> = names.iter().map(|name| Value::from(name.as_str())).collect();
    let long: Vec<String> = (0..KEYS).map(|number| format!("{number:40}")).collect();
    for (key, value) in keys.iter().zip(0..) {
        dict::set(&heap, at, key, &Value::Int(value))?;
    }
    let get = |key: &Value| {
        match dict::get(&heap, at, key)? {
            Some(Value::Int(number)) => _ = black_box(number),
            other => _ = black_box(other),
        }
        Ok(())
    };
    measure("get str -> int", &keys, get)?;
    measure("get int -> nothing", &[Value::Int(7)], get)?;
    measure("empty operation", &keys, |_| heap.op()?.commit())?;
    measure("operation that locks", &keys, |_| {
        let mut op = heap.op()?;
        op.lock(at)?;
        op.commit()
    })?;
    measure("set int", &keys, |key| dict::set(&heap, at, key, &Value::Int(1)))?;
    measure("increment", &keys, |key| dict::increment(&heap, at, key, &Value::Int(1)).map(drop))?;
    measure("set str of 40 bytes", &keys, |key| {
        dict::set(&heap, at, key, &Value::from(long[3].as_str()))
    })?;
    measure("get str of 40 bytes", &keys, get)?;
    measure("delete and set", &keys, |key| {
        dict::delete(&heap, at, key)?;
        dict::set(&heap, at, key, &Value::Int(1))
    })?;
    Ok(())
}

fn measure(name: &str, keys: &[Value], mut work: impl FnMut(&Value) -> Result<()>) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for key in keys.iter().cycle().take(KEYS) {
            work(key)?;
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e9 / KEYS as f64);
    }
    rounds.sort_by(f64::total_cmp);
    println!("{name:24} {:6.1} ns", rounds[ROUNDS / 2]);
    Ok(())
}
