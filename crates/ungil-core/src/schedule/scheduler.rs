//! The decisions of a policy.
//!
//! Threads are compared by *virtual time*: how long each has held the GIL while another wanted
//! it, weighted by its level (Linux's CFS, Ingo Molnár 2007, does the same for processors). Time
//! in which nobody else wanted the GIL costs nobody anything: for the holder it is not counted, and
//! whoever was away meanwhile falls behind by it.
//! The *floor* is the virtual time of the whole. It follows the thread that is furthest behind, and
//! advances by each waiting thread's part of the time that others used ahead of it (as in weighted
//! fair queueing): so a thread that has slept cannot come back with all the time it left unused,
//! and one that waits cannot be passed for ever by threads that are always new.
//!
//! No thread is ever classed as "I/O" or "CPU". One that mostly blocks falls behind the floor, by
//! `CREDIT` quanta at most, and is ahead of the others when it comes back; neither an
//! interruption by the kernel nor a forced release changes that. A class that is given by one
//! hold, or by wall time, survives neither.
//!
//! # Nobody starves
//!
//! Under a policy that shares, a thread queues at most `LAG` quanta above the floor, another at most
//! `CREDIT` quanta below it, and none that has passed the waiting thread goes before it again. So
//! while a thread waits, each of the others holds the GIL for at most
//!
//! > `LAG` + `CREDIT` quanta (of a low thread a quarter of that, of a high one four times as much)
//! > and one hold more,
//!
//! however many uses that is. A hold is a quantum and the time until the holder looks at the
//! request, or the longest time in which it looks at none. Threads that are new each time have no
//! number that could be counted, but each of their uses moves the floor: those that exist at once
//! count twice, and beside them all new ones together hold it for at most `LAG` + `CREDIT` quanta
//! for each normal thread's weight that exists at once. That is also what a new thread may wait
//! for, after new ones before it that have passed the others.
//!
//! Under [`Policy::Priority`] a thread that has waited for its patience (half of [`AGING_NS`], and
//! [`AGING_NS`] for each level that it lacks) is passed by nobody who comes after that, so it waits
//! for that long and one hold of each other thread.
//!
//! One that comes when the GIL is free takes it before the thread that is waking up for it. Each
//! time that happens adds a hold. But whoever does it out of order pays for it, is a quantum ahead
//! soon, and is then asked at once; and who was asked stands in line, which the hook sees to.

use super::account::{Account, Hold, Standing, Waker};
use super::policy::{Level, Policy, Settings};
use super::slice::Slice;

