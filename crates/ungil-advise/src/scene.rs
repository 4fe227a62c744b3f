//! What advice about one GIL is made from.

use crate::advice::{Measure, Subject};
use crate::place::GilPlace;
use std::collections::BTreeMap;
use ungil_core::schedule::Policy;
use ungil_simulate::Demand;
use ungil_trace::report::{Evidence, Finding, GilReport, ProcessReport, Report, ThreadReport, Who};

/// The GIL is a limit if it is contended for more of the time than this; see the finding `none`.
pub const LIMIT_SHARE: f64 = 0.2;

/// A GIL that is held for this part (of 1) of the time sets the pace of all that its threads do, and has
/// next to no room for threads that wait for something else.
pub const HELD: f64 = 0.7;

/// Calls of which less than this part (of 1) returns late are told of by the thousand.
const LATE_PART: f64 = 0.1;

/// One GIL at which threads wait, what is wrong there, and who suffers.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    pub process: &'a ProcessReport,
    pub gil: &'a GilReport,
    pub place: GilPlace,
    /// What the simulator needs, if the trace could be simulated.
    pub demand: Option<&'a Demand>,
    /// The finding that cost most, with its place.
    pub finding: (usize, &'a Finding),
    /// Places of the threads that suffer.
    pub victims: Vec<usize>,
    /// Places of the threads that they wait for, worst first.
    pub culprits: Vec<usize>,
    /// The command that started all of it.
    pub argv: &'a [String],
}

/// The GILs at which threads wait so much that something is wrong, those that cost most first.
pub fn scenes<'a>(report: &'a Report, demands: &'a [Demand]) -> Vec<Scene<'a>> {
    let mut scenes: Vec<Scene> = Vec::new();
    for (number, finding) in report.findings.iter().enumerate() {
        if !is_about_waits(finding) || scenes.iter().any(|scene| scene.is_of(finding)) {
            continue;
        }
        let Some(place) = place_of(report, finding) else { continue };
        let process = &report.processes[place.process];
        let gil = &process.gils[place.gil];
        let demand = demands.iter().find(|it| it.pid == process.pid && it.gil == gil.gil);
        let argv = &root(report, process).argv;
        let mut scene = Scene {
            process,
            gil,
            place,
            demand,
            finding: (number, finding),
            victims: Vec::new(),
            culprits: Vec::new(),
            argv,
        };
        scene.take_sides();
        scenes.push(scene);
    }
    scenes
}

/// Whether a finding tells of waits that something at the GIL could shorten.
pub fn is_about_waits(finding: &Finding) -> bool {
    match finding.evidence {
        Evidence::Convoy { .. }
        | Evidence::Hog { .. }
        | Evidence::Unfair { .. }
        | Evidence::NativeHold { .. } => true,
        Evidence::None { .. } => finding.is_limit(),
        Evidence::Descheduled { .. }
        | Evidence::LateWakeups { .. }
        | Evidence::Parked { .. }
        | Evidence::WorldPauses { .. }
        | Evidence::GilSwitchedOn { .. }
        | Evidence::NotRecorded {} => false,
    }
}

/// Where the GIL of a finding is.
pub fn place_of(report: &Report, finding: &Finding) -> Option<GilPlace> {
    let has_gil = |process: &ProcessReport| {
        Some(process.pid) == finding.pid
            && process.gils.iter().any(|gil| Some(gil.gil) == finding.gil)
    };
    let process = report.processes.iter().position(has_gil)?;
    let gils = &report.processes[process].gils;
    Some(GilPlace { process, gil: gils.iter().position(|gil| Some(gil.gil) == finding.gil)? })
}

/// The process that was started first of those from which this one descends.
pub fn root<'a>(report: &'a Report, process: &'a ProcessReport) -> &'a ProcessReport {
    let mut root = process;
    for _ in 0..report.processes.len() {
        let is_parent =
            |it: &&ProcessReport| it.pid == root.parent_pid && it.started_s <= root.started_s;
        match report.processes.iter().find(is_parent) {
            Some(parent) if parent.pid != root.pid => root = parent,
            _ => break,
        }
    }
    root
}

