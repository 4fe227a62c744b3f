//! Stacks of holders: tables of strings, frames and stacks for the whole page, and the samples of one
//! GIL.

use super::table::{Packed, pack};
use crate::origin::Users;
use crate::record::{Frame, NativeFrame};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;

/// Frames kept of one stack, innermost first.
const FRAMES: usize = 200;
/// Different stacks kept.
const STACKS: usize = 50_000;
/// Characters kept of a name or a path.
const CHARACTERS: usize = 1_000;
/// The kind of a frame of native code.
const NATIVE: &str = "native";

/// Items that are numbered, each once.
#[derive(Debug)]
struct Numbered<T> {
    numbers: HashMap<T, usize>,
    items: Vec<T>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), items: Vec::new() }
    }

    fn of(&mut self, item: T) -> usize {
        if let Some(&number) = self.numbers.get(&item) {
            return number;
        }
        self.items.push(item.clone());
        self.numbers.insert(item, self.items.len() - 1);
        self.items.len() - 1
    }
}

/// Function, file, line, kind, library, and 1 if it is the user's own code; texts by number.
type Row = (usize, usize, u32, usize, usize, u8);

/// The tables of the page.
#[derive(Debug)]
pub(super) struct Stacks {
    strings: Numbered<String>,
    frames: Numbered<Row>,
    stacks: Numbered<Vec<usize>>,
    whys: Numbered<usize>,
}

/// As JSON.
#[derive(Serialize)]
pub(super) struct Tables<'a> {
    strings: &'a [String],
    frames: &'a [Row],
    stacks: &'a [Vec<usize>],
    whys: &'a [usize],
}

impl Stacks {
    pub(super) fn new() -> Self {
        let mut strings = Numbered::new();
        strings.of(String::new());
        Self { strings, frames: Numbered::new(), stacks: Numbered::new(), whys: Numbered::new() }
    }

    /// The number of a stack, the native frames above Python's first; `None` if there are too many
    /// already.
    pub(super) fn stack(&mut self, native: &[NativeFrame], frames: &[Frame]) -> Option<usize> {
        let Self { strings, frames: rows, stacks, .. } = self;
        let mut stack: Vec<_> = native
            .iter()
            .take(FRAMES)
            .map(|frame| {
                let function = strings.of(cut(frame.function().unwrap_or_default()));
                let (kind, library) =
                    (strings.of(NATIVE.to_owned()), strings.of(cut(&frame.library)));
                rows.of((function, 0, 0, kind, library, 0))
            })
            .collect();
        let users = Users::of(frames);
        let frames = frames.iter().take(FRAMES).map(|frame| {
            let is_users = users.has(frame);
            let function = strings.of(cut(&frame.function));
            let file = strings.of(cut(&frame.file));
            rows.of((function, file, frame.line, 0, 0, u8::from(is_users)))
        });
        stack.extend(frames);
        (stacks.items.len() < STACKS || stacks.numbers.contains_key(&stack))
            .then(|| stacks.of(stack))
    }

    /// The number of a reason.
    pub(super) fn why(&mut self, why: &str) -> usize {
        let text = self.strings.of(cut(why));
        self.whys.of(text)
    }

    /// The tables; `None` if there are none.
    pub(super) fn tables(&self) -> Option<Tables<'_>> {
        let is_empty = self.stacks.items.is_empty() && self.whys.items.is_empty();
        (!is_empty).then(|| Tables {
            strings: &self.strings.items,
            frames: &self.frames.items,
            stacks: &self.stacks.items,
            whys: &self.whys.items,
        })
    }
}

/// The beginning of a text, if it is very long.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A look at a hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// In units.
    pub(super) at: u64,
    /// The number of the stack + 1, or 0.
    pub(super) stack: u64,
    /// The number of the reason why there is none + 1, or 0.
    pub(super) why: u64,
    /// How many threads waited, if it is one of those that are taken at regular times; else 0.
    pub(super) waiters: u32,
}

/// A hold that was looked at, or may still be; one without length if nothing is known of it.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    pub(super) lane: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) waited: u64,
    pub(super) looks: Vec<Look>,
}

impl Sampled {
    /// Whether it is known by one look alone that was taken at a regular time.
    pub(super) fn is_fair(&self) -> bool {
        matches!(&self.looks[..], [look] if look.waiters > 0)
    }
}

/// The table of these holds' samples; their order is that of time.
pub(super) fn packed(holds: &[Sampled]) -> Option<Packed> {
    let mut columns: [Vec<u64>; 8] = Default::default();
    let mut last = 0;
    for hold in holds {
        for look in &hold.looks {
            let values = [
                u64::from(hold.lane),
                hold.begin - last,
                hold.end - hold.begin,
                hold.waited,
                look.at.saturating_sub(hold.begin),
                look.stack,
                look.why,
                u64::from(look.waiters),
            ];
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            last = hold.begin;
        }
    }
    let names = ["lane", "begin", "length", "waited", "at", "stack", "why", "waiters"];
    let columns: Vec<_> = names.into_iter().zip(columns.iter().map(|it| &it[..])).collect();
    (!columns[0].1.is_empty()).then(|| pack(&columns))
}
