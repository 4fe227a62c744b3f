//! Puts the events of one process back into the order in which its GILs changed hands.
//!
//! Each thread's ring is read at a slightly different moment, so a later event of one thread can
//! be seen before an earlier one of another. Acquires and releases of a GIL are numbered, each is
//! published before the next one can happen, and lost ones take no number. So whatever precedes
//! an event seen in one round of reading is visible in the next round: everything up to the
//! highest number of the previous round is complete, and can go.

use crate::record::ThreadId;
use ungil_core::Event;

/// Events of one process that wait for those before them.
#[derive(Debug, Default)]
pub struct Order {
    gils: Vec<Gil>,
}

#[derive(Debug, Default)]
struct Gil {
    /// Number of the last acquire or release that was given out.
    given: u32,
    /// Highest number seen in the rounds that are over.
    complete: u32,
    /// Highest number seen at all.
    seen: u32,
    waiting: Vec<(ThreadId, Event)>,
}

impl Order {
    /// Takes in an event that was just read.
    pub fn add(&mut self, thread: ThreadId, event: Event) {
        let index = usize::from(event.gil);
        if self.gils.len() <= index {
            self.gils.resize_with(index + 1, Gil::default);
        }
        let gil = &mut self.gils[index];
        if is_after(event.seq, gil.seen) {
            gil.seen = event.seq;
        }
        gil.waiting.push((thread, event));
    }

    /// Ends a round in which every ring was read once and gives out, in order, what is complete.
    pub fn end_round(&mut self, give: impl FnMut(ThreadId, Event)) {
        self.give_out(give, |gil| gil.complete);
        for gil in &mut self.gils {
            gil.complete = gil.seen;
        }
    }

    /// Gives out everything, when nothing more can come.
    pub fn finish(&mut self, give: impl FnMut(ThreadId, Event)) {
        self.give_out(give, |gil| gil.seen);
    }

    fn give_out(&mut self, mut give: impl FnMut(ThreadId, Event), up_to: impl Fn(&Gil) -> u32) {
        let mut ready = Vec::new();
        let mut gils_with_events = 0;
        for gil in self.gils.iter_mut().filter(|gil| !gil.waiting.is_empty()) {
            let (given, limit) = (gil.given, up_to(gil));
            // A wait or drop request repeats the number of the change before it, and comes after.
            // The sort is stable, and quick on what it gets: one sorted run a thread.
            gil.waiting.sort_by_key(|(_, event)| {
                (distance(event.seq, given), !event.kind.changes_holder())
            });
            let count = gil.waiting.partition_point(|(_, event)| !is_after(event.seq, limit));
            gils_with_events += usize::from(count > 0);
            ready.extend(gil.waiting.drain(..count));
            gil.given = limit;
        }
        if gils_with_events > 1 {
            // A thread may use several GILs in turn: between them, the clock decides.
            ready.sort_by_key(|(_, event)| event.at_ns);
        }
        for (thread, event) in ready {
            give(thread, event);
        }
    }
}

/// How far `seq` lies after `from`, both counting modulo 2^32; negative if before.
fn distance(seq: u32, from: u32) -> i32 {
    seq.wrapping_sub(from).cast_signed()
}

fn is_after(seq: u32, other: u32) -> bool {
    distance(seq, other) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use ungil_core::Kind;

    /// A legal history of one GIL, and after how many further events each one's ring is read.
    fn history() -> impl Strategy<Value = Vec<(u32, Kind, usize)>> {
        prop::collection::vec((0u32..4, 0u8..3, 0usize..6), 1..120).prop_map(|steps| {
            let mut holder = None;
            steps
                .into_iter()
                .filter_map(|(thread, choice, delay)| {
                    let kind = match (choice, holder) {
                        (0, None) => Kind::Acquire,
                        (0, Some(held)) if held == thread => Kind::ReleaseVoluntary,
                        (1, Some(held)) if held != thread => Kind::Wait,
                        (2, Some(held)) if held != thread => Kind::DropRequest,
                        _ => return None,
                    };
                    match kind {
                        Kind::Acquire => holder = Some(thread),
                        Kind::ReleaseVoluntary => holder = None,
                        _ => {}
                    }
                    Some((thread, kind, delay))
                })
                .collect()
        })
    }

    proptest! {
        /// Rings are read one after the other while the program runs on: reading thread by
        /// thread with events happening in between shows later events before earlier ones.
        #[test]
        fn events_come_out_in_the_order_in_which_they_happened(
            history in history(),
            start in prop::sample::select(vec![0u32, 7, u32::MAX - 5]),
        ) {
            let mut order = Order::default();
            order.gils.push(Gil { given: start, complete: start, seen: start, waiting: vec![] });
            let mut seq = start;
            let mut rings = vec![VecDeque::new(); 4];
            let mut expected = Vec::new();
            let mut got = Vec::new();
            let mut next_to_read = 0;
            for (at_ns, (thread, kind, reads)) in (1u64..).zip(history) {
                if kind.changes_holder() { seq = seq.wrapping_add(1); }
                let event = Event { at_ns, kind, gil: 0, seq };
                expected.push((ThreadId(thread), event));
                rings[thread as usize].push_back(event);
                for _ in 0..reads {
                    for event in rings[next_to_read].drain(..) {
                        order.add(ThreadId(u32::try_from(next_to_read).unwrap()), event);
                    }
                    next_to_read += 1;
                    if next_to_read == rings.len() {
                        next_to_read = 0;
                        order.end_round(|thread, event| got.push((thread, event)));
                    }
                }
            }
            for (thread, ring) in (0u32..).zip(&mut rings) {
                for event in ring.drain(..) { order.add(ThreadId(thread), event); }
            }
            order.finish(|thread, event| got.push((thread, event)));
            prop_assert_eq!(got.len(), expected.len());
            // Events that change no holder are ordered only between two changes.
            let position = |(thread, event): &(ThreadId, Event)| {
                (distance(event.seq, start), !event.kind.changes_holder(), *thread, event.at_ns)
            };
            prop_assert!(got.is_sorted_by_key(|item| (position(item).0, position(item).1)));
            let mut sorted = got.clone();
            sorted.sort_by_key(position);
            expected.sort_by_key(position);
            prop_assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn an_event_that_may_have_predecessors_unread_waits_a_round() {
        let mut order = Order::default();
        let event = |kind, seq| Event { at_ns: u64::from(seq), kind, gil: 0, seq };
        let mut got = Vec::new();
        order.add(ThreadId(1), event(Kind::Acquire, 3));
        order.end_round(|_, event| got.push(event.seq));
        assert!(got.is_empty());
        order.add(ThreadId(0), event(Kind::Acquire, 1));
        order.add(ThreadId(0), event(Kind::ReleaseVoluntary, 2));
        order.end_round(|_, event| got.push(event.seq));
        assert_eq!(got, [1, 2, 3]);
    }
}
