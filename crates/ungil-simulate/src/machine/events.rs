//! What happens next: each thread has one moment at most at which it goes on.

/// A thread that is nowhere in the heap.
const NOWHERE: usize = usize::MAX;

/// The moments of all threads. Of equal ones the one that was told first comes first.
///
/// A binary heap that knows where each thread is in it, since most moments are changed before they
/// come: a timer of 5 ms is taken back after microseconds.
#[derive(Debug)]
pub(super) struct Events {
    /// Threads, each behind the one at half its place.
    heap: Vec<usize>,
    /// Of each thread: its place there, when it goes on, and in which order that was told.
    places: Vec<usize>,
    dues: Vec<(u64, u64)>,
    order: u64,
}

impl Events {
    pub(super) fn new(threads: usize) -> Self {
        let (places, dues) = (vec![NOWHERE; threads], vec![(0, 0); threads]);
        Self { heap: Vec::new(), places, dues, order: 0 }
    }

    /// Thread `number` goes on at `at_ns`, and not before.
    pub(super) fn plan(&mut self, number: usize, at_ns: u64) {
        self.order += 1;
        self.dues[number] = (at_ns, self.order);
        let mut place = self.places[number];
        if place == NOWHERE {
            place = self.heap.len();
            self.heap.push(number);
            self.places[number] = place;
        }
        self.settle(place);
    }

    /// It goes on at `at_ns` if it would not before.
    pub(super) fn hasten(&mut self, number: usize, at_ns: u64) {
        if self.places[number] == NOWHERE || at_ns < self.dues[number].0 {
            self.plan(number, at_ns);
        }
    }

    /// Its moment does not come.
    pub(super) fn cancel(&mut self, number: usize) {
        let place = std::mem::replace(&mut self.places[number], NOWHERE);
        if place == NOWHERE {
            return;
        }
        self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            self.places[moved] = place;
            self.settle(place);
        }
    }

    /// Whether any thread has a moment to come.
    pub(super) fn are_left(&self) -> bool {
        !self.heap.is_empty()
    }

    /// The next thread that goes on, and when.
    pub(super) fn next(&mut self) -> Option<(usize, u64)> {
        let &number = self.heap.first()?;
        self.cancel(number);
        Some((number, self.dues[number].0))
    }

    /// Moves who is at `place` to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.comes_before(place, (place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut first = place;
            for below in [left, right] {
                if below < self.heap.len() && self.comes_before(below, first) {
                    first = below;
                }
            }
            if first == place {
                return;
            }
            self.swap(place, first);
            place = first;
        }
    }

    fn comes_before(&self, place: usize, other: usize) -> bool {
        self.dues[self.heap[place]] < self.dues[self.heap[other]]
    }

    fn swap(&mut self, place: usize, other: usize) {
        self.heap.swap(place, other);
        self.places[self.heap[place]] = place;
        self.places[self.heap[other]] = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THREADS: usize = 9;

    proptest! {
        #[test]
        fn moments_come_as_from_a_list_that_is_looked_through(
            steps in prop::collection::vec((0..4u8, 0..THREADS, 0..20u64), 1..200),
        ) {
            let mut events = Events::new(THREADS);
            // Of each thread: when, and the number of the step that said so.
            let mut list: [Option<(u64, usize)>; THREADS] = [None; THREADS];
            for (told, (step, number, at_ns)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        events.plan(number, at_ns);
                        list[number] = Some((at_ns, told));
                    }
                    1 => {
                        events.hasten(number, at_ns);
                        if list[number].is_none_or(|(due_ns, _)| at_ns < due_ns) {
                            list[number] = Some((at_ns, told));
                        }
                    }
                    2 => {
                        events.cancel(number);
                        list[number] = None;
                    }
                    _ => {
                        let all = (0..THREADS).filter_map(|it| Some((list[it]?, it)));
                        let first = all.min().map(|((due_ns, _), it)| (it, due_ns));
                        if let Some((it, _)) = first {
                            list[it] = None;
                        }
                        prop_assert_eq!(events.next(), first);
                    }
                }
                prop_assert_eq!(events.are_left(), list.iter().any(Option::is_some));
            }
        }
    }

    #[test]
    fn moments_come_in_their_order_and_only_the_newest_of_a_thread() {
        let mut events = Events::new(4);
        events.plan(0, 30);
        events.plan(1, 20);
        events.plan(2, 20);
        events.plan(3, 5);
        events.plan(0, 10);
        events.hasten(1, 25);
        events.hasten(2, 15);
        events.cancel(3);
        let come: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(come, [(0, 10), (2, 15), (1, 20)]);
    }
}