impl<'a> Scene<'a> {
    /// Whether a finding is about this GIL.
    pub fn is_of(&self, finding: &Finding) -> bool {
        (Some(self.process.pid), Some(self.gil.gil)) == (finding.pid, finding.gil)
    }

    /// The part (of 1) of what threads hold in which native code keeps the GIL, of the time for which
    /// they left requests unanswered. The kernel does not run a thread anywhere in its work.
    pub fn kept_share(&self, threads: &[usize], unanswered_s: f64) -> f64 {
        let threads = threads.iter().map(|&place| self.thread(place));
        let ran_s: f64 = threads.map(|it| it.held_s - it.descheduled.not_run_s).sum();
        (unanswered_s / ran_s.max(1e-9)).min(1.0)
    }

    /// How long shares are of: from the start of the second thread on, or the finding's window.
    pub fn busy_s(&self) -> f64 {
        self.process.busy_s().max(1e-9)
    }

    /// The part (of 1) of that time for which threads had the GIL.
    pub fn held_share(&self) -> f64 {
        self.gil.busy_held_s() / self.busy_s()
    }

    /// After how long a thread that waits asks the holder to let go.
    pub fn switch_interval_s(&self) -> f64 {
        self.process.switch_interval_ms.unwrap_or(5.0) / 1e3
    }

    /// The policy under which it was recorded.
    pub fn policy(&self) -> Policy {
        self.process.policy.and_then(|name| name.parse().ok()).unwrap_or_default()
    }

