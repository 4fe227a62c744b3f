//! The thread that has a GIL, and what it is charged with for that.

use super::account::{Account, Hold, Standing};
use super::host::Host;
use super::modify;
use super::scheduler::Scheduler;
use std::cell::Cell;

/// Shorter holds are taken as all CPU time, longer ones are measured: the clock of a thread's CPU
/// time is a system call.
const MEASURED_FROM_NS: u64 = 100_000;
/// A shorter hold of a thread that took the GIL back is not worth the arithmetic of a policy.
const TINY_NS: u64 = 20_000;
/// What a use is charged with beside its own time if it began with a handoff, in which nobody has
/// the GIL: how long that took, between these bounds. Else many threads with uses shorter than that
/// would share out the rest of the time only. It takes 7 us where the thread that is woken finds a
/// processor, some three times that where it does not sleep on the waker's own. More than the
/// upper bound is not the fault of those that share, but of whoever has the processors.
const LEAST_HANDOFF_NS: u64 = 7_000;
const MOST_HANDOFF_NS: u64 = 30_000;

/// The holder of one GIL, or the thread that let go of it last.
#[derive(Debug)]
pub(super) struct Holder {
    standing: Cell<Standing>,
    account: Cell<Account>,
    /// Since when somebody waits for it to let go, 0 if nobody does.
    wanted_since_ns: Cell<u64>,
    /// Its CPU time at that time, if it noted that itself.
    cpu_ns: Cell<Option<u64>>,
    /// How long it took to get the GIL from another thread, 0 if it did not.
    handoff_ns: Cell<u64>,
    /// Since when it has the GIL, if it had waited for it and nobody else did; otherwise 0.
    since_ns: Cell<u64>,
    /// When the GIL was let go of last while somebody wanted it.
    left_ns: Cell<u64>,
    /// How often it had changed hands by then.
    switches: Cell<u32>,
    /// How often it was taken since then.
    taken_alone: Cell<u64>,
}

