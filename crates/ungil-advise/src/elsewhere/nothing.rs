//! That it is not the GIL, where the trace does not show what it is, if anything.

use super::computing;
use super::sight::Sight;
use crate::advice::{Action, Advice, Cause, Confidence, Kind, Subject, Sure};
use crate::advice::{Evidence, Unit};
use crate::loops;
use crate::place::finding_key;
use std::collections::BTreeMap;
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, Finding, OffGil, Report, What};

/// Frames, from the innermost one, of which one is the loop's.
const FRAMES: usize = 4;
/// So much (of 1) of the time of threads may be unknown where it is said that nothing was seen.
const SEEN: f64 = 0.3;

/// What is known, and what is not, of threads that ran without a GIL.
fn of_parks(report: &Report) -> String {
    format!(
        "{} sleep for a lock or a pause was recorded; how long the program was slower for them, and \
         what threads did otherwise, the trace does not show",
        every(report)
    )
}

/// Of what was to be recorded.
fn every(report: &Report) -> &'static str {
    if report.lost_events == 0 { "every" } else { "not every" }
}

/// What the finding says, and that nothing else was seen.
pub fn say(report: &Report) -> Advice {
    let finding = report.findings.first();
    if let Some(advice) = finding.and_then(|finding| without_gil(report, finding)) {
        return advice;
    }
    let text = finding.map_or("", |finding| finding.text.as_str());
    let recorded = !finding.is_none_or(|it| matches!(it.evidence, Found::NotRecorded {}));
    let mut evidence = Vec::new();
    if let Some(Found::None { contended_share, waited_max_s, .. }) = finding.map(|it| &it.evidence)
    {
        let contended = finding_key(0, "contended_share");
        let waited = finding_key(0, "waited_max_s");
        evidence.push(Evidence::at("contended", *contended_share, Unit::Share, contended));
        evidence.push(Evidence::at(
            "longest total wait of a thread",
            *waited_max_s,
            Unit::Seconds,
            waited,
        ));
    }
    let what = if recorded { "nothing to gain here" } else { "no advice" };
    Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::Unknown),
        text: format!("{what}: {}", without_verdict(text)),
        subject: Subject {
            pid: finding.and_then(|it| it.pid),
            gil: finding.and_then(|it| it.gil),
            ..Subject::default()
        },
        action: Action::default(),
        gain: None,
        confidence: confidence(report, recorded),
        evidence,
        same_as: None,
    }
}

/// What a finding says without that nothing is wrong, which was said.
fn without_verdict(text: &str) -> String {
    match text.strip_prefix("nothing wrong with ") {
        Some(of_gil) => of_gil.replacen(": it was held", " was held", 1),
        None => text.strip_prefix("nothing wrong: ").unwrap_or(text).to_owned(),
    }
}

/// How sure it is that there is nothing to gain.
fn confidence(report: &Report, recorded: bool) -> Confidence {
    let every = every(report);
    let (level, because) = match unseen(report) {
        _ if !recorded => (Sure::Low, "no GIL was recorded".to_owned()),
        _ if Sight::all(report).next().is_none() => (Sure::Medium, of_parks(report)),
        _ if let Some(because) = computed(report) => (Sure::Medium, because),
        share if share <= SEEN && runs_loop(report) => {
            let because = format!(
                "{every} wait was recorded; the trace does not show what the tasks of an event loop \
                 wait for: a peer, or one another"
            );
            (Sure::Medium, because)
        }
        share if share <= SEEN => {
            let because = format!(
                "{every} wait was recorded, and looks at threads off the GIL found no line that took long"
            );
            (Sure::High, because)
        }
        share => {
            let share = words::percent(share);
            let because = format!(
                "{every} wait was recorded; what threads did in {share} of their time, off the GIL, \
                 is unknown, because looks seldom catch calls of a few milliseconds"
            );
            (Sure::Medium, because)
        }
    };
    Confidence { level, because }
}

/// Whether a thread was seen to run an event loop.
fn runs_loop(report: &Report) -> bool {
    let is_loop = |frame: &String| loops::runs_loop(frame);
    let idles = |off: &OffGil| off.what == What::Idle && off.stack.iter().take(FRAMES).any(is_loop);
    let mut threads = Sight::all(report).flat_map(|sight| &sight.gil.threads);
    threads.any(|thread| thread.event_loop.is_some() || thread.off_gil.iter().any(idles))
}

/// What is known of a loop whose callbacks computed for long in lines that no look found.
fn computed(report: &Report) -> Option<String> {
    let (name, it) = Sight::all(report).find_map(|sight| computing::unknown(&sight))?;
    Some(format!(
        "{} wait was recorded; callbacks of the event loop of thread {name} computed {}, and \
         looks did not find in which line",
        every(report),
        computing::how_long(it),
    ))
}

/// What is told where the first finding is of threads that slept for each other without a GIL: what
/// helps there.
fn without_gil(report: &Report, finding: &Finding) -> Option<Advice> {
    let cause = match finding.evidence {
        Found::Parked { .. } => Cause::Lock,
        Found::WorldPauses { .. } => Cause::Unknown,
        _ => return None,
    };
    let helps = finding.advice.iter().fold(String::new(), |all, advice| all + "; " + advice);
    let key = finding_key(0, "cost_s");
    Some(Advice {
        kind: Kind::NotTheGil,
        cause: Some(cause),
        text: format!("it is not the GIL, which was off then: {}{helps}", finding.text),
        subject: Subject {
            pid: finding.pid,
            threads: finding.threads.clone(),
            ..Subject::default()
        },
        action: Action::default(),
        gain: None,
        confidence: Confidence { level: Sure::Medium, because: of_parks(report) },
        evidence: vec![Evidence::at("threads slept", finding.cost_s, Unit::Seconds, key)],
        same_as: None,
    })
}

/// The part (of 1) of the time of all threads of which nothing is known: they were off the GIL, and
/// no look has found them there.
fn unseen(report: &Report) -> f64 {
    let mut threads: BTreeMap<(u32, u32), Seen> = BTreeMap::new();
    for sight in Sight::all(report) {
        let mut here: BTreeMap<u32, Seen> = BTreeMap::new();
        for thread in &sight.gil.threads {
            let off_s: f64 = thread.off_gil.iter().map(|off| off.total_s).sum();
            // The kernel gives the id of a thread that has ended to another one.
            let seen = here.entry(thread.tid).or_default();
            seen.lived_s += sight.life_s(thread);
            seen.known_s += thread.held_s + thread.waited_s + off_s;
        }
        for (tid, Seen { lived_s, known_s }) in here {
            // A thread has one life, however many interpreters it serves, each with a GIL.
            let seen = threads.entry((sight.process.pid, tid)).or_default();
            seen.lived_s = seen.lived_s.max(lived_s);
            seen.known_s += known_s;
        }
    }
    let lived_s: f64 = threads.values().map(|it| it.lived_s).sum();
    let known_s: f64 = threads.values().map(|it| it.known_s.min(it.lived_s)).sum();
    if lived_s > 0.0 { 1.0 - known_s / lived_s } else { 1.0 }
}

/// How long a thread lived, and for how long of that it is known what it did.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    lived_s: f64,
    known_s: f64,
}
