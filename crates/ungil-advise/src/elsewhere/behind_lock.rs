//! What a thread did that had a lock for which others slept, by the looks at it in that time. Of such
//! locks a trace tells who let go of them, so nothing has to be guessed.

use super::past_lock::Past;
use super::sight::{Sight, at_line, did};
use crate::advice::{Evidence, Unit};
use ungil_trace::analysis::words;
use ungil_trace::report::{LockReport, What};

/// Fewer looks may show what is rare.
const LOOKS: u64 = 3;
/// What was seen in less than this part (of 1) of them does not explain the waits.
const PART: f64 = 0.2;
/// It explains waits if this part (of 1) of them was for it. If somebody waited for it for this part of
/// all time, nothing else can be what threads wait for.
const MOST: f64 = 0.5;

/// The lock for which these threads waited longest, of those that threads take in turn. `None` if that
/// is not most of the `seen_s` for which they were seen to wait.
pub fn lock_of<'a>(sight: &Sight<'a>, threads: &[usize], seen_s: f64) -> Option<&'a LockReport> {
    let tids = sight.tids(threads);
    let rows = &sight.process.lock_waits;
    let waited_s = |lock: &LockReport| -> f64 {
        let its = rows.iter().filter(|row| row.lock == Some(lock.lock) && tids.contains(&row.tid));
        its.map(|row| row.waited_s).sum()
    };
    let locks = sight.process.locks.iter().filter(|lock| waited_s(lock) >= MOST * seen_s);
    locks.max_by(|a, b| waited_s(a).total_cmp(&waited_s(b)))
}

/// Whether somebody waits for this lock nearly all of the time.
pub fn is_always_waited_for(sight: &Sight, lock: &LockReport) -> bool {
    lock.waited_for_s >= MOST * sight.busy_s()
}

/// What the thread mostly did that had it. `None` if too few looks found one, or too few the same.
pub fn find(lock: &LockReport) -> Option<Past<'_>> {
    let most = lock.did.iter().find(|it| !matches!(it.what, What::Lock | What::Unknown))?;
    if lock.looks < LOOKS || (most.looks as f64) < PART * lock.looks as f64 {
        return None;
    }
    let frame = most.user_frame.as_ref().or(most.frame.as_ref());
    let clause = format!(
        "; meanwhile the thread that had it {} at {} in {} of {}",
        did(most.what, &most.call, most.frame.as_deref()),
        at_line(most.user_frame.as_ref(), most.frame.as_ref()),
        most.looks,
        words::count(lock.looks, "look"),
    );
    Some(Past { clause, frame })
}

/// For how long anybody waited for it.
pub fn evidence(lock: &LockReport) -> Evidence {
    let what = "time in which at least one thread waited for that lock";
    Evidence::made(what, lock.waited_for_s, Unit::Seconds)
}
