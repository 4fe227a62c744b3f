//! Arrays and buffers: what they hold, what views of them may rely on, and what a damaged one does.

#[path = "support/damage.rs"]
mod damage;
mod support;
#[path = "support/taken.rs"]
mod taken;

use std::ptr::NonNull;

use damage::wounds;
use proptest::prelude::*;
use ungil_heap::array::{self, Item, Layout, Number, Place};
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap, Result, buffer};

use support::{Child, heap};
use taken::nothing_is_lost;

const SIZE: usize = 16 << 20;
const NUMBER: Number = Number::Signed(4);

/// Rows of three numbers.
fn rows() -> Layout {
    Layout { format: b"i".to_vec(), item_bytes: 4, others: vec![3] }
}

fn numbers() -> Layout {
    Layout { format: b"i".to_vec(), item_bytes: 4, others: vec![] }
}

/// Writes numbers from a place on.
fn write(numbers: &[i32]) -> impl FnMut(NonNull<u8>) -> Result<()> {
    move |to| {
        let from = NonNull::from(numbers).cast();
        // SAFETY: the array asked for as many bytes.
        unsafe { to.copy_from_nonoverlapping(from, size_of_val(numbers)) };
        Ok(())
    }
}

fn place(row: isize, column: usize) -> Place {
    Place { row, row_bytes: 12, inside: column * 4, number: NUMBER }
}

fn one(row: isize) -> Place {
    Place { row, row_bytes: 4, inside: 0, number: NUMBER }
}

/// All numbers, read one by one.
fn all(heap: &Heap, at: Offset) -> Vec<i32> {
    let mut found = Vec::new();
    for row in 0..array::look(heap, at).unwrap().rows {
        for column in 0..3 {
            let item = array::get(heap, at, place(row.cast_signed(), column)).unwrap();
            let Some(Item::Signed(number)) = item else { panic!("no number: {item:?}") };
            found.push(number.try_into().unwrap());
        }
    }
    found
}

/// What a view sees that was made of a buffer.
fn seen_in(heap: &Heap, at: Offset, count: usize) -> Vec<i32> {
    let memory = buffer::lasting(heap, at).unwrap();
    let place = heap.segment().pointer(memory.at, count * 4).unwrap();
    // SAFETY: inside of the segment, and nobody changes it meanwhile.
    unsafe { std::slice::from_raw_parts(place.cast().as_ptr(), count) }.to_vec()
}

#[derive(Clone, Debug)]
enum Change {
    Extend(Vec<i32>),
    Resize(usize),
    Reserve(usize),
    Set(prop::sample::Index, usize, i32),
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        prop::collection::vec(any::<i32>(), 0..60).prop_map(Change::Extend),
        (0..40_usize).prop_map(Change::Resize),
        (0..80_usize).prop_map(Change::Reserve),
        (any::<prop::sample::Index>(), 0..3_usize, any::<i32>())
            .prop_map(|(row, column, number)| Change::Set(row, column, number)),
    ]
}

