//! What the samples of one hold showed.

use super::natives::Natives;
use crate::record::{Frame, NativeFrame};
use crate::report::NativeReport;
use std::collections::VecDeque;

/// Frames kept of one stack, innermost first.
const FRAMES: usize = 100;
/// Different stacks kept of one hold.
const STACKS: usize = 8;
/// Samples of a running hold that wait for its end. Older ones are in it, as its events come within
/// milliseconds.
const WAITING: usize = 64;

/// The stacks that were sampled during one hold, those with one innermost frame counted together.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    count: u64,
    stacks: Vec<Stack>,
    natives: Natives,
    /// For how long the holder was stopped to be looked at, at most.
    stood_ns: u64,
    /// Why there is none, or no more.
    why_none: Option<String>,
    /// Samples of a hold that goes on as far as is known, with their times. Its end may come later
    /// than a sample that another thread's hold began with.
    waiting: VecDeque<(u64, Sample)>,
}

/// What one look at a holder showed.
#[derive(Clone, Debug)]
pub(super) enum Sample {
    Stack {
        /// The first [`FRAMES`] of its frames, innermost first.
        lines: Vec<String>,
        user_line: Option<String>,
        native: Option<Vec<NativeFrame>>,
    },
    /// Nothing, and why.
    Missing(String),
    /// That the thread had to stand still for it, for so many nanoseconds at most.
    Stop(u64),
}

impl Sample {
    pub(super) fn of(frames: &[Frame], native: Option<&[NativeFrame]>) -> Self {
        let users = Frame::innermost_of_the_user(frames);
        Self::Stack {
            lines: frames.iter().take(FRAMES).map(line_of).collect(),
            user_line: users.map(line_of),
            native: native.map(<[_]>::to_vec),
        }
    }
}

/// A stack as the report shows it.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    /// Innermost first.
    pub(super) lines: Vec<String>,
    /// The innermost frame that is the user's own code.
    pub(super) user_line: Option<String>,
    /// How many samples had this innermost frame.
    pub(super) count: u64,
}

impl Samples {
    /// Takes in a sample of a hold that goes on, as far as is known; it counts if it was taken before
    /// the hold's end.
    pub(super) fn wait(&mut self, at_ns: u64, sample: Sample) {
        self.waiting.push_back((at_ns, sample));
        if self.waiting.len() > WAITING
            && let Some((_, sample)) = self.waiting.pop_front()
        {
            self.add(sample);
        }
    }

    /// The hold has ended.
    pub(super) fn end(&mut self, at_ns: u64) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|(taken_ns, _)| *taken_ns <= at_ns);
        for (_, sample) in waiting {
            self.add(sample);
        }
    }

    /// Counts a sample. Of those with one innermost frame the first one is shown.
    pub(super) fn add(&mut self, sample: Sample) {
        let (lines, user_line, native) = match sample {
            Sample::Stack { lines, user_line, native } => (lines, user_line, native),
            Sample::Missing(why) => return self.why_none = Some(why),
            Sample::Stop(ns) => return self.stood_ns = self.stood_ns.saturating_add(ns),
        };
        self.count += 1;
        if let Some(native) = native {
            self.natives.add(&native);
        }
        let alike = |stack: &&mut Stack| stack.lines.first() == lines.first();
        if let Some(stack) = self.stacks.iter_mut().find(alike) {
            stack.count += 1;
        } else if self.stacks.len() < STACKS {
            self.stacks.push(Stack { lines, user_line, count: 1 });
        }
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// For how long the holder was stopped to be looked at, at most.
    pub(super) const fn stood_ns(&self) -> u64 {
        self.stood_ns
    }

    /// The most frequent one; the earliest of those that are equally frequent.
    pub(super) fn most_frequent(&self) -> Option<&Stack> {
        self.stacks.iter().rev().max_by_key(|stack| stack.count)
    }

    /// Which native function most of them show.
    pub(super) fn native(&self) -> Option<NativeReport> {
        self.natives.report()
    }

    /// In how many of them native code would have been seen.
    pub(super) const fn native_looks(&self) -> u64 {
        self.natives.looks()
    }

    /// Why there is no stack, in a clause in which "it" is the hold; `None` if there is one.
    pub(super) fn why_none(&self, is_contended: bool) -> Option<String> {
        let unasked = if is_contended {
            "it ended before a sample was taken"
        } else {
            "nobody waited for it, so no sample was taken"
        };
        self.stacks.is_empty().then(|| self.why_none.clone().unwrap_or_else(|| unasked.to_owned()))
    }
}

