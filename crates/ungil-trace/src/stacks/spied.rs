//! A process whose interpreter py-spy reads.

use std::collections::HashMap;

use py_spy::config::{Config, LineNo, LockingStrategy};
use py_spy::python_process_info::PythonProcessLayout;
use py_spy::{PythonSpy, StackTrace};

use super::interpreter_states::InterpreterStates;
use super::{Holder, ThreadName};
use crate::record::Frame;

/// What the main thread of an interpreter is called.
pub(super) const MAIN: &str = "MainThread";

/// The interpreters of one process.
pub(super) struct Spied {
    pub(super) spy: PythonSpy,
    /// Where the interpreters are listed, if that is known.
    interpreters: Option<InterpreterStates>,
    /// The one that py-spy found.
    first: PythonProcessLayout,
}

impl Spied {
    /// Finds the interpreter of process `pid`.
    pub(super) fn find(pid: py_spy::Pid) -> anyhow::Result<Self> {
        let config = Config {
            blocking: LockingStrategy::NonBlocking,
            // Otherwise py-spy looks for packages in the file system, to shorten names.
            full_filenames: true,
            ..Config::default()
        };
        let spy = PythonSpy::new(pid, &config)?;
        let (interpreters, first) = (InterpreterStates::find(&spy), spy.addresses.clone());
        Ok(Self { spy, interpreters, first })
    }

    /// The holder of every GIL that is held.
    pub(super) fn read_holders(&mut self) -> anyhow::Result<Vec<Holder>> {
        let interpreters = self.list();
        self.holders(&interpreters)
    }

    /// The names of all threads.
    pub(super) fn read_names(&mut self) -> anyhow::Result<Vec<ThreadName>> {
        let interpreters = self.list();
        self.names(&interpreters)
    }

    /// The interpreters that are there now, the main one first; never empty.
    pub(super) fn list(&self) -> Vec<PythonProcessLayout> {
        let found = self.interpreters.as_ref().map(|known| known.list(&self.spy.process));
        found.filter(|found| !found.is_empty()).unwrap_or_else(|| vec![self.first.clone()])
    }

    /// The holder of every GIL that is held.
    fn holders(&mut self, interpreters: &[PythonProcessLayout]) -> anyhow::Result<Vec<Holder>> {
        let mut holders = Vec::new();
        let mut seen = Vec::new();
        for &PythonProcessLayout { threadstate_address: gil, .. } in interpreters {
            if !seen.contains(&gil) {
                seen.push(gil);
                holders.extend(self.holder(gil, interpreters)?);
            }
        }
        Ok(holders)
    }

    /// The thread that holds the GIL at `gil`, if one does, with its frames in every interpreter
    /// whose code it may be running.
    fn holder(
        &mut self,
        gil: usize,
        interpreters: &[PythonProcessLayout],
    ) -> anyhow::Result<Option<Holder>> {
        let main = interpreters[0].interpreter_address;
        let (inner, range) = match &self.interpreters {
            Some(known) if interpreters.len() > 1 => {
                let Some(inner) = known.of_holder(&self.spy.process, gil) else { return Ok(None) };
                (inner, known.range_of(gil))
            }
            known => (main, known.as_ref().and_then(|known| known.range_of(gil))),
        };
        let mut holder: Option<Holder> = None;
        for at in callers(gil, inner, interpreters) {
            let in_main = at.interpreter_address == main;
            let Some(StackTrace { thread_id: ident, frames, .. }) = self.trace_of_holder(at)?
            else {
                // Without a state in this one; or the GIL has just gone to another thread.
                continue;
            };
            let frames = frames.into_iter().map(frame);
            match &mut holder {
                Some(holder) if holder.ident == ident => holder.callers.extend(frames),
                Some(_) => break,
                None => {
                    let (gil, frames) = (range.clone(), frames.collect());
                    holder = Some(Holder { gil, ident, in_main, frames, callers: Vec::new() });
                }
            }
        }
        Ok(holder)
    }

