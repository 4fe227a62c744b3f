//! What can be seen of a process whose threads are off the GIL.

use crate::advice::{Action, Advice, Cause, Confidence, Evidence, Kind, Subject, Sure, Unit};
use crate::functions::{is_packages, short};
use crate::place::GilPlace;
use crate::scene::{HELD, LIMIT_SHARE};
use ungil_trace::analysis::words;
use ungil_trace::report::{GilReport, OffGil, ProcessReport, Report, ThreadReport, What};

/// A process at one of its GILs.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    pub report: &'a Report,
    pub process: &'a ProcessReport,
    pub gil: &'a GilReport,
    pub place: GilPlace,
}

/// What one thread did off the GIL.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The thread's place in the report.
    pub thread: usize,
    /// Its place in `off_gil`.
    pub number: usize,
    pub off: &'a OffGil,
}

/// What was seen at one line, summed.
#[derive(Clone, Copy)]
pub struct Sum<'a> {
    /// What took longest there.
    pub worst: Seen<'a>,
    pub total_s: f64,
    pub gaps: u64,
    pub samples: u64,
    pub longest_ms: f64,
}

impl<'a> Sum<'a> {
    pub fn of(seen: Seen<'a>) -> Self {
        let OffGil { total_s, gaps, samples, longest_ms, .. } = *seen.off;
        Self { worst: seen, total_s, gaps, samples, longest_ms }
    }

    pub fn add(&mut self, seen: Seen<'a>) {
        self.total_s += seen.off.total_s;
        self.gaps += seen.off.gaps;
        self.samples += seen.off.samples;
        self.longest_ms = self.longest_ms.max(seen.off.longest_ms);
        if seen.off.total_s > self.worst.off.total_s {
            self.worst = seen;
        }
    }
}

impl<'a> Sight<'a> {
    /// All of them, in the order of the report. Threads that run without any GIL are not seen: what
    /// they did off it is all that they did.
    pub fn all(report: &'a Report) -> impl Iterator<Item = Self> {
        let processes = report.processes.iter().enumerate();
        let recorded = processes.filter(|(_, process)| process.not_recorded.is_none());
        recorded.flat_map(move |(number, process)| {
            process.gils.iter().enumerate().map(move |(gil, it)| {
                let place = GilPlace { process: number, gil };
                Self { report, process, gil: it, place }
            })
        })
    }

    /// All that its threads did off the GIL, as far as they were looked at.
    pub fn seen(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        self.gil.threads.iter().enumerate().flat_map(|(thread, it)| {
            it.off_gil.iter().enumerate().map(move |(number, off)| Seen { thread, number, off })
        })
    }

    /// The kernel thread ids of those at these places.
    pub fn tids(&self, places: &[usize]) -> Vec<u32> {
        places.iter().map(|place| self.thread(*place).tid).collect()
    }

    pub fn thread(&self, place: usize) -> &'a ThreadReport {
        &self.gil.threads[place]
    }

    /// How long it ran with several threads.
    pub fn busy_s(&self) -> f64 {
        self.process.busy_s().max(1e-9)
    }

    /// How long a thread was seen.
    pub fn life_s(&self, thread: &ThreadReport) -> f64 {
        let end_s = thread.ended_s.unwrap_or(self.process.started_s + self.process.duration_s);
        (end_s - thread.started_s).max(1e-9)
    }

    /// For how long a thread did something off the GIL.
    pub fn evidence(&self, seen: Seen, what: &str) -> Evidence {
        let key = format!("off_gil/{}/total_s", seen.number);
        let pointer = self.place.thread_key(seen.thread, &key);
        Evidence::at(what, seen.off.total_s, Unit::Seconds, pointer)
    }

    /// What all threads that are listed waited for the GIL.
    pub fn waited_s(&self) -> f64 {
        self.gil.threads.iter().map(|thread| thread.waited_s).sum()
    }

    /// How busy the GIL was meanwhile.
    pub fn gil_evidence(&self) -> [Evidence; 2] {
        let key = self.place.gil_key("contended_s");
        [
            Evidence::at(
                "time that the GIL was contended",
                self.gil.contended_s,
                Unit::Seconds,
                key,
            ),
            Evidence::made("waits of all threads for it, summed", self.waited_s(), Unit::Seconds),
        ]
    }

    fn contended_share(&self) -> f64 {
        (self.gil.contended_s / self.busy_s()).min(1.0)
    }

    /// Whether threads waited for this GIL for so much of the time that it may well be the GIL.
    pub fn is_contended(&self) -> bool {
        self.contended_share() > LIMIT_SHARE
    }

    /// `; the GIL was contended 1 % of the time`.
    pub fn gil_clause(&self) -> String {
        let share = words::percent(self.contended_share());
        format!("; the GIL was contended for {share} of that time")
    }

    /// The part (of 1) of the time for which threads had it.
    fn held_share(&self) -> f64 {
        (self.gil.busy_held_s() / self.busy_s()).min(1.0)
    }

    /// Whether threads that wait for a lock would wait for the GIL without it.
    pub fn is_held(&self) -> bool {
        self.held_share() >= HELD
    }

    /// `, and held for 93 %: …`, if that is so.
    fn held_clause(&self, cause: Cause) -> String {
        if cause != Cause::Lock || !self.is_held() {
            return String::new();
        }
        let share = words::percent(self.held_share());
        format!(
            ", and held for {share}: without the lock, threads would wait for the GIL, \
             and only other processes for neither"
        )
    }

    /// Advice that it is not the GIL, or not only the GIL. `text` says what it is.
    pub fn not_the_gil(&self, cause: Cause, threads: &[usize], told: Told) -> Advice {
        let process = match self.report.processes.len() {
            0 | 1 => String::new(),
            _ => format!(" of pid {}", self.process.pid),
        };
        let groups = crate::groups::groups(&self.gil.threads);
        let begins =
            if self.is_contended() { "it is not only the GIL" } else { "it is not the GIL" };
        let is_it = |group: &crate::groups::Group| {
            group.threads.len() == threads.len()
                && group.threads.iter().all(|(place, _)| threads.contains(place))
        };
        let group = groups.into_iter().find(is_it).map(|group| group.pattern);
        Advice {
            kind: Kind::NotTheGil,
            cause: Some(cause),
            text: format!(
                "{begins}{process}: {}{}{}",
                told.text,
                self.gil_clause(),
                self.held_clause(cause)
            ),
            subject: Subject {
                pid: Some(self.process.pid),
                gil: Some(self.gil.gil),
                threads: threads.iter().map(|&place| self.thread(place).tid).collect(),
                thread_group: group.filter(|pattern| !pattern.is_empty()),
                function: told.frame,
            },
            action: Action { code: told.code, ..Action::default() },
            gain: None,
            confidence: Confidence { level: told.sure, because: told.because },
            evidence: told.evidence.into_iter().chain(self.gil_evidence()).collect(),
            same_as: None,
        }
    }
}

