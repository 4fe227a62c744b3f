//! Threads that work for others: those of a pool, those that wait for their results, and the batch
//! that both are.

use crate::functions::{is_in, is_of};
use crate::groups::groups;
use crate::scene::{HELD, Scene};
use std::collections::HashSet;
use ungil_trace::report::{OffGil, ThreadReport, Waker, What};

/// The loops in which the threads of a program's own pools wait for work and do it, as file and function,
const OWN: [(&str, &str); 2] =
    [("concurrent/futures/thread.py", "_worker"), ("multiprocessing/pool.py", "worker")];
/// and those of servers and of event loops.
const SERVERS: [(&str, &str); 7] = [
    ("anyio/_backends/_asyncio.py", "run"),
    ("trio/_core/_thread_cache.py", "_work"),
    ("twisted/_threads/_threadworker.py", "work"),
    ("waitress/task.py", "handler_thread"),
    ("cheroot/workers/threadpool.py", "run"),
    ("dramatiq/worker.py", "WorkerThread.run"),
    ("huey/consumer.py", "_run"),
];
/// Those of task queues that put an object of their own in the place of a function.
const WRAPPED: [&str; 2] = ["dramatiq/worker.py", "huey/consumer.py"];
/// Where a thread waits for the result of what it gave to a pool.
const RESULTS: [(&str, &str); 5] = [
    ("concurrent/futures/_base.py", "result"),
    ("concurrent/futures/_base.py", "wait"),
    ("concurrent/futures/_base.py", "as_completed"),
    ("multiprocessing/pool.py", "wait"),
    ("multiprocessing/pool.py", "next"),
];
/// What the threads of a `ThreadPoolExecutor` are called, unless it is told otherwise.
const NAMED: &str = "ThreadPoolExecutor-";
/// What those of `multiprocessing.pool` are called that bring tasks to its workers, and results back.
const CARRIERS: [&str; 3] = [" (_handle_tasks)", " (_handle_results)", " (_handle_workers)"];
/// And these workers.
const CARRIED: &str = " (worker)";
/// Who starts a thread waits until it runs, and who joins it until it ends.
const AT_BOTH_ENDS: u64 = 2;
/// A thread that waits for results for this part (of 1) of the time in which it does not wait for the GIL
/// does little else.
const COLLECTS: f64 = 0.5;

/// Whether a thread runs the loop of a pool: it is all that the thread was started for. The first
/// thread of a process may have been forked by one that does, or be all of a process of a pool.
pub fn is_worker(thread: &ThreadReport) -> bool {
    !thread.main && thread.off_gil.iter().any(|off| loop_of(off).is_some())
}

/// Whether a thread runs tasks of a queue that are no functions any more, so that no process can find
/// them by their names.
pub fn runs_wrapped_tasks(thread: &ThreadReport) -> bool {
    let mut loops = thread.off_gil.iter().filter_map(loop_of);
    loops.any(|frame| WRAPPED.iter().any(|file| is_in(frame, file)))
}

/// The frame of the loop of a pool, if that is what the thread was started for.
pub fn loop_of(off: &OffGil) -> Option<&String> {
    let outermost = off.stack.iter().rfind(|frame| !is_in(frame, "threading.py"))?;
    OWN.iter().chain(&SERVERS).any(|it| is_loop(outermost, *it)).then_some(outermost)
}

/// Whether a thread waits there for the result of what it gave to a pool.
pub fn waits_for_result(off: &OffGil) -> bool {
    let is_result = |frame: &String| RESULTS.iter().any(|it| is_of(frame, *it));
    off.what == What::Thread && off.stack.iter().take(4).any(is_result)
}

