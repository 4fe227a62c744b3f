//! Functions of the user's own in which looks found a thread while it held, in memory that does not
//! grow with the trace.

use super::called::Called;
use super::samples::line_of;
use crate::record::Frame;
use crate::report::{ComputedIn, HeldIn};
use std::cmp::Reverse;

/// Functions that are kept, and lines of each.
const FUNCTIONS: usize = 64;
const LINES: usize = 8;
/// Modules that each imports, too.
const MODULES: usize = 16;

/// All of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions(Vec<Function>);

/// A function of the user's own in which it held.
#[derive(Clone, Debug)]
struct Function {
    function: String,
    file: String,
    depth: u64,
    looks: u64,
    waiters: u64,
    innermost: u64,
    called_back: u64,
    importing: u64,
    imported: Vec<String>,
    lines: Vec<(u32, u64)>,
}

impl Functions {
    /// Takes in what a look found on the stack, outermost first, while so many threads waited.
    pub(super) fn add(&mut self, waiters: u32, called: &[Called]) {
        // One that calls itself counts once, as it was called from outside.
        let mut path: Vec<Called> = Vec::new();
        for call in called {
            let Frame { function, file, .. } = call.frame;
            let is_it = |it: &Called| (&it.frame.function, &it.frame.file) == (function, file);
            match path.iter().position(is_it) {
                Some(place) => path[place].frame = call.frame,
                None => path.push(call.clone()),
            }
        }
        let innermost = path.len().saturating_sub(1);
        for (depth, call) in path.into_iter().enumerate() {
            let frame = call.frame;
            let is_it = |it: &Function| (&it.function, &it.file) == (&frame.function, &frame.file);
            let place = self.0.iter().position(is_it);
            let place = place.unwrap_or_else(|| {
                self.0.push(Function::new(frame));
                self.0.len() - 1
            });
            if self.0.len() > FUNCTIONS {
                self.0.pop();
                return;
            }
            self.0[place].count(depth, waiters, frame.line, depth == innermost);
            self.0[place].note(call);
        }
    }

    /// Where it held while others waited, most waiters first, outer functions before inner ones.
    pub(super) fn held_in(&self) -> Vec<HeldIn> {
        let mut functions: Vec<HeldIn> = self.0.iter().map(Function::held_in).collect();
        functions.sort_by_key(|it| (Reverse(it.waiters), it.depth));
        functions
    }

    /// Where it computed, most looks first, outer functions before inner ones.
    pub(super) fn computed_in(&self) -> Vec<ComputedIn> {
        let mut functions: Vec<ComputedIn> = self.0.iter().map(Function::computed_in).collect();
        functions.sort_by_key(|it| (Reverse(it.looks), it.depth));
        functions
    }
}

impl Function {
    fn new(frame: &Frame) -> Self {
        Self {
            function: frame.function.clone(),
            file: frame.file.clone(),
            depth: u64::MAX,
            looks: 0,
            waiters: 0,
            innermost: 0,
            called_back: 0,
            importing: 0,
            imported: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn count(&mut self, depth: usize, waiters: u32, line: u32, innermost: bool) {
        self.depth = self.depth.min(depth as u64);
        self.looks += 1;
        self.waiters = self.waiters.saturating_add(waiters.into());
        if innermost {
            self.innermost += 1;
            if let Some((_, count)) = self.lines.iter_mut().find(|(it, _)| *it == line) {
                *count += 1;
            } else if self.lines.len() < LINES {
                self.lines.push((line, 1));
            }
        }
    }

    /// Takes in how it came to run, and whether it imports.
    fn note(&mut self, call: Called) {
        self.called_back += u64::from(call.back);
        self.importing += u64::from(call.imports);
        if let Some(module) = call.imported
            && self.imported.len() < MODULES
            && !self.imported.contains(&module)
        {
            self.imported.push(module);
        }
    }

    fn name(&self) -> String {
        format!("{} ({})", self.function, self.file)
    }

    /// The line at which it was seen most often.
    fn line(&self) -> Option<String> {
        let line = self.lines.iter().rev().max_by_key(|(_, count)| *count);
        line.map(|&(line, _)| {
            let (function, file) = (self.function.clone(), self.file.clone());
            line_of(&Frame { function, file, line })
        })
    }

    fn held_in(&self) -> HeldIn {
        HeldIn {
            function: self.name(),
            depth: self.depth,
            looks: self.looks,
            waiters: self.waiters,
            innermost: self.innermost,
            called_back: self.called_back,
            importing: self.importing,
            imported: self.imported.clone(),
            frame: self.line(),
        }
    }

    fn computed_in(&self) -> ComputedIn {
        ComputedIn {
            function: self.name(),
            depth: self.depth,
            looks: self.looks,
            innermost: self.innermost,
            called_back: self.called_back,
            frame: self.line(),
        }
    }
}