/// How many quanta behind the floor a thread may come back under [`Policy::Interactive`].
pub(super) const CREDIT: u64 = 3;
/// How many quanta ahead of the floor a thread can be at most: how long it can be made to wait
/// for what one long hold took from the others.
pub(super) const LAG: u64 = 10;
/// The part of a quantum at its beginning in which nobody but an urgent thread, or one of a higher
/// level, interrupts: what blocks soon anyway is not worth two handoffs. (CFS had its wake-up
/// granularity for this.)
pub(super) const GRACE: u64 = 20;
/// The same for a thread that comes of its own accord, which will more likely block soon; and it
/// may hold a lock by then for which others would line up, one switch each, for long.
pub(super) const GRACE_OF_BACK: u64 = 4;
/// Under [`Policy::Priority`], how long a thread waits for each level it lacks.
pub const AGING_NS: u64 = 200_000_000;
/// Where virtual time begins, so that nothing lies before zero.
const BEGINNING_NS: u64 = 1 << 62;

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
        account.be_for_gil(self.gil);
        if account.waits_since_ns == 0 {
            account.waits_since_ns = now_ns;
            let is_new = account.left_ns == 0;
            let away_ns = now_ns.saturating_sub(account.left_ns);
            // A worker's next request has nothing to do with its last one. The others lose nothing
            // by what it was ahead: the floor has moved on by their part of it.
            let is_fresh = self.credit_ns() > 0 && away_ns >= self.settings.quantum_ns;
            // A new thread has no credit to use up.
            let credit = if is_new { 0 } else { self.credit_ns() };
            let least = self.floor_ns.saturating_sub(credit);
            let lag = if is_fresh { 0 } else { self.lag_ns() };
            let most = self.floor_ns.saturating_add(lag);
            account.virtual_ns = account.virtual_ns.clamp(least, most);
            // But it is let in as if it had all of it.
            let first = self.floor_ns.saturating_sub(self.credit_ns());
            account.early_ns = if is_fresh { account.virtual_ns - first } else { 0 };
        }
        let Account { level, virtual_ns, turn_ns, waits_since_ns: since_ns, .. } = *account;
        let place_ns = account.place_ns();
        let rank = match self.settings.policy {
            _ if account.is_urgent => Standing::URGENT,
            Policy::Priority => since_ns.saturating_add(self.patience_ns(level, place_ns)),
            _ => place_ns,
        };
        let Account { overtaken_ns, was_forced, .. } = *account;
        Standing { rank, since_ns, virtual_ns, turn_ns, level, overtaken_ns, is_back: !was_forced }
    }

    /// The standing of the thread with `account`, which had held the GIL for `alone_ns` when
    /// somebody came.
    ///
    /// That time was nobody else's, so it costs nothing; but those who were away meanwhile have let
    /// it pass, and so fall behind. `ran_ns` of it is known to be this very hold's.
    pub fn was_alone(
        &mut self,
        account: &mut Account,
        now_ns: u64,
        alone_ns: u64,
        ran_ns: u64,
    ) -> Standing {
        if alone_ns >= self.settings.quantum_ns {
            // It has had what it waited for.
            account.has_waited();
        }
        let standing = self.enter(account, now_ns, false);
        let grace = self.grace_ns(&standing);
        let ran_ns = if alone_ns >= self.settings.quantum_ns { alone_ns } else { ran_ns };
        account.turn_ns = account.turn_ns.max(ran_ns.min(grace));
        if self.credit_ns() == 0 {
            return Standing { turn_ns: account.turn_ns, ..standing };
        }
        let passed = account.level.to_virtual(alone_ns).min(self.lag_ns());
        account.virtual_ns = account.virtual_ns.saturating_add(passed);
        self.floor_ns = self.floor_ns.max(account.virtual_ns);
        Standing { virtual_ns: account.virtual_ns, turn_ns: account.turn_ns, ..standing }
    }

    /// The thread with `account`, which is about to wait, was woken by another: it is in no greater
    /// hurry than that one, which will block soon, or has work for more of them.
    pub fn was_woken(&self, account: &mut Account, waker: Waker, holder: &Standing) {
        let holder_ns = if waker.is_holder { holder.virtual_ns } else { 0 };
        let most = self.floor_ns.saturating_add(self.lag_ns());
        account.be_for_gil(self.gil);
        account.behind_ns = waker.place_ns.max(holder_ns).min(most);
    }

    /// When `first` is to ask a thread that has held the GIL with `holder` since `held_since_ns`
    /// to let go.
    pub fn ask_at_ns(&self, holder: &Standing, held_since_ns: u64, first: &Standing) -> u64 {
        if first.rank == Standing::URGENT {
            return held_since_ns;
        }
        let grace = self.grace_ns(holder);
        // Uses that fit into a grace could go on overtaking for ever, so they share one.
        let (grace, earliest) = match first.overtaken_ns {
            0 => (grace, held_since_ns),
            since_ns => (0, since_ns.saturating_add(grace).max(held_since_ns)),
        };
        if self.settings.policy == Policy::Priority {
            return self.ask_by_rank_at_ns(holder, held_since_ns, first, grace).max(earliest);
        }
        let quantum = self.settings.quantum_ns;
        let may_run = if first.rank >= holder.virtual_ns {
            quantum.max(holder.level.to_real(first.rank - holder.virtual_ns))
        } else {
            quantum.saturating_sub(holder.level.to_real(holder.virtual_ns - first.rank))
        };
        let may_run = may_run.max(grace).saturating_sub(holder.turn_ns);
        held_since_ns.saturating_add(may_run).max(earliest)
    }

    /// The same under [`Policy::Priority`].
    fn ask_by_rank_at_ns(
        &self,
        holder: &Standing,
        held_since_ns: u64,
        first: &Standing,
        grace: u64,
    ) -> u64 {
        let quantum = self.settings.quantum_ns;
        if first.rank >= holder.rank {
            let until = held_since_ns.saturating_add(quantum);
            if holder.level <= first.level || holder.rank == Standing::URGENT {
                return until;
            }
            // For as long as it could still have waited without being passed over.
            let patience = holder.since_ns.saturating_add(level_patience_ns(holder.level));
            return until.max(first.rank.saturating_sub(patience.saturating_sub(held_since_ns)));
        }
        if first.level > holder.level {
            return held_since_ns;
        }
        // An equal thread that only came earlier.
        if first.level == holder.level && holder.rank - first.rank < AGING_NS / 4 {
            let since_ns = match first.overtaken_ns {
                0 => held_since_ns,
                overtaken_ns => overtaken_ns,
            };
            return since_ns.saturating_add(quantum);
        }
        held_since_ns.saturating_add(grace.saturating_sub(holder.turn_ns))
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
        account.left_ns = hold.until_ns;
        account.was_forced = hold.forced;
        let was_run = hold.used_ns >= hold.wall_ns - hold.wall_ns / 8;
        account.undisturbed = if was_run { account.undisturbed.saturating_add(1) } else { 0 };
        account.has_waited();
        let before = account.virtual_ns.max(self.floor_ns);
        let owed_ns = std::mem::take(&mut account.owed_ns);
        let used_ns = hold.used_ns.saturating_add(hold.handoff_ns).saturating_add(owed_ns);
        let passed = account.level.to_virtual(used_ns).min(self.lag_ns());
        account.virtual_ns = account.virtual_ns.saturating_add(passed);
        let ahead = account.virtual_ns.saturating_sub(before);
        let weight = account.level.weight();
        self.floor_ns =
            self.floor_ns.saturating_add(ahead.saturating_mul(weight) / (weight + waiting));
    }

    /// Which slice a thread is to have that has `slice` and is about to ask for the GIL. Nobody knows
    /// yet how much a new one uses.
    pub fn slice(&self, account: &Account, slice: Slice) -> Slice {
        let is_new = account.gil != self.gil || account.left_ns == 0;
        let behind_ns = if is_new { 0 } else { self.floor_ns.saturating_sub(account.virtual_ns) };
        slice.next(self.settings, behind_ns, account.was_forced, account.undisturbed)
    }

    fn grace_ns(&self, holder: &Standing) -> u64 {
        self.settings.quantum_ns / if holder.is_back { GRACE_OF_BACK } else { GRACE }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const NOW_NS: u64 = 1_000 * MS;

    fn held(ms: u64, forced: bool) -> Hold {
        Hold { until_ns: NOW_NS, wall_ns: ms * MS, used_ns: ms * MS, forced, handoff_ns: 7_000 }
    }

    #[test]
    fn a_thread_that_was_interrupted_goes_on_with_its_quantum() {
        for (forced, may_run_ms) in [(true, 3), (false, 5)] {
            let mut scheduler = Scheduler::new(0, Policy::Fair.into());
            let (mut own, mut other) = (Account::new(), Account::new());
            for account in [&mut own, &mut other] {
                scheduler.enter(account, NOW_NS, false);
            }
            scheduler.released(&mut own, held(2, forced), Level::Normal.weight());
            // The other has had as much.
            scheduler.released(&mut other, held(2, false), Level::Normal.weight());
            let own = scheduler.enter(&mut own, NOW_NS, false);
            let other = scheduler.enter(&mut other, NOW_NS, false);
            assert_eq!(own.rank, other.rank);
            assert_eq!(scheduler.ask_at_ns(&own, NOW_NS, &other), NOW_NS + may_run_ms * MS);
        }
    }

    #[test]
    fn nobody_but_an_urgent_thread_interrupts_a_use_that_has_just_begun() {
        // A thread that comes of its own accord will block soon, one that was forced will not.
        for (forced, grace) in [(false, GRACE_OF_BACK), (true, GRACE)] {
            let mut scheduler = Scheduler::new(0, Policy::Interactive.into());
            let (mut greedy, mut modest) = (Account::new(), Account::new());
            scheduler.enter(&mut greedy, NOW_NS, false);
            scheduler.released(&mut greedy, held(50, forced), Level::Normal.weight());
            let greedy = scheduler.enter(&mut greedy, NOW_NS, false);
            let first = scheduler.enter(&mut modest, NOW_NS, false);
            let grace_ns = Policy::Interactive.quantum_ns() / grace;
            assert_eq!(scheduler.ask_at_ns(&greedy, NOW_NS, &first), NOW_NS + grace_ns);
            let urgent = scheduler.enter(&mut modest, NOW_NS, true);
            assert_eq!(scheduler.ask_at_ns(&greedy, NOW_NS, &urgent), NOW_NS);
        }
    }

    #[test]
    fn who_was_overtaken_waits_before_it_asks_but_not_for_each_that_overtakes_it() {
        for policy in [Policy::Interactive, Policy::Priority] {
            let mut scheduler = Scheduler::new(0, policy.into());
            let (mut greedy, mut overtaken) = (Account::new(), Account::new());
            greedy.level = Level::Low;
            scheduler.enter(&mut greedy, NOW_NS, false);
            scheduler.released(&mut greedy, held(50, false), Level::Normal.weight());
            let holder = scheduler.enter(&mut greedy, NOW_NS, false);
            scheduler.enter(&mut overtaken, NOW_NS, false);
            overtaken.was_overtaken(NOW_NS);
            let grace_ns = policy.quantum_ns() / GRACE_OF_BACK;
            for (held_since_ns, asks_ns) in [
                (NOW_NS, NOW_NS + grace_ns),
                (NOW_NS + grace_ns / 2, NOW_NS + grace_ns),
                (NOW_NS + 2 * grace_ns, NOW_NS + 2 * grace_ns),
            ] {
                // Another time is not the first.
                overtaken.was_overtaken(held_since_ns);
                let first = scheduler.enter(&mut overtaken, held_since_ns, false);
                assert_eq!(scheduler.ask_at_ns(&holder, held_since_ns, &first), asks_ns);
            }
        }
    }

    #[test]
    fn a_thread_that_the_holder_woke_lets_it_have_its_quantum() {
        for policy in [Policy::Interactive, Policy::Fair, Policy::Batch, Policy::Priority] {
            let mut scheduler = Scheduler::new(0, policy.into());
            let mut greedy = Account::new();
            scheduler.enter(&mut greedy, NOW_NS, false);
            scheduler.released(&mut greedy, held(4_000, false), Level::Normal.weight());
            let holder = scheduler.enter(&mut greedy, NOW_NS, false);
            let asks_ns = |place_ns, is_holder| {
                let mut woken = Account::new();
                scheduler.was_woken(&mut woken, Waker { place_ns, is_holder }, &holder);
                let woken = scheduler.enter(&mut woken, NOW_NS, false);
                scheduler.ask_at_ns(&holder, NOW_NS, &woken) - NOW_NS
            };
            let place_ns = greedy.place_ns();
            assert_eq!(asks_ns(place_ns, true), policy.quantum_ns());
            assert_eq!(asks_ns(0, true), policy.quantum_ns(), "by what it is by now");
            assert_eq!(asks_ns(place_ns, false), policy.quantum_ns(), "by one like the holder");
            let of_little_ns = Account::new().place_ns();
            assert!(asks_ns(of_little_ns, false) < policy.quantum_ns(), "by one that uses little");
        }
    }

    #[test]
    fn nobody_is_put_further_behind_than_the_lag_by_the_thread_that_woke_it() {
        let scheduler = Scheduler::new(0, Policy::Fair.into());
        let mut woken = Account::new();
        let waker = Waker { place_ns: u64::MAX, is_holder: false };
        scheduler.was_woken(&mut woken, waker, &Standing::NOBODY);
        let woken = scheduler.enter(&mut woken, NOW_NS, false);
        let new = scheduler.enter(&mut Account::new(), NOW_NS, false);
        assert_eq!(woken.rank - new.rank, LAG * Policy::Fair.quantum_ns());
    }

    #[test]
    fn nobody_is_further_ahead_than_the_lag_of_the_policy_in_force() {
        let mut scheduler = Scheduler::new(0, Policy::Batch.into());
        let mut greedy = Account::new();
        scheduler.enter(&mut greedy, NOW_NS, false);
        scheduler.released(&mut greedy, held(900, false), Level::Normal.weight());
        scheduler.change(Policy::Fair.into());
        let greedy = scheduler.enter(&mut greedy, NOW_NS, false);
        let new = scheduler.enter(&mut Account::new(), NOW_NS, false);
        assert_eq!(greedy.rank - new.rank, LAG * Policy::Fair.quantum_ns());
    }
}
