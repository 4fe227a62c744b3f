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

#[cfg(test)]
mod tests {
    use super::*;
    use ungil_core::Event;

    const MS: u64 = 1_000_000;
    const WAIT: Condition = Condition { limit: Limit::Wait, over_ns: 50 * MS };
    const HOLD: Condition = Condition { limit: Limit::Hold, over_ns: 100 * MS };

    fn event(at_ms: u64, thread: u32, kind: Kind) -> Record {
        let event = Event { at_ns: at_ms * MS, kind, gil: 0, seq: 0 };
        Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event }
    }

    /// What is told, as limit, thread, and length in ms.
    fn told(conditions: &[Condition], events: &[Record]) -> Vec<(Limit, u32, u64)> {
        let mut stalls = Stalls::new(conditions);
        let found = events.iter().filter_map(|event| stalls.push(event));
        found.map(|it| (it.condition.limit, it.thread.0, it.length_ns() / MS)).collect()
    }

    #[test]
    fn what_lasts_longer_than_it_may_is_told_as_it_ends() {
        let events = [
            event(0, 0, Kind::Acquire),
            event(10, 1, Kind::Wait),
            event(70, 2, Kind::Wait),
            event(101, 0, Kind::ReleaseForced),
            event(102, 1, Kind::Acquire),
            event(202, 1, Kind::ReleaseVoluntary),
            event(203, 2, Kind::Acquire),
        ];
        let all = [(Limit::Hold, 0, 101), (Limit::Wait, 1, 92), (Limit::Wait, 2, 133)];
        assert_eq!(told(&[WAIT, HOLD], &events), all);
        assert_eq!(told(&[HOLD], &events), all[..1]);
        assert_eq!(told(&[WAIT], &events), all[1..]);
        let lower = Condition { over_ns: 99 * MS, ..HOLD };
        assert_eq!(told(&[HOLD, lower], &events), [(Limit::Hold, 0, 101), (Limit::Hold, 1, 100)]);
    }

    #[test]
    fn an_event_that_was_lost_makes_no_stall_of_what_followed() {
        // The release of 0, the acquire of 1, and the acquire of 2 were lost.
        let lost_release = [
            event(0, 0, Kind::Acquire),
            event(90, 1, Kind::Acquire),
            event(150, 0, Kind::Acquire),
            event(160, 0, Kind::ReleaseVoluntary),
        ];
        assert_eq!(told(&[HOLD], &lost_release), []);
        let lost_acquire = [
            event(0, 1, Kind::Wait),
            event(20, 1, Kind::ReleaseVoluntary),
            event(200, 1, Kind::Acquire),
        ];
        assert_eq!(told(&[WAIT], &lost_acquire), []);
    }

    #[test]
    fn what_goes_on_is_told_once_and_again_when_it_ends() {
        let mut stalls = Stalls::new(&[WAIT, HOLD]);
        stalls.push(&event(0, 0, Kind::Acquire));
        stalls.push(&event(0, 1, Kind::Wait));
        assert_eq!(stalls.going_on(1_000 * MS), []);
        let (both, again) = (stalls.going_on(1_200 * MS), stalls.going_on(5_000 * MS));
        assert_eq!(both.iter().map(|it| it.thread.0).collect::<Vec<_>>(), [1, 0]);
        assert!(both.iter().all(|it| it.goes_on && it.length_ns() == 1_200 * MS));
        assert_eq!(again, []);
        let end = stalls.push(&event(6_000, 0, Kind::ReleaseForced)).unwrap();
        assert_eq!((end.goes_on, end.length_ns()), (false, 6_000 * MS));
    }

    #[test]
    fn a_thread_that_has_ended_neither_waits_nor_holds() {
        let mut stalls = Stalls::new(&[WAIT, HOLD]);
        for thread in 0..2 {
            let kind = if thread == 0 { Kind::Acquire } else { Kind::Wait };
            stalls.push(&event(0, thread, kind));
            let (thread, totals) = (ThreadId(thread), crate::record::ThreadTotals::default());
            stalls.push(&Record::ThreadEnded { thread, at_ns: MS, totals });
        }
        assert_eq!(stalls.going_on(u64::MAX), []);
    }
}
