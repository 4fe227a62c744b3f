//! What is wrong with a run: what is wrong with all of it, and what was wrong in one of its
//! windows only.

use super::Analysis;
use super::findings::{self, RELEVANT_SHARE, WINDOW_S};
use crate::report::{Evidence, Finding, ProcessReport, Scope, Window, WorstWindow};

/// What a wait in a window must cost: the part of a run that is relevant, of ten seconds, however
/// short the window is. A moment is no incident.
const LEAST_COST_S: f64 = RELEVANT_SHARE * WINDOW_S;
/// And for so long somebody must have waited: twice the time that a person notices.
const LEAST_CONTENDED_S: f64 = 0.2;
/// A finding of which so much happened in one window is told of that window.
const MOST: f64 = 0.8;
/// Findings told that are true of a window but not of the run.
const TOLD: usize = 3;

/// What a finding is about, to recognise it in another window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pid: Option<u32>,
    gil: Option<u8>,
    kind: std::mem::Discriminant<Evidence>,
    /// Native code is told of by thread.
    thread: Option<u32>,
}

/// Something wrong in a window.
#[derive(Debug)]
pub(super) struct Incident {
    pub(super) key: Key,
    /// What makes one window worse than another: the cost of the finding; where the GIL is just
    /// the limit, all that threads waited.
    pub(super) cost_s: f64,
    finding: Finding,
}

impl Key {
    fn of(finding: &Finding) -> Self {
        let is_native = matches!(finding.evidence, Evidence::NativeHold { .. });
        Self {
            pid: finding.pid,
            gil: finding.gil,
            kind: std::mem::discriminant(&finding.evidence),
            thread: finding.threads.first().copied().filter(|_| is_native),
        }
    }

    fn is_same_gil(&self, other: &Self) -> bool {
        (self.pid, self.gil) == (other.pid, other.gil)
    }
}

/// What is wrong in a window of which these are the processes.
pub(super) fn incidents(processes: &[ProcessReport]) -> Vec<Incident> {
    let mut incidents = Vec::new();
    for process in processes {
        let contended_s = process.gils.iter().map(|gil| gil.contended_s).fold(0.0, f64::max);
        if contended_s < LEAST_CONTENDED_S {
            continue;
        }
        let process = std::slice::from_ref(process);
        let found = findings::find(process);
        let limit = findings::nothing(process, &[]);
        let waited_s = waited_s(&process[0], limit.gil);
        incidents.extend(found.into_iter().map(|finding| (finding.cost_s, finding)));
        if findings::is_limit(&limit) {
            incidents.push((waited_s, limit));
        }
    }
    incidents.retain(|(cost_s, _)| *cost_s >= LEAST_COST_S);
    let incident = |(cost_s, finding)| Incident { key: Key::of(&finding), cost_s, finding };
    incidents.into_iter().map(incident).collect()
}

/// As what was wrong in that window only.
fn in_window((window, incident): (Window, Incident)) -> Finding {
    Finding { scope: Scope::Window, window: Some(window), ..incident.finding }
}

/// What all threads waited for a GIL.
fn waited_s(process: &ProcessReport, gil: Option<u8>) -> f64 {
    let gils = process.gils.iter().filter(|it| Some(it.gil) == gil);
    gils.map(|gil| {
        let listed: f64 = gil.threads.iter().map(|thread| thread.waited_s).sum();
        listed + gil.others.map_or(0.0, |others| others.waited_s)
    })
    .sum()
}

impl Analysis {
    /// The findings, those that explain most wait time first; never empty.
    pub(super) fn verdict(&self, processes: &[ProcessReport]) -> Vec<Finding> {
        let (limits, worst): (Vec<_>, Vec<_>) = self
            .worst_windows(processes)
            .into_iter()
            .partition(|(_, incident)| matches!(incident.finding.evidence, Evidence::None { .. }));
        let mut findings = self.wrong(processes, worst);
        if findings.is_empty() {
            let mut nothing = findings::nothing(processes, &self.notes);
            let limit = limits.into_iter().max_by(|(_, a), (_, b)| a.cost_s.total_cmp(&b.cost_s));
            match limit {
                Some(limit) if !findings::is_limit(&nothing) => findings.push(in_window(limit)),
                limit => {
                    self.place(&mut nothing, processes, limit.as_slice());
                    return vec![nothing];
                }
            }
        }
        findings::say_whose(processes, &mut findings);
        findings
    }

    /// What is wrong with the run, be it told of its worst window, and in windows that are worse
    /// than what is told of their GIL.
    fn wrong(&self, processes: &[ProcessReport], worst: Vec<(Window, Incident)>) -> Vec<Finding> {
        let is_most_of = |incident: &Incident, finding: &Finding| {
            incident.key == Key::of(finding) && incident.cost_s >= MOST * finding.cost_s
        };
        let (of_a_window, mut findings): (Vec<_>, Vec<_>) = findings::find(processes)
            .into_iter()
            .partition(|finding| worst.iter().any(|(_, incident)| is_most_of(incident, finding)));
        for finding in &mut findings {
            self.place(finding, processes, &worst);
        }
        let is_told = |incident: &Incident| {
            findings.iter().any(|finding| {
                let worst_s = finding.worst.as_ref().map_or(finding.cost_s, |worst| worst.cost_s);
                let key = Key::of(finding);
                key == incident.key || key.is_same_gil(&incident.key) && worst_s >= incident.cost_s
            })
        };
        let (of_the_run, mut others): (Vec<_>, Vec<_>) =
            worst.into_iter().partition(|(_, incident)| {
                of_a_window.iter().any(|finding| is_most_of(incident, finding))
            });
        others.retain(|(_, incident)| !is_told(incident));
        others.sort_by(|(_, a), (_, b)| b.cost_s.total_cmp(&a.cost_s));
        others.truncate(TOLD);
        findings.extend(of_the_run.into_iter().chain(others).map(in_window));
        findings.sort_by(|a, b| b.cost_s.total_cmp(&a.cost_s));
        findings
    }

    /// The worst window for each kind of finding about each GIL of a process that lived for longer
    /// than a window.
    pub(super) fn worst_windows(&self, processes: &[ProcessReport]) -> Vec<(Window, Incident)> {
        let mut worst: Vec<(Window, Incident)> = Vec::new();
        let Some(windows) = &self.windows else { return worst };
        let lived_long = |incident: &Incident| {
            let mut images =
                processes.iter().filter(|process| Some(process.pid) == incident.key.pid);
            images.any(|process| process.duration_s > WINDOW_S)
        };
        if !processes.iter().any(|process| process.duration_s > WINDOW_S) {
            return worst;
        }
        for passed in windows.all(self) {
            let found = incidents(&passed.analysis.processes_until(passed.end_ns, self));
            for incident in found.into_iter().filter(lived_long) {
                let window = self.window(passed.start_ns, passed.end_ns);
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
        &self,
        finding: &mut Finding,
        processes: &[ProcessReport],
        worst: &[(Window, Incident)],
    ) {
        let pid = finding.pid;
        let of = processes.iter().find(|process| pid.is_some() && Some(process.pid) == pid);
        finding.window = of.map(|process| self.life_of(process));
        let key = Key::of(finding);
        let worst = worst.iter().find(|(_, incident)| incident.key == key);
        finding.worst = worst.map(|(window, incident)| WorstWindow {
            window: window.clone(),
            cost_s: incident.cost_s,
        });
    }
}
