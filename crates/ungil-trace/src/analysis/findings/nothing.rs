//! Nothing wrong, or nothing but that there is one GIL for all, with the numbers that say so; or
//! nothing known.

use super::parked::is_its_own;
use super::scene::{is_relevant, recorded};
use super::{whose, words};
use crate::record::NOTHING_RECORDED;
use crate::report::{
    Evidence, Finding, GilReport, ParkedThread, ParksReport, ProcessReport, Processors,
};

/// Contended for more of the time than this, a GIL that treats all alike still slows them down.
const LIMIT_SHARE: f64 = 0.2;
/// But in a run so short that it was contended for less than two switch intervals, nobody notices.
const NOTICED_S: f64 = 0.01;

/// Findings that explain less than this part (of 1) of the waits for a GIL are not all there is to say.
const EXPLAINED: f64 = 0.5;
/// And those that explain less than this part are not what to look at first.
const LITTLE: f64 = 0.1;
/// So the finding begins where there is no other.
const NO_DISADVANTAGE: &str = "no thread is at a disadvantage, but ";

/// A start-up shorter than this part of the run changes no share that is worth telling.
const TOLD_PART: f64 = 0.1;

/// The finding of a trace without other findings: about the busiest of the GILs at which threads waited
/// much; where there is none, about the busiest of the first process that has any, of which the
/// screen shows the threads. What counts is the time once there were several.
pub(in crate::analysis) fn find(processes: &[ProcessReport], notes: &[String]) -> Finding {
    let gils =
        recorded(processes).flat_map(|process| process.gils.iter().map(move |gil| (process, gil)));
    let is_waited_for = |(process, gil): &(&ProcessReport, &GilReport)| {
        let busy_s = process.busy_s();
        gil.contended_s > LIMIT_SHARE * busy_s && is_relevant(process, gil.contended_s)
    };
    let gils: Vec<_> = gils.collect();
    let by_held = |a: &&(_, &GilReport), b: &&(_, &GilReport)| {
        a.1.busy_held_s().total_cmp(&b.1.busy_held_s())
    };
    let first = gils.first().map(|(process, _)| *process);
    let of_first = |it: &&(&ProcessReport, _)| first.is_some_and(|first| std::ptr::eq(first, it.0));
    let waited_for = gils.iter().filter(|it| is_waited_for(it)).max_by(by_held);
    let chosen = waited_for.or_else(|| gils.iter().filter(of_first).max_by(by_held));
    let Some(&(process, gil)) = chosen else {
        return without_gil(processes).unwrap_or_else(|| not_recorded(processes, notes));
    };
    let busy_s = process.busy_s();
    let share = |part_s: f64| if busy_s > 0.0 { (part_s / busy_s).min(1.0) } else { 0.0 };
    let held_share = share(gil.busy_held_s());
    let contended_share = share(gil.contended_s);
    let waited_max_s = gil.threads.iter().map(|thread| thread.waited_s).fold(0.0, f64::max);
    let wanting = gil.wanting_busy_mean;
    let is_limit = contended_share > LIMIT_SHARE && gil.contended_s >= NOTICED_S;
    let the_gil = whose::the_gil(processes, process, gil);
    let verdict = if is_limit {
        let bottleneck = if wanting < 1.0 {
            // On average over the time in which nobody wanted it, too, they are fewer than hold it.
            let wanting = wanting / held_share.max(contended_share);
            format!(" in bursts: while it was held, {wanting:.1} threads wanted it on average")
        } else {
            format!(": {wanting:.1} threads wanted it on average")
        };
        format!("{NO_DISADVANTAGE}{the_gil} is the bottleneck{bottleneck}; it")
    } else {
        format!("nothing wrong with {the_gil}: it")
    };
    let apart = match process.startup_s {
        Some(startup_s) if startup_s >= TOLD_PART * process.duration_s => format!(
            "; before its second thread started, the process ran for {} and held the GIL for {} \
             of that",
            words::length(startup_s),
            words::percent((gil.startup_held_s / startup_s).min(1.0)),
        ),
        _ => String::new(),
    };
    let text = format!(
        "{verdict} was held {} of the time and contended {}; {}{apart}",
        words::percent(held_share),
        words::percent(contended_share),
        words::waited_at_most(waited_max_s),
    );
    let advice = match process.processors.map(Processors::usable) {
        Some(usable) if usable <= 1.0 => {
            "it may use only one processor, on which nothing runs in parallel"
        }
        _ => "only processes, or native code that releases the GIL, run in parallel",
    };
    let evidence = Evidence::None { held_share, contended_share, waited_max_s };
    Finding {
        advice: is_limit.then(|| advice.to_owned()),
        pid: Some(process.pid),
        gil: Some(gil.gil),
        ..Finding::of_run(evidence, text)
    }
}

