//! Threads that do nothing but to compute, and the processors for them: who of them has the GIL next
//! gains no work, and side by side they get no more than there are processors.

use crate::advice::Measure;
use crate::scene::Scene;
use ungil_trace::report::{Evidence, ProcessReport, Processors, Report, What};

/// Threads that wait after blocking calls for this part (of 1) of all that they wait do more than to
/// compute.
const LATE: f64 = 0.1;
/// So do those that give the GIL up for others before less than this part (of 1) of their waits.
const FORCED: f64 = 0.5;
/// Threads of whose waits this part (of 1) is left gain nothing.
const ALL: f64 = 0.9;
/// Who keeps this part (of 1) of the processors busy leaves none.
pub const BUSY: f64 = 0.8;

/// How many processors the process may use; `None` if that is not known.
pub fn usable(process: &ProcessReport) -> Option<f64> {
    process.processors.map(Processors::usable)
}

/// Whether the recorded processes keep all processors busy that this one may use.
pub fn is_short(report: &Report, process: &ProcessReport) -> bool {
    let used = ran_share(process) + used_beside(report, process);
    usable(process).is_some_and(|usable| used >= BUSY * usable)
}

/// How many processors the other recorded processes leave to this one; `None` if that is not known.
pub fn left_by_others(report: &Report, process: &ProcessReport) -> Option<f64> {
    usable(process).map(|usable| (usable - used_beside(report, process)).max(0.0))
}

/// How many processors the other recorded processes used during this one, on average. The kernel may
/// not have run a holder of a GIL; it wanted to run then.
fn used_beside(report: &Report, process: &ProcessReport) -> f64 {
    let end_s = |it: &ProcessReport| it.started_s + it.duration_s;
    let others = report.processes.iter().filter(|it| !std::ptr::eq(*it, process));
    let used_s = others.map(|it| {
        let both_s = end_s(it).min(end_s(process)) - it.started_s.max(process.started_s);
        ran_share(it) * both_s.max(0.0)
    });
    used_s.sum::<f64>() / process.duration_s.max(1e-9)
}

/// How many threads of a process had a GIL, or ran without one, on average.
fn ran_share(process: &ProcessReport) -> f64 {
    let threads = process.gils.iter().flat_map(|gil| &gil.threads);
    let off = threads.flat_map(|thread| &thread.off_gil);
    let without_s: f64 = off.filter(|it| it.what == What::Computing).map(|it| it.total_s).sum();
    let held_s: f64 = process.gils.iter().map(|gil| gil.held_s).sum();
    (held_s + without_s) / process.duration_s.max(1e-9)
}

impl Scene<'_> {
    /// Whether those who wait compute all the time, and make next to no blocking calls: they wait for
    /// their turns, so nobody is late for anything.
    pub fn only_computes(&self) -> bool {
        if self.measure() != Measure::WaitedPerSecond {
            return false;
        }
        let victims = || self.victims.iter().map(|&place| self.thread(place));
        let waited_s: f64 = victims().map(|it| it.waited_s).sum();
        let late_s: f64 = victims().map(|it| it.blocking.waited_s).sum();
        let waits: u64 = victims().map(|it| it.waits.count).sum();
        let forced: u64 = victims().map(|it| it.forced).sum();
        late_s < LATE * waited_s && forced as f64 >= FORCED * waits as f64
    }

    /// Whether some have less of the GIL than others.
    pub fn is_unequal(&self) -> bool {
        matches!(self.finding.1.evidence, Evidence::Hog { .. } | Evidence::Unfair { .. })
    }

    /// The part (of 1) of the waits that is left for processors if the threads run side by side; 0
    /// where that is not known, or where they do more than to compute.
    pub fn left_for_processors(&self, report: &Report) -> f64 {
        let left = left_by_others(report, self.process).filter(|_| self.only_computes());
        let Some(left) = left else { return 0.0 };
        let held = self.held_share();
        let waits = self.gil.wanting_busy_mean - held;
        let wait = self.gil.wanting_busy_mean - left.max(held);
        if waits > 0.0 { (wait / waits).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether next to none of them could run side by side.
    pub fn lacks_processors(&self, report: &Report) -> bool {
        self.left_for_processors(report) >= ALL
    }
}
