//! What is known of a thread: between its uses of the GIL, while it wants it, and of each use.

use super::policy::Level;

/// A thread's CPU time is read at most this often when it gets the GIL: that is a system call, and
/// some threads come back for the GIL 100,000 times a second. A hold in which the kernel takes the
/// processor away is charged with this much too much at most.
const CPU_READ_EVERY_NS: u64 = 1_000_000;
/// How much of what it used a thread need not be charged with at once.
const OWED_NS: u64 = 50_000;

/// What is remembered of a thread between its uses of the GIL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub(super) virtual_ns: u64,
    /// How long its turn has lasted, if it was interrupted.
    pub(super) turn_ns: u64,
    /// Since when it waits, 0 if it does not. One wait can enter the line several times, because
    /// whoever asks the holder leaves it, and keeps its place.
    pub(super) waits_since_ns: u64,
    /// How much earlier it is let in than its virtual time says.
    pub(super) early_ns: u64,
    /// What it is not let in before in this wait: the place of the thread that woke it.
    pub(super) behind_ns: u64,
    /// When another thread first took the GIL that was given to it in this wait, 0 if none did.
    pub(super) overtaken_ns: u64,
    /// When it gave back a GIL that others wanted, 0 if it never did.
    pub(super) left_ns: u64,
    /// What it has used and was not charged with yet.
    pub(super) owed_ns: u64,
    /// Its CPU time, and when it was read.
    cpu_ns: u64,
    cpu_read_ns: u64,
    /// Chosen by the user.
    pub level: Level,
    /// Which GIL the virtual time belongs to, plus one.
    pub(super) gil: u32,
    /// Whether this wait goes before all others.
    pub(super) is_urgent: bool,
    /// Whether it was forced to let go of the GIL when it had it last.
    pub(super) was_forced: bool,
    /// How often it has used the GIL since the kernel last put it aside meanwhile, at most 255.
    pub(super) undisturbed: u8,
}

impl Account {
    /// The account of a new thread.
    pub const fn new() -> Self {
        Self {
            virtual_ns: 0,
            turn_ns: 0,
            waits_since_ns: 0,
            early_ns: 0,
            behind_ns: 0,
            overtaken_ns: 0,
            left_ns: 0,
            owed_ns: 0,
            cpu_ns: 0,
            cpu_read_ns: 0,
            level: Level::Normal,
            gil: 0,
            is_urgent: false,
            was_forced: false,
            undisturbed: 0,
        }
    }

    /// Begins anew if it was an account with another GIL.
    pub(super) fn be_for_gil(&mut self, gil: u32) {
        if self.gil != gil {
            let Self { cpu_ns, cpu_read_ns, level, is_urgent, .. } = *self;
            *self = Self { cpu_ns, cpu_read_ns, level, gil, is_urgent, ..Self::new() };
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
        self.overtaken_ns = 0;
        self.behind_ns = 0;
    }

    /// Another thread has taken the GIL that was given to it.
    pub(super) fn was_overtaken(&mut self, now_ns: u64) {
        if self.overtaken_ns == 0 {
            self.overtaken_ns = now_ns;
        }
    }

    /// Where it stood among those that share when it last wanted the GIL: what it leaves at a lock
    /// for the thread that it wakes. The time of one GIL is not that of another.
    pub fn place_ns(&self) -> u64 {
        self.virtual_ns.saturating_sub(self.early_ns).max(self.behind_ns)
    }

    /// It used the GIL for so short, until `now_ns`, that it is not charged with it yet. False if
    /// that is now due.
    pub(super) fn owes(&mut self, now_ns: u64, used_ns: u64) -> bool {
        let owed_ns = self.owed_ns.saturating_add(used_ns);
        if owed_ns >= OWED_NS {
            return false;
        }
        self.owed_ns = owed_ns;
        self.left_ns = now_ns;
        true
    }

    /// The thread's CPU time now or, if it was read not long ago, as it was then.
    pub(super) fn cpu_ns(&mut self, now_ns: u64, read: impl FnOnce() -> u64) -> u64 {
        if now_ns.saturating_sub(self.cpu_read_ns) >= CPU_READ_EVERY_NS {
            self.note_cpu(now_ns, read());
        }
        self.cpu_ns
    }

    /// The thread's CPU time when it was read last, if it ever was.
    pub(super) fn last_cpu_ns(&self) -> Option<u64> {
        (self.cpu_read_ns != 0).then_some(self.cpu_ns)
    }

    /// The thread's CPU time was read at `now_ns`.
    pub(super) fn note_cpu(&mut self, now_ns: u64, cpu_ns: u64) {
        self.cpu_read_ns = now_ns;
        self.cpu_ns = cpu_ns;
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
    pub(super) virtual_ns: u64,
    /// How long its turn has lasted.
    pub(super) turn_ns: u64,
    pub(super) level: Level,
    /// See [`Account`].
    pub(super) overtaken_ns: u64,
    /// Whether it comes of its own accord, not because it was forced to let go.
    pub(super) is_back: bool,
}

impl Standing {
    /// Before everybody else.
    pub(super) const URGENT: u64 = 0;
    /// Of no thread.
    pub(super) const NOBODY: Self = Self {
        rank: 0,
        since_ns: 0,
        virtual_ns: 0,
        turn_ns: 0,
        level: Level::Normal,
        overtaken_ns: 0,
        is_back: false,
    };

    /// Its part of what is shared.
    pub(super) fn weight(&self) -> u64 {
        self.level.weight()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn ranked(rank: u64) -> Self {
        Self { rank, ..Self::NOBODY }
    }
}

/// How the GIL was held while somebody wanted it.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// When it ended.
    pub until_ns: u64,
    /// How long.
    pub wall_ns: u64,
    /// How long the holder had a processor.
    pub used_ns: u64,
    /// Whether it was asked to let go.
    pub forced: bool,
    /// How long it took to get it from another thread, 0 if the holder just took back what it had
    /// let go of.
    pub handoff_ns: u64,
}

/// The thread that woke the calling one, which had waited for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Waker {
    /// [`Account::place_ns`] of that thread when it let go of the lock.
    pub place_ns: u64,
    /// Whether it has the GIL now.
    pub is_holder: bool,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tiny_uses_are_charged_together() {
        let mut account = Account::new();
        let mut uses = 0;
        while account.owes(uses, 1_500) {
            uses += 1;
        }
        assert_eq!(account.owed_ns, uses * 1_500);
        assert!(account.owed_ns + 1_500 >= OWED_NS);
    }

    #[test]
    fn cpu_time_is_not_read_again_until_some_time_has_passed() {
        let mut account = Account::new();
        assert_eq!(account.last_cpu_ns(), None);
        assert_eq!(account.cpu_ns(CPU_READ_EVERY_NS, || 5), 5);
        assert_eq!(account.cpu_ns(2 * CPU_READ_EVERY_NS - 1, || 6), 5);
        assert_eq!(account.cpu_ns(2 * CPU_READ_EVERY_NS, || 7), 7);
        assert_eq!(account.last_cpu_ns(), Some(7));
    }
}
