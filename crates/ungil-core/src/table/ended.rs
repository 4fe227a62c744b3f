//! The counters of threads that have ended, so that sums over a process never fall.
//!
//! Threads are summed in groups, which the process's own metrics name after patterns. A thread's
//! group is a number in its slot; 0 means that nobody has put it into one yet.

use super::counters::Counters;
use super::slot::Slot;
use crate::atomic::{AtomicU64, Ordering};

/// How many groups of threads are told apart, group 0 included.
pub const GROUPS: usize = 10;
/// The group of a slot whose thread has been added to the sums.
const ADDED: u32 = u32::MAX;

/// Sums of ended threads, by group.
#[repr(C)]
#[derive(Debug)]
pub struct Ended {
    /// How many threads have begun to add themselves.
    begun: AtomicU64,
    /// How many have done it, and left their slot.
    done: AtomicU64,
    groups: [Counters; GROUPS],
}

impl Ended {
    /// Adds the counters of a thread that ends; `leave` gives up its slot. A reader sees both
    /// or neither.
    pub fn add(&self, slot: &Slot, leave: impl FnOnce(&Slot)) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let group = slot.group.swap(ADDED, Ordering::SeqCst);
        for (sum, own) in self.fields(group).into_iter().zip(slot.counters.fields()) {
            sum.fetch_add(own.load(Ordering::Relaxed), Ordering::SeqCst);
        }
        leave(slot);
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// Puts a running thread into a group. What it has counted so far, of which `so_far` are the
    /// fields, stays with the group that it was in, if it was in one: neither sum falls. `so_far`
    /// is asked once the thread is in the new group.
    pub fn regroup(&self, slot: &Slot, group: u32, so_far: impl FnOnce() -> [u64; 7]) {
        let before = slot.group.load(Ordering::SeqCst);
        let exchanged =
            slot.group.compare_exchange(before, group, Ordering::SeqCst, Ordering::SeqCst);
        if [0, group, ADDED].contains(&before) || exchanged.is_err() {
            return;
        }
        let sums = self.fields(before).into_iter().zip(self.fields(group));
        for ((old, new), amount) in sums.zip(so_far()) {
            old.fetch_add(amount, Ordering::SeqCst);
            // Below zero until the counters of the thread itself are added.
            new.fetch_sub(amount, Ordering::SeqCst);
        }
    }

    /// What `read` makes of the sums and the running threads, at a moment in which no thread
    /// adds itself. `pause` is called while one does.
    pub fn read<T>(&self, mut read: impl FnMut() -> T, mut pause: impl FnMut()) -> T {
        /// A thread that adds itself needs no lock: it is only late on a busy machine.
        const PATIENCE: usize = 10_000;
        for _ in 0..PATIENCE {
            let done = self.done.load(Ordering::SeqCst);
            if self.begun.load(Ordering::SeqCst) == done {
                let found = read();
                if self.begun.load(Ordering::SeqCst) == done {
                    return found;
                }
            }
            pause();
        }
        read()
    }

    /// The sums of a group; those of group 0 for a number that there is not.
    pub fn fields(&self, group: u32) -> [&AtomicU64; 10] {
        self.groups.get(group as usize).unwrap_or(&self.groups[0]).fields()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::AtomicU32;

    fn ended() -> Ended {
        Ended {
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            groups: std::array::from_fn(|_| Counters::default()),
        }
    }

    fn slot(waits: u64, group: u32) -> Slot {
        Slot {
            state: AtomicU32::new(2),
            tid: AtomicU32::new(1),
            generation: AtomicU32::new(1),
            committed: AtomicU32::new(0),
            ident: AtomicU64::new(1),
            started_ticks: AtomicU64::new(0),
            ended_ticks: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            comm: [AtomicU64::new(0), AtomicU64::new(0)],
            holding_since_ticks: AtomicU64::new(0),
            waiting_since_ticks: AtomicU64::new(0),
            last_wait_ns: AtomicU64::new(0),
            last_wait_holds: AtomicU64::new(0),
            wait_before_ns: AtomicU64::new(0),
            counters: Counters { waits: AtomicU64::new(waits), ..Counters::default() },
            group: AtomicU32::new(group),
            positions: crate::ring::Positions::default(),
        }
    }

    fn waits(ended: &Ended, group: u32) -> u64 {
        ended.fields(group)[0].load(Ordering::Relaxed)
    }

    #[test]
    fn an_ended_thread_is_in_the_sum_of_its_group() {
        let ended = ended();
        ended.add(&slot(3, 0), |_| ());
        ended.add(&slot(5, 2), |_| ());
        ended.add(&slot(7, 999), |_| ());
        assert_eq!((waits(&ended, 0), waits(&ended, 1), waits(&ended, 2)), (10, 0, 5));
    }

    #[test]
    fn a_thread_that_changes_its_group_leaves_behind_what_it_has_counted() {
        let (ended, slot) = (ended(), slot(3, 1));
        slot.group.store(0, Ordering::Relaxed);
        ended.regroup(&slot, 1, || unreachable!("it was in none, and takes everything along"));
        ended.regroup(&slot, 2, || [3, 0, 0, 0, 0, 0, 0]);
        let now = |group| waits(&ended, group);
        assert_eq!((now(1), now(2).wrapping_add(3)), (3, 0));
        slot.counters.waits.store(8, Ordering::Relaxed);
        ended.add(&slot, |_| ());
        assert_eq!((now(1), now(2)), (3, 5));
        ended.regroup(&slot, 1, || unreachable!("it has ended"));
        assert_eq!((now(1), now(2)), (3, 5));
    }

    #[test]
    fn a_reader_waits_for_a_thread_that_adds_itself() {
        let ended = ended();
        let mut looked = Vec::new();
        ended.add(&slot(3, 0), |_| {
            let mut pauses = 0;
            ended.read(|| looked.push(waits(&ended, 0)), || pauses += 1);
            assert_eq!(pauses, 10_000);
        });
        assert_eq!(ended.read(|| waits(&ended, 0), || unreachable!("nobody ends")), 3);
    }
}
