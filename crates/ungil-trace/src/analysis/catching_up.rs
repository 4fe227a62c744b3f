//! Events of before counting began, which are told later: the records of one moment come process by
//! process. They say what goes on when counting begins, and are no part of what is counted.

use super::gil::Gil;
use super::hold::Hold;
use super::seat::{Released, Seat};
use ungil_core::{Event, Kind};

/// Holds and waits that go on when counting begins: what is counted of them is cut off there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub(super) holds: u64,
    pub(super) waits: u64,
}

impl Gil {
    /// Takes in an event of before counting began. `false` if it has to be counted all the same.
    pub(super) fn catch_up(&mut self, index: u32, event: Event) -> bool {
        // Of one GIL they are in order: clocks of two processors may differ a little.
        let is_late = self.has_counted;
        match event.kind {
            // They tell of a hold that ends after them, at another time than it has.
            Kind::Ran | Kind::RanAndBlocked => return false,
            Kind::Wait => self.had_waited(index),
            Kind::DropRequest => {
                if let Some(hold) = self.holder.as_mut().filter(|hold| hold.seat != index) {
                    hold.is_asked(self.floor_ns);
                }
            }
            Kind::Acquire | Kind::ReleaseVoluntary | Kind::ReleaseForced if is_late => {
                return false;
            }
            Kind::Acquire => self.had_acquired(index, event.at_ns),
            Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                self.had_let_go(index);
                self.holder = None;
                self.cut.holds = 0;
                self.seats[index as usize].released = Some(Released {
                    at_ns: self.floor_ns,
                    voluntary: event.kind == Kind::ReleaseVoluntary,
                    is_gap_over: false,
                });
            }
        }
        true
    }

    /// The thread ended before counting began: nothing of it counts.
    pub(super) fn had_left(&mut self, index: u32) {
        self.had_let_go(index);
        if self.holder.as_ref().is_some_and(|hold| hold.seat == index) {
            self.holder = None;
            self.cut.holds = 0;
        }
        self.seats[index as usize] = Seat::default();
        self.free_seats.push(index);
    }

    fn had_waited(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        if let Some(released) = &mut seat.released {
            released.is_gap_over = true;
        }
        if seat.wait.is_none() {
            self.cut.waits += 1;
            self.wait_from(index, self.floor_ns);
        }
    }

    fn had_acquired(&mut self, index: u32, at_ns: u64) {
        self.had_let_go(index);
        let is_waited_for = !self.waiting.is_empty();
        let seat = &mut self.seats[index as usize];
        seat.released = None;
        let counts = seat.counts.split_off(at_ns);
        self.last_holder = seat.thread;
        let hold = Hold::new(index, at_ns, is_waited_for, &counts);
        self.holder = Some(hold.reopened(self.floor_ns));
        self.cut.holds = 1;
    }

    /// It waits no longer, if it did.
    fn had_let_go(&mut self, index: u32) {
        if self.seats[index as usize].wait.is_some() {
            self.cut.waits = self.cut.waits.saturating_sub(1);
            self.end_wait(index, self.floor_ns);
        }
    }
}
