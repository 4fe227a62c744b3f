//! A single-producer, single-consumer ring of events over memory that two processes share.
//!
//! The producer is a thread of the traced program inside a hook: it never waits, and when the
//! ring is full the event is dropped and counted. The consumer is the recorder.
//! A producer killed between two stores leaves every published event readable.
//!
//! Positions (`head`, `tail`, `base`) only grow; the cell of position `p` is
//! `(p - base) % capacity`. Whenever the producer finds the ring empty it moves `base` up to
//! `head`, so a thread whose events are drained in time touches only the first few pages.

use crate::atomic::{AtomicU64, Ordering};
use crate::event::Entry;

/// One event in memory: the two words of [`Entry::to_words`], or of [`crate::ParkEntry::to_words`].
pub type Cell = [AtomicU64; 2];

/// The positions of a ring. Producer and consumer write to separate cache lines.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Positions {
    /// Next position to write. Written by the producer (`Release`, after the cell), read by the
    /// consumer (`Acquire`).
    head: AtomicU64,
    /// Position that lies in cell 0. Written by the producer, and only while the ring is empty;
    /// published to the consumer by the next store of `head`.
    base: AtomicU64,
    padding: [u64; 6],
    /// Next position to read. Written by the consumer (`Release`, after reading the cells), read
    /// by the producer (`Acquire`).
    tail: AtomicU64,
}

/// The producer's side of a ring.
#[derive(Debug)]
pub struct Producer<'a> {
    positions: &'a Positions,
    cells: &'a [Cell],
}

/// The consumer's side of a ring.
#[derive(Debug)]
pub struct Consumer<'a> {
    positions: &'a Positions,
    cells: &'a [Cell],
}

impl<'a> Producer<'a> {
    /// A producer over `cells`; there must be no other one for the same ring.
    pub fn new(positions: &'a Positions, cells: &'a [Cell]) -> Self {
        Self { positions, cells }
    }

    /// Appends `entry`, or returns `false` if there is no room; as [`Self::push_words`].
    #[inline]
    pub fn push(&self, entry: Entry, usable: impl FnOnce(usize) -> bool) -> bool {
        self.push_words(entry.to_words(), usable)
    }

    /// Appends the two words of an event, or returns `false` if there is no room.
    ///
    /// `usable(cell)` says whether the memory of that cell may be touched; it is how a ring in
    /// sparse memory gets its pages only when they are needed.
    #[inline]
    pub fn push_words(&self, words: [u64; 2], usable: impl FnOnce(usize) -> bool) -> bool {
        let head = self.positions.head.load(Ordering::Relaxed);
        let tail = self.positions.tail.load(Ordering::Acquire);
        let mut base = self.positions.base.load(Ordering::Relaxed);
        if tail == head && base != head {
            base = head;
            self.positions.base.store(base, Ordering::Relaxed);
        }
        let capacity = self.cells.len() as u64;
        let cell = cell_of(head, base, capacity);
        if head.wrapping_sub(tail) >= capacity || !usable(cell) {
            return false;
        }
        let [at, rest] = words;
        self.cells[cell][0].store(at, Ordering::Relaxed);
        self.cells[cell][1].store(rest, Ordering::Relaxed);
        self.positions.head.store(head.wrapping_add(1), Ordering::Release);
        true
    }
}

impl<'a> Consumer<'a> {
    /// A consumer over `cells`; there must be no other one for the same ring.
    pub fn new(positions: &'a Positions, cells: &'a [Cell]) -> Self {
        Self { positions, cells }
    }

    /// Hands every published event of a GIL to `take`; as [`Self::drain_words`].
    pub fn drain(&self, mut take: impl FnMut(Entry)) -> u64 {
        self.drain_words(|words| Entry::from_words(words).into_iter().for_each(&mut take))
    }

    /// Hands the words of every published event to `take`, oldest first, frees their cells and
    /// returns how many there were.
    pub fn drain_words(&self, mut take: impl FnMut([u64; 2])) -> u64 {
        let tail = self.positions.tail.load(Ordering::Relaxed);
        let head = self.positions.head.load(Ordering::Acquire);
        let base = self.positions.base.load(Ordering::Relaxed);
        let capacity = self.cells.len() as u64;
        // A foreign or corrupted producer may claim anything; never read more than one lap.
        let first =
            if head.wrapping_sub(tail) > capacity { head.wrapping_sub(capacity) } else { tail };
        let mut position = first;
        while position != head {
            let cell = &self.cells[cell_of(position, base, capacity)];
            take([cell[0].load(Ordering::Relaxed), cell[1].load(Ordering::Relaxed)]);
            position = position.wrapping_add(1);
        }
        self.positions.tail.store(head, Ordering::Release);
        head.wrapping_sub(first)
    }
}

