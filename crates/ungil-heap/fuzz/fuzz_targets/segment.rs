//! A heap with one object of each kind, damaged at words of the fuzzer's choice, then used in every
//! way: errors and wrong values are fine; a crash, a panic or no end is not.

#![no_main]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use ungil_heap::array::{self, Item, Layout, Number, Place};
use ungil_heap::deque::End;
use ungil_heap::header::{BITMAP_SIZE, CHUNK, LANE_SIZE, LOG_SIZE, PROCESS_SIZE};
use ungil_heap::lock::Pause;
use ungil_heap::roots::Root;
use ungil_heap::slice::Slice;
use ungil_heap::sync::{barrier, bounded, condition, event, lock, semaphore};
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::queue::Options;
use ungil_heap::{Error, Heap, Result, buffer, deque, dict, list, monitor, queue, set, structs};

/// Gives up soon: a lock word may name a living thread that knows nothing of it.
struct Impatient(AtomicU32);

impl Pause for Impatient {
    fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
        if self.0.fetch_add(1, Relaxed) > 20 { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// No time at all.
const NOW: Duration = Duration::ZERO;
const SCHEMA: u64 = 7;
/// More than a cell has room for.
const LONG: &[u8] = b"a text that is longer than what fits into a cell";

struct Made {
    heap: Arc<Heap>,
    dict: Root,
    set: Root,
    list: Root,
    deque: Root,
    queue: Root,
    fields: Root,
    array: Root,
    buffer: Root,
    waited_for: Vec<Root>,
}

fn made() -> Result<Made> {
    let heap = Heap::anonymous(4 << 20, Box::new(Impatient(AtomicU32::new(0))))?;
    let long = Value::Str(LONG.to_vec().into());
    let values = [Value::Int(1), long.clone(), Value::Tuple(vec![long.clone(), Value::None])];
    let dict = heap.make(|op| dict::create(op))?;
    let set = heap.make(|op| set::create(op))?;
    let list = heap.make(|op| list::create(op))?;
    let deque = heap.make(|op| deque::create(op, Some(8)))?;
    let queue = heap.make(|op| queue::create(op, Options { limit: Some(30), ..Options::default() }))?;
    let fields = heap.make(|op| structs::create(op, SCHEMA, &values))?;
    let layout = Layout { format: b"i".to_vec(), item_bytes: 4, others: vec![3] };
    let array = heap.make(|op| array::create(op, &layout, 0, 5, &mut |_| Ok(())))?;
    let buffer = heap.make(|op| buffer::create(op, 0, true, &mut |_| Ok(())))?;
    for number in 0..20 {
        array::resize(&heap, array.at(), &layout, number as usize)?;
        dict::set(&heap, dict.at(), &Value::Int(number), &long)?;
        set::add(&heap, set.at(), &Value::Int(number))?;
        list::append(&heap, list.at(), &long)?;
        deque::push(&heap, deque.at(), End::Right, &long)?;
        queue::put(&heap, queue.at(), &long, Some(Instant::now()))?;
    }
    list::append(&heap, list.at(), &Value::Object(dict.at()))?;
    dict::set(&heap, dict.at(), &long, &Value::Object(list.at()))?;
    let waited_for = vec![
        heap.make(|op| lock::create(op))?,
        heap.make(|op| semaphore::create(op, 1))?,
        heap.make(|op| bounded::create(op, 1))?,
        heap.make(|op| event::create(op))?,
        heap.make(|op| barrier::create(op, 2))?,
        heap.make(|op| condition::create(op, None))?,
    ];
    Ok(Made { heap, dict, set, list, deque, queue, fields, array, buffer, waited_for })
}

/// Stores a word: `place` chooses the region, so that small ones are hit as often as large ones.
fn damage(heap: &Heap, place: u8, index: u32, word: u64) {
    let layout = heap.segment().layout();
    let index = index as usize;
    let (start, words) = match place % 7 {
        // All but the size, with which the segment was mapped and which is not looked at again.
        0 => (64, 80),
        1 => (layout.processes, 2 * PROCESS_SIZE / 8),
        2 => (layout.lanes, 2 * LANE_SIZE / 8),
        3 => (layout.logs, 2 * LOG_SIZE / 8),
        4 => (layout.states, 40),
        5 => (layout.bitmaps, 8 * BITMAP_SIZE / 8),
        _ => (layout.data, 2 * CHUNK / 8),
    };
    if let Ok(found) = heap.segment().word(start + index % words * 8) {
        found.store(word, Relaxed);
    }
}

/// What comes out is of no interest. That it comes out is.
fn use_all(made: Made) {
    let Made { heap, dict, set, list, deque, queue, fields, array, buffer, waited_for } = made;
    let (heap, one) = (&heap, Value::Int(1));
    let long = Value::Str(LONG.to_vec().into());
    let at = dict.at();
    let _ = dict::get(heap, at, &one);
    let _ = dict::get(heap, at, &long);
    let _ = dict::set(heap, at, &long, &one);
    let _ = dict::increment(heap, at, &one, &one);
    let _ = dict::delete(heap, at, &Value::Int(2));
    let _ = dict::batch(heap, at, &mut Cursor::default(), 100);
    let _ = dict::pop_item(heap, at);
    let at = set.at();
    let _ = set::contains(heap, at, &one);
    let _ = set::symmetric_difference_update(heap, at, &[one.clone(), long.clone()]);
    let _ = set::batch(heap, at, &mut Cursor::default(), 100);
    let at = list.at();
    let _ = list::get(heap, at, 3);
    let _ = list::snapshot(heap, at);
    let _ = list::insert(heap, at, 2, &long);
    let _ = list::delete_slice(heap, at, Slice { start: 1, stop: isize::MAX, step: 2 });
    let _ = list::reverse(heap, at);
    let _ = list::count(heap, at, &long);
    let at = deque.at();
    let _ = deque::all(heap, at);
    let _ = deque::push(heap, at, End::Left, &long);
    let _ = deque::rotate(heap, at, 3);
    let _ = deque::pop(heap, at, End::Right);
    let at = queue.at();
    let (soon, keep) = (Some(Instant::now()), &mut |_: &Value<'static>| Ok(()));
    let _ = queue::put(heap, at, &long, soon);
    let _ = queue::get(heap, at, soon, keep);
    if let Ok((_, Some(lease))) = queue::lease(heap, at, soon, keep) {
        let _ = queue::give_back(heap, at, &lease);
    }
    let _ = queue::get_many(heap, at, 9, soon, keep);
    let at = fields.at();
    let _ = structs::all(heap, at, SCHEMA);
    let _ = structs::set(heap, at, SCHEMA, 1, &one);
    let at = array.at();
    let _ = buffer::lasting(heap, buffer.at());
    if let Ok(layout) = array::layout(heap, at) {
        let row_bytes = layout.row_bytes().unwrap_or(0);
        let place = Place { row: -1, row_bytes, inside: 4, number: Number::Signed(4) };
        let _ = array::get(heap, at, place);
        let _ = array::update(heap, at, place, |_| Some(Item::Signed(1)));
        let rows = array::look(heap, at).map_or(0, |seen| seen.rows);
        let _ = array::resize(heap, at, &layout, rows.saturating_add(100));
        let _ = array::look(heap, at).and_then(|seen| buffer::lasting(heap, seen.buffer));
    }
    for waited in &waited_for {
        let (at, now) = (waited.at(), Some(Instant::now()));
        let _ = monitor::enter(heap, at, now);
        let _ = monitor::leave(heap, at);
        let _ = monitor::acquire(heap, at, now);
        let _ = monitor::release(heap, at);
        let _ = semaphore::acquire(heap, at, now);
        let _ = semaphore::release(heap, at, 1);
        let _ = bounded::acquire(heap, at, now);
        let _ = bounded::release(heap, at);
        let _ = event::wait(heap, at, now);
        let _ = event::set(heap, at);
        let _ = barrier::wait(heap, at, now, || Ok(()));
        let _ = condition::wait(heap, at, now);
        let _ = condition::notify(heap, at, 1);
    }
    let _ = heap.pin(&list).and_then(|pin| heap.adopt(&pin));
    let _ = heap.verify(NOW);
    let _ = heap.collect(NOW);
    let _ = heap.statistics(NOW);
    let _ = heap.processes();
    let path = format!("/proc/self/fd/{}", heap.descriptor());
    let _ = Heap::open(path.as_ref(), Box::new(Impatient(AtomicU32::new(0))));
    for root in [dict, set, list, deque, queue, fields, array, buffer].into_iter().chain(waited_for) {
        let _ = heap.release(root);
    }
    let _ = heap.clean();
}

fuzz_target!(|damages: Vec<(u8, u32, u64)>| {
    let made = made().expect("a new heap works");
    for (place, index, word) in damages.into_iter().take(32) {
        damage(&made.heap, place, index, word);
    }
    use_all(made);
});
