//! A pool of which all threads are inside of their work and off the GIL: what comes then has to wait
//! for one of them, not for the GIL.

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
/// A pool is exhausted if all its threads are at work for this part (of 1) of the time that it had
/// them all.
const PART: f64 = 0.5;
/// What is over in less than this is no incident.
const LEAST_S: f64 = 0.2;

/// The pool that was longest exhausted.
pub fn find(sight: &Sight) -> Option<Advice> {
    let all = groups(&sight.gil.threads);
    let pools = all.into_iter().filter_map(|group| Pool::of(sight, &group.threads));
    let pool = pools.max_by(|a, b| a.full_s.total_cmp(&b.full_s))?;
    let worst = pool.worst?;
    let off = worst.off;
    let mut threads = pool.threads.clone();
    threads.sort_unstable();
    let name = &sight.thread(threads[0]).name;
    let count = threads.len() as u64;
    let text = format!(
        "the pool of {name} is exhausted: all {} were inside of their work for at least {}, and \
         none waited for any; {} {} there, {} in {} in all",
        words::count(count, "thread"),
        words::part(pool.full_s, pool.lived_s),
        at(off),
        doing(off),
        words::length(pool.worst_s),
        words::count(pool.worst_gaps, "call"),
    );
    let mut evidence = vec![
        Evidence::made("all its threads were at work, at least", pool.full_s, Unit::Seconds),
        Evidence::made("of the time in which it had all of them", pool.lived_s, Unit::Seconds),
        Evidence::made("its threads waited for work, summed", pool.idle_s, Unit::Seconds),
        Evidence::made("its threads were in that line, summed", pool.worst_s, Unit::Seconds),
        sight.evidence(worst, "of these the thread that was there longest", "total_s"),
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
        because: "what the threads did was seen in each gap of 0.1 s and more; the trace does not \
                  show the queue of the pool, only that no thread had time for it"
            .to_owned(),
        evidence,
    }))
}

struct Pool<'a> {
    threads: Vec<usize>,
    /// While it had all its threads.
    lived_s: f64,
    /// All of them were at work, at least.
    full_s: f64,
    idle_s: f64,
    worst: Option<Seen<'a>>,
    worst_s: f64,
    worst_gaps: u64,
}

impl<'a> Pool<'a> {
    fn of(sight: &Sight<'a>, threads: &[(usize, &'a ThreadReport)]) -> Option<Self> {
        let is_pool = |off: &OffGil| off.stack.iter().any(|frame| is_of_pool(frame));
        let workers: Vec<_> =
            threads.iter().filter(|(_, thread)| thread.off_gil.iter().any(is_pool)).collect();
        let process_end_s = sight.process.started_s + sight.process.duration_s;
        let end_s = |thread: &ThreadReport| thread.ended_s.unwrap_or(process_end_s);
        let begins_s = workers.iter().map(|(_, it)| it.started_s).fold(0.0, f64::max);
        let ends_s = workers.iter().map(|(_, it)| end_s(it)).fold(f64::INFINITY, f64::min);
        let lived_s = ends_s - begins_s;
        // What is not known of a thread may have been idleness; so may the time of another one.
        let idle_s: f64 = workers.iter().map(|(_, thread)| not_at_work_s(sight, thread)).sum();
        let full_s = lived_s - idle_s;
        if workers.is_empty() || !lived_s.is_finite() || full_s < LEAST_S.max(PART * lived_s) {
            return None;
        }
        let places: Vec<usize> = workers.iter().map(|(place, _)| *place).collect();
        let at_work = || {
            let of_pool = sight.seen().filter(|seen| places.contains(&seen.thread));
            of_pool.filter(|seen| seen.off.what != What::Idle && line(seen.off).is_some())
        };
        let same = |a: &OffGil, b: &OffGil| a.what == b.what && line(a) == line(b);
        let sum_s = |of: &OffGil| -> f64 {
            at_work().filter(|seen| same(seen.off, of)).map(|seen| seen.off.total_s).sum()
        };
        let worst = at_work().max_by(|a, b| {
            sum_s(a.off).total_cmp(&sum_s(b.off)).then(a.off.total_s.total_cmp(&b.off.total_s))
        });
        let worst_s = worst.map_or(0.0, |worst| sum_s(worst.off));
        let worst_gaps = worst.map_or(0, |worst| {
            at_work().filter(|seen| same(seen.off, worst.off)).map(|seen| seen.off.gaps).sum()
        });
        // Threads that compute are at work, too; that is not about what they wait for.
        let off_s: f64 = at_work().map(|seen| seen.off.total_s).sum();
        let lives_s: f64 = workers.iter().map(|(_, thread)| sight.life_s(thread)).sum();
        (off_s >= PART * lives_s).then_some(Self {
            threads: places,
            lived_s,
            full_s,
            idle_s,
            worst,
            worst_s,
            worst_gaps,
        })
    }
}

/// How long a thread may have been without work: what was seen, and what was not looked at.
fn not_at_work_s(sight: &Sight, thread: &ThreadReport) -> f64 {
    let of = |is_idle: bool| -> f64 {
        let places = thread.off_gil.iter().filter(|off| (off.what == What::Idle) == is_idle);
        places.map(|off| off.total_s).sum()
    };
    let known_s = thread.held_s + thread.waited_s + of(true) + of(false);
    of(true) + (sight.life_s(thread) - known_s).max(0.0)
}

fn is_of_pool(frame: &str) -> bool {
    POOLS.iter().any(|file| frame.contains(file))
}

fn waits_for_result(off: &OffGil) -> bool {
    let is_result = |frame: &String| {
        frame.contains("concurrent/futures/_base.py") && frame.starts_with("result ")
    };
    off.what == What::Thread && off.stack.iter().take(4).any(is_result)
}
