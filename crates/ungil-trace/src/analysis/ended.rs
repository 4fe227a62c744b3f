//! Holds and waits one by one, as they end, for those who want more than the report's sums.

use super::hold::End;
use super::tally::Tally;
use crate::record::{ProcessId, ThreadId};

/// From this length on it is counted what others waited during a hold.
const WAITED_FROM_NS: u64 = 1_000_000;

/// Something that has ended at a GIL, as the report counts it. Those of one GIL come in the order
/// in which they ended; the holds of one GIL never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A hold.
    Hold(EndedHold),
    /// A wait.
    Wait(EndedWait),
    /// A stretch in which one thread held and another waited.
    Contended {
        /// From when,
        from_ns: u64,
        /// to when.
        to_ns: u64,
    },
    /// A drop request.
    DropRequest {
        /// Who asked.
        thread: ThreadId,
        /// When.
        at_ns: u64,
    },
    /// A part of a wait was charged.
    Charged {
        /// Who waited.
        victim: ThreadId,
        /// Who held meanwhile; `None`: nobody.
        culprit: Option<ThreadId>,
        /// For how long.
        ns: u64,
    },
}

/// A hold that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedHold {
    /// The holder.
    pub thread: ThreadId,
    /// When it began; where counting begins in it, that moment.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// How.
    pub ending: Ending,
    /// For how long the kernel did not run the holder, at least,
    pub not_run_least_ns: u64,
    /// and at most.
    pub not_run_most_ns: u64,
    /// For how long the holder ran, if that is known.
    pub cpu_ns: Option<u64>,
    /// What others waited during it, summed; 0 for one shorter than a millisecond.
    pub waited_ns: u64,
}

/// A wait that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWait {
    /// Who waited.
    pub thread: ThreadId,
    /// Since when; where counting begins in it, since that moment.
    pub since_ns: u64,
    /// Until when.
    pub end_ns: u64,
    /// Whether it ended in an acquire: the thread's next hold follows it.
    pub acquired: bool,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By a release that nobody had asked for.
    Voluntary,
    /// By a release while a drop request was pending.
    Forced,
    /// Its release was lost.
    Unseen,
    /// With its thread, its process, or what is known.
    Cut,
}

impl From<End> for Ending {
    fn from(end: End) -> Self {
        match end {
            End::Voluntary => Self::Voluntary,
            End::Forced => Self::Forced,
            End::Unseen => Self::Unseen,
            End::Cut => Self::Cut,
        }
    }
}

/// Whether it is worth counting what was waited during a hold of this length.
pub(super) const fn counts_waits(length_ns: u64) -> bool {
    length_ns >= WAITED_FROM_NS
}

/// Where it happened: the process and the number of its GIL.
pub type Place = (ProcessId, u8);

impl Tally {
    /// From now on, tells what ends.
    pub(super) fn tell_ended(&mut self) {
        self.tells_ended = true;
        self.sleeps.get_or_insert_default();
        for process in self.processes.iter_mut() {
            process.tells_ended = true;
            for gil in &mut process.gils {
                gil.ended.get_or_insert_default();
            }
        }
    }

    /// Hands over what has ended since the last call.
    pub(super) fn take_ended(&mut self, take: &mut impl FnMut(Place, &Ended)) {
        for (place, ended) in self.ended_before.drain(..) {
            for ended in &ended {
                take(place, ended);
            }
        }
        for process in self.processes.iter_mut() {
            let id = process.known.process;
            for gil in &mut process.gils {
                let place = (id, gil.number);
                for ended in gil.ended.iter_mut().flat_map(|ended| ended.drain(..)) {
                    take(place, &ended);
                }
            }
        }
    }

    /// Ends what goes on, as the report at this moment counts it.
    pub(super) fn end_running(&mut self, now_ns: u64) {
        let blame_ns = self.blame_after_ns;
        for process in self.processes.iter_mut() {
            let end_ns = process.ended_ns.unwrap_or(now_ns).min(now_ns).max(process.known.at_ns);
            for thread in &process.live {
                let Some(thread) = self.threads.get(thread.0) else { continue };
                for chair in &thread.chairs {
                    process.gils[chair.place].leave(chair.seat, end_ns, blame_ns);
                }
            }
        }
    }
}