    /// The thread at this place.
    pub fn thread(&self, place: usize) -> &'a ThreadReport {
        &self.gil.threads[place]
    }

    /// Where the threads with these kernel ids are; those of other GILs are left out.
    pub fn places(&self, tids: &[u32]) -> Vec<usize> {
        let place = |tid: &u32| self.gil.threads.iter().position(|it| it.tid == *tid);
        tids.iter().filter_map(place).collect()
    }

    /// Kernel ids of the threads at these places.
    pub fn tids(&self, places: &[usize]) -> Vec<u32> {
        places.iter().map(|&place| self.thread(place).tid).collect()
    }

    /// Advice about these threads.
    pub fn subject(&self, places: &[usize]) -> Subject {
        Subject {
            pid: Some(self.process.pid),
            gil: Some(self.gil.gil),
            threads: self.tids(places),
            thread_group: self.pattern(places),
            function: None,
        }
    }

    /// What these threads are called, if they are all those of one group.
    pub fn pattern(&self, places: &[usize]) -> Option<String> {
        let groups = crate::groups::groups(&self.gil.threads);
        let group = groups.into_iter().find(|group| {
            group.threads.len() == places.len()
                && group.threads.iter().all(|(place, _)| places.contains(place))
        });
        group.map(|group| group.pattern).filter(|pattern| !pattern.is_empty())
    }

    /// What gains are told in here, but for a batch of which it is known how long it takes. Where nearly
    /// all calls return at once, what one of them waits on average sounds like nothing.
    pub fn measure(&self) -> Measure {
        match self.finding.1.evidence {
            Evidence::Convoy { late, calls, .. } if (late as f64) < LATE_PART * calls as f64 => {
                Measure::WaitAfterThousandBlockingCalls
            }
            Evidence::Convoy { .. } => Measure::WaitAfterBlockingCall,
            _ => Measure::WaitedPerSecond,
        }
    }

    /// How long the victims waited, of a measure that counts all waits or only those after blocking
    /// calls.
    pub fn waited_s(&self) -> f64 {
        let of = |place: &usize| {
            let thread = self.thread(*place);
            match self.measure() {
                Measure::WaitAfterBlockingCall | Measure::WaitAfterThousandBlockingCalls => {
                    thread.blocking.waited_s
                }
                Measure::WaitedPerSecond | Measure::Duration => thread.waited_s,
            }
        };
        self.victims.iter().map(of).sum()
    }

    /// The part of what the victims waited for which this thread held.
    pub fn blame_share(&self, culprits: &[usize]) -> f64 {
        let (victims, culprits) = (self.tids(&self.victims), self.tids(culprits));
        let is = |who: Who, all: &[u32]| matches!(who, Who::Thread(tid) if all.contains(&tid));
        let rows = self.gil.blame.iter().filter(|row| is(row.victim, &victims));
        let (all_s, charged_s) = rows.fold((0.0, 0.0), |(all_s, charged_s), row| {
            let theirs_s = if is(row.culprit, &culprits) { row.waited_s } else { 0.0 };
            (all_s + row.waited_s, charged_s + theirs_s)
        });
        if all_s > 0.0 { charged_s / all_s } else { 0.0 }
    }

    /// What all threads together waited while these held.
    pub fn charged_s(&self, culprits: &[usize]) -> f64 {
        let culprits = self.tids(culprits);
        let is_theirs = |who: Who| matches!(who, Who::Thread(tid) if culprits.contains(&tid));
        let rows = self.gil.blame.iter().filter(|row| is_theirs(row.culprit));
        rows.map(|row| row.waited_s).sum()
    }

    fn take_sides(&mut self) {
        let finding = self.finding.1;
        let named = self.places(&finding.threads);
        let waits = |place: &usize| self.gil.threads[*place].waited_s > 0.0;
        let everyone = || (0..self.gil.threads.len()).filter(waits);
        let others = |not: &[usize]| everyone().filter(|it| !not.contains(it)).collect();
        let (victims, culprits): (Vec<usize>, Option<Vec<usize>>) = match &finding.evidence {
            Evidence::Convoy { culprits, .. } => (named, Some(self.places(culprits))),
            // Threads that keep it together wait for one another, too.
            Evidence::NativeHold { .. } if named.len() > 1 => (everyone().collect(), Some(named)),
            Evidence::Hog { .. } | Evidence::NativeHold { .. } => (others(&named), Some(named)),
            Evidence::Unfair { .. } => {
                let half = named.len().div_ceil(2);
                (named[..half].to_vec(), None)
            }
            _ => (everyone().collect(), None),
        };
        self.victims = victims;
        self.culprits = culprits.filter(|it| !it.is_empty()).unwrap_or_else(|| self.blamed());
    }

    /// Those for whom the victims waited longest, until they make up for most of it.
    fn blamed(&self) -> Vec<usize> {
        const MOST: f64 = 0.8;
        let victims = self.tids(&self.victims);
        let mut charged: BTreeMap<u32, f64> = BTreeMap::new();
        for row in &self.gil.blame {
            if let (Who::Thread(victim), Who::Thread(culprit)) = (row.victim, row.culprit)
                && victims.contains(&victim)
            {
                *charged.entry(culprit).or_default() += row.waited_s;
            }
        }
        let all_s: f64 = charged.values().sum();
        let mut charged: Vec<_> = charged.into_iter().collect();
        charged.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let mut sum_s = 0.0;
        let main = charged.into_iter().take_while(|(_, waited_s)| {
            let goes_on = sum_s < MOST * all_s;
            sum_s += waited_s;
            goes_on
        });
        let place = |tid: u32| self.gil.threads.iter().position(|it| it.tid == tid);
        main.filter_map(|(tid, _)| place(tid)).collect()
    }

    /// How the process is called in a sentence, if others were recorded, too.
    pub fn of_which(&self, report: &Report) -> String {
        match report.processes.len() {
            0 | 1 => String::new(),
            _ => format!(" (pid {})", self.process.pid),
        }
    }
}
