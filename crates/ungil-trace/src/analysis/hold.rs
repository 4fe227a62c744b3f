//! The hold of a GIL that has not ended.

use super::history::Past;
use super::kernel_counts::KernelCounts;
use super::run_time::{Ran, RunTime, not_run_most, run_time};
use super::samples::Samples;
use super::seat::Wait;
use crate::record::KernelCount;

/// Holders tell of holds of 2 ms or more how they ran. Nothing told of a longer one is a loss.
const TOLD_FROM_NS: u64 = 4_000_000;

/// A hold that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// The holder's.
    pub(super) seat: u32,
    /// When the thread got it,
    began_ns: u64,
    /// and from when on it counts: later in a part of a trace that begins in a hold.
    pub(super) since_ns: u64,
    /// From when on somebody waited during it.
    waited_since_ns: Option<u64>,
    /// The first drop request during it.
    pub(super) asked_ns: Option<u64>,
    pub(super) gone: Gone,
    ran: Option<Ran>,
    /// What the kernel has counted for the holder since it began.
    counts: KernelCounts,
    /// When it was seen asleep: the first time and the last two.
    asleep: Option<[u64; 3]>,
    pub(super) samples: Samples,
}

/// Threads that ended while they waited during a hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    pub(super) waiters: u64,
    pub(super) waited_ns: u64,
    /// The part of `waited_ns` after the first drop request.
    pub(super) unanswered_ns: u64,
}

/// How a hold came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Voluntary,
    Forced,
    /// The release was lost.
    Unseen,
    /// The thread ended.
    Cut,
}

impl Hold {
    /// Begins at `since_ns`, when somebody waits already or nobody does.
    pub(super) fn new(
        seat: u32,
        since_ns: u64,
        is_waited_for: bool,
        counts: &KernelCounts,
    ) -> Self {
        let mut hold = Self {
            seat,
            began_ns: since_ns,
            since_ns,
            waited_since_ns: is_waited_for.then_some(since_ns),
            asked_ns: None,
            gone: Gone::default(),
            ran: None,
            counts: KernelCounts::default(),
            asleep: None,
            samples: Samples::default(),
        };
        counts.iter().for_each(|count| hold.count(*count));
        hold
    }

    /// Keeps what the kernel had counted for the holder.
    pub(super) fn count(&mut self, count: KernelCount) {
        self.counts.add(count);
        if !count.runnable {
            let [_, earlier, last] = self.asleep.get_or_insert([count.at_ns; 3]);
            (*earlier, *last) = (*last, count.at_ns);
        }
    }

    /// The most that the holder can have slept between `from_ns` and `end_ns`, as far as it was seen.
    fn slept_ns(&self, from_ns: u64, end_ns: u64) -> u64 {
        self.asleep.map_or(0, |[first, earlier, last]| {
            // One count may be of after the end.
            let last = if last <= end_ns { last } else { earlier.min(end_ns) };
            last.saturating_sub(first.max(from_ns))
        })
    }

    /// The same hold with nothing counted yet, from `at_ns` on.
    pub(super) fn reopened(&self, at_ns: u64) -> Self {
        Self {
            since_ns: self.since_ns.max(at_ns),
            waited_since_ns: self.waited_since_ns.map(|ns| ns.max(at_ns)),
            asked_ns: self.asked_ns.map(|ns| ns.max(at_ns)),
            gone: Gone::default(),
            ..self.clone()
        }
    }

    /// Somebody waits from `at_ns` on.
    pub(super) fn begins_to_be_waited_for(&mut self, at_ns: u64) {
        let since_ns = at_ns.max(self.since_ns);
        self.waited_since_ns = Some(self.waited_since_ns.map_or(since_ns, |ns| ns.min(since_ns)));
    }

    /// Nobody waits any more. Since when somebody has.
    pub(super) const fn ends_to_be_waited_for(&mut self) -> Option<u64> {
        self.waited_since_ns.take()
    }

    /// Somebody asks the holder to let go.
    pub(super) fn is_asked(&mut self, at_ns: u64) {
        if self.since_ns <= at_ns {
            self.asked_ns.get_or_insert(at_ns);
        }
    }

