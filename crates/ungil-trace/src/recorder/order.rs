//! Puts the events of one process back into the order in which its GILs changed hands.
//!
//! Each thread's ring is read at a slightly different moment, so a later event of one thread can
//! be seen before an earlier one of another. Acquires and releases of a GIL are numbered, each is
//! published before the next one can happen, and lost ones take no number. So whatever precedes
//! an event seen in one round of reading is visible in the next round: everything up to the
//! highest number of the previous round is complete, and can go.
//!
//! A thread may use several GILs in turn (sub-interpreters), and its events have to stay in order,
//! too. Then events go in the order of the clock, as far as no earlier one is incomplete.
//!
//! The end of a thread has no number. It goes after whatever happened before it by the clock, so
//! that a wait that it cuts is charged to all who held meanwhile.

use crate::record::{ThreadId, ThreadTotals};
use ungil_core::Entry;

/// Events of one process that wait for those before them.
#[derive(Debug, Default)]
pub struct Order {
    gils: Vec<Gil>,
    ends: Vec<End>,
}

/// A thread has ended, and its ring was read to its end.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Which one,
    pub thread: ThreadId,
    /// when,
    pub at_ticks: u64,
    /// and what it had counted.
    pub totals: ThreadTotals,
    /// In how many rounds every ring was read since.
    rounds: u32,
}

#[derive(Debug, Default)]
struct Gil {
    /// Number of the last acquire or release that was given out.
    given: u32,
    /// Highest number seen in the rounds that are over.
    complete: u32,
    /// Highest number seen at all.
    seen: u32,
    waiting: Vec<(ThreadId, Entry)>,
    /// How many of `waiting`, once sorted, are complete.
    ready: usize,
}

