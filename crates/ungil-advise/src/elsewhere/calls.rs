//! Calls in which threads waited for something else: a lock, the disk, the network, a sleep.

use super::behind_lock;
use super::last_holder::{self, SINCE_WHEN};
use super::past_lock::{self, Past};
use super::sight::{Seen, Sight, Sum, Told, at, doing, how_often, in_all, line, sleeps};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use ungil_trace::analysis::words;
use ungil_trace::report::{LockReport, OffGil, ThreadReport, What};

/// What takes less than this part (of 1) of the time is not what a program waits for.
const PART: f64 = 0.2;
/// What is over in less is no incident.
const LEAST_S: f64 = 0.2;
/// A thread that is in one gap for so much (of 1) of the time has nothing else to do.
const REST: f64 = 0.75;
/// A package's own thread that holds the GIL for less than this part (of 1) of its life does nothing
/// but to sleep and to look.
const LOOKS: f64 = 0.05;
/// One that ran for less than this part (of 1) of the time that it seemed to run did not want to.
const HARDLY: f64 = 0.2;
/// Threads that got less than this part (of 1) of the time they wanted to run lacked processors.
pub const RAN: f64 = 0.8;
/// One that slept this part (of 1) as often as it let go of the GIL does so to sleep.
const SLEPT: f64 = 0.8;

/// A line that takes this part (of 1) of the life of its threads comes before threads that poll.
const MOST: f64 = 0.5;

/// What is told of a line.
pub struct Call {
    pub advice: Advice,
    /// Whether its threads spent most of their life in waits there.
    pub takes_most: bool,
    /// Whether they slept there as the program says, or had nothing to do.
    pub rests: bool,
}

/// The worst line of each cause that matters, worst first, and last those at which threads rest.
/// `told` are lines of which was told already. `has_children` says that the process has started others
/// that compute: to wait for a process is to wait for those then.
pub fn find(sight: &Sight, told: &[String], has_children: bool) -> Vec<Call> {
    lines(sight, told, has_children, |thread| !keeps_house(sight, thread))
}

/// The same of threads with which packages keep house. Nobody waits for these; but a program may be
/// run by a package alone, or work in a package's thread.
pub fn of_housekeepers(sight: &Sight, has_children: bool) -> Vec<Call> {
    lines(sight, &[], has_children, |thread| keeps_house(sight, thread))
}

/// Whether a thread is one of a package that only sleeps, and looks now and then whether there is
/// something to do: the user's code was never seen there.
fn keeps_house(sight: &Sight, thread: &ThreadReport) -> bool {
    // A look may find it on its way to sleep.
    let sleeps_there = |off: &OffGil| {
        let longer = |it: &OffGil| it.what == What::Sleep && it.total_s > off.total_s;
        thread.off_gil.iter().any(|it| it.frame == off.frame && longer(it))
    };
    let sleeps = |off: &OffGil| match off.what {
        What::Idle | What::Thread | What::Lock | What::Sleep | What::Descriptor => true,
        What::Computing => sleeps_there(off),
        What::Unknown => off.stack.is_empty(),
        What::Disk | What::Network | What::Process => false,
    };
    let is_users = !thread.held_in.is_empty()
        || thread.off_gil.iter().any(|off| off.user_frame.is_some() || !sleeps(off));
    !is_users && thread.held_s - thread.startup_held_s < LOOKS * sight.life_s(thread)
}

