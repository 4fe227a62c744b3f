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
pub(super) const CREDIT: u64 = 3;
/// How many quanta ahead of the floor a thread can be at most: how long it can be made to wait
/// for what one long hold took from the others.
pub(super) const LAG: u64 = 10;
/// The part of a quantum at its beginning in which nobody but an urgent thread, or one of a higher
/// level, interrupts: what blocks soon anyway is not worth two handoffs. (CFS had its wake-up
/// granularity for this.)
pub(super) const GRACE: u64 = 20;
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
    /// Since when it waits, 0 if it does not. One wait can enter the line several times, because
    /// whoever asks the holder leaves it, and keeps its place.
    waits_since_ns: u64,
    /// Chosen by the user.
    pub level: Level,
    /// Which GIL the virtual time belongs to, plus one.
    gil: u32,
    /// Whether this wait goes before all others.
    is_urgent: bool,
    /// Whether it never gave back a GIL that others wanted.
    is_new: bool,
}

impl Account {
    /// The account of a new thread.
    pub const fn new() -> Self {
        Self {
            virtual_ns: 0,
            turn_ns: 0,
            waits_since_ns: 0,
            level: Level::Normal,
            gil: 0,
            is_urgent: false,
            is_new: true,
        }
    }

    /// Whether it waits.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waits_since_ns != 0
    }

    /// Its wait is over.
    #[inline]
    pub fn has_waited(&mut self) {
        self.waits_since_ns = 0;
        self.is_urgent = false;
    }
}

/// A thread's place among those that want a GIL, from its arrival until it has let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Who has less goes first.
    pub rank: u64,
    /// Among those of one rank, who has waited longer goes first.
    pub since_ns: u64,
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
        Self { rank: 0, since_ns: 0, virtual_ns: 0, turn_ns: 0, level: Level::Normal };

    /// Its part of what is shared.
    pub(super) fn weight(&self) -> u64 {
        self.level.weight()
    }

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

    /// The standing of a thread that asks for the GIL; an urgent one goes before all others until
    /// it has it.
    pub fn enter(&self, account: &mut Account, now_ns: u64, urgent: bool) -> Standing {
        account.is_urgent |= urgent;
        if account.gil != self.gil {
            let (level, is_urgent) = (account.level, account.is_urgent);
            *account = Account { level, is_urgent, gil: self.gil, ..Account::new() };
        }
        if account.waits_since_ns == 0 {
            account.waits_since_ns = now_ns;
            // A new thread has no credit to use up.
            let credit = if account.is_new { 0 } else { self.credit_ns() };
            let least = self.floor_ns.saturating_sub(credit);
            let most = self.floor_ns.saturating_add(self.lag_ns());
            account.virtual_ns = account.virtual_ns.clamp(least, most);
        }
        let Account { virtual_ns, turn_ns, waits_since_ns, level, .. } = *account;
        // But it is let in early.
        let early = if account.is_new { self.credit_ns() } else { 0 };
        let rank = virtual_ns.saturating_sub(early);
        let rank = match self.settings.policy {
            _ if account.is_urgent => Standing::URGENT,
            Policy::Priority => waits_since_ns.saturating_add(self.patience_ns(level, rank)),
            _ => rank,
        };
        Standing { rank, since_ns: waits_since_ns, virtual_ns, turn_ns, level }
    }

    /// The standing of the thread with `account`, which had held the GIL for `alone_ns` when
    /// somebody came.
    ///
    /// That time was nobody else's, so it costs nothing; but those who were away meanwhile have let
    /// it pass, and so fall behind.
    pub fn was_alone(&mut self, account: &mut Account, now_ns: u64, alone_ns: u64) -> Standing {
        if alone_ns >= self.settings.quantum_ns {
            // It has had what it waited for.
            account.has_waited();
        }
        account.turn_ns = account.turn_ns.max(alone_ns.min(self.grace_ns()));
        let standing = self.enter(account, now_ns, false);
        if self.credit_ns() == 0 {
            return standing;
        }
        let passed = account.level.to_virtual(alone_ns).min(self.lag_ns());
        account.virtual_ns = account.virtual_ns.saturating_add(passed);
        self.floor_ns = self.floor_ns.max(account.virtual_ns);
        Standing { virtual_ns: account.virtual_ns, ..standing }
    }

    /// When `first` is to ask a thread that has held the GIL with `holder` since `held_since_ns`
    /// to let go.
    pub fn ask_at_ns(&self, holder: &Standing, held_since_ns: u64, first: &Standing) -> u64 {
        let quantum = self.settings.quantum_ns;
        if first.rank == Standing::URGENT {
            return held_since_ns;
        }
        if self.settings.policy == Policy::Priority {
            if first.rank < holder.rank {
                let grace = if first.level > holder.level { 0 } else { self.grace_ns() };
                return held_since_ns.saturating_add(grace.saturating_sub(holder.turn_ns));
            }
            let mut until = held_since_ns.saturating_add(quantum);
            if holder.level > first.level && holder.rank != Standing::URGENT {
                // For as long as it could still have waited without being passed over.
                let patience = holder.since_ns.saturating_add(level_patience_ns(holder.level));
                let patience = patience.saturating_sub(held_since_ns);
                until = until.max(first.rank.saturating_sub(patience));
            }
            return until;
        }
        let may_run = if first.rank >= holder.virtual_ns {
            quantum.max(holder.level.to_real(first.rank - holder.virtual_ns))
        } else {
            quantum.saturating_sub(holder.level.to_real(holder.virtual_ns - first.rank))
        };
        let may_run = may_run.max(self.grace_ns());
        held_since_ns.saturating_add(may_run.saturating_sub(holder.turn_ns))
    }

    /// A thread got the GIL; `first` is the first of those that still wait.
    pub fn acquired(&mut self, holder: &Standing, first: &Standing) {
        self.floor_ns = self.floor_ns.max(first.virtual_ns.min(holder.virtual_ns));
    }

    /// A thread let go of the GIL, which others of this weight in sum want.
    ///
    /// One that was forced to before its quantum was over goes on with it when its turn comes,
    /// which is before that of its equals: its processor's caches are still full of its work, and
    /// it stays on that processor, so that others keep theirs.
    pub fn released(&mut self, account: &mut Account, hold: Hold, waiting: u64) {
        let turn = account.turn_ns.saturating_add(hold.wall_ns);
        let quantum = self.settings.quantum_ns;
        // The rest of a quantum is not worth two handoffs if it is too short.
        let goes_on = hold.forced && turn < quantum - quantum / 8;
        account.turn_ns = if goes_on { turn } else { 0 };
        account.is_new = false;
        account.has_waited();
        let before = account.virtual_ns.max(self.floor_ns);
        let passed = account.level.to_virtual(hold.used_ns).min(self.lag_ns());
        account.virtual_ns = account.virtual_ns.saturating_add(passed);
        let ahead = account.virtual_ns.saturating_sub(before);
        let weight = account.level.weight();
        self.floor_ns = self.floor_ns.saturating_add(ahead * weight / (weight + waiting));
    }

    fn grace_ns(&self) -> u64 {
        self.settings.quantum_ns / GRACE
    }

    fn lag_ns(&self) -> u64 {
        LAG.saturating_mul(self.settings.quantum_ns)
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
        let owed = virtual_ns.saturating_add(self.settings.quantum_ns) <= self.floor_ns;
        level_patience_ns(level) - if owed { AGING_NS / 2 } else { 0 }
    }
}

fn level_patience_ns(level: Level) -> u64 {
    (Level::High as u64 - level as u64) * AGING_NS + AGING_NS / 2
}
