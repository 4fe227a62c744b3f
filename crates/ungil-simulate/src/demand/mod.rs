//! What the threads of one GIL wanted, as a trace tells it, without what the GIL made them wait.

mod links;
mod steady;
mod switches;
mod races;
mod successors;
mod supply;
mod wakes;
mod deliveries;
mod seat;
mod starters;
mod launches;
mod pools;
mod gil;
mod collector;

pub use collector::Collector;
pub(crate) use deliveries::{Deliveries, Delivery, Stop};
pub(crate) use launches::Launch;
pub(crate) use links::{Follows, Link, OWN_NS};
pub(crate) use pools::Pool;
pub(crate) use races::{End, FOR_LONG_NS, Races};
pub(crate) use starters::{Start, Started, Starter};
pub use steady::Steady;
pub(crate) use successors::Successor;
pub(crate) use supply::{Consumer, Supply};
pub(crate) use switches::Switches;
pub(crate) use wakes::{Progress, Wake};

use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::figures::Figures;
use crate::lengths::scaled;
use crate::naps::Naps;
use std::sync::{Arc, OnceLock};
use ungil_core::schedule::Settings;
use ungil_trace::Record;
use ungil_trace::report::Processors;

/// What the threads of one GIL of one process wanted. Times are in nanoseconds, moments since the
/// process was first seen (or since the snapshot begins).
#[derive(Clone, Debug)]
pub struct Demand {
    /// Kernel process id.
    pub pid: u32,
    /// Command line.
    pub argv: Vec<String>,
    /// Which GIL of the process; 0 is the main interpreter's.
    pub gil: u8,
    /// How it was scheduled when it was recorded.
    pub settings: Settings,
    /// The processors that the process may use; `None` if the trace does not tell.
    pub processors: Option<Processors>,
    /// How long it was recorded.
    pub lasts_ns: u64,
    /// All threads that used it, in the order in which they first did.
    pub threads: Vec<Thread>,
    /// What was recorded, in the figures of a prediction.
    pub recorded: Figures,
    /// How many events the trace lacks.
    pub lost_events: u64,
    pub(crate) machine: Machine,
    /// Threads that seem to work off what clients ask for.
    pub(crate) pools: Vec<Arc<Pool>>,
    /// What a simulation of the recorded rules says, once there was one.
    pub(crate) reproduced: OnceLock<Reproduced>,
}

/// What a simulation of the recorded rules says.
#[derive(Clone, Debug)]
pub(crate) struct Reproduced {
    pub(crate) figures: Figures,
    /// How threads were simulated: in no other way it is more like the recording.
    pub(crate) way: Way,
    /// Whether light threads took the processors of others, likewise.
    pub(crate) displaces: bool,
}

/// A trace does not tell for certain for what threads wait: how it is understood. Usually a thread
/// waits for others if most of its times away say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// It also does if the long ones say so.
    pub(crate) for_long: bool,
    /// Threads of a pool do what clients ask for.
    pub(crate) in_pools: bool,
    /// Threads do a piece for each delivery.
    pub(crate) by_deliveries: bool,
}