impl Scene<'_> {
    /// Whether those who wait and those for whom they wait are the threads of a program's own pools, and
    /// the main thread that collects their results: then nobody is late for anything, and all that
    /// counts is when the last result is there.
    pub fn is_batch(&self) -> bool {
        let has_loop = self.gil.threads.iter().any(|it| it.event_loop.is_some());
        let may_collect = |it: &ThreadReport| {
            it.main && (waited_for_results_s(it) > 0.0 || self.wakers(it.tid).next().is_some())
        };
        // That is quickly found out, also of ten thousand threads.
        if has_loop || !self.gil.threads.iter().any(may_collect) {
            return false;
        }
        let of_pools = self.of_pools();
        let collects = |thread: &ThreadReport| self.collects(thread, &of_pools);
        let mut of_scene = self.victims.iter().chain(&self.culprits);
        self.gil.threads.iter().any(collects)
            && of_scene.all(|place| of_pools.contains(place) || collects(self.thread(*place)))
    }

    /// Whether that is so, and threads had the GIL for nearly all of the time: who has it next does not
    /// change when the last of them is done with it.
    pub fn is_batch_of_gil(&self) -> bool {
        self.held_share() >= HELD && self.is_batch()
    }

    /// The threads of the program's own pools: those of which one is known to be of a pool, and those of
    /// which one ended a wait for a result, of the main thread or of another pool.
    fn of_pools(&self) -> HashSet<usize> {
        let all = &self.gil.threads;
        let is_carried = all.iter().any(is_carrier);
        let is_known = |thread: &ThreadReport| {
            is_collected(thread) || is_carried && thread.name.ends_with(CARRIED)
        };
        let (mut of_pools, mut left): (Vec<_>, Vec<_>) = groups(all)
            .into_iter()
            .map(|it| it.threads)
            .partition(|it| it.iter().any(|(_, thread)| is_known(thread)));
        loop {
            let collecting = of_pools.iter().flatten().map(|(_, thread)| *thread);
            let collecting = collecting.chain(all.iter().filter(|it| it.main));
            let collecting = collecting.filter(|it| waited_for_results_s(it) > 0.0);
            let tids: HashSet<u32> =
                collecting.flat_map(|it| self.wakers(it.tid)).filter_map(|it| it.tid).collect();
            let (more, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|group| {
                group.iter().any(|(_, thread)| !thread.main && tids.contains(&thread.tid))
            });
            left = rest;
            if more.is_empty() {
                return of_pools.into_iter().flatten().map(|(place, _)| place).collect();
            }
            of_pools.extend(more);
        }
    }

    /// Who ended the sleeps of a thread for locks.
    fn wakers(&self, tid: u32) -> impl Iterator<Item = &Waker> {
        let rows = self.process.lock_waits.iter().filter(move |row| row.tid == tid);
        rows.flat_map(|row| &row.wakers)
    }

    /// Whether the main thread mostly waits for the results of these pools, unless it waits for the GIL.
    fn collects(&self, thread: &ThreadReport, of_pools: &HashSet<usize>) -> bool {
        let waits_s = waited_for_results_s(thread).max(self.woken_by_s(thread, of_pools));
        thread.main && waits_s > 0.0 && waits_s >= COLLECTS * (self.busy_s() - thread.waited_s)
    }

    /// How long a thread slept until one of these ended that, if they did so again and again: to begin
    /// and to end they also do.
    fn woken_by_s(&self, thread: &ThreadReport, places: &HashSet<usize>) -> f64 {
        let tids: HashSet<u32> = places.iter().map(|place| self.thread(*place).tid).collect();
        let wakers =
            self.wakers(thread.tid).filter(|it| it.tid.is_some_and(|tid| tids.contains(&tid)));
        let (count, waited_s) =
            wakers.fold((0, 0.0), |(count, sum_s), it| (count + it.count, sum_s + it.waited_s));
        if count > AT_BOTH_ENDS * tids.len() as u64 { waited_s } else { 0.0 }
    }
}

/// How long a thread waited for results, as far as looks at it tell.
fn waited_for_results_s(thread: &ThreadReport) -> f64 {
    thread.off_gil.iter().filter(|off| waits_for_result(off)).map(|off| off.total_s).sum()
}

/// Whether a thread runs the loop of a pool that a program may collect results of. One that never waits
/// for work is known by its name, if the pool has none of its own.
fn is_collected(thread: &ThreadReport) -> bool {
    let mut loops = thread.off_gil.iter().filter_map(loop_of);
    let is_seen = is_worker(thread) && loops.any(|frame| OWN.iter().any(|it| is_loop(frame, *it)));
    is_seen || thread.name.starts_with(NAMED) || is_carrier(thread)
}

/// Whether a thread brings tasks or results for a pool of `multiprocessing.pool`.
pub fn is_carrier(thread: &ThreadReport) -> bool {
    CARRIERS.iter().any(|end| thread.name.ends_with(end))
}

/// Whether a frame is in this function. Of a class it has to be that method, where frames tell the
/// class: from 3.11 on.
fn is_loop(frame: &str, (file, function): (&str, &str)) -> bool {
    let Some((_, method)) = function.split_once('.') else { return is_of(frame, (file, function)) };
    let name = frame.split(" (").next().unwrap_or_default();
    is_of(frame, (file, method)) && (name == function || !name.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_a_class_has_is_told_from_those_of_others_where_frames_name_the_class() {
        let of_worker = ("dramatiq/worker.py", "WorkerThread.run");
        assert!(is_loop("WorkerThread.run (/x/dramatiq/worker.py:535)", of_worker));
        assert!(is_loop("run (/x/dramatiq/worker.py:535)", of_worker));
        assert!(!is_loop("ConsumerThread.run (/x/dramatiq/worker.py:314)", of_worker));
    }
}
