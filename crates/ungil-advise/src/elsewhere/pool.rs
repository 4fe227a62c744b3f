//! A pool of which all threads are inside of their work and off the GIL: what comes then has to wait
//! for one of them, not for the GIL. A worker that has done its work and finds more at once had a
//! queue before it. More threads help where these wait for something, and not where they compute or
//! wait for a lock.
//!
//! The threads of a pool are those that run its loop. One that hands work to a pool, or waits for
//! its results, is none, nor is a process of a pool of processes.

use super::calls::RAN;
use super::last_holder::{self, SINCE_WHEN};
use super::past_lock;
use super::sight::{Seen, Sight, Told, at, doing, line};
use super::unused::unused_s;
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::groups::groups;
use crate::pools::more_threads;
use crate::scene::root;
use crate::supply::{BUSY, usable};
use crate::workers::{is_worker, loop_of, waits_for_result};
use ungil_trace::analysis::words;
use ungil_trace::origin::{Origin, file_of};
use ungil_trace::report::{OffGil, ThreadReport, What};

/// Of a pool that is exhausted at least this part (of 1) of what its threads did is known,
const KNOWN: f64 = 0.5;
/// they waited for work for less than this part of it,
const IDLE: f64 = 0.1;
/// and in their work they waited, or computed without the GIL, for at least this part.
const PART: f64 = 0.5;
/// What is over in less than this is no incident.
const LEAST_S: f64 = 0.2;
/// What the threads of an event loop's own pool are called, and how many more than processors they are,
/// and at most (`ThreadPoolExecutor` in `Lib/concurrent/futures/thread.py`). It starts one
/// only when there is work and all are busy.
const DEFAULT: &str = "asyncio_";
const DEFAULT_MORE: usize = 4;
const DEFAULT_MOST: usize = 32;

/// The pool that was longest exhausted. A pool whose threads wait for the results of another one is
/// not where the work stands still, as long as there is that other one.
pub fn find(sight: &Sight) -> Option<Advice> {
    let all = groups(&sight.gil.threads);
    let pools = all.into_iter().filter_map(|group| Pool::of(sight, &group.threads));
    // More threads than those would have as little to do.
    let pools = pools.filter(|it| it.computes || !it.has_room(sight));
    let pool = pools.max_by(|a, b| {
        b.waits_for_results().cmp(&a.waits_for_results()).then(a.known_s.total_cmp(&b.known_s))
    })?;
    Some(match pool.worst.off.what {
        _ if pool.computes => pool.busy(sight),
        What::Lock => pool.at_lock(sight),
        _ => pool.exhausted(sight),
    })
}

struct Pool<'a> {
    threads: Vec<usize>,
    /// What its threads lived, summed.
    lived_s: f64,
    /// The part of it of which is known what they did.
    known_s: f64,
    /// They waited for work, as far as that is known.
    idle_s: f64,
    /// The time in which the pool had no work yet, or none any more. It counts for none of the above.
    unused_s: f64,
    /// Whether they computed without the GIL, instead of waiting for something.
    computes: bool,
    /// How long they wanted to run: they had the GIL, or computed without it.
    wanted_s: f64,
    /// How long they ran; `None` if that is not known of all.
    cpu_s: Option<f64>,
    /// The line in which they were longest, with the thread that was there longest.
    worst: Seen<'a>,
    worst_s: f64,
    worst_times: u64,
}

