//! What every thread of a process does, the ones that hold no GIL as well.

use std::collections::HashMap;

use py_spy::StackTrace;
use py_spy::config::LineNo;
use serde::Serialize;

use super::free_threaded;
use super::reader::{Inside, StackReader, guarded};
use super::spied::{MAIN, Spied, frame};
use super::{StackError, TRIES};
use crate::clock::now_ns;
use crate::numbers::Numbers;
use crate::record::Frame;

/// All threads of a process at one moment, as far as reading them takes no time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Everyone {
    /// When reading began, in ns of `CLOCK_MONOTONIC`.
    pub begun_ns: u64,
    /// When it was over.
    pub at_ns: u64,
    /// In the order in which the interpreter has them: the youngest first.
    pub threads: Vec<ThreadStack>,
}

/// A thread that Python knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadStack {
    /// Its `threading.get_ident()`.
    pub ident: u64,
    /// Kernel thread id, if that is known: before Python 3.11 it has to be found out.
    pub tid: Option<u64>,
    /// `threading.Thread.name`, if it has one.
    pub name: Option<String>,
    /// Whether a GIL was its own when that was read, a moment before its stack.
    pub owns_gil: bool,
    /// Its Python stack, innermost frame first.
    pub frames: Vec<Frame>,
}

impl StackReader {
    /// What every thread does. It takes as long as [`read_with_names`](Self::read_with_names), and
    /// the process is not stopped: the stack of a thread that runs may be a mixture.
    pub fn read_everyone(&mut self) -> Result<Everyone, StackError> {
        let mut attempt = 1;
        loop {
            let begun_ns = now_ns();
            let read = guarded(self.pid, || {
                Ok::<_, anyhow::Error>(match &mut self.inside {
                    Inside::Spied(spied) => spied.read_everyone()?,
                    Inside::FreeThreaded(interpreter) => free_threaded::everyone(interpreter)?,
                })
            });
            match read {
                Err(StackError::NotReady(_)) if attempt < TRIES => attempt += 1,
                other => {
                    let mut threads = other?;
                    let at_ns = now_ns();
                    for thread in &mut threads {
                        thread.renumber(&mut self.numbers);
                    }
                    return Ok(Everyone { begun_ns, at_ns, threads });
                }
            }
        }
    }
}

impl ThreadStack {
    /// Gives it the kernel's id for it here, where the interpreter has that of its own namespace.
    fn renumber(&mut self, numbers: &mut Numbers) {
        let tid = self.tid.and_then(|own| u32::try_from(own).ok()).map(|own| numbers.tid(own));
        self.tid = tid.filter(|&tid| tid != 0).map(u64::from);
    }
}

impl Spied {
    fn read_everyone(&mut self) -> anyhow::Result<Vec<ThreadStack>> {
        let mut threads: Vec<ThreadStack> = Vec::new();
        let mut places: HashMap<u64, usize> = HashMap::new();
        // What a thread runs in a sub-interpreter comes before what it runs in the main one.
        for (index, at) in self.list().into_iter().enumerate().rev() {
            self.spy.addresses = at;
            self.spy.config.collect_thread_names = true;
            self.spy.config.gil_only = false;
            self.spy.config.lineno = LineNo::LastInstruction;
            self.spy.python_thread_names.clear();
            let traces = match self.spy.get_stack_traces() {
                Ok(traces) => traces,
                // A sub-interpreter may be on its way out.
                Err(_) if index > 0 => continue,
                Err(error) => return Err(error),
            };
            for StackTrace { thread_id, os_thread_id, thread_name, owns_gil, frames, .. } in traces
            {
                let frames = frames.into_iter().map(frame);
                // A sub-interpreter calls whichever thread imports `threading` its main thread.
                let name = thread_name.filter(|name| index == 0 || name != MAIN);
                if let Some(&place) = places.get(&thread_id) {
                    let known = &mut threads[place];
                    known.frames.extend(frames);
                    known.owns_gil |= owns_gil;
                    known.name = name.or(known.name.take());
                    continue;
                }
                places.insert(thread_id, threads.len());
                let (ident, tid, frames) = (thread_id, os_thread_id, frames.collect());
                threads.push(ThreadStack { ident, tid, name, owns_gil, frames });
            }
        }
        Ok(threads)
    }
}