/// How often a thread slept, and not for a GIL, by the count of the kernel; `None` if that is not known.
/// Who wants a processor and gets none does not sleep.
pub fn sleeps(thread: &ThreadReport) -> Option<u64> {
    let slept = thread.context_switches.map(|it| it.voluntary).filter(|it| *it > 0)?;
    Some(slept.saturating_sub(thread.waits.count + thread.drop_requests))
}

/// What is told of a cause.
pub struct Told {
    pub text: String,
    pub frame: Option<String>,
    pub code: Option<String>,
    pub sure: Sure,
    pub because: String,
    pub evidence: Vec<Evidence>,
}

/// The line that led to it: the user's own, else the innermost one.
pub fn line(off: &OffGil) -> Option<&String> {
    off.user_frame.as_ref().or(off.frame.as_ref())
}

/// `handle (app/views.py:12), in readinto (lib/socket.py:5)`.
pub fn at(off: &OffGil) -> String {
    at_line(off.user_frame.as_ref(), off.frame.as_ref())
}

/// The same of the user's line and the innermost one.
pub fn at_line(user_frame: Option<&String>, frame: Option<&String>) -> String {
    match (user_frame, frame) {
        (Some(user), Some(frame)) if user != frame => {
            format!("{}, in {}", short(user), short(frame))
        }
        (Some(frame), _) | (None, Some(frame)) => short(frame),
        (None, None) => "an unknown line".to_owned(),
    }
}

/// ` in 7 looks, the longest time for 1.2 s`: how often that was seen. What was sampled has no length.
pub fn how_often(gaps: u64, samples: u64, longest_ms: f64) -> String {
    let looks = words::count(gaps + samples, "look");
    match gaps {
        0 => format!(" in {looks}"),
        _ => format!(" in {looks}, the longest {}", words::length(longest_ms / 1e3)),
    }
}

/// ` in all`, or of several threads ` summed over them`, behind a length.
pub fn in_all(total_s: f64, threads: usize) -> String {
    match threads {
        1 => format!("{} in all", words::length(total_s)),
        _ => words::summed(total_s, threads as u64),
    }
}

/// What a thread did, as the end of `it …`.
pub fn doing(off: &OffGil) -> String {
    did(off.what, &off.call, off.frame.as_deref())
}

/// The same of a call at a line.
pub fn did(what: What, call: &str, frame: Option<&str>) -> String {
    let call = match call {
        "" | "computing" => String::new(),
        call => format!(" ({call})"),
    };
    let what = match what {
        What::Idle => "waited for work",
        What::Thread => "waited for another thread",
        // Its compiled code sleeps for threads of its own as one sleeps for a lock.
        What::Lock if frame.is_some_and(is_packages) => {
            "waited for a lock or for native code of other threads"
        }
        What::Lock => "waited for a lock",
        What::Sleep => "slept",
        What::Network => "waited for the network",
        What::Disk => "waited for the disk",
        What::Process => "waited for another process",
        What::Descriptor => "waited for a descriptor",
        What::Computing => "ran without the GIL, in native code or in the kernel",
        What::Unknown => "was off the GIL",
    };
    format!("{what}{call}")
}
