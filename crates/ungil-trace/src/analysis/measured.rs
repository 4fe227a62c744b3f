//! A run as it is compared with others: as a whole, and in parts of equal length, which show how
//! much it differs from itself.

use super::Analysis;
use super::length::seconds;
use super::seat::Detail;
use super::tally::Tally;
use crate::record::{KernelCount, Park, Record, ThreadId};
use crate::report::{Measures, Stretch};
use std::collections::HashMap;

/// What must be known of a trace before it is cut into parts: from when on a process had two
/// threads, so that somebody could wait, to the last word.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    started_ns: Option<u64>,
    /// Threads that each process has had.
    threads: HashMap<u32, u32>,
    begin_ns: Option<u64>,
    end_ns: u64,
}

impl Busy {
    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        self.end_ns = self.end_ns.max(record.at_ns().unwrap_or(0));
        match record {
            Record::ProcessStarted(process) => {
                self.started_ns = Some(self.started_ns.unwrap_or(u64::MAX).min(process.at_ns));
            }
            Record::ThreadStarted { process, at_ns, .. } if self.begin_ns.is_none() => {
                let threads = self.threads.entry(process.0).or_default();
                *threads += 1;
                if *threads == 2 {
                    self.begin_ns = Some(*at_ns);
                }
            }
            Record::Snapshot { from_ns } => self.begin_ns = Some(*from_ns),
            _ => {}
        }
    }

    fn begin_ns(&self) -> u64 {
        self.begin_ns.or(self.started_ns).unwrap_or(self.end_ns).min(self.end_ns)
    }

    /// The edges of the parts: at most `most` parts, each `least_ns` long at least; none if not even
    /// two have room.
    fn edges(&self, most: u64, least_ns: u64) -> Vec<u64> {
        let (begin_ns, length_ns) = (self.begin_ns(), self.end_ns - self.begin_ns());
        let parts = most.min(length_ns / least_ns.max(1));
        if parts < 2 {
            return Vec::new();
        }
        let edge = |part: u64| {
            let offset_ns = u128::from(length_ns) * u128::from(part) / u128::from(parts);
            begin_ns + u64::try_from(offset_ns).unwrap_or(length_ns)
        };
        (0..=parts).map(edge).collect()
    }
}

/// Measures a run.
#[derive(Debug)]
pub struct Measured {
    analysis: Analysis,
    begin_ns: u64,
    end_ns: u64,
    edges: Vec<u64>,
    /// How many edges have been passed.
    passed: usize,
    /// The part that is being counted.
    part: Option<Tally>,
    /// The one before: what happened in it may be told after the edge.
    ending: Option<(u64, u64, Tally)>,
    parts: Vec<(u64, u64, Tally)>,
}

impl Measured {
    /// Of a trace of which `busy` has seen all records: in at most `most` parts, each `least_ns`
    /// long at least. `analysis` has seen none of them.
    pub fn new(analysis: Analysis, busy: &Busy, most: u64, least_ns: u64) -> Self {
        Self {
            analysis,
            begin_ns: busy.begin_ns(),
            end_ns: busy.end_ns,
            edges: busy.edges(most, least_ns),
            passed: 0,
            part: None,
            ending: None,
            parts: Vec::new(),
        }
    }

    /// Takes in one record; they come as they came to `busy`.
    pub fn push(&mut self, record: &Record) {
        if let Some(at_ns) = record.at_ns() {
            while self.edges.get(self.passed).is_some_and(|&edge_ns| edge_ns <= at_ns) {
                self.pass();
            }
        }
        self.analysis.push(record);
        if let Record::Parked { thread, park } = record {
            self.parked(*thread, park);
            return;
        }
        if let Some((_, end_ns, ending)) = &mut self.ending
            && record.at_ns().is_some_and(|at_ns| at_ns < *end_ns)
        {
            push(ending, record, *end_ns);
        }
        if let Some((part, end_ns)) = self.part.as_mut().zip(self.edges.get(self.passed)) {
            push(part, record, *end_ns);
        }
    }

    /// Counts a park in each part that has a piece of it.
    fn parked(&mut self, thread: ThreadId, park: &Park) {
        let before = self.parts.iter_mut().chain(&mut self.ending).rev();
        let ended = before.map(|(_, end_ns, tally)| (*end_ns, tally));
        let now = self.part.as_mut().zip(self.edges.get(self.passed));
        let now = now.map(|(tally, end_ns)| (*end_ns, tally));
        for (end_ns, tally) in now.into_iter().chain(ended) {
            let until_ns = park.until_ns.min(end_ns);
            if park.since_ns < end_ns {
                let park = Park { until_ns, ..park.clone() };
                tally.push(&Record::Parked { thread, park });
            }
        }
    }

    /// Ends a part at the next edge, and begins another one there.
    fn pass(&mut self) {
        let edge_ns = self.edges[self.passed];
        let next = (self.passed + 1 < self.edges.len())
            .then(|| self.analysis.tally.reopened(edge_ns, Detail::All));
        self.parts.extend(self.ending.take());
        if let Some(part) = std::mem::replace(&mut self.part, next) {
            self.ending = Some((self.edges[self.passed - 1], edge_ns, part));
        }
        self.passed += 1;
    }

    /// What was measured.
    pub fn measures(mut self) -> Measures {
        while self.passed < self.edges.len() {
            self.pass();
        }
        self.parts.extend(self.ending.take());
        let whole = &self.analysis.tally;
        let started_ns = whole.started_ns.unwrap_or(whole.now_ns);
        let stretch = |start_ns: u64, end_ns: u64, tally: &Tally| Stretch {
            start_s: seconds(start_ns.saturating_sub(started_ns)),
            end_s: seconds(end_ns.saturating_sub(started_ns)),
            processes: tally.grouped_until(end_ns, whole),
        };
        let parts =
            self.parts.iter().map(|(start_ns, end_ns, part)| stretch(*start_ns, *end_ns, part));
        Measures {
            report: self.analysis.report(),
            parts: parts.collect(),
            whole: stretch(self.begin_ns, self.end_ns, whole),
        }
    }
}

/// Counts a record in a part that ends at `end_ns`.
fn push(part: &mut Tally, record: &Record, end_ns: u64) {
    match record {
        // The kernel's counts, and the thread's own, are of its whole life.
        Record::ThreadEnded { thread, at_ns, .. } => part.end_thread(*thread, *at_ns, None),
        Record::KernelCount { count: KernelCount { at_ns, .. }, .. } if *at_ns >= end_ns => {}
        _ => _ = part.push(record),
    }
}
