//! A process and a thread, as far as they have been told of.

use super::behind_locks::BehindLocks;
use super::gil::Gil;
use super::judged::{Judged, Least};
use super::kernel_counts::KernelCounts;
use super::length::Lengths;
use super::park_stacks::ParkStacks;
use super::parks::Parks;
use super::seat::Detail;
use crate::record::{self, ProcessTotals, ThreadId, ThreadTotals};
use std::collections::BTreeSet;

/// One process image.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) known: record::Process,
    pub(super) ended_ns: Option<u64>,
    pub(super) totals: ProcessTotals,
    /// Shared libraries that its user may have built.
    pub(super) libraries: Vec<String>,
    /// What its threads waited for without a GIL; `None` if none did.
    pub(super) parks: Option<Box<Parks>>,
    /// The same for locks while it had a GIL.
    pub(super) locks: Option<Box<Parks>>,
    /// What threads did that had these.
    pub(super) behind_locks: BehindLocks,
    /// Where they slept, and were woken from.
    pub(super) park_stacks: ParkStacks,
    /// How its GIL was switched on, if that was seen.
    pub(super) switched_on: Option<SwitchedOn>,
    /// How long its threads stood still to be looked at.
    pub(super) stops: Lengths,
    /// In the order in which they were first used.
    pub(super) gils: Vec<Gil>,
    /// How often a CPU limit stopped it, and for how many ns, if that is known.
    pub(super) throttled: Option<(u64, u64)>,
    /// The part of it from before counting began.
    pub(super) throttled_before: (u64, u64),
    /// Its threads that have not ended.
    pub(super) live: BTreeSet<ThreadId>,
    pub(super) startup: Startup,
    /// From where on holds and waits are judged one by one, if they are.
    pub(super) judged: Option<Least>,
    /// Whether what ends is told one by one.
    pub(super) tells_ended: bool,
    /// Before it nothing is counted.
    pub(super) floor_ns: u64,
}

/// How the GIL of a free-threaded interpreter was switched on.
#[derive(Clone, Debug)]
pub(super) struct SwitchedOn {
    /// The extension module that was loaded last then; empty if that is not known.
    pub(super) library: String,
    /// What the thread did that had the GIL, innermost frame first.
    pub(super) frames: Vec<record::Frame>,
}

/// What a process does before it has a second thread: mostly imports. Nobody can wait then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Startup {
    /// No thread has touched a GIL yet, or one has.
    Alone { threads: u32 },
    /// The second thread appeared then.
    Until { at_ns: u64 },
    /// It was over before counting began.
    Before,
}

/// One thread.
#[derive(Clone, Debug)]
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
    pub(super) counts: KernelCounts,
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
            counts: KernelCounts::new(),
        }
    }

    /// The same thread from `at_ns` on; `None` if it has ended.
    pub(super) fn reopened(&self, at_ns: u64) -> Option<Self> {
        let started_ns = self.started_ns.max(at_ns);
        self.ended_ns.is_none().then(|| Self { started_ns, ..self.clone() })
    }

    #[inline]
    pub(super) fn chair(&self, gil: u8) -> Option<Chair> {
        self.chairs.iter().find(|chair| chair.number == gil).copied()
    }
}

impl Process {
    pub(super) fn new(known: record::Process) -> Self {
        let totals = ProcessTotals::default();
        let startup =
            if known.ran_before { Startup::Before } else { Startup::Alone { threads: 0 } };
        Self {
            known,
            ended_ns: None,
            totals,
            libraries: Vec::new(),
            parks: None,
            locks: None,
            behind_locks: BehindLocks::default(),
            park_stacks: ParkStacks::default(),
            switched_on: None,
            stops: Lengths::default(),
            gils: Vec::new(),
            throttled: None,
            throttled_before: (0, 0),
            live: BTreeSet::new(),
            startup,
            judged: None,
            tells_ended: false,
            floor_ns: 0,
        }
    }

    /// A thread touched a GIL for the first time.
    pub(super) fn begin_thread(&mut self, id: ThreadId, at_ns: u64) {
        self.live.insert(id);
        if let Startup::Alone { threads } = &mut self.startup {
            *threads += 1;
            if *threads == 2 && at_ns < self.floor_ns {
                self.startup = Startup::Before;
            } else if *threads == 2 {
                self.gils.iter_mut().for_each(|gil| gil.end_startup(at_ns));
                self.startup = Startup::Until { at_ns };
            }
        }
    }

    /// Whether anything was counted that its threads did.
    pub(super) fn has_counted(&self) -> bool {
        let mut seats = self.gils.iter().flat_map(|gil| &gil.seats);
        seats.any(|seat| seat.last_ns > self.floor_ns)
    }

    /// The same process with nothing counted yet, from `at_ns` on; `None` if it has ended.
    pub(super) fn reopened(&self, at_ns: u64, detail: Detail) -> Option<Self> {
        if self.ended_ns.is_some() {
            return None;
        }
        let mut known = self.known.clone();
        known.at_ns = known.at_ns.max(at_ns);
        let live = |thread| self.live.contains(&thread);
        Some(Self {
            known,
            ended_ns: None,
            totals: self.totals,
            libraries: self.libraries.clone(),
            parks: None,
            locks: None,
            behind_locks: BehindLocks::default(),
            park_stacks: self.park_stacks.clone(),
            switched_on: self.switched_on.clone(),
            stops: Lengths::default(),
            throttled: self.throttled,
            throttled_before: self.throttled.unwrap_or_default(),
            gils: self.gils.iter().map(|gil| gil.reopened(at_ns, detail, live)).collect(),
            live: self.live.clone(),
            startup: match self.startup {
                alone @ Startup::Alone { .. } => alone,
                Startup::Until { .. } | Startup::Before => Startup::Before,
            },
            judged: None,
            tells_ended: false,
            floor_ns: at_ns,
        })
    }

    /// Seats `thread` at a GIL that it has not touched before.
    pub(super) fn seat(&mut self, id: ThreadId, thread: &mut Thread, number: u8) -> Chair {
        let place = self.gils.iter().position(|gil| gil.number == number).unwrap_or_else(|| {
            let mut gil = Gil::since(number, self.floor_ns);
            gil.judged = self.judged.map(Judged::new);
            gil.ended = self.tells_ended.then(Vec::new);
            if let Startup::Until { at_ns } = self.startup {
                gil.end_startup(at_ns);
            }
            self.gils.push(gil);
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
        let parked_ns = self.parks.as_ref().map_or(0, |parks| parks.parked_ns());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from f64 saturates, and sums of lengths are not negative"
        )]
        listed.saturating_add(parked_ns).saturating_add((folded_s * 1e9) as u64)
    }
}
