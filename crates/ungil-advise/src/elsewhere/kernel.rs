//! The kernel: a CPU limit, or another program that has the processors.

use crate::advice::{Action, Advice, Cause, Confidence, Evidence, Kind, Subject, Sure, Unit};
use crate::place::{GilPlace, finding_key};
use std::collections::BTreeSet;
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, Finding, ProcessReport, Report};

/// A CPU limit that stops a process for this part (of 1) of its life is felt.
const PART: f64 = 0.1;

/// It comes first where it explains this part (of 1) of all waits for the GIL.
const MOST: f64 = 0.5;

/// What the kernel did to threads that wanted to run.
pub struct Stopped {
    pub advice: Advice,
    /// The time that threads lost by it, summed.
    pub lost_s: f64,
    /// Whether it explains most of the waits for the GIL, or more than these.
    pub explains_most: bool,
}

impl Stopped {
    /// Whatever the threads of a process did, a limit stopped all of them.
    fn as_a_whole(advice: Advice) -> Self {
        Self { advice, lost_s: f64::INFINITY, explains_most: true }
    }
}

/// What that is; `gil_is_limit` if threads waited for one that the kernel ran, too.
pub fn find(report: &Report, gil_is_limit: bool) -> Option<Stopped> {
    let begins = if gil_is_limit { "it is not only the GIL" } else { "it is not the GIL" };
    of_finding(report, begins).or_else(|| of_limit(report, begins))
}

/// The costliest of the findings that say so, with the time of those that say the same of other
/// processes.
fn of_finding(report: &Report, begins: &str) -> Option<Stopped> {
    report.findings.iter().enumerate().find_map(|(number, finding)| {
        let (told, lost_s) = match finding.evidence {
            Found::Descheduled { limited, .. } => {
                let all = NotRun::of(report, limited);
                (holders_not_run(number, &all, limited), all.not_run_s + all.waited_s)
            }
            Found::LateWakeups { unheld_s, wanting, used, are_its_own, .. } => {
                (woken_not_run(number, unheld_s, wanting, used, are_its_own), unheld_s)
            }
            _ => return None,
        };
        let explains_most = explains_most(finding);
        if told.cause == Cause::CpuLimit && stopped(report).is_some() {
            return Some(Stopped::as_a_whole(told.advice(finding, begins)));
        }
        Some(Stopped { advice: told.advice(finding, begins), lost_s, explains_most })
    })
}

/// Whether a finding says of most of the waits for a GIL that the kernel did not run threads then.
pub fn explains_most(finding: &Finding) -> bool {
    match finding.evidence {
        Found::LateWakeups { unheld_s, waited_s, .. } => unheld_s >= MOST * waited_s,
        Found::Descheduled { waited_s, .. } => finding.cost_s >= MOST * waited_s,
        _ => false,
    }
}

/// What a finding says, and what that rests on.
struct Told {
    cause: Cause,
    what: String,
    because: &'static str,
    evidence: Vec<Evidence>,
}

impl Told {
    fn advice(self, finding: &Finding, begins: &str) -> Advice {
        Advice {
            kind: Kind::NotTheGil,
            cause: Some(self.cause),
            text: format!("{begins}: {}", self.what),
            subject: Subject {
                pid: finding.pid,
                gil: finding.gil,
                threads: finding.threads.clone(),
                thread_group: None,
                function: None,
            },
            action: Action::default(),
            gain: None,
            confidence: Confidence { level: Sure::High, because: self.because.to_owned() },
            evidence: self.evidence,
            same_as: None,
        }
    }
}

/// What the kernel did not run of holders of all GILs for the same reason.
struct NotRun {
    not_run_s: f64,
    /// What others waited for them meanwhile.
    waited_s: f64,
    findings: usize,
    pids: BTreeSet<Option<u32>>,
}

impl NotRun {
    fn of(report: &Report, is_limited: bool) -> Self {
        let mut all = Self { not_run_s: 0.0, waited_s: 0.0, findings: 0, pids: BTreeSet::new() };
        for finding in &report.findings {
            match finding.evidence {
                Found::Descheduled { not_run_s, limited, .. } if limited == is_limited => {
                    all.not_run_s += not_run_s;
                    all.waited_s += finding.cost_s;
                    all.findings += 1;
                    all.pids.insert(finding.pid);
                }
                _ => {}
            }
        }
        all
    }