impl<'a> Pool<'a> {
    /// These threads, if they are those of a pool that is exhausted.
    fn of(sight: &Sight<'a>, threads: &[(usize, &'a ThreadReport)]) -> Option<Self> {
        let workers: Vec<_> = threads.iter().filter(|(_, thread)| is_worker(thread)).collect();
        if workers.is_empty() {
            return None;
        }
        let mut places: Vec<usize> = workers.iter().map(|(place, _)| *place).collect();
        places.sort_unstable();
        let seen = || sight.seen().filter(|seen| places.contains(&seen.thread));
        let at_work =
            || seen().filter(|seen| seen.off.what != What::Idle && line(seen.off).is_some());
        let sum_s = |is_it: &dyn Fn(&OffGil) -> bool| -> f64 {
            at_work().filter(|seen| is_it(seen.off)).map(|seen| seen.off.total_s).sum()
        };
        let idle_s: f64 =
            seen().filter(|seen| seen.off.what == What::Idle).map(|seen| seen.off.total_s).sum();
        let computed_s = sum_s(&|off| off.what == What::Computing);
        let waited_s = sum_s(&|off| off.what != What::Computing);
        let held_s: f64 = workers.iter().map(|(_, thread)| thread.held_s).sum();
        let lined_up_s: f64 = workers.iter().map(|(_, thread)| thread.waited_s).sum();
        let lived_s: f64 = workers.iter().map(|(_, thread)| sight.life_s(thread)).sum();
        let reports: Vec<_> = workers.iter().map(|(_, thread)| *thread).collect();
        let unused_s = unused_s(sight, &reports) * workers.len() as f64;
        let (lived_s, idle_s) = (lived_s - unused_s, (idle_s - unused_s).max(0.0));
        // Samples may add up to a little more than there was.
        let known_s = (idle_s + computed_s + waited_s + held_s + lined_up_s).min(lived_s);
        let computes = computed_s >= PART * known_s;
        // Threads that compute with the GIL are at work, too; that is not about what they wait for.
        // Those that each did one thing, and ended, are none of a pool.
        let is_pool = lived_s >= LEAST_S * workers.len() as f64;
        let is_exhausted = is_pool
            && known_s >= LEAST_S.max(KNOWN * lived_s)
            && idle_s < IDLE * known_s
            && (computes || waited_s >= PART * known_s);
        if !is_exhausted {
            return None;
        }
        // What they mostly did is told, and not a line that happens to be longer.
        let of_it = || at_work().filter(|seen| (seen.off.what == What::Computing) == computes);
        let same = |a: &OffGil, b: &OffGil| a.what == b.what && line(a) == line(b);
        let there_s = |of: &OffGil| sum_s(&|off| same(off, of));
        let worst = of_it().max_by(|a, b| {
            there_s(a.off).total_cmp(&there_s(b.off)).then(a.off.total_s.total_cmp(&b.off.total_s))
        })?;
        let there = of_it().filter(|seen| same(seen.off, worst.off));
        Some(Self {
            lived_s,
            known_s,
            idle_s,
            unused_s,
            computes,
            wanted_s: held_s + computed_s,
            cpu_s: workers.iter().map(|(_, thread)| thread.cpu_s).sum(),
            worst_s: there_s(worst.off),
            worst_times: there.map(|seen| seen.off.gaps + seen.off.samples).sum(),
            worst,
            threads: places,
        })
    }

    /// Whether it may still start threads, or found its queue empty again and again: then no work waits
    /// for a thread.
    fn has_room(&self, sight: &Sight) -> bool {
        let threads = || self.threads.iter().map(|&place| sight.thread(place));
        let is_default = threads().all(|it| it.name.starts_with(DEFAULT));
        let usable = sight.process.processors.map_or(1, |it| it.allowed as usize);
        let is_small = is_default && self.threads.len() < (usable + DEFAULT_MORE).min(DEFAULT_MOST);
        is_small || self.found_empty(sight)
    }

    /// Whether its threads slept for work at the lock of their queue, three times each or more, and more
    /// than once a second. Conditions, events and results have a lock for each thread that waits.
    fn found_empty(&self, sight: &Sight) -> bool {
        let tids = sight.tids(&self.threads);
        let rows = || sight.process.lock_waits.iter().filter(|row| tids.contains(&row.tid));
        let shared = rows().filter(|row| {
            let others = || rows().filter(|it| it.tid != row.tid);
            !row.contended && row.lock.is_some() && others().any(|it| it.lock == row.lock)
        });
        let slept: u64 = shared.map(|row| row.count).sum();
        slept >= 3 * self.threads.len() as u64 && slept as f64 >= self.known_s
    }

    /// Its threads wait for something in their work: more of them could do more.
    fn exhausted(&self, sight: &Sight) -> Advice {
        let threads: Vec<_> = self.threads.iter().map(|&place| sight.thread(place)).collect();
        let command = root(sight.report, sight.process);
        let text = format!("{} is exhausted: {}", self.name(sight), self.did());
        let mut evidence = self.evidence(sight);
        let waiting = sight
            .seen()
            .filter(|seen| waits_for_result(seen.off) && !self.threads.contains(&seen.thread));
        let waiting = waiting.max_by(|a, b| a.off.total_s.total_cmp(&b.off.total_s));
        if let Some(seen) = waiting {
            evidence.push(sight.evidence(seen, "another thread waited for a result"));
        }
        let (sure, who) = if self.waits_for_results() {
            (Sure::Medium, ", nor who works on what they wait for")
        } else {
            (Sure::High, "")
        };
        sight.not_the_gil(Cause::ExhaustedPool, &self.threads, Told {
            text,
            frame: line(self.worst.off).cloned(),
            code: Some(more_threads(
                &threads,
                threads.len(),
                &command.argv,
                &sight.gil.threads,
            )),
            sure,
            because: format!(
                "a thread without work waits for some, and these rarely did; the trace does not \
                 show the queue of the pool{who}"
            ),
            evidence,
        })
    }

    /// Its threads wait for a lock: more of them would do so, too.
    fn at_lock(&self, sight: &Sight) -> Advice {
        let past = past_lock::find(sight, self.worst.off, self.worst_s, self.threads.len());
        let holder = last_holder::find(sight.process, &sight.tids(&self.threads), self.worst_s);
        let text = format!(
            "{} waits for a lock: {}; more threads would wait for it, too{}{}",
            self.name(sight),
            self.did(),
            holder.as_ref().map_or("", |it| &it.clause),
            past.map_or_else(String::new, |it| it.clause),
        );
        sight.not_the_gil(
            Cause::Lock,
            &self.threads,
            Told {
                text,
                frame: line(self.worst.off).cloned(),
                code: past_lock::code(sight, self.worst.off).map(str::to_owned),
                sure: Sure::Medium,
                because: format!(
                    "these threads rarely waited for work; the trace does not show {}",
                    if holder.is_some() { SINCE_WHEN } else { "which thread held the lock" }
                ),
                evidence: self
                    .evidence(sight)
                    .into_iter()
                    .chain(holder.map(|it| it.evidence))
                    .collect(),
            },
        )
    }

    /// Whether its threads mostly wait for what others work on.
    fn waits_for_results(&self) -> bool {
        waits_for_result(self.worst.off)
    }

    /// Its threads compute side by side: that takes processors, and not threads.
    fn busy(&self, sight: &Sight) -> Advice {
        let lacked = self.cpu_s.filter(|cpu_s| *cpu_s < RAN * self.wanted_s);
        let (why, sure, because) = match (self.cpu_s, lacked) {
            (_, Some(cpu_s)) => (
                format!(
                    "they got a processor for only {} in which they wanted one, so more threads \
                     would not help",
                    words::part(cpu_s, self.wanted_s),
                ),
                Sure::High,
                "the kernel counts for how long a thread runs, and these rarely waited for anything",
            ),
            (Some(cpu_s), None) => kept_busy(sight, cpu_s / self.time_s(sight)),
            (None, None) => (
                "so more threads help only if processors are free".to_owned(),
                Sure::Medium,
                "these threads rarely waited for anything; the trace shows neither for how long \
                 they ran nor how many processors were free",
            ),
        };
        let text = format!("{} computes: {}; {why}", self.name(sight), self.did());
        let mut evidence = self.evidence(sight);
        let wanted = "time that they wanted to run, summed";
        evidence.push(Evidence::made(wanted, self.wanted_s, Unit::Seconds));
        let ran = |cpu_s| Evidence::made("time that they ran, summed", cpu_s, Unit::Seconds);
        evidence.extend(self.cpu_s.map(ran));
        evidence.extend(sight.process.processors.map(|it| {
            let what = "processors that the program may use";
            Evidence::made(what, it.usable(), Unit::Count)
        }));
        sight.not_the_gil(
            Cause::Computing,
            &self.threads,
            Told {
                text,
                frame: line(self.worst.off).cloned(),
                code: None,
                sure,
                because: because.to_owned(),
                evidence,
            },
        )
    }

    /// `the pool img`, by the names of its threads; where these say nothing, by what they are.
    fn name(&self, sight: &Sight) -> String {
        let thread = sight.thread(self.threads[0]);
        let number = thread.name.strip_prefix("Thread-");
        let is_unnamed = number.is_some_and(|it| it.chars().all(|it| it.is_ascii_digit()));
        let class = class_of(thread).filter(|_| is_unnamed);
        class.unwrap_or_else(|| named(&thread.name))
    }

    /// For how long it had threads and work.
    fn time_s(&self, sight: &Sight) -> f64 {
        let threads = || self.threads.iter().map(|&place| sight.thread(place));
        let start_s = threads().map(|thread| thread.started_s).fold(f64::INFINITY, f64::min);
        let ends_s = threads().map(|thread| thread.started_s + sight.life_s(thread));
        let unused_s = self.unused_s / self.threads.len() as f64;
        ends_s.fold(0.0, f64::max) - start_s - unused_s
    }

    /// What its threads did instead of waiting for work.
    fn did(&self) -> String {
        let (threads, they) = match self.threads.len() {
            1 => ("only thread".to_owned(), "it"),
            many => (words::count(many as u64, "thread"), "they"),
        };
        let summed = if self.threads.len() > 1 { ", summed over them" } else { "" };
        let waited = if self.idle_s > 0.0 {
            format!("waited for work for only {}", words::part(self.idle_s, self.known_s))
        } else {
            format!("never waited for work in {}", words::length(self.known_s))
        };
        let between = if self.unused_s > 0.0 { " while the pool had work" } else { "" };
        format!(
            "its {threads} {waited}{between}{summed}; instead {they} {} at {}, {} in {} in all",
            doing(self.worst.off),
            at(self.worst.off),
            words::length(self.worst_s),
            words::count(self.worst_times, "look"),
        )
    }

    fn evidence(&self, sight: &Sight) -> Vec<Evidence> {
        let made = |what: &str, value| Evidence::made(what, value, Unit::Seconds);
        let mut evidence = vec![
            made("time that its threads were at that line, summed", self.worst_s),
            made("observed time of its threads, summed", self.known_s),
            made("lifetime of its threads, summed", self.lived_s + self.unused_s),
            made("time that they waited for work, summed", self.idle_s + self.unused_s),
            sight.evidence(self.worst, "time of the thread that was there longest"),
        ];
        if self.unused_s > 0.0 {
            let what = "part of it before the first and after the last piece of work, summed";
            evidence.insert(4, made(what, self.unused_s));
        }
        evidence
    }
}

