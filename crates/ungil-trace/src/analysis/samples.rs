//! What the samples of one hold showed.

use super::natives::Natives;
use crate::origin::Origin;
use crate::record::{Frame, NativeFrame};
use crate::report::NativeReport;

/// Frames kept of one stack, innermost first.
const FRAMES: usize = 100;
/// Different stacks kept of one hold.
const STACKS: usize = 8;

/// The stacks that were sampled during one hold, those with one innermost frame counted together.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    count: u64,
    stacks: Vec<Stack>,
    natives: Natives,
    /// Why there is none, or no more.
    why_none: Option<String>,
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
    /// Counts a sample. Of those with one innermost frame the first one is shown.
    pub(super) fn add(&mut self, frames: &[Frame], native: Option<&[NativeFrame]>) {
        self.count += 1;
        if let Some(native) = native {
            self.natives.add(native);
        }
        let innermost = frames.first().map(line_of);
        let alike = |stack: &&mut Stack| stack.lines.first() == innermost.as_ref();
        if let Some(stack) = self.stacks.iter_mut().find(alike) {
            stack.count += 1;
        } else if self.stacks.len() < STACKS {
            let users = frames.iter().find(|frame| Origin::of(&frame.file) == Origin::User);
            self.stacks.push(Stack {
                lines: frames.iter().take(FRAMES).map(line_of).collect(),
                user_line: users.map(line_of),
                count: 1,
            });
        }
    }

    /// Notes why a sample that was wanted is missing.
    pub(super) fn miss(&mut self, why: &str) {
        self.why_none = Some(why.to_owned());
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
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
            samples.add(&[frame(function, "a.py"), frame("main", "a.py")], None);
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
        samples.add(&frames, None);
        let users = |samples: &Samples| samples.most_frequent().unwrap().user_line.clone();
        assert_eq!(users(&samples).as_deref(), Some("parse (/srv/parser.py:7)"));
        let mut samples = Samples::default();
        samples.add(&frames[..1], None);
        assert_eq!(users(&samples), None);
    }

    #[test]
    fn a_users_frame_below_very_many_others_is_found() {
        let mut frames = vec![frame("descend", "/usr/lib/python3.11/copy.py"); 2 * FRAMES];
        frames.push(frame("main", "/srv/a.py"));
        let mut samples = Samples::default();
        samples.add(&frames, None);
        let stack = samples.most_frequent().unwrap();
        assert_eq!(stack.lines.len(), FRAMES);
        assert_eq!(stack.user_line.as_deref(), Some("main (/srv/a.py:7)"));
    }

    #[test]
    fn a_line_that_is_not_known_is_not_shown() {
        let unknown = Frame { line: 0, ..frame("f", "a.py") };
        assert_eq!(line_of(&unknown), "f (a.py)");
    }

    #[test]
    fn without_a_stack_there_is_a_reason() {
        let mut samples = Samples::default();
        assert_eq!(samples.why_none(true).unwrap(), "it ended before a sample was taken");
        assert!(samples.why_none(false).unwrap().starts_with("nobody waited"));
        samples.miss("it was too dark");
        assert_eq!(samples.why_none(true).unwrap(), "it was too dark");
        for function in 0..2 * STACKS {
            samples.add(&[frame(&function.to_string(), "a.py")], None);
        }
        assert_eq!((samples.stacks.len(), samples.count()), (STACKS, 2 * STACKS as u64));
        assert_eq!(samples.why_none(true), None);
    }
}
