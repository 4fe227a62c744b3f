//! Which waits and holds last too long, seen as they end, or while they go on.

use super::ids::ById;
use crate::record::{ProcessId, Record, ThreadId};
use ungil_core::Kind;

/// A stall that goes on is told once it has lasted so much longer than its limit: most end, and
/// then their end is known.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What must not last long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// A thread's wait for a GIL.
    Wait,
    /// A thread's hold of one, whether or not another thread waits.
    Hold,
}

/// What must not last longer than so many nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Condition {
    /// Which.
    pub limit: Limit,
    /// How long.
    pub over_ns: u64,
}

/// Something lasted too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Longer than this allows.
    pub condition: Condition,
    /// Of which process.
    pub process: ProcessId,
    /// Who waited, or held.
    pub thread: ThreadId,
    /// For, or of, which GIL.
    pub gil: u8,
    /// When it began.
    pub since_ns: u64,
    /// When it ended, or was told.
    pub until_ns: u64,
    /// Whether it goes on.
    pub goes_on: bool,
}

impl Stall {
    /// How long it lasted, as far as it is known.
    pub const fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

/// Who waits and who holds, since when.
#[derive(Debug, Default)]
pub struct Stalls {
    wait_ns: Option<u64>,
    hold_ns: Option<u64>,
    waits: ById<(ThreadId, u8), Going>,
    /// One for each GIL.
    holds: ById<(ProcessId, u8), Going>,
}

#[derive(Clone, Copy, Debug)]
struct Going {
    process: ProcessId,
    thread: ThreadId,
    since_ns: u64,
    told: bool,
}

impl Stalls {
    /// Of several limits for the same the lowest counts.
    pub fn new(conditions: &[Condition]) -> Self {
        let lowest = |limit| {
            let these = conditions.iter().filter(|condition| condition.limit == limit);
            these.map(|condition| condition.over_ns).min()
        };
        Self { wait_ns: lowest(Limit::Wait), hold_ns: lowest(Limit::Hold), ..Self::default() }
    }

    /// Takes in one record, and says whether what it ends has lasted too long.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Option<Stall> {
        match record {
            &Record::Gil { process, thread, event } => {
                let (gil, at_ns) = (event.gil, event.at_ns);
                let going = Going { process, thread, since_ns: at_ns, told: false };
                match event.kind {
                    Kind::Wait => {
                        self.wait_ns?;
                        self.waits.insert((thread, gil), going);
                        None
                    }
                    Kind::Acquire => {
                        if self.hold_ns.is_some() {
                            // Whose release was lost holds no more.
                            self.holds.insert((process, gil), going);
                        }
                        let wait = self.wait_ns.and_then(|_| self.waits.remove(&(thread, gil)))?;
                        stall(Limit::Wait, self.wait_ns?, wait, gil, at_ns, false)
                    }
                    Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                        if !self.waits.is_empty() {
                            // An acquire that was lost has ended it.
                            self.waits.remove(&(thread, gil));
                        }
                        let hold_ns = self.hold_ns?;
                        let hold = self.holds.remove(&(process, gil))?;
                        stall(Limit::Hold, hold_ns, hold, gil, at_ns, false)
                            .filter(|_| hold.thread == thread)
                    }
                    Kind::DropRequest | Kind::Ran | Kind::RanAndBlocked => None,
                }
            }
            Record::ThreadEnded { thread, .. } => {
                self.waits.retain(|(waiting, _), _| waiting != thread);
                self.holds.retain(|_, hold| hold.thread != *thread);
                None
            }
            _ => None,
        }
    }

    /// What goes on for much too long at this moment, each once.
    pub fn going_on(&mut self, now_ns: u64) -> Vec<Stall> {
        let mut found = Vec::new();
        let mut look = |limit, over_ns: Option<u64>, going: &mut Going, gil| {
            let Some(over_ns) = over_ns.filter(|_| !going.told) else { return };
            if now_ns.saturating_sub(going.since_ns) >= over_ns.saturating_add(PATIENCE_NS) {
                going.told = true;
                found.extend(stall(limit, over_ns, *going, gil, now_ns, true));
            }
        };
        for ((_, gil), wait) in &mut self.waits {
            look(Limit::Wait, self.wait_ns, wait, *gil);
        }
        for ((_, gil), hold) in &mut self.holds {
            look(Limit::Hold, self.hold_ns, hold, *gil);
        }
        found
    }
}

fn stall(
    limit: Limit,
    over_ns: u64,
    going: Going,
    gil: u8,
    until_ns: u64,
    goes_on: bool,
) -> Option<Stall> {
    let Going { process, thread, since_ns, .. } = going;
    let condition = Condition { limit, over_ns };
    let stall = Stall { condition, process, thread, gil, since_ns, until_ns, goes_on };
    (stall.length_ns() > over_ns).then_some(stall)
}
