//! The longest holds of one GIL.

use super::run_time::RunTime;
use super::samples::Samples;
use crate::record::ThreadId;
use crate::report::NativeReport;

/// How many are kept.
const KEPT: usize = 100;
/// Python code that was asked to let go runs on for less, of which counts of the kernel may be off by
/// a tick of 10 ms.
const LETS_GO_IN_NS: u64 = 15_000_000;

/// A hold at least as long as the blame time.
#[derive(Clone, Debug)]
pub(super) struct LongHold {
    pub(super) thread: ThreadId,
    /// Kernel thread id and name, filled in when the thread is forgotten before the hold.
    pub(super) identity: Option<(u32, String)>,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) waiters_max: u64,
    pub(super) waited_ns: u64,
    pub(super) forced: bool,
    pub(super) unanswered_ns: Option<u64>,
    pub(super) run_time: RunTime,
    pub(super) samples: Samples,
}

impl LongHold {
    /// What makes a hold worth keeping: that it hurt somebody, then its length.
    pub(super) const fn rank(&self) -> (bool, u64) {
        (self.waiters_max > 0, self.end_ns - self.start_ns)
    }

    /// The native function that kept the GIL, as the samples show it; `run_time` is without the stops
    /// that they took. A step of the interpreter keeps it for no time. If the kernel left the thread in
    /// one for long, that is chance.
    pub(super) fn native(&self, run_time: RunTime) -> Option<NativeReport> {
        let length_ns = self.end_ns - self.start_ns;
        let was_left = run_time.not_run_ns.is_some_and(|ns| ns.saturating_mul(2) > length_ns);
        let unasked_ns = length_ns.saturating_sub(self.unanswered_ns.unwrap_or(0));
        let ran_on_ns = run_time.cpu_ns.unwrap_or(0).saturating_sub(unasked_ns);
        let is_chance = was_left && ran_on_ns < LETS_GO_IN_NS;
        self.samples.native().filter(|it| !(is_chance && it.is_a_step()))
    }
}

/// The [`KEPT`] holds of highest rank.
#[derive(Clone, Debug, Default)]
pub(super) struct LongHolds {
    pub(super) kept: Vec<LongHold>,
    /// How many there were in all.
    pub(super) count: u64,
}

impl LongHolds {
    pub(super) fn add(&mut self, hold: LongHold) {
        self.count += 1;
        if self.kept.len() < KEPT {
            self.kept.push(hold);
        } else if let Some(least) = self.kept.iter_mut().min_by_key(|kept| kept.rank())
            && least.rank() < hold.rank()
        {
            *least = hold;
        }
    }

    /// What was sampled of the hold of `thread` at `at_ns`, if it is kept: samples may be recorded
    /// after the hold has ended.
    pub(super) fn samples_at(&mut self, thread: ThreadId, at_ns: u64) -> Option<&mut Samples> {
        let fits = |hold: &&mut LongHold| {
            hold.thread == thread && (hold.start_ns..=hold.end_ns).contains(&at_ns)
        };
        self.kept.iter_mut().find(fits).map(|hold| &mut hold.samples)
    }
}
