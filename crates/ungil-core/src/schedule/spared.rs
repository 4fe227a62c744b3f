//! A holder that is asked to let go while it holds a lock.
//!
//! If it did, every other thread that wants this lock would line up there; and such a lock convoy
//! lasts, because whoever lets go of a lock for which others sleep has lost it by the time it comes
//! back (Blasgen, Gray, Mitchell and Price, "The convoy phenomenon", 1979). So it takes the GIL back
//! at once and is asked again, until it is asked when it holds none. (Solaris spared the holder of a
//! lock in the same way when it scheduled processors: `schedctl_start`.)

use super::host::Host;
use super::policy::Policy;
use std::cell::Cell;

/// For how long a holder is spared that is inside of one lock after the other.
const LONGEST_NS: u64 = Policy::Interactive.quantum_ns();
/// For how long one that does not come out of the same lock.
const LONGEST_IN_ONE_NS: u64 = LONGEST_NS / 20;

/// The last holder that was spared.
#[derive(Debug)]
pub(super) struct Spared {
    /// Whether it is to take the GIL back.
    is_away: Cell<bool>,
    /// How often the GIL had changed hands by then, which says whether it still is the same hold.
    switches: Cell<u32>,
    /// When that hold was spared first, 0 if none ever was.
    first_ns: Cell<u64>,
    /// When it was last.
    last_ns: Cell<u64>,
    /// [`Host::lock_taken`] when it was spared last, and since when it was that.
    lock: Cell<u32>,
    lock_since_ns: Cell<u64>,
}

impl Spared {
    /// Nobody.
    pub const fn new() -> Self {
        Self {
            is_away: Cell::new(false),
            switches: Cell::new(0),
            first_ns: Cell::new(0),
            last_ns: Cell::new(0),
            lock: Cell::new(0),
            lock_since_ns: Cell::new(0),
        }
    }

    /// Nobody will come back.
    pub fn forget(&self) {
        self.is_away.set(false);
    }

    /// Whether the calling thread, which was asked to let go and did, is to take the GIL back.
    pub fn spares(&self, host: &impl Host, now_ns: u64) -> bool {
        let Some(lock) = host.lock_taken() else { return false };
        let is_same_hold = self.first_ns.get() != 0 && self.switches.get() == host.switches();
        if !is_same_hold {
            self.switches.set(host.switches());
            self.first_ns.set(now_ns);
        }
        let before = self.lock.replace(lock);
        if !is_same_hold || before != lock {
            self.lock_since_ns.set(now_ns);
        }
        if now_ns.saturating_sub(self.first_ns.get()) >= LONGEST_NS
            || now_ns.saturating_sub(self.lock_since_ns.get()) >= LONGEST_IN_ONE_NS
        {
            // What it holds for so long is not for others to line up at, or they do already.
            host.forget_locks();
            return false;
        }
        self.last_ns.set(now_ns);
        self.is_away.set(true);
        true
    }

    /// When a thread was spared that has not come back, for which the GIL is free.
    #[inline]
    pub fn away_since_ns(&self) -> Option<u64> {
        self.is_away.get().then(|| self.last_ns.get())
    }

    /// Whether the calling thread, which has just taken the GIL, is the one that was spared.
    #[inline]
    pub fn has_come(&self, host: &impl Host) -> bool {
        self.is_away.get() && self.is_away.replace(false) && self.switches.get() == host.switches()
    }
}
