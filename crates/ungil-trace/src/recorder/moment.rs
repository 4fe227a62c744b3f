//! Who holds and who waits at one moment, as the threads of a traced process tell it.

use super::thread::Thread;
use super::times::Times;
use crate::record::ThreadId;
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::table::{SlotState, Table};
use ungil_core::tick::Clock;

/// Who holds and who waits at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Threads that have a slot.
    pub threads: usize,
    /// The holds that go on, one a GIL.
    pub holds: Vec<Running>,
}

/// A hold that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// The holder.
    pub thread: ThreadId,
    /// Its kernel thread id.
    pub tid: u32,
    /// Of which GIL.
    pub gil: u8,
    /// When it began.
    pub since_ns: u64,
    /// Whether any thread waits for that GIL.
    pub is_waited_for: bool,
}

impl Moment {
    /// What the slots of a table say about now. Which GIL a thread holds or waits for is known from
    /// its events, so a hold that has just begun may be shown at the GIL of the one before.
    pub fn of(
        table: Table,
        threads: &mut [Option<Thread>],
        times: &mut Times,
        clock: Clock,
    ) -> Self {
        let mut moment = Self::default();
        let mut waited_for = Vec::new();
        for (index, slot) in table.used_slots().iter().enumerate() {
            if slot.state() != Some(SlotState::Live) {
                continue;
            }
            moment.threads += 1;
            let Some(Some(thread)) = threads.get_mut(index) else { continue };
            let gil = thread.gil;
            if slot.waiting_since_ticks.load(Relaxed) != 0 && !waited_for.contains(&gil) {
                waited_for.push(gil);
            }
            let since_ns = thread.holding_since_ns(slot, times, clock);
            if since_ns != 0 {
                let (thread, tid) = (thread.id, thread.tid);
                moment.add(Running { thread, tid, gil, since_ns, is_waited_for: false });
            }
        }
        for hold in &mut moment.holds {
            hold.is_waited_for = waited_for.contains(&hold.gil);
        }
        moment
    }

    /// Adds a hold, unless an older one of the same GIL is there: the slots are read one after the
    /// other, while the GIL changes hands.
    fn add(&mut self, hold: Running) {
        match self.holds.iter_mut().find(|known| known.gil == hold.gil) {
            Some(known) if known.since_ns <= hold.since_ns => {}
            Some(known) => *known = hold,
            None => self.holds.push(hold),
        }
    }
}
