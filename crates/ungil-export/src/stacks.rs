//! Stacks, each kept once.

use std::collections::HashMap;
use ungil_trace::record::Frame;

/// A stack, by its place in [`Stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// The different stacks of a trace.
#[derive(Debug, Default)]
pub struct Stacks {
    ids: HashMap<Vec<Frame>, StackId>,
    stacks: Vec<Vec<Frame>>,
}

impl Stacks {
    /// The id of a stack, innermost frame first.
    pub fn id(&mut self, frames: &[Frame]) -> StackId {
        if let Some(id) = self.ids.get(frames) {
            return *id;
        }
        let id = StackId(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        self.ids.insert(frames.to_vec(), id);
        self.stacks.push(frames.to_vec());
        id
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> &[Frame] {
        self.stacks.get(id.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// All of them, in the order of their ids.
    pub fn all(&self) -> &[Vec<Frame>] {
        &self.stacks
    }
}

/// A frame as one line: `function (file:line)`, without the line if it is unknown.
pub fn label(frame: &Frame) -> String {
    match frame.line {
        0 => format!("{} ({})", frame.function, frame.file),
        line => format!("{} ({}:{line})", frame.function, frame.file),
    }
}
