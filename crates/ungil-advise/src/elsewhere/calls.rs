//! Calls in which threads waited for something else: a lock, the disk, the network, a sleep.

use super::sight::{Seen, Sight, Sum, Told, at, doing, how_often, in_all, line};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use ungil_trace::analysis::words;
use ungil_trace::report::What;

/// What takes less than this part (of 1) of the time is not what a program waits for.
const PART: f64 = 0.2;
/// What is over in less is no incident.
const LEAST_S: f64 = 0.2;
/// Threads that got less than this part (of 1) of the time they wanted to run lacked processors.
pub const RAN: f64 = 0.8;

/// The worst line of each cause that matters, worst first; `told` are lines of which was told
/// already. `has_children` says that the process has started others that compute: to wait for a
/// process is to wait for those then.
pub fn find(sight: &Sight, told: &[String], has_children: bool) -> Vec<Advice> {
    let mut lines: Vec<Line> = Vec::new();
    for seen in sight.seen() {
        let Some((cause, frame)) = cause_of(seen.off.what).zip(line(seen.off)) else { continue };
        if told.contains(frame) || (cause == Cause::Process && has_children) {
            continue;
        }
        if let Some(line) = lines.iter_mut().find(|it| it.cause == cause && it.frame == frame) {
            line.add(seen);
        } else {
            lines.push(Line { cause, frame, threads: vec![seen.thread], sum: Sum::of(seen) });
        }
    }
    lines.sort_by(|a, b| b.sum.total_s.total_cmp(&a.sum.total_s));
    // Where threads mostly wait, a look finds one now and then that is on its way to that.
    let waits: Vec<_> = lines.iter().map(|it| (it.cause, it.frame, it.sum.total_s)).collect();
    lines.retain(|line| {
        let waits_there = |(cause, frame, total_s): &(Cause, &String, f64)| {
            *cause != Cause::Computing && *frame == line.frame && *total_s > line.sum.total_s
        };
        let is_on_its_way = line.cause == Cause::Computing && waits.iter().any(waits_there);
        !is_on_its_way && line.sum.total_s >= LEAST_S.max(PART * sight.busy_s())
    });
    lines.into_iter().map(|line| line.advice(sight)).collect()
}

/// A line of Python in which threads waited.
struct Line<'a> {
    cause: Cause,
    frame: &'a String,
    threads: Vec<usize>,
    sum: Sum<'a>,
}

impl<'a> Line<'a> {
    fn add(&mut self, seen: Seen<'a>) {
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

    fn advice(mut self, sight: &Sight) -> Advice {
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
        let text = format!(
            "{threads} {what} at {} for {}{}{got}",
            at(worst.off),
            in_all(total_s, self.threads.len()),
            how_often(gaps, samples, longest_ms),
        );
        self.threads.sort_unstable();
        sight.not_the_gil(
            cause,
            &self.threads,
            Told {
                text,
                frame: Some(self.frame.clone()),
                code: None,
                sure: Sure::Medium,
                because: format!(
                    "the threads were seen at this line, off the GIL; the trace does not show {}",
                    match cause {
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
                ],
            },
        )
    }
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
