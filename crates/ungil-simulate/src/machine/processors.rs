//! The processors under the threads, if their number matters.

use std::collections::VecDeque;

/// For how long a thread runs while others wait for a processor: Linux's slice of some machines.
pub(super) const SLICE_NS: u64 = 3_000_000;

/// Processors for which threads line up, each for a slice at a time.
#[derive(Debug)]
pub(super) struct Processors {
    free: usize,
    line: VecDeque<usize>,
    /// Which threads have one.
    runs: Vec<bool>,
}

impl Processors {
    pub(super) fn new(count: usize, threads: usize) -> Self {
        Self { free: count.max(1), line: VecDeque::new(), runs: vec![false; threads] }
    }

    /// Whether the thread has one, or gets one now. Otherwise it stands in line.
    pub(super) fn take(&mut self, number: usize) -> bool {
        if self.runs[number] {
            return true;
        }
        if self.free == 0 {
            self.line.push_back(number);
            return false;
        }
        self.free -= 1;
        self.runs[number] = true;
        true
    }

    /// The thread lets go of the one that it has; who gets it.
    pub(super) fn leave(&mut self, number: usize) -> Option<usize> {
        if !std::mem::take(&mut self.runs[number]) {
            return None;
        }
        let next = self.line.pop_front();
        match next {
            Some(next) => self.runs[next] = true,
            None => self.free += 1,
        }
        next
    }

    /// Whether the thread has one.
    pub(super) fn has(&self, number: usize) -> bool {
        self.runs[number]
    }

    /// Whether somebody stands in line.
    pub(super) fn are_wanted(&self) -> bool {
        !self.line.is_empty()
    }
}
