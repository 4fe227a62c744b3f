//! One thread of a traced process, seen from outside.

use super::follower::Follower;
use super::gap::Gap;
use super::kernel_counts::{kernel_count, switches};
use super::times::Times;
use super::used_before::{Used, UsedBefore};
use crate::numbers::Numbers;
use crate::record::{ProcessId, Record, ThreadId, ThreadTotals};
use std::fs;
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::table::{Slot, Table, load_text};
use ungil_core::tick::Clock;

/// A thread that has a slot.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its id in the trace.
    pub id: ThreadId,
    /// Kernel thread id; 0 if it is of another namespace, and had ended before it was found.
    pub tid: u32,
    /// What it calls itself.
    pub own_tid: u32,
    /// `threading.get_ident()`.
    pub ident: u64,
    /// Whether Python's own name is known.
    pub named: bool,
    /// The GIL of its last event.
    pub gil: u8,
    /// When the hold began that was looked at last, by the table's clock and in ns.
    hold: (u64, u64),
    /// How many threads have had its slot, this one included.
    pub generation: u32,
    /// CPU time and context switches as the kernel told from outside.
    outside: Used,
    /// The same of before it was recorded.
    before: Used,
    /// Whether it had told of anything in the last round.
    pub was_active: bool,
    /// What the kernel does with it while it holds.
    pub follower: Follower,
    /// The gap in which the last look found it.
    pub gap: Gap,
}

impl Thread {
    /// The thread that has `slot`, whose first record is given out.
    pub fn introduce(
        process: ProcessId,
        numbers: &mut Numbers,
        slot: &Slot,
        at_ns: u64,
        used_before: &UsedBefore,
        next: &mut ThreadId,
        give: &mut impl FnMut(Record),
    ) -> Self {
        let id = *next;
        next.0 += 1;
        let own_tid = slot.tid.load(Relaxed);
        let tid = numbers.tid(own_tid);
        let is_main = own_tid == numbers.own_pid();
        let thread = Self {
            id,
            tid,
            own_tid,
            ident: slot.ident.load(Relaxed),
            named: is_main,
            gil: 0,
            hold: (0, 0),
            generation: slot.generation.load(Relaxed),
            outside: [0; 3],
            before: used_before.of_thread(tid),
            was_active: true,
            follower: Follower::default(),
            gap: Gap::default(),
        };
        let tid = thread.told_tid();
        let name = if is_main { "MainThread".to_owned() } else { format!("thread-{tid}") };
        give(Record::ThreadStarted { thread: id, process, tid, at_ns, name });
        thread
    }

    /// What users are told: if nothing else is known, what it calls itself.
    pub const fn told_tid(&self) -> u32 {
        if self.tid == 0 { self.own_tid } else { self.tid }
    }

    /// When the hold began that goes on, 0 if there is none. It is the same at every look, which what
    /// the calibration says of a moment long past need not be.
    pub fn holding_since_ns(&mut self, slot: &Slot, times: &mut Times, clock: Clock) -> u64 {
        let ticks = slot.holding_since_ticks.load(Relaxed);
        if self.hold.0 != ticks {
            self.hold = (ticks, if ticks == 0 { 0 } else { times.ns(clock, ticks) });
        }
        self.hold.1
    }

    /// Asks the kernel for its CPU time and context switches: a thread that holds the GIL for long
    /// does not tell its own.
    pub fn sample_outside(&mut self, pid: u32, gils: &[u64]) {
        let count = kernel_count(pid, self.tid, gils);
        if let Some(count) = count {
            self.follower.keep(count);
        }
        let [voluntary, involuntary] = switches(pid, self.tid);
        let now = [count.map_or(0, |count| count.ran_ns), voluntary, involuntary];
        for (known, now) in self.outside.iter_mut().zip(now) {
            *known = now.max(*known);
        }
    }

    /// Keeps what the kernel counts for it, which may be the last count before a long hold.
    pub fn keep_count(&mut self, pid: u32, gils: &[u64]) {
        if let Some(count) = kernel_count(pid, self.tid, gils) {
            self.follower.keep(count);
        }
    }

    /// A thread that ended before Python's name for it could be read keeps the kernel's, if it has
    /// one of its own (Python 3.14 sets it, and so do many native libraries).
    pub fn name_by_kernel(
        &self,
        numbers: &Numbers,
        table: Table,
        slot: &Slot,
        give: &mut impl FnMut(Record),
    ) {
        let name = load_text(&slot.comm);
        let (pid, own_pid) = (numbers.pid(), numbers.own_pid());
        // The main thread's name as it was, because the process may be gone, and as it is, because
        // it may have been changed.
        let mains = table.used_slots().iter().filter(|main| main.tid.load(Relaxed) == own_pid);
        let before = mains.map(|main| load_text(&main.comm));
        let now = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut inherited = before.chain([now.trim_end().to_owned()]);
        if !name.is_empty() && inherited.all(|inherited| inherited != name) {
            give(Record::ThreadNamed { thread: self.id, name });
        }
    }

    /// Its totals since it is recorded, as it counted them itself; a hold or wait that still runs is
    /// not in them, and is known by its events.
    pub fn totals(&self, slot: &Slot) -> ThreadTotals {
        let [
            waits,
            waited_ns,
            holds,
            held_ns,
            voluntary,
            forced,
            drop_requests,
            cpu_ns,
            voluntary_switches,
            involuntary_switches,
        ] = slot.counters.fields().map(|field| field.load(Relaxed));
        let known = [cpu_ns, voluntary_switches, involuntary_switches];
        let used =
            |index: usize| known[index].max(self.outside[index]).saturating_sub(self.before[index]);
        ThreadTotals {
            waits,
            waited_ns,
            holds,
            held_ns,
            voluntary,
            forced,
            drop_requests,
            cpu_ns: used(0),
            voluntary_switches: used(1),
            involuntary_switches: used(2),
            lost_events: slot.lost.load(Relaxed),
        }
    }
}