/// Whether more threads would find a processor, where those of a pool kept so many busy.
fn kept_busy(sight: &Sight, busy: f64) -> (String, Sure, &'static str) {
    let Some(usable) = usable(sight.process) else {
        let why = format!(
            "they kept {} processors busy on average, so more threads help only if more than \
             these are free",
            rounded(busy)
        );
        let because = "these threads rarely waited for anything; the trace does not show how \
                       many processors were free";
        return (why, Sure::Medium, because);
    };
    let kept = format!(
        "they kept {} processors busy on average, and the program may use {}",
        rounded(busy),
        words::processors(usable),
    );
    if busy >= BUSY * usable {
        let because = "these threads rarely waited for anything, and left next to no processor";
        return (format!("{kept}, so more threads would not help"), Sure::High, because);
    }
    let why = format!("{kept}, so more threads can do more, if other programs leave the rest");
    let because = "these threads rarely waited for anything; the trace does not show what other \
                   programs did with the processors";
    (why, Sure::Medium, because)
}

/// A number of processors: no more digits than it is worth.
fn rounded(processors: f64) -> String {
    format!("{processors:.1}")
}

/// `the pool of WorkerThreads of dramatiq`, by the class of the thread, where frames tell it.
fn class_of(thread: &ThreadReport) -> Option<String> {
    let frame = thread.off_gil.iter().find_map(loop_of)?;
    let class = frame.split(" (").next()?.strip_suffix(".run")?;
    match Origin::of(file_of(frame)) {
        Origin::Package(package) if !class.contains('.') => {
            Some(format!("the pool of {class}s of {package}"))
        }
        _ => None,
    }
}

