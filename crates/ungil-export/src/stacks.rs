//! Stacks, each kept once.

use std::borrow::Cow;
use std::collections::HashMap;
use ungil_trace::record::{Frame, NativeFrame};

/// A stack, by its place in [`Stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// One line of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StackFrame {
    /// No code: a thread, a process, or a remark.
    Label(String),
    /// A Python function.
    Python(Frame),
    /// A native function that Python called, or one that this called.
    Native(NativeFrame),
}

impl StackFrame {
    /// What it is called; `?` for a native function whose name is not known.
    pub fn function(&self) -> &str {
        match self {
            Self::Label(text) => text,
            Self::Python(frame) => &frame.function,
            Self::Native(frame) => frame.function().unwrap_or("?"),
        }
    }

    /// The file that it is in: source code, or a library. Empty if it is not known, and for labels.
    pub fn file(&self) -> &str {
        match self {
            Self::Label(_) => "",
            Self::Python(frame) => &frame.file,
            Self::Native(frame) => &frame.library,
        }
    }

    /// The line that was run; 0 if it is not known, and for what has no lines.
    pub fn line(&self) -> u32 {
        match self {
            Self::Python(frame) => frame.line,
            Self::Label(_) | Self::Native(_) => 0,
        }
    }

    /// All of it in one line: `function (file:line)`, without the line if it is unknown; of native
    /// code `function [library]`, without the folder of the library.
    pub fn label(&self) -> Cow<'_, str> {
        match self {
            Self::Label(text) => text.into(),
            Self::Python(Frame { function, file, line: 0 }) => {
                format!("{function} ({file})").into()
            }
            Self::Python(Frame { function, file, line }) => {
                format!("{function} ({file}:{line})").into()
            }
            Self::Native(frame) => {
                format!("{} [{}]", self.function(), library_name(&frame.library)).into()
            }
        }
    }
}

/// A library without its folder; code that was made while the program ran has none.
pub fn library_name(library: &str) -> &str {
    match library.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => "no library",
    }
}

/// The different stacks of a trace.
#[derive(Debug, Default)]
pub struct Stacks {
    ids: HashMap<Vec<StackFrame>, StackId>,
    stacks: Vec<Vec<StackFrame>>,
}

impl Stacks {
    /// The id of a stack: the native frames, above the Python frames that called them, each with
    /// the innermost first.
    pub fn id(&mut self, frames: &[Frame], native: Option<&[NativeFrame]>) -> StackId {
        let native = native.unwrap_or_default().iter().cloned().map(StackFrame::Native);
        let stack: Vec<_> = native.chain(frames.iter().cloned().map(StackFrame::Python)).collect();
        if let Some(id) = self.ids.get(&stack) {
            return *id;
        }
        let id = StackId(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        self.ids.insert(stack.clone(), id);
        self.stacks.push(stack);
        id
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> &[StackFrame] {
        self.stacks.get(id.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// All of them, in the order of their ids.
    pub fn all(&self) -> &[Vec<StackFrame>] {
        &self.stacks
    }
}
