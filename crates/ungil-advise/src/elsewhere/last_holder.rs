//! Who had a lock before those that waited for it: the recorder sees who lets go of one for which
//! others sleep.

use crate::advice::{Evidence, Unit};
use std::collections::BTreeMap;
use ungil_trace::analysis::words;
use ungil_trace::report::{ParkedAt, ProcessReport};

/// Who ended this part (of 1) of the waits explains them alone.
const MOST: f64 = 0.5;
/// And who ended less than this part of them is not worth a word.
const LEAST: f64 = 0.1;
/// What a trace does not tell of them.
pub const SINCE_WHEN: &str = "since when the thread that let go of the lock had had it";
/// So many are named.
const NAMED: usize = 2;

/// Who let go of a lock for which others waited.
#[derive(Debug)]
pub struct LastHolder {
    /// `; 54 % of that time ended when w2 let go of the lock`.
    pub clause: String,
    pub evidence: Evidence,
}

/// Of the lock for which these threads waited most. `None` if no sleep for one was recorded, or most
/// ended for a reason that is not known.
pub fn find(process: &ProcessReport, tids: &[u32]) -> Option<LastHolder> {
    let mut rows = tids.iter().filter_map(|tid| longest(process, *tid)).peekable();
    rows.peek()?;
    let mut waited_s = 0.0;
    let mut ended_s: BTreeMap<(u32, &str), f64> = BTreeMap::new();
    for row in rows {
        waited_s += row.waited_s;
        for waker in &row.wakers {
            if let (Some(tid), Some(name)) = (waker.tid, waker.name.as_deref()) {
                *ended_s.entry((tid, name)).or_default() += waker.waited_s;
            }
        }
    }
    let mut by: Vec<_> = ended_s.into_iter().map(|(who, it)| (who, it / waited_s)).collect();
    by.sort_by(|a, b| b.1.total_cmp(&a.1));
    by.retain(|(_, part)| *part >= LEAST);
    let (_, most) = *by.first()?;
    by.truncate(if most >= MOST { 1 } else { NAMED });
    let part: f64 = by.iter().map(|(_, part)| part).sum();
    let clause = match by[..] {
        [((tid, name), part)] => {
            format!(
                "; {} of that time ended when {} let go of it",
                words::percent(part),
                called(tid, name)
            )
        }
        _ => {
            let named = by.iter().map(|((tid, name), part)| {
                format!("{} ({})", called(*tid, name), words::percent(*part))
            });
            format!("; it ended when {} let go of it", named.collect::<Vec<_>>().join(" or "))
        }
    };
    let what = "part of the waits for the lock that ended when these threads let go of it";
    Some(LastHolder { clause, evidence: Evidence::made(what, part, Unit::Share) })
}

/// What a thread waited for longest, of locks that threads take in turn if there is any.
fn longest(process: &ProcessReport, tid: u32) -> Option<&ParkedAt> {
    let its = process.lock_waits.iter().filter(|row| row.tid == tid);
    its.max_by(|a, b| a.contended.cmp(&b.contended).then(a.waited_s.total_cmp(&b.waited_s)))
}

fn called(tid: u32, name: &str) -> String {
    if name.is_empty() { format!("thread {tid}") } else { name.to_owned() }
}
