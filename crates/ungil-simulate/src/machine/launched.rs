//! Threads that others start for a batch, and wait for before the next one.

/// Who was started by whom, and lives still.
#[derive(Debug)]
pub(super) struct Launched {
    by: Vec<Option<usize>>,
    /// How many of those that each thread has started live.
    living: Vec<usize>,
    /// Whether it waits for the end of all of them.
    waits: Vec<bool>,
}

impl Launched {
    pub(super) fn new(threads: usize) -> Self {
        Self { by: vec![None; threads], living: vec![0; threads], waits: vec![false; threads] }
    }

    /// Thread `by` starts thread `number`.
    pub(super) fn begins(&mut self, number: usize, by: usize) {
        // One that lives still is there once, however often it is started.
        if self.by[number].replace(by).is_none() {
            self.living[by] += 1;
        }
    }

    /// Whether thread `by` has to wait for others. It is told when the last of them has ended, or waits
    /// for it.
    pub(super) fn has_to_wait(&mut self, by: usize) -> bool {
        self.waits[by] = self.living[by] > 0;
        self.waits[by]
    }

    /// Thread `by` need not wait any longer: whether it did.
    pub(super) fn need_not_wait(&mut self, by: usize) -> bool {
        std::mem::take(&mut self.waits[by])
    }

    /// Thread `number` has ended: who need not wait any longer.
    pub(super) fn ended(&mut self, number: usize) -> Option<usize> {
        let by = self.by[number].take()?;
        self.living[by] -= 1;
        (self.living[by] == 0 && self.need_not_wait(by)).then_some(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_all_goes_on_when_the_last_one_has_ended() {
        let mut launched = Launched::new(4);
        assert!(!launched.has_to_wait(0));
        launched.begins(1, 0);
        launched.begins(2, 0);
        launched.begins(2, 0);
        assert!(launched.has_to_wait(0));
        assert_eq!(launched.ended(3), None);
        assert_eq!(launched.ended(2), None);
        assert_eq!(launched.ended(1), Some(0));
        assert!(!launched.has_to_wait(0));
    }

    #[test]
    fn who_waits_for_all_goes_on_when_a_thread_waits_for_it() {
        let mut launched = Launched::new(2);
        launched.begins(1, 0);
        assert!(launched.has_to_wait(0));
        assert!(launched.need_not_wait(0));
        assert!(!launched.need_not_wait(0));
        assert_eq!(launched.ended(1), None);
    }

    #[test]
    fn nobody_is_told_who_does_not_wait() {
        let mut launched = Launched::new(2);
        launched.begins(1, 0);
        assert_eq!(launched.ended(1), None);
    }
}