/// That a GIL is the limit, whatever else is wrong with it.
pub(in crate::analysis) struct Limit {
    pub finding: Finding,
    /// Whether it is what to look at first at that GIL: no thread is at a disadvantage, and all else
    /// explains next to none of the waits.
    pub leads: bool,
}

/// That a GIL is the limit besides what these findings say of it: that the kernel did not run its
/// holders for a part of the time, or what makes up for the smaller part of the waits. Threads that
/// compute wait for each other, too.
pub(in crate::analysis) fn limit_besides(
    processes: &[ProcessReport],
    findings: &[Finding],
) -> Option<Limit> {
    let mut limit = Some(find(processes, &[])).filter(Finding::is_limit)?;
    let Evidence::None { contended_share, .. } = limit.evidence else { return None };
    let process = processes.iter().find(|process| Some(process.pid) == limit.pid)?;
    let gil = process.gils.iter().find(|gil| Some(gil.gil) == limit.gil)?;
    let (mut not_run_s, mut explained_s, mut has_others, mut is_fair) = (0.0, 0.0, false, true);
    for finding in findings.iter().filter(|it| (it.pid, it.gil) == (limit.pid, limit.gil)) {
        match finding.evidence {
            Evidence::Descheduled { not_run_s: more_s, .. } => not_run_s += more_s,
            // These are about threads that compute, too.
            Evidence::Unfair { .. } | Evidence::Hog { .. } => return None,
            _ => {
                explained_s += finding.cost_s;
                has_others = true;
                is_fair &= !matches!(finding.evidence, Evidence::Convoy { .. });
            }
        }
    }
    let waits_s: f64 = gil.threads.iter().map(|thread| thread.waited_s).sum();
    let busy_s = process.busy_s();
    let is_besides = contended_share * busy_s - not_run_s > LIMIT_SHARE * busy_s;
    if !is_besides || has_others && explained_s >= EXPLAINED * waits_s {
        return None;
    }
    let leads = has_others && is_fair && explained_s < LITTLE * waits_s;
    if has_others && let Some(rest) = limit.text.strip_prefix(NO_DISADVANTAGE) {
        limit.text = if leads { rest.to_owned() } else { format!("besides, {rest}") };
    }
    Some(Limit { finding: limit, leads })
}

/// The finding of a trace without a GIL: why there is none.
fn not_recorded(processes: &[ProcessReport], notes: &[String]) -> Finding {
    let told = processes.iter().find_map(|process| process.not_recorded.as_deref());
    let from_recorder = || notes.iter().find_map(|note| note.strip_prefix(NOTHING_RECORDED));
    let text = told.or_else(from_recorder).unwrap_or(if processes.is_empty() {
        "no Python was seen"
    } else {
        "no Python acquired its GIL: none was started, or it is Python 2.7 and started no thread"
    });
    Finding::of_run(Evidence::NotRecorded {}, text.to_owned())
}

/// The finding of a trace whose processes ran without a GIL, and whose threads hardly waited for each
/// other, or never; `None` if none ran so.
fn without_gil(processes: &[ProcessReport]) -> Option<Finding> {
    let parked = processes.iter().filter_map(|process| {
        let is_off = || process.free_threaded.as_ref().is_some_and(|it| it.gil == Some("off"));
        let slept_s = match &process.parks {
            Some(parks) => slept_at_most_s(parks),
            None if is_off() => 0.0,
            None => return None,
        };
        Some((process, process.not_recorded.as_deref()?, slept_s))
    });
    let (process, why, slept_s) = parked.max_by(|(.., a), (.., b)| a.total_cmp(b))?;
    let slept = if slept_s > 0.0 {
        format!("no thread slept for others for more than {} in all", words::length(slept_s))
    } else {
        "no thread slept for others".to_owned()
    };
    let evidence = Evidence::None { held_share: 0.0, contended_share: 0.0, waited_max_s: slept_s };
    let text = format!("nothing wrong: {why}; {slept}");
    Some(Finding { pid: Some(process.pid), ..Finding::of_run(evidence, text) })
}

/// How long the thread slept that slept longest for others. A lock that it had itself is no other's.
fn slept_at_most_s(parks: &ParksReport) -> f64 {
    let slept_s = |thread: &ParkedThread| {
        let at = parks.waits.iter().filter(|row| row.tid == thread.tid && row.cause != "event");
        let own_s: f64 = at.filter(|row| is_its_own(row)).map(|row| row.waited_s).sum();
        (thread.waited_s() - own_s).max(0.0)
    };
    parks.threads.iter().map(slept_s).fold(0.0, f64::max)
}
