//! A pool of which all threads are inside of their work and off the GIL: what comes then has to wait
//! for one of them, not for the GIL. A worker that has done its work and finds more at once had a
//! queue before it.

use super::sight::{Seen, Sight, Told, at, doing, line};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::groups::groups;
use ungil_trace::analysis::words;
use ungil_trace::report::{OffGil, ThreadReport, What};

/// The files of the loops in which the threads of a pool wait for work and do it.
const POOLS: [&str; 6] = [
    "concurrent/futures/thread.py",
    "multiprocessing/pool.py",
    "anyio/_backends/_asyncio.py",
    "waitress/task.py",
    "cheroot/workers/threadpool.py",
    "gunicorn/workers/gthread.py",
];
/// Of a pool that is exhausted at least this part (of 1) of what its threads did is known,
const KNOWN: f64 = 0.5;
/// they waited for work for less than this part of it,
const IDLE: f64 = 0.1;
/// and were off the GIL at work for at least this part.
const PART: f64 = 0.5;
/// What is over in less than this is no incident.
const LEAST_S: f64 = 0.2;

/// The pool that was longest exhausted.
pub fn find(sight: &Sight) -> Option<Advice> {
    let all = groups(&sight.gil.threads);
    let pools = all.into_iter().filter_map(|group| Pool::of(sight, &group.threads));
    let pool = pools.max_by(|a, b| a.known_s.total_cmp(&b.known_s))?;
    let worst = pool.worst;
    let off = worst.off;
    let mut threads = pool.threads.clone();
    threads.sort_unstable();
    let name = &sight.thread(threads[0]).name;
    let count = threads.len() as u64;
    let text = format!(
        "the pool of {name} is exhausted: its {} waited for work for only {}; instead they {} at \
         {}, {} in {} in all",
        words::count(count, "thread"),
        words::part(pool.idle_s, pool.known_s),
        doing(off),
        at(off),
        words::length(pool.worst_s),
        words::count(pool.worst_times, "look"),
    );
    let mut evidence = vec![
        Evidence::made("observed time of its threads, summed", pool.known_s, Unit::Seconds),
        Evidence::made("lifetime of its threads, summed", pool.lived_s, Unit::Seconds),
        Evidence::made("time that they waited for work, summed", pool.idle_s, Unit::Seconds),
        Evidence::made("time that they were at that line, summed", pool.worst_s, Unit::Seconds),
        sight.evidence(worst, "time of the thread that was there longest", "total_s"),
    ];
    let waiting = sight.seen().filter(|seen| waits_for_result(seen.off));
    let waiting = waiting.max_by(|a, b| a.off.total_s.total_cmp(&b.off.total_s));
    if let Some(seen) = waiting {
        evidence.push(sight.evidence(seen, "another thread waited for a result", "total_s"));
    }
    Some(sight.not_the_gil(Cause::ExhaustedPool, &threads, Told {
        text,
        frame: line(off).cloned(),
        code: Some(format!(
            "ThreadPoolExecutor(max_workers=...)  # more than {count}, if what they wait for can \
             serve more at once; or: ungil.fanout.fanout(function, items)"
        )),
        sure: Sure::High,
        because: "a thread without work waits for some, and these rarely did; the trace does not \
                  show the queue of the pool"
            .to_owned(),
        evidence,
    }))
}

struct Pool<'a> {
    threads: Vec<usize>,
    /// What its threads lived, summed.
    lived_s: f64,
    /// The part of it of which is known what they did.
    known_s: f64,
    /// They waited for work, as far as that is known.
    idle_s: f64,
    /// The line in which they were longest, with the thread that was there longest.
    worst: Seen<'a>,
    worst_s: f64,
    worst_times: u64,
}

impl<'a> Pool<'a> {
    /// These threads, if they are those of a pool that is exhausted.
    fn of(sight: &Sight<'a>, threads: &[(usize, &'a ThreadReport)]) -> Option<Self> {
        let is_pool = |off: &OffGil| off.stack.iter().any(|frame| is_of_pool(frame));
        let workers: Vec<_> =
            threads.iter().filter(|(_, thread)| thread.off_gil.iter().any(is_pool)).collect();
        let places: Vec<usize> = workers.iter().map(|(place, _)| *place).collect();
        let seen = || sight.seen().filter(|seen| places.contains(&seen.thread));
        let at_work =
            || seen().filter(|seen| seen.off.what != What::Idle && line(seen.off).is_some());
        let idle_s: f64 =
            seen().filter(|seen| seen.off.what == What::Idle).map(|seen| seen.off.total_s).sum();
        let off_s: f64 = at_work().map(|seen| seen.off.total_s).sum();
        let on_s: f64 = workers.iter().map(|(_, thread)| thread.held_s + thread.waited_s).sum();
        let lived_s: f64 = workers.iter().map(|(_, thread)| sight.life_s(thread)).sum();
        // Samples may add up to a little more than there was. An empty sum is a negative zero.
        let (idle_s, known_s) = (idle_s + 0.0, (idle_s + off_s + on_s).min(lived_s));
        // Threads that compute are at work, too; that is not about what they wait for.
        let is_exhausted = known_s >= LEAST_S.max(KNOWN * lived_s)
            && idle_s < IDLE * known_s
            && off_s >= PART * known_s;
        if workers.is_empty() || !is_exhausted {
            return None;
        }
        let same = |a: &OffGil, b: &OffGil| a.what == b.what && line(a) == line(b);
        let sum_s = |of: &OffGil| -> f64 {
            at_work().filter(|seen| same(seen.off, of)).map(|seen| seen.off.total_s).sum()
        };
        let worst = at_work().max_by(|a, b| {
            sum_s(a.off).total_cmp(&sum_s(b.off)).then(a.off.total_s.total_cmp(&b.off.total_s))
        })?;
        let there = || at_work().filter(|seen| same(seen.off, worst.off));
        Some(Self {
            lived_s,
            known_s,
            idle_s,
            worst_s: there().map(|seen| seen.off.total_s).sum(),
            worst_times: there().map(|seen| seen.off.gaps + seen.off.samples).sum(),
            worst,
            threads: places.clone(),
        })
    }
}

fn is_of_pool(frame: &str) -> bool {
    POOLS.iter().any(|file| frame.contains(file))
}

fn waits_for_result(off: &OffGil) -> bool {
    let is_result = |frame: &String| {
        frame.contains("concurrent/futures/_base.py")
            && frame.split(" (").next().is_some_and(|function| function.ends_with("result"))
    };
    off.what == What::Thread && off.stack.iter().take(4).any(is_result)
}
