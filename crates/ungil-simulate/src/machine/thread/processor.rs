//! A thread on its processor, if processors are simulated: it computes there, in turns with others.

use super::Here;
use crate::machine::processors::{Processors, SLICE_NS};
use crate::machine::world::part;
use std::cell::RefCell;

impl Here<'_> {
    pub(super) fn take_processor(&self) {
        let Some(processors) = &self.world.processors else { return };
        let mut has_one = processors.borrow_mut().take(self.number);
        while !has_one {
            // Who was woken for the GIL, and too late, is told so, and still stands in line here.
            self.suspend(None);
            has_one = processors.borrow().has(self.number);
        }
        self.slice_ns.set(SLICE_NS);
    }

    pub(super) fn leave_processor(&self) {
        let Some(processors) = &self.world.processors else { return };
        let next = processors.borrow_mut().leave(self.number);
        if let Some(next) = next {
            self.world.after(next, 0);
        }
    }

    /// Has used up its slice: lets others run, if there are any. What is left of the new one.
    fn slice_ns(&self, processors: &RefCell<Processors>) -> u64 {
        if self.slice_ns.get() == 0 {
            let are_wanted = processors.borrow().are_wanted();
            if are_wanted {
                self.leave_processor();
                self.take_processor();
            }
            self.slice_ns.set(SLICE_NS);
        }
        self.slice_ns.get()
    }

    /// Runs for `ns` without the GIL.
    pub(super) fn compute(&self, ns: u64) {
        let mut left_ns = ns;
        while left_ns > 0 {
            left_ns -= self.compute_for_a_while(left_ns, left_ns, left_ns, false)[0];
        }
    }

    /// Computes for `most_ns` at most of `wall_ns`, in which it runs for `runs_ns`. How long it
    /// did, and ran.
    pub(super) fn compute_for_a_while(
        &self,
        most_ns: u64,
        wall_ns: u64,
        runs_ns: u64,
        with_gil: bool,
    ) -> [u64; 2] {
        let mut ns = most_ns;
        if let Some(processors) = &self.world.processors {
            ns = ns.min(self.slice_ns(processors));
        }
        let from_ns = self.now_ns();
        let computes = Some([from_ns, wall_ns, runs_ns]);
        self.with_task(|task| (task.heeds, task.computes) = (with_gil, computes));
        self.suspend(Some(ns));
        let did_ns = (self.now_ns() - from_ns).min(wall_ns);
        if self.world.processors.is_some() {
            self.slice_ns.set(self.slice_ns.get().saturating_sub(did_ns));
        }
        let ran_ns = part(runs_ns, did_ns, wall_ns);
        self.with_task(|task| {
            (task.heeds, task.computes) = (false, None);
            task.cpu_ns += ran_ns;
        });
        self.world.tally.borrow_mut().ran(self.number, ran_ns, with_gil);
        [did_ns, ran_ns]
    }
}