/// What one thread wanted.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// Its best name.
    pub name: String,
    /// Whether it is the main thread of its process.
    pub main: bool,
    /// When it first wanted the GIL.
    pub begins_ns: u64,
    /// Who begins after its end.
    pub(crate) successor: Option<Successor>,
    /// Whether it starts others for what arrives, and when.
    pub(crate) starter: Option<Arc<Starter>>,
    /// By whom it was started, if it was for an arrival.
    pub(crate) started: Option<Started>,
    /// Whom it starts for work of its own, in their order.
    pub(crate) launches: Arc<[Launch]>,
    /// Whether another thread starts it so.
    pub(crate) is_launched: bool,
    /// At the end of which use of which thread it was started, and how much later it began, as far as
    /// that one waited until it ran.
    pub(crate) begun_by: Option<Wake>,
    /// After which uses it slept for a lock of the program until another thread ended that.
    pub(crate) wakes: Arc<[Wake]>,
    /// What others bring to it, if it mostly sleeps for that.
    pub(crate) deliveries: Option<Arc<Deliveries>>,
    /// What it lives on, if others bring that.
    pub(crate) lives_on: Option<Consumer>,
    /// What it did, in its order.
    pub bursts: Arc<[Burst]>,
    /// Where it kept the GIL though it was asked for it, in the order of the bursts.
    pub(crate) unanswered: Arc<[Unanswered]>,
    /// What of that it would do again and again if the run went on.
    pub steady: Steady,
    /// Whether it mostly waits for other threads of the program.
    pub(crate) follows: Follows,
    /// Which part (of 1) of the time away from the GIL it had a processor.
    pub away_ran: f64,
    /// How long it took to let go of the GIL after it was asked, where that is not `unanswered`.
    pub(crate) answers: Arc<Delays>,
    /// How it went where a release woke it.
    pub(crate) races: Arc<Races>,
    /// How long it took to go on after another had the GIL that it was forced to let go of.
    pub(crate) switches: Switches,
}

/// One use of the GIL, from one blocking call to the next, however often it was interrupted, and
/// the time away from the GIL that follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// For how long it had the GIL.
    pub held_ns: u64,
    /// The part of that in which the kernel did not run it, as far as that is known.
    pub not_run_ns: u64,
    /// The part of that which it took longer because it came after others.
    pub(crate) cold_ns: u64,
    /// From letting go to wanting it again.
    pub away_ns: u64,
    /// What it waited for in that time, where another thread of the program seems to have woken it.
    pub(crate) after: Option<Link>,
}

/// A part of a burst in which the thread did not let go though it was asked: native code. From and
/// to so many nanoseconds with the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    pub(crate) burst: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// What the machine took, between the threads.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// How late timers are that a thread sleeps for, after more than a nap.
    pub(crate) lateness: Delays,
    pub(crate) naps: Naps,
    /// How slow a thread is after another.
    pub(crate) coldness: Coldness,
}

impl Thread {
    /// Whether it waits for other threads of the program, if the trace is understood in that way.
    pub(crate) fn waits_for_others(&self, way: Way) -> bool {
        match self.follows {
            Follows::Nobody => false,
            Follows::Often => true,
            Follows::ForLong => way.for_long,
        }
    }

    /// What it did, with whom it waited for, if the trace is understood in that way.
    pub(crate) fn bursts_in(&self, way: Way) -> Arc<[Burst]> {
        if self.follows != Follows::ForLong || self.waits_for_others(way) {
            return self.bursts.clone();
        }
        self.bursts.iter().map(|burst| Burst { after: None, ..*burst }).collect()
    }

    /// How long it runs at most when it is away from the GIL: then all its times away have its CPU
    /// time in sum.
    pub(crate) fn away_runs_ns(&self) -> u64 {
        let mut aways: Vec<_> = self.bursts.iter().map(|burst| burst.away_ns).collect();
        aways.sort_unstable();
        let total: u64 = aways.iter().fold(0, |sum, away_ns| sum.saturating_add(*away_ns));
        let mut left_ns = scaled(total, self.away_ran);
        let mut longer = aways.len() as u64;
        for away_ns in aways {
            if away_ns.saturating_mul(longer) >= left_ns {
                return left_ns.div_ceil(longer);
            }
            (left_ns, longer) = (left_ns - away_ns, longer - 1);
        }
        u64::MAX
    }
}

impl Demand {
    /// The pools that do what clients ask for, if the trace is understood in that way.
    pub(crate) fn pools_in(&self, way: Way) -> &[Arc<Pool>] {
        if way.in_pools { &self.pools } else { &[] }
    }

    /// What the trace with these records tells, one for each GIL that was used; the one for which
    /// threads waited longest comes first.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Self> {
        let mut collector = Collector::default();
        records.into_iter().for_each(|record| collector.push(record));
        collector.finish()
    }
}
