//! For how long a pool had no work at all: before the first piece of it, and after the last. A run in
//! which a server is started, loaded and stopped begins and ends so, and its pool may be exhausted in
//! between.
//!
//! The report does not say when a thread was idle. But all threads of a pool are idle together then,
//! for long: none of them has less of it than the one that waited least.

use super::sight::Sight;
use ungil_trace::report::{ThreadReport, What};

/// A run has so many ends.
const ENDS: u64 = 2;
/// More than this part (of 1) of its life is not before and after the work of a pool.
const MOST: f64 = 0.8;

/// How long each of these threads waited for work at the ends of the run.
pub fn unused_s(sight: &Sight, threads: &[&ThreadReport]) -> f64 {
    let at_ends_s = threads.iter().map(|thread| longest_s(thread));
    let unused_s = at_ends_s.fold(f64::INFINITY, f64::min);
    let lives_s = threads.iter().map(|thread| sight.life_s(thread));
    let life_s = lives_s.fold(f64::INFINITY, f64::min);
    if unused_s <= MOST * life_s { unused_s } else { 0.0 }
}

/// How long a thread waited for work where it did so longest: in its one or two long waits, or in the
/// longest of many.
fn longest_s(thread: &ThreadReport) -> f64 {
    let idle = || thread.off_gil.iter().filter(|off| off.what == What::Idle);
    let gaps: u64 = idle().map(|off| off.gaps).sum();
    if gaps <= ENDS {
        idle().map(|off| off.total_s - off.sampled_s).sum::<f64>() + 0.0
    } else {
        idle().map(|off| off.longest_ms / 1e3).fold(0.0, f64::max)
    }
}
