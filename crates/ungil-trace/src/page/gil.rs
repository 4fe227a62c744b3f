//! Everything that a page tells of one GIL, as it ends.

use super::buckets::{Buckets, Doing};
use super::holds::{Hold, Holds};
use super::lanes::Lanes;
use super::looks::Looks;
use super::stacks::Sampled;
use crate::analysis::{Ended, EndedHold, EndedWait, Ending};

/// Buckets of contended time.
const CONTENDED: u64 = 1_024;

/// How times become units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Where the page begins.
    pub(super) base_ns: u64,
    pub(super) unit_ns: u64,
}

impl Scale {
    #[inline]
    pub(super) const fn at(self, ns: u64) -> u64 {
        ns.saturating_sub(self.base_ns) / self.unit_ns
    }
}

/// One GIL.
#[derive(Debug)]
pub(super) struct Gil {
    pub(super) scale: Scale,
    pub(super) lanes: Lanes,
    pub(super) holds: Holds,
    pub(super) buckets: Buckets,
    /// Contended time by bucket, of the width beside it.
    pub(super) contended: (u64, Vec<u64>),
    /// Held and waited time, in ns: how much the GIL matters.
    pub(super) weight_ns: [u64; 2],
    /// A wait whose hold has not been told yet.
    acquired: Option<EndedWait>,
    pub(super) looks: Looks,
}

impl Gil {
    pub(super) fn new(scale: Scale, width: u64) -> Self {
        Self {
            scale,
            lanes: Lanes::default(),
            holds: Holds::default(),
            buckets: Buckets::new(width),
            contended: (width, Vec::new()),
            weight_ns: [0; 2],
            acquired: None,
            looks: Looks::default(),
        }
    }

    /// Takes in what has ended.
    #[inline]
    pub(super) fn take(&mut self, ended: &Ended) {
        match *ended {
            Ended::Hold(hold) => self.hold(hold),
            Ended::Wait(wait) => self.wait(wait),
            Ended::Contended { from_ns, to_ns } => self.contended(from_ns, to_ns),
            Ended::DropRequest { thread, at_ns } => {
                let (lane, at) = (self.lanes.of(thread), self.scale.at(at_ns));
                self.holds.ask(lane, at);
                self.buckets.ask(lane, at);
            }
            Ended::Charged { victim, culprit, ns } => {
                let victim = self.lanes.of(victim);
                let culprit = culprit.map(|thread| self.lanes.of(thread));
                // In nanoseconds: many short ones make a sum.
                self.holds.sums().charge(victim, culprit, ns);
            }
        }
    }

    fn wait(&mut self, wait: EndedWait) {
        let lane = self.lanes.of(wait.thread);
        let (begin, end) = (self.scale.at(wait.since_ns), self.scale.at(wait.end_ns));
        let ns = wait.end_ns.saturating_sub(wait.since_ns);
        self.weight_ns[1] = self.weight_ns[1].saturating_add(ns);
        self.holds.sums().wait(ns);
        self.buckets.add(lane, Doing::Waits, begin, end);
        self.buckets.end_wait(lane, end);
        if wait.acquired {
            self.loosen();
            self.acquired = Some(wait);
        } else {
            self.holds.push_loose(lane, begin, end, true);
        }
    }

    /// The hold that was to end a wait has not come.
    fn loosen(&mut self) {
        if let Some(wait) = self.acquired.take() {
            let (begin, end) = (self.scale.at(wait.since_ns), self.scale.at(wait.end_ns));
            self.holds.push_loose(self.lanes.of(wait.thread), begin, end, false);
        }
    }

    fn hold(&mut self, hold: EndedHold) {
        let lane = self.lanes.of(hold.thread);
        let (begin, end) = (self.scale.at(hold.start_ns), self.scale.at(hold.end_ns));
        let ends_in_it =
            |wait: &mut EndedWait| wait.thread == hold.thread && wait.end_ns == hold.start_ns;
        let wait = self.acquired.take_if(ends_in_it);
        self.loosen();
        let ns = hold.end_ns.saturating_sub(hold.start_ns);
        self.weight_ns[0] = self.weight_ns[0].saturating_add(ns);
        // A length, so it is rounded, where moments are cut.
        let units = |ns: u64| (ns + self.scale.unit_ns / 2) / self.scale.unit_ns;
        let not_run = units(hold.not_run_least_ns);
        self.buckets.add(lane, Doing::Holds { not_run }, begin, end);
        self.buckets.end_hold(lane, end, hold.ending == Ending::Forced);
        let row = Hold {
            lane,
            begin,
            end,
            waited_from: wait.map(|wait| self.scale.at(wait.since_ns)),
            ending: hold.ending,
            not_run,
            not_run_most: units(hold.not_run_most_ns),
            cpu: hold.cpu_ns.map(units),
        };
        let waited = units(hold.waited_ns);
        self.holds.push(row, ns);
        self.looks.ended(hold.thread, ns, || Sampled {
            lane,
            begin,
            end,
            waited,
            looks: Vec::new(),
        });
    }

    fn contended(&mut self, from_ns: u64, to_ns: u64) {
        let (mut at, end) = (self.scale.at(from_ns), self.scale.at(to_ns));
        let (width, buckets) = &mut self.contended;
        while end / *width >= CONTENDED {
            *width *= 2;
            let halved = buckets.chunks(2).map(|pair| pair.iter().sum());
            *buckets = halved.collect();
        }
        while at < end {
            let bucket = at / *width;
            let to = ((bucket + 1) * *width).min(end);
            let index = usize::try_from(bucket).expect("there are at most a thousand");
            if index >= buckets.len() {
                buckets.resize(index + 1, 0);
            }
            buckets[index] += to - at;
            at = to;
        }
    }

    /// Nothing comes any more.
    pub(super) fn finish(&mut self) {
        self.loosen();
        self.holds.close();
        self.buckets.finish();
        let Self { lanes, looks, .. } = self;
        looks.finish(|thread| lanes.known(thread));
    }
}
