//! The decisions of a policy.
//!
//! Threads are compared by *virtual time*: how long each has held the GIL while another wanted
//! it, weighted by its level (Linux's CFS, Ingo Molnár 2007, does the same for processors). Time
//! in which nobody else wanted the GIL costs nobody anything and is not counted.
//! The *floor* is the virtual time of the whole. It follows the thread that is furthest behind, and
//! advances by each waiting thread's equal part of the time that others used ahead of it (as in
//! weighted fair queueing): so a thread that has slept cannot come back with all the time it left
//! unused, and one that waits cannot be passed for ever by threads that are always new.
//!
//! No thread is ever classed as "I/O" or "CPU". One that mostly blocks falls behind the floor, by
//! [`CREDIT`] quanta at most, and is ahead of the others when it comes back; neither an
//! interruption by the kernel nor a forced release changes that. A class that is given by one
//! hold, or by wall time, survives neither.

use super::policy::{Level, Policy, Settings};

/// How many quanta behind the floor a thread may come back under [`Policy::Interactive`].
const CREDIT: u64 = 3;
/// How many quanta ahead of the floor a thread can be at most: how long it can be made to wait
/// for what one long hold took from the others.
const LAG: u64 = 10;
/// Under [`Policy::Priority`], how long a thread waits for each level it lacks.
pub const AGING_NS: u64 = 200_000_000;
/// Where virtual time begins, so that nothing lies before zero.
const BEGINNING_NS: u64 = 1 << 40;

/// What is remembered of a thread between its uses of the GIL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    virtual_ns: u64,
    /// How long its turn has lasted, if it was interrupted.
    turn_ns: u64,
    /// Chosen by the user.
    pub level: Level,
    /// Which GIL the virtual time belongs to, plus one.
    gil: u32,
}

impl Account {
    /// The account of a new thread.
    pub const fn new() -> Self {
        Self { virtual_ns: 0, turn_ns: 0, level: Level::Normal, gil: 0 }
    }
}

/// A thread's place among those that want a GIL, from its arrival until it has let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Who has less goes first.
    pub rank: u64,
    /// When its turn began.
    virtual_ns: u64,
    /// How long its turn has lasted.
    turn_ns: u64,
    level: Level,
}

impl Standing {
    /// Before everybody else.
    const URGENT: u64 = 0;
    /// Of no thread.
    pub(super) const NOBODY: Self =
        Self { rank: 0, virtual_ns: 0, turn_ns: 0, level: Level::Normal };

    #[cfg(test)]
    pub(super) fn ranked(rank: u64) -> Self {
        Self { rank, ..Self::NOBODY }
    }
}

/// How the GIL was held while somebody wanted it.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// How long.
    pub wall_ns: u64,
    /// How long the holder had a processor.
    pub used_ns: u64,
    /// Whether it was asked to let go.
    pub forced: bool,
}

/// Decides for one GIL. Times are in nanoseconds of one clock that never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    settings: Settings,
    gil: u32,
    floor_ns: u64,
}

impl Scheduler {
    /// For the GIL with this number.
    pub const fn new(gil: u32, settings: Settings) -> Self {
        Self { settings, gil: gil.wrapping_add(1), floor_ns: BEGINNING_NS }
    }