    /// ` in all`, or ` summed over 40 processes`, behind a length.
    fn in_all(&self) -> String {
        match self.pids.len() {
            0 | 1 => format!("{} in all", words::length(self.not_run_s)),
            many => format!("{} summed over {many} processes", words::length(self.not_run_s)),
        }
    }
}

fn holders_not_run(number: usize, all: &NotRun, limited: bool) -> Told {
    let told = |what: &str, value, key| {
        let pointer = (all.findings == 1).then(|| finding_key(number, key));
        Evidence { what: what.to_owned(), value, unit: Unit::Seconds, pointer }
    };
    let (cause, what) = if limited {
        (Cause::CpuLimit, "a CPU limit stopped the process while threads held the GIL")
    } else {
        (Cause::Descheduled, "something else ran on the processors while threads held the GIL")
    };
    Told {
        cause,
        what: format!("{what}, {}", all.in_all()),
        because: "the kernel counts how long it does not run a thread, and how long a limit stops \
                  it",
        evidence: vec![
            told("time that the kernel did not run holders of the GIL", all.not_run_s, "not_run_s"),
            told("waits of other threads for the GIL meanwhile, summed", all.waited_s, "cost_s"),
        ],
    }
}

fn woken_not_run(
    number: usize,
    unheld_s: f64,
    wanting: f64,
    used: Option<f64>,
    are_its_own: bool,
) -> Told {
    let at = |what, value, unit, key| Evidence::at(what, value, unit, finding_key(number, key));
    let mut evidence = vec![
        at("waits while nobody had the GIL, summed", unheld_s, Unit::Seconds, "unheld_s"),
        at("threads that wanted to run", wanting, Unit::Count, "wanting"),
    ];
    evidence
        .extend(used.map(|used| at("processors that the process used", used, Unit::Count, "used")));
    Told {
        cause: Cause::LateWakeups,
        what: format!(
            "threads that were woken for the GIL waited for a processor, and nobody had the GIL for \
             {} of their waits; {}",
            words::length(unheld_s),
            words::fewer_threads(are_its_own),
        ),
        because: "the events tell when nobody has the GIL, but not what ran on the processors then",
        evidence,
    }
}

/// A limit under which nobody waited for the GIL: the process as a whole stood still.
fn of_limit(report: &Report, begins: &str) -> Option<Stopped> {
    let (number, process) = stopped(report)?;
    let throttled = process.throttled?;
    let place = GilPlace { process: number, gil: 0 };
    let at = |what: &str, value, unit, key: &str| {
        Evidence::at(what, value, unit, place.process_key(&format!("throttled/{key}")))
    };
    let advice = Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::CpuLimit),
        text: format!(
            "{begins}: the CPU limit of its control group stopped the programs in it {}, \
             for {} summed over processors; raise the limit, or give them less work",
            words::count(throttled.times, "time"),
            words::length(throttled.stopped_s),
        ),
        subject: Subject { pid: Some(process.pid), ..Subject::default() },
        action: Action::default(),
        gain: None,
        confidence: Confidence {
            level: Sure::High,
            because:
                "cpu.stat of the control group counts this, but not which of its programs were \
                 stopped"
                    .to_owned(),
        },
        evidence: vec![
            at(
                "periods in which the limit stopped them",
                throttled.times as f64,
                Unit::Count,
                "times",
            ),
            at("time that they were stopped", throttled.stopped_s, Unit::Seconds, "stopped_s"),
        ],
        same_as: None,
    };
    Some(Stopped::as_a_whole(advice))
}

/// The process that a limit stopped for longest, with its place, if that is felt.
fn stopped(report: &Report) -> Option<(usize, &ProcessReport)> {
    let stopped_s = |process: &ProcessReport| process.throttled.map_or(0.0, |it| it.stopped_s);
    let processes = report.processes.iter().enumerate();
    processes
        .filter(|(_, process)| stopped_s(process) > PART * process.duration_s)
        .max_by(|(_, a), (_, b)| stopped_s(a).total_cmp(&stopped_s(b)))
}
