//! What every finding is made from: one GIL with its process, and what counts as relevant there.

use super::words;
use crate::analysis::late_waits::LATE;
use crate::report::{Evidence, Finding, GilReport, ProcessReport, ThreadReport, Who};
use ungil_core::schedule::Policy;

/// The part of a run (or of a thread's life) that waiting must cost to be worth a finding.
pub(in crate::analysis) const RELEVANT_SHARE: f64 = 0.05;
/// And the least that it must cost in seconds: less than half the time a person notices, so that
/// a script which ends at once is never blamed.
pub(super) const RELEVANT_S: f64 = 0.05;
/// Idle time makes no wait harmless: of a longer run only so much counts, in seconds.
pub(in crate::analysis) const WINDOW_S: f64 = 10.0;

/// The part of all waits for a GIL from which on what explains them is what to look at first.
pub(super) const MOST_PART: f64 = 0.5;

/// The interpreter's default switch interval, for a process that did not tell its own.
pub(super) const SWITCH_INTERVAL_MS: f64 = 5.0;

/// One GIL and where it lives.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) process: &'a ProcessReport,
    pub(super) gil: &'a GilReport,
}

impl<'a> Scene<'a> {
    /// Whether so much wait time matters in this process.
    pub(super) fn is_relevant(self, waited_s: f64) -> bool {
        is_relevant(self.process, waited_s)
    }

    /// How long the process lived after its start-up, the time that shares are of.
    pub(super) fn busy_s(self) -> f64 {
        self.process.busy_s()
    }

    /// How long threads waited for the GIL, summed over all of them.
    pub(super) fn waited_s(self) -> f64 {
        self.gil.blame.iter().map(|row| row.waited_s).sum()
    }

    /// When `thread` ended, or the process if the thread has not.
    pub(super) fn end_s(self, thread: &ThreadReport) -> f64 {
        thread.ended_s.unwrap_or(self.process.started_s + self.process.duration_s)
    }

    pub(super) fn life_s(self, thread: &ThreadReport) -> f64 {
        (self.end_s(thread) - thread.started_s).max(0.0)
    }

    /// How a sentence calls a thread: by its name, with its id if other threads are called so too.
    pub(super) fn name(self, thread: &ThreadReport) -> String {
        let namesakes = self.gil.threads.iter().filter(|other| other.name == thread.name).count();
        match (thread.name.as_str(), namesakes) {
            ("", _) => thread.tid.to_string(),
            (name, 0..=1) => name.to_owned(),
            (name, _) => format!("{name} ({})", thread.tid),
        }
    }

    /// From which length on a wait counts as late.
    pub(super) fn late_s(self) -> f64 {
        LATE * self.process.switch_interval_ms.unwrap_or(SWITCH_INTERVAL_MS) / 1e3
    }

    /// Who held while `victim` waited, with the time charged to them, worst first.
    pub(super) fn culprits(self, victim: &ThreadReport) -> Vec<(&'a ThreadReport, f64)> {
        let rows = self.gil.blame.iter().filter(|row| row.victim == Who::Thread(victim.tid));
        rows.filter_map(|row| Some((self.thread(row.culprit)?, row.waited_s))).collect()
    }

    pub(super) fn thread(self, who: Who) -> Option<&'a ThreadReport> {
        self.gil.threads.iter().find(|thread| who == Who::Thread(thread.tid))
    }

    /// That others waited so long, all together, while one of these threads had the GIL.
    pub(super) fn others_waited(self, culprits: &[u32], waited_s: f64) -> String {
        let is_theirs = |who: Who| matches!(who, Who::Thread(tid) if culprits.contains(&tid));
        let rows = self.gil.blame.iter().filter(|row| is_theirs(row.culprit));
        let mut victims: Vec<Who> = rows.map(|row| row.victim).collect();
        victims.dedup();
        match victims[..] {
            [Who::Thread(_)] => {
                format!("another thread waited {} meanwhile", words::length(waited_s))
            }
            _ => format!("others waited {} meanwhile, summed over them", words::length(waited_s)),
        }
    }

    /// What a policy could do, unless one is in force already, and what helps in any case.
    pub(super) fn advice_to_schedule(self, policy: &str, otherwise: &str) -> String {
        let is_stock = self.process.policy.is_none_or(|name| name == Policy::Stock.name());
        format!("{}{otherwise}", if is_stock { policy } else { "" })
    }

    pub(super) fn finding(self, evidence: Evidence, text: String) -> Finding {
        Finding {
            pid: Some(self.process.pid),
            gil: Some(self.gil.gil),
            ..Finding::of_run(evidence, text)
        }
    }
}

/// As [`Scene::is_relevant`], of a process that may have no GIL.
pub(super) fn is_relevant(process: &ProcessReport, waited_s: f64) -> bool {
    // As long as there is one thread nobody can wait, so that time is left out, but never so
    // much that a few threads at the end of a long run would be judged by a moment.
    let least_s = process.duration_s.min(WINDOW_S);
    waited_s >= RELEVANT_S && waited_s > RELEVANT_SHARE * process.busy_s().max(least_s)
}

/// The processes whose GIL is worth a word: a free-threaded build whose GIL is off has one while
/// it imports extension modules, which costs nobody anything.
pub(super) fn recorded(processes: &[ProcessReport]) -> impl Iterator<Item = &ProcessReport> {
    processes.iter().filter(|process| process.not_recorded.is_none())
}
