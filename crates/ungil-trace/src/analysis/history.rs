//! The holds of one GIL that may still matter to a wait that has not ended.

/// Holds kept at most; when they do not suffice, the waits that need them are charged early.
const LIMIT: usize = 65_536;
/// Holds kept in any case: a wait may be recorded a little after holds that ended during it.
const KEPT: usize = 64;

/// A hold that has ended. `seat` is the holder's place in its GIL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// From when on somebody waited during it; `end_ns` if nobody did.
    pub(super) contended_ns: u64,
    /// How much of it was the holder's own, if holds are judged.
    pub(super) own_ns: u64,
    pub(super) seat: u32,
}

/// Past holds, oldest first. They never overlap.
#[derive(Clone, Debug)]
pub(super) struct History {
    holds: Vec<Past>,
    /// Number of holds at which forgetting is worth while again.
    full_at: usize,
    /// When the last hold ended.
    pub(super) end_ns: u64,
}

impl History {
    pub(super) const fn new() -> Self {
        Self { holds: Vec::new(), full_at: 16 * KEPT, end_ns: 0 }
    }

    /// Appends a hold that began after the end of the last one.
    #[inline]
    pub(super) fn push(&mut self, past: Past) {
        self.end_ns = past.end_ns;
        self.holds.push(past);
    }

    /// Past holds that ended after `from_ns`, newest first.
    #[inline]
    pub(super) fn since(&self, from_ns: u64) -> impl Iterator<Item = &Past> {
        self.holds.iter().rev().take_while(move |past| past.end_ns > from_ns)
    }

    /// Somebody has waited since `since_ns`: returns how much contended time that adds to holds
    /// that have ended in the meantime, none unless the wait was told of late.
    #[inline]
    pub(super) fn contend(&mut self, since_ns: u64) -> u64 {
        let mut added_ns = 0;
        for past in self.holds.iter_mut().rev().take_while(|past| past.end_ns > since_ns) {
            let from_ns = past.start_ns.max(since_ns).min(past.contended_ns);
            added_ns += past.contended_ns - from_ns;
            past.contended_ns = from_ns;
        }
        added_ns
    }

    /// Whether it is time to call [`Self::forget`].
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.holds.len() >= self.full_at
    }

    /// Drops holds that ended by `needed_ns` and says whether that made enough room.
    pub(super) fn forget(&mut self, needed_ns: u64) -> bool {
        let forgotten = self.holds.partition_point(|past| past.end_ns <= needed_ns);
        self.holds.drain(..forgotten.min(self.holds.len().saturating_sub(KEPT)));
        self.full_at = (2 * self.holds.len()).clamp(16 * KEPT, LIMIT);
        self.holds.len() <= LIMIT / 2
    }

    /// Drops all holds: the seats they name may change owners, or nobody needs them any more.
    pub(super) fn clear(&mut self) {
        self.holds.clear();
        self.full_at = 16 * KEPT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(holds: u64) -> History {
        let mut history = History::new();
        for start_ns in (0..holds).map(|index| index * 10) {
            history.push(Past {
                start_ns,
                end_ns: start_ns + 4,
                contended_ns: start_ns + 3,
                own_ns: 4,
                seat: 0,
            });
        }
        history
    }

    #[test]
    fn a_wait_told_of_late_contends_each_moment_of_the_holds_since_once() {
        let mut history = history(3);
        assert_eq!([12, 24, 12, 11, 0].map(|since_ns| history.contend(since_ns)), [4, 0, 0, 1, 4]);
    }

    #[test]
    fn forgetting_keeps_what_is_needed_and_the_newest() {
        let mut history = history(1_024);
        assert!(history.is_full());
        assert!(history.forget(10 * 900));
        assert_eq!(history.holds[0].start_ns, 10 * 900);
        assert!(history.forget(u64::MAX));
        assert_eq!(history.holds.len(), KEPT);
    }

    #[test]
    fn too_many_needed_holds_do_not_fit() {
        let mut history = history(LIMIT as u64);
        assert!(!history.forget(0));
    }
}