    /// What the thread that holds the GIL of `at` does in the interpreter of `at`.
    fn trace_of_holder(&mut self, at: PythonProcessLayout) -> anyhow::Result<Option<StackTrace>> {
        self.spy.addresses = at;
        self.spy.config.collect_thread_names = false;
        Ok(self.traces(Extent::Holder)?.into_iter().find(|trace| trace.owns_gil))
    }

    /// What threads are called: the main interpreter's names come before those of others, in which
    /// a thread of the main one has an identity of its own.
    fn names(&mut self, interpreters: &[PythonProcessLayout]) -> anyhow::Result<Vec<ThreadName>> {
        let mut names = HashMap::new();
        for (index, at) in interpreters.iter().enumerate() {
            self.spy.addresses = at.clone();
            self.spy.config.collect_thread_names = true;
            self.spy.python_thread_names.clear();
            // py-spy looks names up for threads that it reports, and reports fewest if somebody
            // holds the GIL.
            let looked_up = self.traces(Extent::Holder).and_then(|traces| {
                let found = traces.iter().any(|trace| trace.owns_gil);
                if found { Ok(traces) } else { self.traces(Extent::AllThreads) }
            });
            // A sub-interpreter may be on its way out.
            if index == 0 {
                looked_up?;
            }
            for (&ident, name) in &self.spy.python_thread_names {
                if let Some(name) = name.clone().filter(|name| index == 0 || is_own(name)) {
                    names.entry(ident).or_insert(name);
                }
            }
        }
        Ok(names.into_iter().map(|(ident, name)| ThreadName { ident, name }).collect())
    }

    fn traces(&mut self, extent: Extent) -> anyhow::Result<Vec<StackTrace>> {
        // Set here and not before `PythonSpy::new`, which would print if it found no GIL.
        self.spy.config.gil_only = matches!(extent, Extent::Holder);
        self.spy.config.lineno = match extent {
            Extent::Holder => LineNo::LastInstruction,
            Extent::AllThreads => LineNo::NoLine,
        };
        self.spy.get_stack_traces()
    }
}

/// Whether a sub-interpreter calls a thread so that it started itself. Whichever imports `threading`
/// is its main thread to it, and others that run its code are `Dummy-N` (`threading.py`).
fn is_own(name: &str) -> bool {
    let number = name.strip_prefix("Dummy-");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    name != MAIN && !number.is_some_and(is_number)
}

/// Where to look for the frames of the thread that holds the GIL at `gil`, innermost first: in the
/// interpreter `inner` whose code it runs, then in the ones that may have called that one, which
/// were made before it or share its GIL, and at last in the main one. py-spy is to ask each for the
/// thread that holds that GIL, whichever GIL is its own.
fn callers(
    gil: usize,
    inner: usize,
    interpreters: &[PythonProcessLayout],
) -> Vec<PythonProcessLayout> {
    let mut order: Vec<_> = interpreters
        .iter()
        .enumerate()
        .filter(|(index, at)| *index == 0 || at.threadstate_address == gil)
        .map(|(_, at)| PythonProcessLayout { threadstate_address: gil, ..at.clone() })
        .collect();
    order.reverse();
    order.sort_by_key(|at| at.interpreter_address != inner);
    order
}

/// Which threads py-spy reports. Its cost grows with their number.
#[derive(Clone, Copy)]
enum Extent {
    Holder,
    AllThreads,
}

pub(super) fn frame(frame: py_spy::Frame) -> Frame {
    Frame {
        function: frame.name,
        file: frame.filename,
        line: u32::try_from(frame.line).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sub_interpreter_calls_threads_of_others_is_not_their_name() {
        assert!(["worker-1", "Dummy", "Dummy-", "Dummy-a1"].into_iter().all(is_own));
        assert!([MAIN, "Dummy-1", "Dummy-27"].into_iter().all(|name| !is_own(name)));
    }
}
