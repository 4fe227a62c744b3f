//! What is wrong with a run: what is wrong with all of it, and what was wrong in one of its
//! windows only.

use super::findings::{self, Limit, WINDOW_S};
use super::incidents::{Incident, Key, incidents};
use super::tally::Tally;
use super::windows::Passed;
use crate::report::{Evidence, Finding, ProcessReport, Scope, Window, WorstWindow};

/// A finding of which so much happened in one window is told of that window.
const MOST: f64 = 0.8;
/// Findings told that are true of a window but not of the run.
const TOLD: usize = 3;

/// As what was wrong in that window only.
fn in_window((window, incident): (Window, Incident)) -> Finding {
    Finding { scope: Scope::Window, window: Some(window), ..incident.finding }
}

/// The findings in their order ([`findings::sort`]), and then what is no wait; never empty.
pub(super) fn verdict(
    tally: &Tally,
    windows: &[Passed],
    processes: &[ProcessReport],
) -> Vec<Finding> {
    let mut findings = about_waits(tally, windows, processes);
    let mut switched = findings::switched_on(processes);
    for finding in &mut switched {
        place(tally, finding, processes, &[]);
    }
    findings.extend(switched);
    findings
}

fn about_waits(tally: &Tally, windows: &[Passed], processes: &[ProcessReport]) -> Vec<Finding> {
    let (limits, worst): (Vec<_>, Vec<_>) = worst_windows(tally, windows, processes)
        .into_iter()
        .partition(|(_, incident)| matches!(incident.finding.evidence, Evidence::None { .. }));
    let mut findings = wrong(tally, processes, worst);
    if findings.is_empty() {
        let mut nothing = findings::nothing(processes, &tally.notes);
        let limit = limits.iter().cloned().max_by(|(_, a), (_, b)| a.cost_s.total_cmp(&b.cost_s));
        match limit {
            Some(limit) if !nothing.is_limit() => findings.push(in_window(limit)),
            limit => {
                place(tally, &mut nothing, processes, limit.as_slice());
                return vec![nothing];
            }
        }
    } else if let Some(limit) = findings::limit_besides(processes, &findings) {
        let Limit { finding: mut limit, leads } = limit;
        place(tally, &mut limit, processes, &limits);
        let is_of = |it: &Finding| (it.pid, it.gil) == (limit.pid, limit.gil);
        if let Some(first) = findings.iter().position(is_of).filter(|_| leads) {
            findings.insert(first, limit);
        } else {
            findings.push(limit);
            findings::sort(&mut findings);
        }
    }
    findings::mark_repeats(processes, &mut findings);
    findings::say_whose(processes, &mut findings);
    findings
}

/// What is wrong with the run, be it told of its worst window, and in windows that are worse
/// than what is told of their GIL.
fn wrong(
    tally: &Tally,
    processes: &[ProcessReport],
    worst: Vec<(Window, Incident)>,
) -> Vec<Finding> {
    let is_most_of = |incident: &Incident, finding: &Finding| {
        incident.key == Key::of(finding) && incident.cost_s >= MOST * finding.cost_s
    };
    let (of_a_window, mut findings): (Vec<_>, Vec<_>) = findings::find(processes)
        .into_iter()
        .partition(|finding| worst.iter().any(|(_, incident)| is_most_of(incident, finding)));
    for finding in &mut findings {
        place(tally, finding, processes, &worst);
    }
    let is_told = |incident: &Incident| {
        findings.iter().any(|finding| {
            let worst_s = finding.worst.as_ref().map_or(finding.cost_s, |worst| worst.cost_s);
            let key = Key::of(finding);
            key == incident.key || key.is_same_gil(&incident.key) && worst_s >= incident.cost_s
        })
    };
    let (of_the_run, mut others): (Vec<_>, Vec<_>) = worst
        .into_iter()
        .partition(|(_, incident)| of_a_window.iter().any(|finding| is_most_of(incident, finding)));
    others.retain(|(_, incident)| !is_told(incident));
    others.sort_by(|(_, a), (_, b)| b.cost_s.total_cmp(&a.cost_s));
    others.truncate(TOLD);
    findings.extend(of_the_run.into_iter().chain(others).map(in_window));
    findings::sort(&mut findings);
    findings
}

/// The worst window for each kind of finding about each GIL of a process that lived for longer
/// than a window.
pub(super) fn worst_windows(
    tally: &Tally,
    windows: &[Passed],
    processes: &[ProcessReport],
) -> Vec<(Window, Incident)> {
    let mut worst: Vec<(Window, Incident)> = Vec::new();
    let lived_long = |incident: &Incident| {
        let mut images = processes.iter().filter(|process| Some(process.pid) == incident.key.pid);
        images.any(|process| process.duration_s > WINDOW_S)
    };
    if !processes.iter().any(|process| process.duration_s > WINDOW_S) {
        return worst;
    }
    for passed in windows {
        let found = incidents(&passed.tally.processes_until(passed.end_ns, tally));
        for incident in found.into_iter().filter(lived_long) {
            let window = tally.window(passed.start_ns, passed.end_ns);
            match worst.iter_mut().find(|(_, other)| other.key == incident.key) {
                Some(other) if other.1.cost_s < incident.cost_s => *other = (window, incident),
                Some(_) => {}
                None => worst.push((window, incident)),
            }
        }
    }
    worst
}

/// Says when a finding about all of the run was, and when it was at its worst.
fn place(
    tally: &Tally,
    finding: &mut Finding,
    processes: &[ProcessReport],
    worst: &[(Window, Incident)],
) {
    let pid = finding.pid;
    let of = processes.iter().find(|process| pid.is_some() && Some(process.pid) == pid);
    finding.window = of.map(|process| tally.life_of(process));
    let key = Key::of(finding);
    let worst = worst.iter().find(|(_, incident)| incident.key == key);
    finding.worst = worst
        .map(|(window, incident)| WorstWindow { window: window.clone(), cost_s: incident.cost_s });
}