fn apply(heap: &Heap, at: Offset, model: &mut Vec<i32>, change: &Change) {
    match change {
        Change::Extend(numbers) => {
            let numbers = &numbers[..numbers.len() / 3 * 3];
            array::extend(heap, at, &rows(), numbers.len() / 3, &mut write(numbers)).unwrap();
            model.extend(numbers);
        }
        Change::Resize(length) => {
            array::resize(heap, at, &rows(), *length).unwrap();
            model.resize(length * 3, 0);
        }
        Change::Reserve(room) => array::reserve(heap, at, &rows(), *room).unwrap(),
        Change::Set(row, column, number) => {
            if model.is_empty() {
                return;
            }
            let row = row.index(model.len() / 3);
            let place = place(row.cast_signed(), *column);
            let old = array::update(heap, at, place, |_| Some(Item::Signed((*number).into())));
            let old = old.unwrap().unwrap();
            assert_eq!(old, Item::Signed(model[row * 3 + column].into()));
            model[row * 3 + column] = *number;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    // What is changed in several steps of which a later one fails is as it was, also where an array
    // became shorter and then longer again.
    #[test]
    fn an_array_is_what_its_model_is_and_what_fails_has_not_happened(
        steps in prop::collection::vec((prop::collection::vec(changes(), 1..5), any::<bool>()), 0..15),
    ) {
        let heap = heap(SIZE);
        let at = heap.change(|op| array::create(op, &rows(), 0, 0, &mut |_| Ok(()))).unwrap();
        let mut model = Vec::new();
        for (changes, succeeds) in &steps {
            let mut after = model.clone();
            let op = heap.op().unwrap();
            for change in changes {
                apply(&heap, at, &mut after, change);
                prop_assert_eq!(&all(&heap, at), &after);
            }
            if *succeeds {
                op.commit().unwrap();
                model = after;
            } else {
                drop(op);
            }
            prop_assert_eq!(&all(&heap, at), &model);
            nothing_is_lost(&heap, &[at]);
        }
    }

    #[test]
    fn a_damaged_array_is_an_error_or_another_one(wounds in wounds()) {
        let heap = heap(SIZE);
        let first = [1, 2, 3, 4, 5, 6];
        let at = heap.change(|op| array::create(op, &rows(), 2, 2, &mut write(&first))).unwrap();
        wounds.inflict(&heap, at);
        let seen = array::look(&heap, at).unwrap();
        drop(ungil_heap::object::owned(heap.segment(), at, &mut |_| Ok(())));
        drop(array::get(&heap, at, place(1, 1)));
        drop(array::update(&heap, at, place(1, 1), |_| Some(Item::Signed(1))));
        drop(buffer::lasting(&heap, seen.buffer));
        drop(ungil_heap::object::owned(heap.segment(), seen.buffer, &mut |_| Ok(())));
        if let Ok(layout) = array::layout(&heap, at) {
            drop(array::resize(&heap, at, &layout, seen.rows.saturating_add(3)));
            drop(array::reserve(&heap, at, &layout, 1000));
        }
    }
}

#[test]
fn the_bytes_of_buffers_of_all_sizes_are_aligned() {
    let heap = heap(SIZE);
    for bytes in [0, 1, 63, 64, 65, 129, 200, 1000, 3000, 20_000, 32 << 10, 40 << 10, 2 << 20] {
        for _ in 0..2 {
            let make = |to: NonNull<u8>| {
                // SAFETY: the buffer asked for as many bytes.
                unsafe { to.write_bytes(7, bytes) };
                Ok(())
            };
            let at = heap.change(|op| buffer::create(op, bytes, false, &mut make.clone())).unwrap();
            let memory = buffer::lasting(&heap, at).unwrap();
            assert_eq!((memory.bytes, memory.is_writable), (bytes, false));
            let place = heap.segment().pointer(memory.at, bytes).unwrap().addr().get();
            let alignment = if bytes > 32 << 10 { 4096 } else { buffer::ALIGNMENT };
            assert!(place.is_multiple_of(alignment), "{bytes} bytes at {place:#x}");
        }
    }
}

#[test]
fn a_view_of_an_array_that_moved_keeps_what_it_saw() {
    let heap = heap(SIZE);
    let root = heap.make(|op| array::create(op, &numbers(), 3, 4, &mut write(&[1, 2, 3]))).unwrap();
    let at = root.at();
    let before = array::look(&heap, at).unwrap();
    let view = heap.hold(Some(at), || Ok(Some(before.buffer))).unwrap().unwrap();
    array::extend(&heap, at, &numbers(), 1, &mut write(&[4])).unwrap();
    assert_eq!(array::look(&heap, at).unwrap().buffer, before.buffer, "there was room");
    array::extend(&heap, at, &numbers(), 100, &mut write(&[5; 100])).unwrap();
    let after = array::look(&heap, at).unwrap();
    assert_ne!(after.buffer, before.buffer);
    array::update(&heap, at, one(0), |_| Some(Item::Signed(9))).unwrap();
    assert_eq!(seen_in(&heap, view.at(), 4), [1, 2, 3, 4]);
    assert_eq!(seen_in(&heap, after.buffer, 4), [9, 2, 3, 4]);
    heap.release(view).unwrap();
    heap.release(root).unwrap();
}

#[test]
fn what_was_made_in_a_transaction_has_no_views_before_that_has_ended() {
    let heap = heap(SIZE);
    let transaction = heap.begin().unwrap();
    let root = heap.make(|op| buffer::create(op, 100, true, &mut |_| Ok(()))).unwrap();
    let refused = buffer::lasting(&heap, root.at());
    assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
    drop(transaction);
    let gone = buffer::lasting(&heap, root.at());
    assert!(matches!(gone, Err(Error::Stale)), "{gone:?}");
    heap.release(root).unwrap();
}

#[test]
fn processes_that_add_lose_nothing_while_another_makes_the_array_longer() {
    const EACH: i64 = 20_000;
    let heap = heap(SIZE);
    let at = heap.change(|op| array::create(op, &numbers(), 1, 1, &mut write(&[0]))).unwrap();
    let add = |heap: &Heap| {
        for _ in 0..EACH {
            let more = |old| NUMBER.sum(old, Item::Signed(1));
            array::update(heap, at, one(0), more).unwrap().unwrap();
        }
    };
    let children: Vec<_> = (0..3).map(|_| Child::fork(&heap, || add(&heap))).collect();
    for _ in 0..2000 {
        array::extend(&heap, at, &numbers(), 1, &mut write(&[1])).unwrap();
    }
    for child in children {
        child.wait();
    }
    let sum = array::get(&heap, at, one(0)).unwrap();
    assert_eq!(sum, Some(Item::Signed(3 * EACH)));
    assert_eq!(array::look(&heap, at).unwrap().rows, 2001);
}

#[test]
fn a_sum_that_does_not_fit_is_none() {
    for (number, most, more) in [
        (Number::Signed(1), Item::Signed(127), Item::Signed(1)),
        (Number::Signed(8), Item::Signed(i64::MIN), Item::Signed(-1)),
        (Number::Unsigned(2), Item::Unsigned(65_535), Item::Unsigned(1)),
        (Number::Unsigned(8), Item::Unsigned(u64::MAX), Item::Unsigned(1)),
    ] {
        assert_eq!(number.sum(most, more), None, "{number:?}");
        assert_eq!(number.fitted(most), Some(most));
    }
    assert_eq!(Number::Unsigned(4).fitted(Item::Unsigned(1 << 32)), None);
    assert_eq!(Number::Double.fitted(Item::Signed(1)), None);
    let third = Number::Single.fitted(Item::Float(1.0 / 3.0));
    assert_eq!(third, Some(Item::Float(f64::from(1.0_f32 / 3.0))));
}

#[test]
fn a_format_of_one_number_is_known_by_its_order_and_size() {
    assert_eq!(Number::of(b"d"), Some(Number::Double));
    assert_eq!(Number::of(b"@q"), Some(Number::Signed(8)));
    assert_eq!(Number::of(b"=l"), Some(Number::Signed(4)), "standard sizes");
    for other in [&b"2d"[..], b"T{d:x:}", b"Zd", b"e", b"s", b"", b">d<"] {
        assert_eq!(Number::of(other), None, "{}", other.escape_ascii());
    }
}