    /// The holder tells, at the end, for how long it ran: from the beginning of the hold to
    /// `until_ns` if it had not been interrupted.
    pub(super) fn told(&mut self, until_ns: u64, blocked: bool) {
        let cpu_ns = until_ns.saturating_sub(self.began_ns);
        self.ran = Some(Ran { cpu_ns, blocked });
    }

    /// For how long the holder kept the GIL from threads that waited, and would not let go: its own
    /// time after somebody had asked, at least. While somebody waited and had not asked yet, it was
    /// native code where it slept, because bytecode does not. `None` if nobody waited.
    pub(super) fn kept_ns(&self, before: &KernelCounts, past: Past) -> Option<u64> {
        let own_ns = |from_ns: u64| self.own_ns(before, from_ns.min(past.end_ns), past.end_ns);
        let asked_ns = self.asked_ns.map(own_ns);
        let slept_ns = self.ran.filter(|ran| ran.blocked && past.contended_ns < past.end_ns);
        let slept_ns = slept_ns.map(|ran| own_ns(past.contended_ns).saturating_sub(ran.cpu_ns));
        asked_ns.max(slept_ns)
    }

    /// For how long it ran, as far as it has told.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        self.ran.map(|ran| ran.cpu_ns)
    }

    /// A thread that ends has waited for it.
    pub(super) fn lost_waiter(&mut self, wait: Wait, at_ns: u64) {
        self.gone.add(wait, at_ns, self.since_ns, self.asked_ns);
    }

    /// As one that ends at `end_ns`, or when it began if that is later.
    pub(super) fn past(&self, end_ns: u64) -> Past {
        let end_ns = end_ns.max(self.since_ns);
        let contended_ns = self.waited_since_ns.map_or(end_ns, |ns| ns.min(end_ns));
        Past { start_ns: self.since_ns, end_ns, contended_ns, own_ns: 0, seat: self.seat }
    }

    /// How much of it from `from_ns` to `end_ns` was the holder's own, at least: it ran, or it was
    /// seen to sleep. A thread also sleeps while the kernel does not run the one that has the mutex
    /// of the GIL; then nobody saw it asleep (`recorder/kernel_counts.rs`).
    /// `before` is what the kernel had counted before the hold.
    pub(super) fn own_ns(&self, before: &KernelCounts, from_ns: u64, end_ns: u64) -> u64 {
        let rest_ns = end_ns.saturating_sub(from_ns);
        if self.ran.is_none() && self.counts.is_empty() {
            let is_short = end_ns.saturating_sub(self.began_ns) < TOLD_FROM_NS;
            return if is_short { rest_ns } else { 0 };
        }
        let times = [self.began_ns, from_ns, end_ns];
        let own_ns = rest_ns - not_run_most(times, self.ran, before, &self.counts);
        let ran_ns = self.ran.map_or(0, |ran| ran.cpu_ns);
        own_ns.min(ran_ns.saturating_add(self.slept_ns(from_ns, end_ns)))
    }

    /// What is known of how the kernel ran the holder until `end_ns`. `before` is what it had
    /// counted before the hold, and gets what it has counted since.
    pub(super) fn run_time(&mut self, before: &mut KernelCounts, end_ns: u64) -> RunTime {
        if self.ran.is_none() && self.counts.is_empty() {
            return RunTime::default();
        }
        let mut known = run_time([self.began_ns, end_ns], self.ran, before, &self.counts)
            .after(self.since_ns - self.began_ns, end_ns - self.since_ns);
        if self.asleep.is_some() {
            known.awake_ns = None;
        }
        before.append(std::mem::take(&mut self.counts));
        known
    }
}

impl Gone {
    fn add(&mut self, wait: Wait, at_ns: u64, hold_ns: u64, asked_ns: Option<u64>) {
        let waited = |from_ns: u64| at_ns.saturating_sub(wait.since_ns.max(from_ns));
        self.waiters += 1;
        self.waited_ns = self.waited_ns.saturating_add(waited(hold_ns));
        self.unanswered_ns = self.unanswered_ns.saturating_add(asked_ns.map_or(0, waited));
    }
}
