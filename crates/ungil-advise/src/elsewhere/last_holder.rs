//! Who had a lock before those that waited for it, or woke them: the trace tells who lets go of a lock,
//! or posts a semaphore, for which others sleep.

use crate::advice::{Evidence, Unit};
use std::collections::BTreeMap;
use ungil_trace::analysis::words;
use ungil_trace::report::{ParkedAt, ProcessReport};

/// Who ended this part (of 1) of the waits explains them alone.
const MOST: f64 = 0.5;
/// And who ended less than this part of them is not worth a word.
const LEAST: f64 = 0.1;
/// What a trace does not tell of them.
pub const SINCE_WHEN: &str = "since when the thread that let go of the lock had it";
/// So many are named.
const NAMED: usize = 2;

/// Who ended waits for a lock.
#[derive(Debug)]
pub struct LastHolder {
    /// `; 54 % of that time ended when w2 let go of the lock`.
    pub clause: String,
    pub evidence: Evidence,
}

/// Of the lock for which these threads waited most. `None` if the sleeps for it are not most of the
/// `seen_s` for which they were seen to wait, or if most ended for a reason that is not known.
pub fn find(process: &ProcessReport, tids: &[u32], seen_s: f64) -> Option<LastHolder> {
    let mut rows = tids.iter().filter_map(|tid| longest(process, *tid)).peekable();
    rows.peek()?;
    let (mut waited_s, mut count, mut let_go) = (0.0, 0, 0);
    let mut is_contended = true;
    let mut ended_s: BTreeMap<(u32, &str), f64> = BTreeMap::new();
    for row in rows {
        waited_s += row.waited_s;
        is_contended &= row.contended;
        for waker in &row.wakers {
            (count, let_go) = (count + waker.count, let_go + waker.let_go);
            if let (Some(tid), Some(name)) = (waker.tid, waker.name.as_deref()) {
                *ended_s.entry((tid, name)).or_default() += waker.waited_s;
            }
        }
    }
    if waited_s < MOST * seen_s {
        return None;
    }
    let mut by: Vec<_> = ended_s.into_iter().map(|(who, it)| (who, it / waited_s)).collect();
    by.sort_by(|a, b| b.1.total_cmp(&a.1));
    by.retain(|(_, part)| *part >= LEAST);
    let (_, most) = *by.first()?;
    by.truncate(if most >= MOST { 1 } else { NAMED });
    let part: f64 = by.iter().map(|(_, part)| part).sum();
    // Of a signal nobody has to let go.
    let did = if is_contended || let_go * 2 >= count { "let go of it" } else { "woke them" };
    let clause = if let [((tid, name), part)] = by[..] {
        let (part, who) = (words::percent(part), called(tid, name));
        format!("; {part} of that time ended when {who} {did}")
    } else {
        let named = by.iter().map(|((tid, name), part)| {
            format!("{} ({})", called(*tid, name), words::percent(*part))
        });
        format!("; it ended when {} {did}", named.collect::<Vec<_>>().join(" or "))
    };
    let what = format!("part of the waits there that ended when one of these threads {did}");
    Some(LastHolder { clause, evidence: Evidence::made(&what, part, Unit::Share) })
}

/// What a thread waited for longest, of locks that threads take in turn if there is any.
fn longest(process: &ProcessReport, tid: u32) -> Option<&ParkedAt> {
    let its = process.lock_waits.iter().filter(|row| row.tid == tid);
    its.max_by(|a, b| a.contended.cmp(&b.contended).then(a.waited_s.total_cmp(&b.waited_s)))
}

fn called(tid: u32, name: &str) -> String {
    if name.is_empty() { format!("thread {tid}") } else { name.to_owned() }
}