/// The cell that holds `position`.
#[allow(clippy::cast_possible_truncation, reason = "the result is below the length of a slice")]
fn cell_of(position: u64, base: u64, capacity: u64) -> usize {
    (position.wrapping_sub(base) % capacity) as usize
}

impl Positions {
    /// How many published events the consumer has not taken yet.
    pub fn backlog(&self) -> u64 {
        self.head.load(Ordering::Relaxed).wrapping_sub(self.tail.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::Kind;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn cells(count: usize) -> Vec<Cell> {
        (0..count).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect()
    }

    fn entry(at_ticks: u64) -> Entry {
        Entry { at_ticks, kind: Kind::Acquire, gil: 0, seq: 0 }
    }

    proptest! {
        /// Against the naive model: a queue that drops what does not fit.
        #[test]
        fn a_ring_is_a_bounded_queue_that_drops(
            steps in prop::collection::vec(prop::bool::weighted(0.7), 0..200),
            capacity in 1usize..9,
        ) {
            let (positions, cells) = (Positions::default(), cells(capacity));
            let producer = Producer::new(&positions, &cells);
            let consumer = Consumer::new(&positions, &cells);
            let mut model = VecDeque::new();
            for (at, is_push) in (1u64..).zip(steps) {
                if is_push {
                    let fits = model.len() < capacity;
                    prop_assert_eq!(producer.push(entry(at), |_| true), fits);
                    if fits { model.push_back(at); }
                } else {
                    let mut taken = VecDeque::new();
                    consumer.drain(|entry| taken.push_back(entry.at_ticks));
                    prop_assert_eq!(&taken, &model);
                    model.clear();
                }
                prop_assert_eq!(positions.backlog(), model.len() as u64);
            }
        }
    }

    #[test]
    fn a_ring_that_is_drained_in_time_touches_only_its_first_cells() {
        let (positions, cells) = (Positions::default(), cells(8));
        let producer = Producer::new(&positions, &cells);
        let consumer = Consumer::new(&positions, &cells);
        for at in 1..100 {
            assert!(producer.push(entry(at), |cell| cell < 2));
            if at % 2 == 0 {
                consumer.drain(|_| ());
            }
        }
    }

    #[test]
    fn a_cell_that_may_not_be_touched_is_a_full_ring() {
        let (positions, cells) = (Positions::default(), cells(8));
        assert!(!Producer::new(&positions, &cells).push(entry(1), |_| false));
        assert_eq!(positions.backlog(), 0);
    }
}

#[cfg(all(test, loom))]
mod model {
    //! Mutations that must fail here: the `Release` store of `head` made `Relaxed` (an event is
    //! read before its words are), or `base` moved while `tail != head` (a wrong cell is read).
    use super::*;
    use crate::event::Kind;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn every_event_arrives_once_in_order_or_is_reported_as_dropped() {
        loom::model(|| {
            let ring = Arc::new((
                Positions::default(),
                [[AtomicU64::new(0), AtomicU64::new(0)], [AtomicU64::new(0), AtomicU64::new(0)]],
            ));
            let shared = ring.clone();
            let producer = thread::spawn(move || {
                let producer = Producer::new(&shared.0, &shared.1);
                (1..=4)
                    .filter(|&at_ticks| {
                        let entry = Entry { at_ticks, kind: Kind::Acquire, gil: 0, seq: 7 };
                        producer.push(entry, |_| true)
                    })
                    .collect::<Vec<u64>>()
            });
            let consumer = Consumer::new(&ring.0, &ring.1);
            let mut taken = Vec::new();
            for _ in 0..2 {
                consumer.drain(|entry| taken.push(entry.at_ticks));
            }
            let pushed = producer.join().unwrap();
            consumer.drain(|entry| taken.push(entry.at_ticks));
            assert_eq!(taken, pushed);
        });
    }
}
