//! What was wrong in one window of a run.

use super::findings::{self, RELEVANT_SHARE, WINDOW_S};
use super::samples::without_line;
use crate::report::{Evidence, Finding, ProcessReport};

/// What a wait in a window must cost: the part of a run that is relevant, of ten seconds, however
/// short the window is. A moment is no incident.
const LEAST_COST_S: f64 = RELEVANT_SHARE * WINDOW_S;
/// And for so long somebody must have waited: twice the time that a person notices.
const LEAST_CONTENDED_S: f64 = 0.2;

/// What a finding is about, to recognise it in another window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) pid: Option<u32>,
    gil: Option<u8>,
    kind: std::mem::Discriminant<Evidence>,
    /// Native code is told of by the user's function, else by its line if several threads were there:
    /// a server may have others in the next window. Else by thread.
    thread: Option<u32>,
    place: Option<String>,
}

/// Something wrong in a window.
#[derive(Clone, Debug)]
pub(super) struct Incident {
    pub(super) key: Key,
    /// What makes one window worse than another: the cost of the finding; where the GIL is just
    /// the limit, all that threads waited.
    pub(super) cost_s: f64,
    pub(super) finding: Finding,
}

impl Key {
    pub(super) fn of(finding: &Finding) -> Self {
        let (thread, place) = match (&finding.evidence, &finding.threads[..]) {
            (Evidence::NativeHold { user_frame: Some(frame), .. }, _) => {
                (None, Some(without_line(frame).to_owned()))
            }
            (Evidence::NativeHold { frame: Some(frame), .. }, [_, _, ..]) => {
                (None, Some(frame.clone()))
            }
            (Evidence::NativeHold { .. }, threads) => (threads.first().copied(), None),
            _ => (None, None),
        };
        let kind = std::mem::discriminant(&finding.evidence);
        Self { pid: finding.pid, gil: finding.gil, kind, thread, place }
    }

    pub(super) fn is_same_gil(&self, other: &Self) -> bool {
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
        if limit.is_limit() {
            incidents.push((waited_s, limit));
        }
    }
    incidents.retain(|(cost_s, _)| *cost_s >= LEAST_COST_S);
    let incident = |(cost_s, finding)| Incident { key: Key::of(&finding), cost_s, finding };
    incidents.into_iter().map(incident).collect()
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
