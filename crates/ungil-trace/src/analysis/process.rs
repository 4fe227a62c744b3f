//! A process and a thread, as far as they have been told of.

use super::gil::Gil;
use super::kernel::Counts;
use crate::record::{self, ProcessTotals, ThreadId, ThreadTotals};
use std::collections::BTreeSet;

/// One process image.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) known: record::Process,
    pub(super) ended_ns: Option<u64>,
    pub(super) totals: ProcessTotals,
    /// In the order in which they were first used.
    pub(super) gils: Vec<Gil>,
    /// How often a CPU limit stopped it, and for how many ns, if that is known.
    pub(super) throttled: Option<(u64, u64)>,
    /// Its threads that have not ended.
    pub(super) live: BTreeSet<ThreadId>,
}

/// One thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) process: record::ProcessId,
    pub(super) tid: u32,
    pub(super) name: String,
    pub(super) started_ns: u64,
    pub(super) ended_ns: Option<u64>,
    pub(super) totals: Option<ThreadTotals>,
    /// One for each GIL it touched, nearly always a single one.
    pub(super) chairs: Vec<Chair>,
    /// What the kernel had counted for it before it was seen to touch one.
    pub(super) counts: Counts,
}

/// Where a thread sits at one GIL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chair {
    /// The GIL's number.
    number: u8,
    /// Its place in [`Process::gils`].
    pub(super) place: usize,
    /// The thread's seat there.
    pub(super) seat: u32,
}

impl Thread {
    pub(super) const fn new(
        process: record::ProcessId,
        tid: u32,
        started_ns: u64,
        name: String,
    ) -> Self {
        Self {
            process,
            tid,
            name,
            started_ns,
            ended_ns: None,
            totals: None,
            chairs: Vec::new(),
            counts: Counts::new(),
        }
    }

    #[inline]
    pub(super) fn chair(&self, gil: u8) -> Option<Chair> {
        self.chairs.iter().find(|chair| chair.number == gil).copied()
    }
}

impl Process {
    pub(super) const fn new(known: record::Process) -> Self {
        let totals = ProcessTotals { switch_interval_ns: 0, policy: 0, unrecorded_threads: 0 };
        let gils = Vec::new();
        Self { known, ended_ns: None, totals, gils, throttled: None, live: BTreeSet::new() }
    }

    /// Seats `thread` at a GIL that it has not touched before.
    pub(super) fn seat(&mut self, id: ThreadId, thread: &mut Thread, number: u8) -> Chair {
        let place = self.gils.iter().position(|gil| gil.number == number).unwrap_or_else(|| {
            self.gils.push(Gil::new(number));
            self.gils.len() - 1
        });
        let chair = Chair { number, place, seat: self.gils[place].sit_down(id) };
        thread.chairs.push(chair);
        self.gils[place].seats[chair.seat as usize].counts = std::mem::take(&mut thread.counts);
        chair
    }

    /// Completes an ended thread that lost events by the totals it kept itself. One whose events
    /// were all lost is seated at the main interpreter's GIL.
    ///
    /// Without a loss the events are the whole truth, and the totals may differ from them by one: a
    /// thread that was killed had counted what it had not published yet, and one that outlived the
    /// recording counted on.
    pub(super) fn adopt(&mut self, id: ThreadId, thread: &mut Thread, totals: &ThreadTotals) {
        thread.totals = Some(*totals);
        if totals.lost_events == 0 || (totals.holds == 0 && totals.waits == 0) {
            return;
        }
        if thread.chairs.is_empty() {
            self.seat(id, thread, 0);
        }
        if let [chair] = thread.chairs[..] {
            self.gils[chair.place].seats[chair.seat as usize].adopt(totals);
        }
    }

    /// Time with and waiting for its GILs, in nanoseconds.
    pub(super) fn weight_ns(&self) -> u64 {
        let seats = self.gils.iter().flat_map(|gil| &gil.seats);
        let listed = seats.fold(0, |sum: u64, seat| sum.saturating_add(seat.weight_ns()));
        let folded_s: f64 =
            self.gils.iter().map(|gil| gil.others.held_s + gil.others.waited_s).sum();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from f64 saturates, and sums of lengths are not negative"
        )]
        listed.saturating_add((folded_s * 1e9) as u64)
    }
}
