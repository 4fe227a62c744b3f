//! The gap in which a look found a thread.

/// What a look knows of a thread: the gap that it was in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gap {
    /// How many holds the thread had had; `None` if it was not off the GIL.
    pub holds: Option<u64>,
    /// Whether an earlier look found it in the same gap.
    pub is_long: bool,
    /// Whether what it does there has been told, of the gap as a whole.
    pub is_told: bool,
}

impl Gap {
    /// The thread has had so many holds and is off the GIL now, or is not.
    pub fn find(&mut self, holds: Option<u64>) {
        let goes_on = holds.is_some() && holds == self.holds;
        *self = Self { holds, is_long: goes_on, is_told: goes_on && self.is_told };
    }

    /// Whether it is worth a look.
    pub const fn is_new(&self) -> bool {
        self.holds.is_some() && !self.is_told
    }
}

/// What a look at a process found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crowd {
    /// How many threads wait for a GIL that is held; of several GILs the most.
    pub waiters: u32,
    /// Whether a thread is in a gap that has not been told of.
    pub new_gaps: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_two_looks_find_is_long_and_told_of_once() {
        let mut gap = Gap::default();
        let mut find = |holds| {
            gap.find(holds);
            let found = (gap.is_new(), gap.is_long);
            gap.is_told |= gap.is_long;
            found
        };
        assert_eq!(find(Some(1)), (true, false), "it may have begun just now");
        assert_eq!(find(Some(1)), (true, true));
        assert_eq!(find(Some(1)), (false, true));
        assert_eq!(find(Some(2)), (true, false), "another gap");
        assert_eq!(find(None), (false, false));
        assert_eq!(find(Some(2)), (true, false));
    }
}
