//! What the recorder asks about the threads of a traced process while it looks at them from outside.

use super::super::gap::Crowd;
use super::super::kernel_counts::kernel_count;
use super::super::thread::Thread;
use super::super::times::Times;
use super::Traced;
use crate::record::{Record, ThreadId};
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::table::{Slot, SlotState};

/// So many gaps since the last look are short ones.
const SHORT_GAPS: u64 = 3;

impl Traced {
    /// Asks the kernel for the CPU time and context switches of at most `count` threads, in turn.
    pub fn sample_outside(&mut self, count: usize) {
        let (slots, gils) = (self.threads.len(), self.gils());
        for _ in 0..count.min(slots) {
            let index = self.next_outside % slots;
            self.next_outside = index + 1;
            if let Some(thread) = &mut self.threads[index] {
                thread.sample_outside(self.pid, &gils);
            }
        }
    }

    /// Asks the kernel for the counters of at most `count` threads that have used a GIL since the
    /// last round and hold none for long.
    pub fn count_active(&mut self, count: usize) {
        let (pid, gils) = (self.pid, self.gils());
        let active = self.threads.iter_mut().flatten().filter(|thread| thread.was_active);
        active.take(count).for_each(|thread| thread.keep_count(pid, &gils));
    }

    /// Asks the kernel what it does with the threads that have held a GIL for `after_ns` or longer,
    /// and says whether any has.
    pub fn follow_holders(
        &mut self,
        times: &mut Times,
        now: u64,
        after_ns: u64,
        mut give: impl FnMut(Record),
    ) -> bool {
        let (pid, gils, mut any) = (self.pid, self.gils(), false);
        let slots = self.file.table().slots();
        for (thread, slot) in self.threads.iter_mut().zip(slots) {
            let Some(thread) = thread else { continue };
            let since_ns = thread.holding_since_ns(slot, times, self.clock);
            any |= since_ns != 0 && now.saturating_sub(since_ns) >= after_ns;
            let Thread { id, tid, follower, .. } = thread;
            let ask = || kernel_count(pid, *tid, &gils);
            let thread = *id;
            follower.look(since_ns, now, after_ns, ask, |count| {
                give(Record::KernelCount { thread, count });
            });
        }
        any
    }

    /// Notes which threads are off the GIL, and counts those that wait.
    pub fn look(&mut self) -> Crowd {
        let (mut crowd, mut waiting) = (Crowd::default(), [0_u32; 256]);
        let mut is_held = [false; 256];
        for (thread, slot) in self.threads.iter_mut().zip(self.file.table().slots()) {
            let Some(thread) = thread else { continue };
            let gil = usize::from(thread.gil);
            thread.gap.find(holds_if_off(slot));
            crowd.new_gaps |= thread.gap.is_new();
            waiting[gil] += u32::from(slot.waiting_since_ticks.load(Relaxed) != 0);
            is_held[gil] |= slot.holding_since_ticks.load(Relaxed) != 0;
        }
        let waited_for = waiting.iter().zip(is_held).filter(|(_, is_held)| *is_held);
        crowd.waiters = waited_for.map(|(waiters, _)| *waiters).max().unwrap_or(0);
        crowd
    }

    /// Calls `tell` if the thread of this ident is in the gap in which the last look found it, with
    /// its ids, whether the gap is long, and what says whether the thread is still in it. A long gap
    /// counts as told of if `tell` says that it has told of it.
    pub fn if_still_off(
        &mut self,
        ident: u64,
        tell: impl FnOnce(ThreadId, u32, bool, &dyn Fn() -> bool) -> bool,
    ) {
        let slots = self.file.table().slots();
        for (thread, slot) in self.threads.iter_mut().zip(slots) {
            let Some(thread) = thread.as_mut().filter(|thread| thread.ident == ident) else {
                continue;
            };
            let holds = thread.gap.holds;
            let is_still_off = || holds_if_off(slot) == holds;
            if thread.gap.is_new() && is_still_off() {
                let is_long = thread.gap.is_long;
                thread.gap.is_told = tell(thread.id, thread.tid, is_long, &is_still_off) && is_long;
                return;
            }
        }
    }

    /// Calls `tell` if the thread of this ident is off the GIL and has been so often since the last
    /// look that its gaps are too short for its stack to be read in one, with its ids and what says
    /// whether the thread is still in the gap that it is in now.
    pub fn if_in_short_gap(
        &mut self,
        ident: u64,
        tell: impl FnOnce(ThreadId, u32, &dyn Fn() -> bool),
    ) {
        let slots = self.file.table().slots();
        let threads = self.threads.iter().zip(slots);
        let mut threads = threads.filter_map(|(thread, slot)| Some((thread.as_ref()?, slot)));
        let Some((thread, slot)) = threads.find(|(thread, _)| thread.ident == ident) else {
            return;
        };
        let (before, now) = (thread.gap.holds, holds_if_off(slot));
        if before.zip(now).is_some_and(|(before, now)| now >= before.saturating_add(SHORT_GAPS)) {
            tell(thread.id, thread.tid, &|| holds_if_off(slot) == now);
        }
    }
}

/// How many holds a thread has had, if it is off the GIL.
fn holds_if_off(slot: &Slot) -> Option<u64> {
    let is_off = slot.state() == Some(SlotState::Live)
        && slot.holding_since_ticks.load(Relaxed) == 0
        && slot.waiting_since_ticks.load(Relaxed) == 0;
    is_off.then(|| slot.counters.holds.load(Relaxed))
}