/// A frame as the report shows it: `function (file:line)`, without the line if it is unknown.
pub(super) fn line_of(Frame { function, file, line }: &Frame) -> String {
    match line {
        0 => format!("{function} ({file})"),
        _ => format!("{function} ({file}:{line})"),
    }
}

/// The same without the line: what all lines of one function have in common.
pub(super) fn without_line(line: &str) -> &str {
    let is_number = |text: &str| text.strip_suffix(')').is_some_and(|it| it.parse::<u32>().is_ok());
    line.rsplit_once(':').filter(|(_, number)| is_number(number)).map_or(line, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str) -> Frame {
        Frame { function: function.to_owned(), file: file.to_owned(), line: 7 }
    }

    #[test]
    fn the_most_frequent_innermost_frame_is_shown_with_its_count() {
        let mut samples = Samples::default();
        for function in ["first", "second", "third", "second", "third"] {
            samples.add(Sample::of(&[frame(function, "a.py"), frame("main", "a.py")], None));
        }
        let stack = samples.most_frequent().unwrap();
        assert_eq!(stack.lines, ["second (a.py:7)", "main (a.py:7)"]);
        assert_eq!((stack.count, samples.count()), (2, 5));
        assert_eq!(samples.why_none(true), None);
    }

    #[test]
    fn the_users_own_frame_is_the_innermost_that_no_library_has() {
        let library = "/usr/lib/python3.11/re/__init__.py";
        let mut samples = Samples::default();
        let frames =
            [frame("match", library), frame("parse", "/srv/parser.py"), frame("main", "/srv/a.py")];
        samples.add(Sample::of(&frames, None));
        let users = |samples: &Samples| samples.most_frequent().unwrap().user_line.clone();
        assert_eq!(users(&samples).as_deref(), Some("parse (/srv/parser.py:7)"));
        let mut samples = Samples::default();
        samples.add(Sample::of(&frames[..1], None));
        assert_eq!(users(&samples), None);
    }

    #[test]
    fn a_users_frame_below_very_many_others_is_found() {
        let mut frames = vec![frame("descend", "/usr/lib/python3.11/copy.py"); 2 * FRAMES];
        frames.push(frame("main", "/srv/a.py"));
        let mut samples = Samples::default();
        samples.add(Sample::of(&frames, None));
        let stack = samples.most_frequent().unwrap();
        assert_eq!(stack.lines.len(), FRAMES);
        assert_eq!(stack.user_line.as_deref(), Some("main (/srv/a.py:7)"));
    }

    #[test]
    fn a_line_that_is_not_known_is_not_shown() {
        let unknown = Frame { line: 0, ..frame("f", "a.py") };
        assert_eq!(line_of(&unknown), "f (a.py)");
        assert_eq!(without_line("f (a.py:12)"), without_line("f (a.py:7)"));
        assert_eq!(without_line("f (a:b.py)"), "f (a:b.py)");
    }

    #[test]
    fn without_a_stack_there_is_a_reason() {
        let mut samples = Samples::default();
        assert_eq!(samples.why_none(true).unwrap(), "it ended before a sample was taken");
        assert!(samples.why_none(false).unwrap().starts_with("nobody waited"));
        samples.add(Sample::Missing("it was too dark".to_owned()));
        assert_eq!(samples.why_none(true).unwrap(), "it was too dark");
        for function in 0..2 * STACKS {
            samples.add(Sample::of(&[frame(&function.to_string(), "a.py")], None));
        }
        assert_eq!((samples.stacks.len(), samples.count()), (STACKS, 2 * STACKS as u64));
        assert_eq!(samples.why_none(true), None);
    }
}
