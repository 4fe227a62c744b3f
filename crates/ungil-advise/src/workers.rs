//! Threads that work for others: those of a pool, those that wait for their results, and the batch
//! that both are.

use crate::functions::{is_in, is_of};
use crate::groups::groups;
use crate::scene::{HELD, Scene};
use std::collections::HashSet;
use ungil_trace::report::{OffGil, ThreadReport, What};

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
        if has_loop || !self.gil.threads.iter().any(|it| self.collects(it)) {
            return false;
        }
        let groups = groups(&self.gil.threads).into_iter().map(|it| it.threads);
        let pools = groups.filter(|it| it.iter().any(|(_, thread)| is_collected(thread)));
        let of_pools: HashSet<usize> = pools.flatten().map(|(place, _)| place).collect();
        let mut of_scene = self.victims.iter().chain(&self.culprits);
        of_scene.all(|place| of_pools.contains(place) || self.collects(self.thread(*place)))
    }

    /// Whether that is so, and threads had the GIL for nearly all of the time: who has it next does not
    /// change when the last of them is done with it.
    pub fn is_batch_of_gil(&self) -> bool {
        self.held_share() >= HELD && self.is_batch()
    }

    /// Whether the main thread mostly waits for the results of a pool, unless it waits for the GIL.
    fn collects(&self, thread: &ThreadReport) -> bool {
        let waits = thread.off_gil.iter().filter(|off| waits_for_result(off));
        let waits_s: f64 = waits.map(|off| off.total_s).sum();
        thread.main && waits_s > 0.0 && waits_s >= COLLECTS * (self.busy_s() - thread.waited_s)
    }
}

/// Whether a thread runs the loop of a pool that a program may collect results of.
fn is_collected(thread: &ThreadReport) -> bool {
    let mut loops = thread.off_gil.iter().filter_map(loop_of);
    is_worker(thread) && loops.any(|frame| OWN.iter().any(|it| is_loop(frame, *it)))
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