fn lines<'a>(
    sight: &Sight<'a>,
    told: &[String],
    has_children: bool,
    is_meant: impl Fn(&ThreadReport) -> bool,
) -> Vec<Call> {
    let meant: Vec<bool> = sight.gil.threads.iter().map(is_meant).collect();
    let rest_ms = REST * sight.busy_s() * 1e3;
    let mut lines: Vec<Line<'a>> = Vec::new();
    for seen in sight.seen().filter(|seen| meant[seen.thread]) {
        let Some((cause, frame)) = cause_of(seen.off.what).zip(line(seen.off)) else { continue };
        if told.contains(frame) || (cause == Cause::Process && has_children) {
            continue;
        }
        let rests = cause != Cause::Computing && seen.off.longest_ms >= rest_ms;
        if let Some(line) = lines.iter_mut().find(|it| it.cause == cause && it.frame == frame) {
            line.add(seen, rests);
        } else {
            let threads = vec![seen.thread];
            lines.push(Line { cause, frame, threads, sum: Sum::of(seen), rests });
        }
    }
    lines.sort_by(|a, b| b.sum.total_s.total_cmp(&a.sum.total_s));
    lines.sort_by_cached_key(|line| (line.rests, !line.holds_all_up(sight)));
    // Where threads mostly wait, a look finds one now and then that is on its way to that.
    let waits: Vec<_> = lines.iter().map(|it| (it.cause, it.frame, it.sum.total_s)).collect();
    lines.retain(|line| {
        let waits_there = |(cause, frame, total_s): &(Cause, &String, f64)| {
            *cause != Cause::Computing && *frame == line.frame && *total_s > line.sum.total_s
        };
        let is_on_its_way = line.cause == Cause::Computing && waits.iter().any(waits_there);
        !is_on_its_way
            && !line.naps(sight)
            && line.sum.total_s >= LEAST_S.max(PART * sight.busy_s())
    });
    // What was done with a lock is told with the waits for it.
    let pasts: Vec<_> = lines.iter().map(|line| line.past(sight)).collect();
    let is_told = |(number, line): (usize, &Line)| {
        lines.iter().zip(&pasts).enumerate().any(|(other, (lock, past))| {
            let frame = past.as_ref().and_then(|past| past.frame);
            let is_there = other != number && frame == Some(line.frame);
            is_there && line.sum.total_s <= lock.sum.total_s
        })
    };
    let told: Vec<bool> = lines.iter().enumerate().map(is_told).collect();
    let untold = lines.into_iter().zip(pasts).zip(told).filter(|(_, is_told)| !is_told);
    let calls = untold.map(|((line, past), _)| Call {
        takes_most: line.takes_most(sight),
        rests: line.rests || line.cause == Cause::Sleep,
        advice: line.advice(sight, past.as_ref()),
    });
    calls.collect()
}

/// A line of Python in which threads waited.
struct Line<'a> {
    cause: Cause,
    frame: &'a String,
    threads: Vec<usize>,
    sum: Sum<'a>,
    /// Whether each of its threads is there in one gap for nearly all of the time: a main thread
    /// that sleeps while others work.
    rests: bool,
}

impl<'a> Line<'a> {
    fn add(&mut self, seen: Seen<'a>, rests: bool) {
        self.rests &= rests;
        if !self.threads.contains(&seen.thread) {
            self.threads.push(seen.thread);
        }
        self.sum.add(seen);
    }

    /// How long the kernel ran its threads at that line, at most: as long as it ran them at all.
    /// `None` for a line at which they did not want to run, and if it is not known of all of them.
    fn ran_s(&self, sight: &Sight) -> Option<f64> {
        if self.cause != Cause::Computing {
            return None;
        }
        // A thread that had the GIL ran.
        let ran_s = |&place: &usize| sight.thread(place).cpu_s.filter(|cpu_s| *cpu_s > 0.0);
        self.threads.iter().map(ran_s).sum()
    }

    /// Whether its threads sleep there for moments, so short that a look shows the line only of one
    /// that is awake: they seem to compute, and the kernel hardly ran them.
    fn naps(&self, sight: &Sight) -> bool {
        let is_nap = |off: &OffGil| off.what == What::Sleep && off.frame.is_none();
        let may_nap = |&place: &usize| {
            let thread = sight.thread(place);
            thread.off_gil.iter().any(is_nap) || sleeps_off_the_gil(thread)
        };
        let ran_s = self.ran_s(sight).filter(|ran_s| *ran_s < HARDLY * self.sum.total_s);
        ran_s.is_some() && self.threads.iter().all(may_nap)
    }

    /// Whether its threads spend most of their life in waits there.
    fn takes_most(&self, sight: &Sight) -> bool {
        let waits =
            matches!(self.cause, Cause::Lock | Cause::Disk | Cause::Network | Cause::Process);
        let lives_s = self.threads.iter().map(|&place| sight.life_s(sight.thread(place)));
        waits && !self.rests && self.sum.total_s >= MOST * lives_s.sum::<f64>()
    }