    /// What it was made with, or told since.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Decides by `settings` from now on. Standings given before are worth nothing.
    pub fn change(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The standing of a thread that asks for the GIL; an urgent one goes before all others.
    pub fn enter(&self, account: &mut Account, now_ns: u64, urgent: bool) -> Standing {
        let lag = LAG.saturating_mul(self.settings.quantum_ns);
        let behind = self.floor_ns.saturating_sub(self.credit_ns());
        let virtual_ns = if account.gil == self.gil {
            account.virtual_ns =
                account.virtual_ns.clamp(behind, self.floor_ns.saturating_add(lag));
            account.virtual_ns
        } else {
            // A new thread is let in at once, but has no credit to use up: beside those that have,
            // it is asked at once.
            self.open(account);
            self.floor_ns.saturating_sub(self.settings.quantum_ns.min(self.credit_ns()))
        };
        let rank = if urgent {
            Standing::URGENT
        } else if self.settings.policy == Policy::Priority {
            now_ns.saturating_add(self.patience_ns(account.level, virtual_ns))
        } else {
            virtual_ns
        };
        Standing { rank, virtual_ns, turn_ns: account.turn_ns, level: account.level }
    }

    /// The standing of a thread that holds the GIL already when somebody else begins to want it.
    pub fn holding(&self, account: &mut Account, now_ns: u64) -> Standing {
        if account.gil != self.gil {
            self.open(account);
        }
        self.enter(account, now_ns, false)
    }

    /// Begins the account of a thread that has none with this GIL.
    fn open(&self, account: &mut Account) {
        (account.gil, account.virtual_ns) = (self.gil, self.floor_ns);
    }

    /// When `first` is to ask a thread that has held the GIL with `holder` since `held_since_ns`
    /// to let go.
    pub fn ask_at_ns(&self, holder: &Standing, held_since_ns: u64, first: &Standing) -> u64 {
        let quantum = self.settings.quantum_ns;
        if first.rank == Standing::URGENT {
            return held_since_ns;
        }
        if self.settings.policy == Policy::Priority {
            // What was left of the holder's patience is what its rank is worth: one that rose by
            // waiting keeps its quantum.
            let patience = holder.rank.saturating_sub(held_since_ns);
            let equal_at = first.rank.saturating_sub(patience);
            return if equal_at < held_since_ns {
                held_since_ns
            } else {
                equal_at.max(held_since_ns.saturating_add(quantum))
            };
        }
        let may_run = if first.virtual_ns >= holder.virtual_ns {
            quantum.max(holder.level.to_real(first.virtual_ns - holder.virtual_ns))
        } else {
            quantum.saturating_sub(holder.level.to_real(holder.virtual_ns - first.virtual_ns))
        };
        held_since_ns.saturating_add(may_run.saturating_sub(holder.turn_ns))
    }

    /// A thread got the GIL; `first` is the first of those that still wait.
    pub fn acquired(&mut self, holder: &Standing, first: Option<&Standing>) {
        let least =
            first.map_or(holder.virtual_ns, |first| first.virtual_ns.min(holder.virtual_ns));
        self.floor_ns = self.floor_ns.max(least);
    }

    /// A thread let go of the GIL, which `waiting` others want.
    ///
    /// One that was forced to before its quantum was over goes on with it when its turn comes,
    /// which is before that of its equals: its processor's caches are still full of its work, and
    /// it stays on that processor, so that others keep theirs.
    pub fn released(&mut self, account: &mut Account, hold: Hold, waiting: usize) {
        if account.gil != self.gil {
            self.open(account);
        }
        let turn = account.turn_ns.saturating_add(hold.wall_ns);
        let quantum = self.settings.quantum_ns;
        // The rest of a quantum is not worth two handoffs if it is too short.
        let goes_on = hold.forced && turn < quantum - quantum / 8;
        account.turn_ns = if goes_on { turn } else { 0 };
        let before = account.virtual_ns.max(self.floor_ns);
        account.virtual_ns =
            account.virtual_ns.saturating_add(account.level.to_virtual(hold.used_ns));
        let ahead = account.virtual_ns.saturating_sub(before);
        self.floor_ns = self.floor_ns.saturating_add(ahead / (waiting as u64 + 1));
    }

    fn credit_ns(&self) -> u64 {
        match self.settings.policy {
            Policy::Interactive | Policy::Priority => {
                CREDIT.saturating_mul(self.settings.quantum_ns)
            }
            Policy::Stock | Policy::Fair | Policy::Batch => 0,
        }
    }

    /// How long a thread can wait before it goes first whoever else arrives: by its level, and
    /// half a level less if it used little of its share.
    fn patience_ns(&self, level: Level, virtual_ns: u64) -> u64 {
        let levels = Level::High as u64 - level as u64;
        let owed = virtual_ns.saturating_add(self.settings.quantum_ns) <= self.floor_ns;
        let half = if owed { 0 } else { AGING_NS / 2 };
        levels * AGING_NS + half
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SINCE_NS: u64 = 1_000_000;

    #[test]
    fn a_new_thread_that_computes_is_asked_at_once_by_another_new_one() {
        let scheduler = Scheduler::new(0, Policy::Interactive.into());
        let holder = scheduler.holding(&mut Account::new(), SINCE_NS);
        let first = scheduler.enter(&mut Account::new(), SINCE_NS, false);
        assert_eq!(scheduler.ask_at_ns(&holder, SINCE_NS, &first), SINCE_NS);
    }

    #[test]
    fn a_thread_that_never_waited_pays_for_what_it_used() {
        let mut scheduler = Scheduler::new(0, Policy::Interactive.into());
        let mut account = Account::new();
        let used_ns = 2 * scheduler.settings().quantum_ns;
        let hold = Hold { wall_ns: used_ns, used_ns, forced: true };
        scheduler.released(&mut account, hold, 1);
        let back = scheduler.enter(&mut account, SINCE_NS, false);
        let new = scheduler.enter(&mut Account::new(), SINCE_NS, false);
        assert!(new.rank < back.rank);
        assert_eq!(scheduler.ask_at_ns(&back, SINCE_NS, &new), SINCE_NS);
    }
}