/// What a pool is called whose threads have such names: `the pool img` of `img_1`.
fn named(thread: &str) -> String {
    let stem = thread.trim_end_matches(|it: char| it.is_ascii_digit());
    let stem =
        if stem.len() < thread.len() { stem.trim_end_matches(['-', '_', ' ', '#']) } else { stem };
    if let Some(rest) = thread.strip_prefix("Thread-") {
        let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        return format!("the pool of threads Thread-*{rest}");
    }
    if stem.is_empty() {
        return format!("the pool of {thread}");
    }
    if stem.to_lowercase().ends_with("thread") {
        return format!("the pool of {stem}s");
    }
    format!("the pool {stem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_called_by_what_its_threads_have_in_common() {
        for (thread, pool) in [
            ("ThreadPoolExecutor-0_1", "the pool ThreadPoolExecutor-0"),
            ("img_1", "the pool img"),
            ("waitress-3", "the pool waitress"),
            ("worker", "the pool worker"),
            ("AnyIO worker thread", "the pool of AnyIO worker threads"),
            ("CP Server Thread-7", "the pool of CP Server Threads"),
            ("Trio thread 3", "the pool of Trio threads"),
            ("Thread-2 (worker)", "the pool of threads Thread-* (worker)"),
            ("7", "the pool of 7"),
        ] {
            assert_eq!(named(thread), pool);
        }
    }
}