    /// The lock for which it is a wait, if that is known.
    fn lock(&self, sight: &Sight<'a>) -> Option<&'a LockReport> {
        let find = || behind_lock::lock_of(sight, &self.threads, self.sum.total_s);
        if self.cause == Cause::Lock { find() } else { None }
    }

    /// Whether it is a wait for a lock for which somebody waits nearly all of the time.
    fn holds_all_up(&self, sight: &Sight<'a>) -> bool {
        self.lock(sight).is_some_and(|lock| behind_lock::is_always_waited_for(sight, lock))
    }

    /// What threads did that had the lock, or had got past the line, if it is a wait for one.
    fn past(&self, sight: &Sight<'a>) -> Option<Past<'a>> {
        let Sum { worst, total_s, .. } = self.sum;
        let behind = || self.lock(sight).and_then(behind_lock::find);
        let past = || past_lock::find(sight, worst.off, total_s, self.threads.len());
        if self.cause == Cause::Lock { behind().or_else(past) } else { None }
    }

    fn advice(mut self, sight: &Sight, past: Option<&Past>) -> Advice {
        let Self { cause, sum: Sum { worst, total_s, gaps, samples, longest_ms }, .. } = self;
        let ran_s = self.ran_s(sight).filter(|ran_s| *ran_s < RAN * total_s);
        let what = match ran_s {
            None => doing(worst.off),
            Some(_) => "wanted to run without the GIL".to_owned(),
        };
        let got = ran_s.map_or_else(String::new, |ran_s| {
            format!(", and got a processor for {} at most", words::length(ran_s))
        });
        let threads = match self.threads[..] {
            [only] => format!("thread {}", sight.thread(only).name),
            _ => words::count(self.threads.len() as u64, "thread"),
        };
        let find = || last_holder::find(sight.process, &sight.tids(&self.threads), total_s);
        let holder = if cause == Cause::Lock { find() } else { None };
        let lock = self.lock(sight).map(behind_lock::evidence);
        let text = format!(
            "{threads} {what} at {} for {}{}{got}{}{}",
            at(worst.off),
            in_all(total_s, self.threads.len()),
            how_often(gaps, samples, longest_ms),
            holder.as_ref().map_or("", |it| &it.clause),
            past.map_or("", |it| &it.clause),
        );
        let of_lock = past_lock::code(sight, worst.off).filter(|_| cause == Cause::Lock);
        self.threads.sort_unstable();
        sight.not_the_gil(
            cause,
            &self.threads,
            Told {
                text,
                frame: Some(self.frame.clone()),
                code: of_lock.map(str::to_owned),
                sure: Sure::Medium,
                because: format!(
                    "the threads were seen at this line, off the GIL; the trace does not show {}",
                    match cause {
                        Cause::Lock if holder.is_some() => SINCE_WHEN,
                        Cause::Lock if past.is_some() => {
                            "which thread held the lock, but that one had to pass this line"
                        }
                        Cause::Lock => "which thread held the lock",
                        Cause::Network => "what the peer did meanwhile",
                        Cause::Computing if ran_s.is_some() => "what ran in their place",
                        _ => "whether anything waited for them",
                    }
                ),
                evidence: vec![
                    Evidence::made("time of all threads there, summed", total_s, Unit::Seconds),
                    Evidence::made(
                        "looks that found a thread there",
                        (gaps + samples) as f64,
                        Unit::Count,
                    ),
                    sight.evidence(worst, "time of the thread that was there longest"),
                ]
                .into_iter()
                .chain(holder.map(|it| it.evidence))
                .chain(lock)
                .collect(),
            },
        )
    }
}

/// Whether a thread slept about as often as it let go of the GIL.
fn sleeps_off_the_gil(thread: &ThreadReport) -> bool {
    sleeps(thread).is_some_and(|slept| slept as f64 >= SLEPT * thread.voluntary as f64)
}

/// What it is a cause of; a thread that waits for another one, or for work, is none.
fn cause_of(what: What) -> Option<Cause> {
    Some(match what {
        What::Lock => Cause::Lock,
        What::Disk => Cause::Disk,
        What::Network => Cause::Network,
        What::Sleep => Cause::Sleep,
        What::Process => Cause::Process,
        What::Descriptor => Cause::Descriptor,
        What::Computing => Cause::Computing,
        What::Idle | What::Thread | What::Unknown => return None,
    })
}