impl Holder {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            standing: Cell::new(Standing::NOBODY),
            account: Cell::new(Account::new()),
            wanted_since_ns: Cell::new(0),
            cpu_ns: Cell::new(None),
            handoff_ns: Cell::new(LEAST_HANDOFF_NS),
            since_ns: Cell::new(0),
            left_ns: Cell::new(0),
            switches: Cell::new(0),
            taken_alone: Cell::new(0),
        }
    }

    /// Nobody waits any more.
    pub fn forget(&self) {
        self.wanted_since_ns.set(0);
    }

    /// Where it stands among those that want the GIL. Since somebody waits.
    pub fn standing(&self) -> Standing {
        self.standing.get()
    }

    /// Since when somebody waits for it to let go, 0 if nobody does.
    #[inline]
    pub fn wanted_since_ns(&self) -> u64 {
        self.wanted_since_ns.get()
    }

    /// The thread with `account` has the GIL, and nobody waits; it waited itself if it knows since
    /// when it has it.
    #[inline]
    pub fn took_alone(&self, account: &Cell<Account>, since_ns: Option<u64>) {
        self.since_ns.set(since_ns.unwrap_or(0));
        self.becomes(account);
        self.wanted_since_ns.set(0);
        self.taken_alone.set(self.taken_alone.get() + 1);
    }

    /// Whether the calling thread, which has the GIL, is the one that let go of it last.
    #[inline]
    pub fn is_back(&self, host: &impl Host) -> bool {
        host.switches() == self.switches.get()
    }

    /// It has taken the GIL again before anybody else did. Some threads do so 100,000 times a
    /// second, so this is as little as can be: without a clock, so that the time between is
    /// charged to it, too.
    pub fn took_back(&self, scheduler: &Scheduler, account: &Cell<Account>) {
        let left_ns = self.left_ns.get();
        modify(account, |own| {
            self.standing.set(scheduler.enter(own, left_ns, false));
            own.has_waited();
            self.cpu_ns.set(own.last_cpu_ns());
        });
        self.handoff_ns.set(0);
        self.wanted_since_ns.set(left_ns);
    }

    /// The thread with `account` has the GIL `now`, and others wait.
    pub fn took(&self, host: &impl Host, standing: Standing, account: &Cell<Account>, now_ns: u64) {
        let cpu_ns = modify(account, |own| own.cpu_ns(now_ns, || host.thread_cpu_ns()));
        self.becomes(account);
        self.standing.set(standing);
        let handoff_ns = now_ns.saturating_sub(self.left_ns.get());
        self.handoff_ns.set(handoff_ns.clamp(LEAST_HANDOFF_NS, MOST_HANDOFF_NS));
        self.wanted_since_ns.set(now_ns);
        self.cpu_ns.set(Some(cpu_ns));
    }

    /// Its wait is over, but is remembered for as long as it has the GIL.
    #[inline]
    fn becomes(&self, account: &Cell<Account>) {
        modify(account, |own| {
            self.account.set(*own);
            if own.is_waiting() {
                own.has_waited();
            }
        });
    }

    /// Somebody waits for it. Its time begins to count with the first who does.
    pub fn is_wanted(&self, scheduler: &mut Scheduler, now_ns: u64) {
        if self.wanted_since_ns.get() != 0 {
            return;
        }
        self.wanted_since_ns.set(now_ns);
        self.cpu_ns.set(None);
        self.handoff_ns.set(LEAST_HANDOFF_NS);
        // All holds since then took this long on average; one that computes took just one.
        let alone_ns = now_ns.saturating_sub(self.left_ns.get()) / self.taken_alone.get().max(1);
        let ran_ns = match self.since_ns.get() {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        modify(&self.account, |own| {
            self.standing.set(scheduler.was_alone(own, now_ns, alone_ns, ran_ns));
        });
    }

    /// The holder, with `account`, has let go of the GIL, which others of the weight `waiting` in
    /// sum want. Returns since when.
    pub fn let_go(
        &self,
        host: &impl Host,
        scheduler: &mut Scheduler,
        account: &Cell<Account>,
        now_ns: u64,
        waiting: u64,
    ) -> u64 {
        let since_ns = self.wanted_since_ns.replace(0);
        if since_ns != 0 {
            let wall_ns = now_ns.saturating_sub(since_ns);
            self.charge(host, scheduler, account, now_ns, wall_ns, waiting);
        }
        self.left_ns.set(now_ns);
        self.switches.set(host.switches());
        self.taken_alone.set(0);
        since_ns
    }

    /// It has held the GIL for `wall_ns`, until `now_ns`, while others wanted it.
    fn charge(
        &self,
        host: &impl Host,
        scheduler: &mut Scheduler,
        account: &Cell<Account>,
        now_ns: u64,
        wall_ns: u64,
        waiting: u64,
    ) {
        let (forced, handoff_ns) = (host.drop_requested(), self.handoff_ns.get());
        let is_tiny = wall_ns < TINY_NS && handoff_ns == 0 && !forced;
        if is_tiny && modify(account, |own| own.owes(now_ns, wall_ns)) {
            return;
        }
        let mut own = self.account.get();
        (own.level, own.owed_ns) = (account.get().level, account.get().owed_ns);
        let used_ns = match self.cpu_ns.take() {
            Some(before_ns) if wall_ns >= MEASURED_FROM_NS => {
                let cpu_ns = host.thread_cpu_ns();
                own.note_cpu(now_ns, cpu_ns);
                wall_ns.min(cpu_ns.saturating_sub(before_ns))
            }
            _ => wall_ns,
        };
        let hold = Hold { until_ns: now_ns, wall_ns, used_ns, forced, handoff_ns };
        scheduler.released(&mut own, hold, waiting);
        account.set(own);
        // It may take the GIL back.
        self.account.set(own);
    }
}