impl Order {
    /// Takes in an event that was just read.
    pub fn add(&mut self, thread: ThreadId, event: Entry) {
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

    /// Takes in the end of a thread after its last event.
    pub fn end(&mut self, thread: ThreadId, at_ticks: u64, totals: ThreadTotals) {
        self.ends.push(End { thread, at_ticks, totals, rounds: 0 });
    }

    /// Ends a round in which every ring was read once and gives out, in order, what is complete.
    pub fn end_round(&mut self, give: impl FnMut(ThreadId, Entry)) {
        self.give_out(give, |gil| gil.complete);
        for gil in &mut self.gils {
            gil.complete = gil.seen;
        }
        for end in &mut self.ends {
            end.rounds += 1;
        }
    }

    /// Gives out the ends, once a round is over, that nothing can precede any more.
    pub fn give_ends(&mut self, give: impl FnMut(End)) {
        if self.ends.is_empty() {
            return;
        }
        let waiting = self.gils.iter().flat_map(|gil| &gil.waiting);
        let first_ticks = waiting.map(|(_, event)| event.at_ticks).min().unwrap_or(u64::MAX);
        // A ring that was read before the end was seen is read once more in the round after.
        let is_due = |end: &mut End| end.rounds > 1 && end.at_ticks < first_ticks;
        self.ends.extract_if(.., is_due).for_each(give);
    }

    /// The ends that were not given out yet.
    pub fn ends(&self) -> &[End] {
        &self.ends
    }

    /// Gives out everything, when nothing more can come.
    pub fn finish(&mut self, give: impl FnMut(ThreadId, Entry)) {
        self.give_out(give, |gil| gil.seen);
    }

    fn give_out(&mut self, mut give: impl FnMut(ThreadId, Entry), up_to: impl Fn(&Gil) -> u32) {
        let mut busy: Vec<_> = self.gils.iter_mut().filter(|gil| !gil.waiting.is_empty()).collect();
        let mut horizon_ticks = u64::MAX;
        for gil in &mut busy {
            let (given, limit) = (gil.given, up_to(gil));
            // A wait or drop request repeats the number of the change before it, and comes after;
            // among each other these go by the clock, so that none is before the horizon.
            // The sort is quick on what it gets: one sorted run a thread.
            gil.waiting.sort_by_key(|(_, event)| {
                (distance(event.seq, given), !event.kind.changes_holder(), event.at_ticks)
            });
            gil.ready = gil.waiting.partition_point(|(_, event)| !is_after(event.seq, limit));
            if let Some((_, incomplete)) = gil.waiting.get(gil.ready) {
                horizon_ticks = horizon_ticks.min(incomplete.at_ticks);
            }
        }
        let is_alone = busy.len() == 1;
        let mut ready = Vec::new();
        for gil in busy {
            let mut count = gil.ready;
            if !is_alone {
                let before = |(_, event): &(ThreadId, Entry)| event.at_ticks < horizon_ticks;
                count = gil.waiting[..count].iter().take_while(|item| before(item)).count();
            }
            if let Some((_, last)) = gil.waiting[..count].last() {
                gil.given = last.seq;
            }
            ready.extend(gil.waiting.drain(..count));
        }
        if !is_alone {
            ready.sort_by_key(|(_, event)| event.at_ticks);
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

    const THREADS: u32 = 4;
    const GILS: u8 = 3;
    /// The choice of a step in which its thread ends, whatever it does.
    const ENDS: u8 = 3;

    /// What happened, and what came out.
    struct Run {
        happened: Vec<(ThreadId, Entry)>,
        got: Vec<(ThreadId, Entry)>,
        /// Before which place of `got` each end came out, and when it was.
        ends: Vec<(usize, End)>,
    }

    #[derive(Clone, Copy, Debug)]
    struct Step {
        thread: u32,
        gil: u8,
        choice: u8,
        /// How many rings are read before the next step.
        reads: usize,
    }

    fn steps(gils: u8) -> impl Strategy<Value = Vec<Step>> {
        let choice = prop_oneof![20 => 0u8..3, 1 => Just(ENDS)];
        let step = (0..THREADS, 0..gils, choice, 0usize..6);
        let step =
            step.prop_map(|(thread, gil, choice, reads)| Step { thread, gil, choice, reads });
        prop::collection::vec(step, 1..160)
    }

    /// What the step does to the GIL, if that is legal.
    fn kind(step: Step, holder: &mut Option<u32>) -> Option<Kind> {
        let is_holder = *holder == Some(step.thread);
        match (step.choice, &holder) {
            (0, None) => {
                *holder = Some(step.thread);
                Some(Kind::Acquire)
            }
            (0, Some(_)) if is_holder => {
                *holder = None;
                Some(Kind::ReleaseVoluntary)
            }
            (1, Some(_)) if is_holder => Some(Kind::Ran),
            (1, Some(_)) => Some(Kind::Wait),
            (2, Some(_)) if !is_holder => Some(Kind::DropRequest),
            _ => None,
        }
    }

    /// Lets the steps happen while rings are read one after the other, over and over: a ring read
    /// late shows events that happened after those in a ring read before.
    fn run(steps: Vec<Step>, start: u32) -> Run {
        let mut order = Order::default();
        order.gils.resize_with(GILS.into(), || Gil {
            given: start,
            complete: start,
            seen: start,
            ..Gil::default()
        });
        let mut holders = [None; GILS as usize];
        let mut seqs = [start; GILS as usize];
        let mut rings = vec![VecDeque::new(); THREADS as usize];
        let (mut happened, mut got, mut next) = (Vec::new(), Vec::new(), 0);
        let mut acquired_ticks = [0; GILS as usize];
        // When each thread ended, and whether that was read.
        let (mut ended, mut ends) = ([None; THREADS as usize], Vec::new());
        let is_alone = steps.iter().all(|step| step.gil == 0);
        for (now, step) in (1u64..).zip(steps) {
            let (index, thread) = (usize::from(step.gil), step.thread as usize);
            if step.choice == ENDS {
                ended[thread].get_or_insert((now, false));
            } else if ended[thread].is_none()
                && let Some(kind) = kind(step, &mut holders[index])
            {
                // Told at the end of a hold, with a time since its beginning. In this model, and
                // nowhere else, its thread may do something at another GIL meanwhile.
                let is_earlier = kind == Kind::Ran && is_alone;
                let at_ticks = if is_earlier { acquired_ticks[index] } else { now };
                if kind == Kind::Acquire {
                    acquired_ticks[index] = now;
                }
                seqs[index] = seqs[index].wrapping_add(u32::from(kind.changes_holder()));
                let event = Entry { at_ticks, kind, gil: step.gil, seq: seqs[index] };
                happened.push((ThreadId(step.thread), event));
                rings[thread].push_back(event);
            }
            for _ in 0..step.reads {
                let reader = ThreadId(u32::try_from(next).unwrap());
                for event in rings[next].drain(..) {
                    order.add(reader, event);
                }
                if let Some((at_ticks, is_read @ false)) = &mut ended[next] {
                    *is_read = true;
                    order.end(reader, *at_ticks, ThreadTotals::default());
                }
                next = (next + 1) % rings.len();
                if next == 0 {
                    order.end_round(|thread, event| got.push((thread, event)));
                    order.give_ends(|end| ends.push((got.len(), end)));
                }
            }
        }
        for (thread, ring) in (0u32..).zip(&mut rings) {
            for event in ring.drain(..) {
                order.add(ThreadId(thread), event);
            }
        }
        order.finish(|thread, event| got.push((thread, event)));
        ends.extend(order.ends().iter().map(|&end| (got.len(), end)));
        Run { happened, got, ends }
    }

    fn of<'a>(
        events: &'a [(ThreadId, Entry)],
        is_wanted: impl Fn(&(ThreadId, Entry)) -> bool + 'a,
    ) -> Vec<u64> {
        events.iter().filter(|item| is_wanted(item)).map(|(_, event)| event.at_ticks).collect()
    }

    /// Nothing is missing, each GIL's changes and each thread's events are in order, and what
    /// happened before the end of a thread comes before it.
    fn check(Run { happened, got, ends }: &Run) -> Result<(), TestCaseError> {
        for (place, end) in ends {
            // One that was told at the end of its hold happened when the hold began.
            let mut after = got[*place..].iter().filter(|(_, event)| event.kind != Kind::Ran);
            prop_assert!(after.all(|(_, event)| event.at_ticks > end.at_ticks));
            prop_assert!(got[*place..].iter().all(|(thread, _)| *thread != end.thread));
        }
        prop_assert_eq!(happened.len(), got.len());
        for thread in (0..THREADS).map(ThreadId) {
            prop_assert_eq!(
                of(happened, |item| item.0 == thread),
                of(got, |item| item.0 == thread)
            );
        }
        for gil in 0..GILS {
            let changes =
                |item: &(ThreadId, Entry)| item.1.gil == gil && item.1.kind.changes_holder();
            prop_assert_eq!(of(happened, changes), of(got, changes));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn events_of_one_gil_come_out_in_the_order_in_which_they_happened(
            steps in steps(1),
            start in prop::sample::select(vec![0u32, 7, u32::MAX - 5]),
        ) {
            let run = run(steps, start);
            check(&run)?;
            // A wait or a drop request stays between the two changes that it happened between.
            let place = |(_, event): &(ThreadId, Entry)| {
                (distance(event.seq, start), !event.kind.changes_holder())
            };
            prop_assert!(run.got.is_sorted_by_key(place));
        }

        #[test]
        fn events_of_several_gils_keep_the_order_of_every_thread_and_gil(
            steps in steps(GILS),
            start in prop::sample::select(vec![0u32, u32::MAX - 5]),
        ) {
            check(&run(steps, start))?;
        }
    }

    #[test]
    fn an_event_that_may_have_predecessors_unread_waits_a_round() {
        let mut order = Order::default();
        let event = |kind, seq| Entry { at_ticks: u64::from(seq), kind, gil: 0, seq };
        let mut got = Vec::new();
        order.add(ThreadId(1), event(Kind::Acquire, 3));
        order.end_round(|_, event| got.push(event.seq));
        assert!(got.is_empty());
        order.add(ThreadId(0), event(Kind::Acquire, 1));
        order.add(ThreadId(0), event(Kind::ReleaseVoluntary, 2));
        order.end_round(|_, event| got.push(event.seq));
        assert_eq!(got, [1, 2, 3]);
    }

    #[test]
    fn an_event_waits_for_the_earliest_incomplete_one_of_another_gil() {
        let mut order = Order::default();
        let event = |kind, gil, at_ticks| Entry { at_ticks, kind, gil, seq: 1 };
        let mut got = Vec::new();
        order.add(ThreadId(1), event(Kind::Acquire, 0, 1));
        order.end_round(|_, event| got.push(event.at_ticks));
        order.add(ThreadId(0), event(Kind::Wait, 1, 22));
        order.add(ThreadId(3), event(Kind::Wait, 1, 20));
        order.add(ThreadId(3), event(Kind::Wait, 0, 21));
        order.end_round(|_, event| got.push(event.at_ticks));
        order.finish(|_, event| got.push(event.at_ticks));
        assert_eq!(got, [1, 20, 21, 22]);
    }
}
