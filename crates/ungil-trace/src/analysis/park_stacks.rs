//! Where threads of a free-threaded interpreter slept, and from where others woke them.

use super::length::{Sum, seconds};
use super::samples::line_of;
use crate::origin::Origin;
use crate::record::Frame;
use crate::report::ParkedIn;
use std::collections::BTreeMap;

/// Stacks that are told apart at one lock for one thread; those beyond count as unknown.
const STACKS: usize = 16;
/// Places that are told.
const ROWS: usize = 4;

/// The stacks of a process, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct ParkStacks(BTreeMap<u16, Vec<Frame>>);

impl ParkStacks {
    /// Takes in what a number stands for.
    pub(super) fn know(&mut self, number: u16, frames: &[Frame]) {
        self.0.insert(number, frames.to_vec());
    }

    fn frames(&self, number: u16) -> &[Frame] {
        self.0.get(&number).map_or(&[], Vec::as_slice)
    }
}

/// Lengths of sleeps, by the numbers of the stacks in which they were; 0 is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct InStacks(Vec<(u16, Sum)>);

impl InStacks {
    pub(super) fn add(&mut self, number: u16, ns: u64) {
        let place_of = |number| self.0.iter().position(|(known, _)| *known == number);
        let number = match place_of(number) {
            None if self.0.len() >= STACKS => 0,
            _ => number,
        };
        let place = place_of(number).unwrap_or_else(|| {
            self.0.push((number, Sum::default()));
            self.0.len() - 1
        });
        self.0[place].1.add(ns);
    }

    /// The places with the longest sleeps, longest first. Stacks that differ only further out
    /// than the user's own code count as one.
    pub(super) fn report(&self, stacks: &ParkStacks) -> Vec<ParkedIn> {
        let mut places: Vec<ParkedIn> = Vec::new();
        for (number, sum) in &self.0 {
            let frames = stacks.frames(*number);
            let Some(innermost) = frames.first() else { continue };
            let users = frames.iter().find(|frame| Origin::of(&frame.file) == Origin::User);
            let (frame, user_frame) = (line_of(innermost), users.map(line_of));
            let waited_s = seconds(sum.total_ns);
            let same = |it: &&mut ParkedIn| it.frame == frame && it.user_frame == user_frame;
            match places.iter_mut().find(same) {
                Some(known) => {
                    known.count += sum.count;
                    known.waited_s += waited_s;
                }
                None => places.push(ParkedIn {
                    frame,
                    user_frame,
                    stack: frames.iter().map(line_of).collect(),
                    count: sum.count,
                    waited_s,
                }),
            }
        }
        places.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s));
        places.truncate(ROWS);
        places
    }
}
