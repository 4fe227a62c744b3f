//! Where threads of a free-threaded interpreter slept, and from where others woke them.

use super::length::{Sum, seconds};
use super::samples::line_of;
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

    /// The innermost line of a stack and the user's innermost own; `None` if it is not known.
    fn lines(&self, number: u16) -> Option<(String, Option<String>)> {
        let frames = self.frames(number);
        let users = Frame::innermost_of_the_user(frames);
        Some((line_of(frames.first()?), users.map(line_of)))
    }

    /// At which of these places a stack is, if it is at any.
    pub(super) fn place_of(&self, number: u16, places: &[ParkedIn]) -> Option<usize> {
        let (frame, user_frame) = self.lines(number)?;
        places.iter().position(|it| it.frame == frame && it.user_frame == user_frame)
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
            let Some((frame, user_frame)) = stacks.lines(*number) else { continue };
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
                    stack: stacks.frames(*number).iter().map(line_of).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame { function: function.to_owned(), file: file.to_owned(), line }
    }

    fn users(line: u32) -> Frame {
        frame("work", "/srv/app.py", line)
    }

    fn librarys(function: &str) -> Frame {
        frame(function, "/usr/lib/python3.13t/queue.py", 9)
    }

    fn known(stacks: &[(u16, &[Frame])]) -> ParkStacks {
        let mut known = ParkStacks::default();
        for (number, frames) in stacks {
            known.know(*number, frames);
        }
        known
    }

    /// Each place with its number of parks and its time in ms.
    fn told(places: &InStacks, stacks: &ParkStacks) -> Vec<(String, u64, f64)> {
        let told = |it: &ParkedIn| (it.frame.clone(), it.count, (it.waited_s * 1e3).round());
        places.report(stacks).iter().map(told).collect()
    }

    #[test]
    fn the_place_with_the_longest_sleep_comes_first() {
        let mut places = InStacks::default();
        for (number, ns) in [(1, MS), (2, 5 * MS), (1, 2 * MS)] {
            places.add(number, ns);
        }
        let stacks = known(&[(1, &[users(10)]), (2, &[users(20)])]);
        let (first, second) =
            ("work (/srv/app.py:20)".to_owned(), "work (/srv/app.py:10)".to_owned());
        assert_eq!(told(&places, &stacks), [(first, 1, 5.0), (second, 2, 3.0)]);
    }

    #[test]
    fn stacks_that_differ_only_outside_of_the_users_own_line_are_one_place() {
        let mut places = InStacks::default();
        for (number, ns) in [(1, MS), (2, 2 * MS), (3, 4 * MS)] {
            places.add(number, ns);
        }
        let (inner, caller) = (librarys("get"), users(10));
        let stacks = known(&[
            (1, &[inner.clone(), caller.clone(), users(77)]),
            (2, &[inner.clone(), caller, users(88)]),
            (3, &[inner, users(20)]),
        ]);
        let reported = places.report(&stacks);
        let told: Vec<_> = reported.iter().map(|it| (it.user_frame.as_deref(), it.count)).collect();
        assert_eq!(told, [(Some("work (/srv/app.py:20)"), 1), (Some("work (/srv/app.py:10)"), 2)]);
        assert_eq!(reported[1].stack.len(), 3, "one of the stacks is shown whole");
    }

    #[test]
    fn a_stack_without_the_users_own_code_has_no_line_of_it() {
        let mut places = InStacks::default();
        places.add(1, MS);
        let reported = places.report(&known(&[(1, &[librarys("get")])]));
        assert_eq!(reported[0].frame, "get (/usr/lib/python3.13t/queue.py:9)");
        assert_eq!(reported[0].user_frame, None);
    }

    #[test]
    fn sleeps_in_stacks_that_are_not_known_have_no_place() {
        let mut places = InStacks::default();
        for (number, ns) in [(0, 9 * MS), (1, MS), (2, 5 * MS)] {
            places.add(number, ns);
        }
        // Of number 2 the recorder could read nothing.
        let stacks = known(&[(1, &[users(10)]), (2, &[])]);
        assert_eq!(told(&places, &stacks), [("work (/srv/app.py:10)".to_owned(), 1, 1.0)]);
    }

    #[test]
    fn stacks_beyond_those_that_are_told_apart_count_as_unknown() {
        let mut places = InStacks::default();
        let all = u16::try_from(STACKS).unwrap() + 40;
        (1..=all).for_each(|number| places.add(number, MS));
        // One that is known still counts for itself.
        places.add(3, MS);
        let counts: Vec<_> = places.0.iter().map(|(number, sum)| (*number, sum.count)).collect();
        assert_eq!(counts.len(), STACKS + 1);
        assert_eq!((counts[2], counts[STACKS]), ((3, 2), (0, 40)));
        let frames: Vec<_> = (1..=u32::from(all)).map(users).collect();
        let mut stacks = ParkStacks::default();
        for (number, it) in (1..=all).zip(&frames) {
            stacks.know(number, std::slice::from_ref(it));
        }
        let rows = told(&places, &stacks);
        assert_eq!(rows.len(), ROWS);
        assert_eq!(rows[0], ("work (/srv/app.py:3)".to_owned(), 2, 2.0));
    }
}
