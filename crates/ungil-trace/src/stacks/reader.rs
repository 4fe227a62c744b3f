//! One process, its interpreter found once and then read as often as wanted.

use std::cell::Cell;
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use py_spy::config::{Config, LineNo, LockingStrategy};
use py_spy::python_process_info::PythonProcessLayout;
use py_spy::{PythonSpy, StackTrace};

use super::forbidden::{why_all_are_forbidden, why_forbidden};
use super::interpreter_states::InterpreterStates;
use super::libraries::users_libraries;
use super::native::NativeStacks;
use super::{Holder, Sample, StackError, ThreadName};
use crate::clock::now_ns;
use crate::record::Frame;

/// What the main thread of an interpreter is called.
pub(super) const MAIN: &str = "MainThread";
/// Between two looks at the libraries of a process.
const LIBRARIES_EVERY: Duration = Duration::from_secs(1);

/// A process whose stacks can be read.
///
/// Finding the interpreter takes 2 to 50 ms, reading the holder's stack some 0.15 ms, and reading
/// names 0.6 ms with 3 threads and 6 ms with 200.
pub struct StackReader {
    pub(super) pid: u32,
    pub(super) spy: PythonSpy,
    /// Where the interpreters are listed, if that is known.
    interpreters: Option<InterpreterStates>,
    /// The one that py-spy found.
    first: PythonProcessLayout,
    libraries: Vec<String>,
    /// When they were looked up.
    libraries_at: Option<Instant>,
    /// Once they are asked for.
    natives: Option<NativeStacks>,
}

impl StackReader {
    /// Finds the interpreter of process `pid`. Tries once; it does not wait for one to start.
    pub fn attach(pid: u32) -> Result<Self, StackError> {
        if let Some(why) = why_all_are_forbidden() {
            return Err(StackError::Forbidden(why));
        }
        let Ok(py_spy_pid) = py_spy::Pid::try_from(pid) else { return Err(StackError::Gone) };
        let config = Config {
            blocking: LockingStrategy::NonBlocking,
            // Otherwise py-spy looks for packages in the file system, to shorten names.
            full_filenames: true,
            ..Config::default()
        };
        guarded(pid, || {
            let spy = PythonSpy::new(py_spy_pid, &config)?;
            let (interpreters, first) = (InterpreterStates::find(&spy), spy.addresses.clone());
            Ok::<_, anyhow::Error>(Self {
                pid,
                spy,
                interpreters,
                first,
                libraries: Vec::new(),
                libraries_at: None,
                natives: None,
            })
        })
    }

    /// The stacks of the threads that hold a GIL now.
    pub fn read(&mut self) -> Result<Sample, StackError> {
        let begun_ns = now_ns();
        let (holders, at_ns) = guarded(self.pid, || {
            let interpreters = self.list();
            let holders = self.holders(&interpreters)?;
            Ok::<_, anyhow::Error>((holders, now_ns()))
        })?;
        let libraries = if holders.is_empty() { None } else { self.changed_libraries() };
        let (names, natives) = (Vec::new(), Vec::new());
        Ok(Sample { begun_ns, at_ns, holders, names, libraries, natives, no_natives: None })
    }

    /// Like [`read`](Self::read), with the native frames of those of `threads` (kernel thread ids)
    /// that were not looked at in the last 10 ms. The Python stacks are read before and afterwards,
    /// and native frames of a thread whose Python stack has changed meanwhile are left out.
    pub fn read_with_natives(&mut self, threads: &[u32]) -> Result<Sample, StackError> {
        let mut before = self.read()?;
        if before.holders.is_empty() {
            return Ok(before);
        }
        let version = (self.spy.version.major, self.spy.version.minor);
        let natives = self.natives.get_or_insert_with(|| NativeStacks::of(self.pid, version));
        let looked = natives.look(threads);
        before.no_natives = natives.refusal().map(ToString::to_string);
        if looked.is_empty() {
            return Ok(before);
        }
        let after = self.read();
        let belongs = after.as_ref().is_ok_and(|it| it.holders == before.holders);
        let mut sample = after.unwrap_or_else(|_| before.clone());
        sample.libraries = before.libraries.or(sample.libraries);
        sample.no_natives = before.no_natives;
        if let Some(natives) = &mut self.natives {
            let stack = |look| natives.stack(self.pid, look, belongs);
            sample.natives = looked.iter().map(stack).collect();
        }
        Ok(sample)
    }

    /// Like [`read`](Self::read), with the names of all threads.
    pub fn read_with_names(&mut self) -> Result<Sample, StackError> {
        let mut sample = self.read()?;
        sample.names = self.read_names()?;
        Ok(sample)
    }

    /// The names of all threads.
    pub(super) fn read_names(&mut self) -> Result<Vec<ThreadName>, StackError> {
        guarded(self.pid, || {
            let interpreters = self.list();
            self.names(&interpreters)
        })
    }

    /// The interpreters that are there now, the main one first; never empty.
    pub(super) fn list(&self) -> Vec<PythonProcessLayout> {
        let found = self.interpreters.as_ref().map(|known| known.list(&self.spy.process));
        found.filter(|found| !found.is_empty()).unwrap_or_else(|| vec![self.first.clone()])
    }

    /// The libraries of the user if they have changed; not looked up at every sample.
    fn changed_libraries(&mut self) -> Option<Vec<String>> {
        if self.libraries_at.is_some_and(|at| at.elapsed() < LIBRARIES_EVERY) {
            return None;
        }
        self.libraries_at = Some(Instant::now());
        let libraries = users_libraries(self.pid);
        (libraries != self.libraries).then(|| {
            self.libraries.clone_from(&libraries);
            libraries
        })
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
                // A sub-interpreter calls whichever thread imports `threading` its main thread.
                if let Some(name) = name.clone().filter(|name| index == 0 || name != MAIN) {
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

/// Calls py-spy, which may stumble over memory that changes under its hands, even by a panic.
pub(super) fn guarded<T, E>(pid: u32, call: impl FnOnce() -> Result<T, E>) -> Result<T, StackError>
where
    E: AsRef<dyn Error + Send + Sync>,
{
    match silently(call) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(classify(pid, error.as_ref())),
        Err(_) => Err(StackError::NotReady("its data changed while it was read".into())),
    }
}

thread_local! {
    /// Whether this thread is inside py-spy, so that a panic is an answer and no message.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Catches a panic of `call` without the message that the panic hook would print among the output
/// of the traced program.
fn silently<T>(call: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                previous(panic);
            }
        }));
    });
    INSIDE.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(false);
    outcome
}

/// Which of our errors this one is. py-spy has one error type for everything; the cause shows in
/// the system error at its root, if there is one, and else in what it says.
fn classify(pid: u32, error: &(dyn Error + Send + Sync + 'static)) -> StackError {
    if !is_running(pid) {
        return StackError::Gone;
    }
    let said = error.to_string();
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        match error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                return StackError::Forbidden(why_forbidden(pid));
            }
            Some(libc::ESRCH) => return StackError::Gone,
            _ => cause = error.source(),
        }
    }
    match said.strip_prefix("Unsupported version of Python: ") {
        Some(version) => {
            StackError::Unsupported(format!("Python {version} is unknown to the stack reader"))
        }
        None => StackError::NotReady(said),
    }
}

/// Whether the process exists and is no zombie, whose memory is gone.
fn is_running(pid: u32) -> bool {
    match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("Failed to copy something")]
    struct Context(#[source] io::Error);

    /// What the error at the bottom of a chain makes of a process that runs.
    fn verdict(bottom: io::Error) -> StackError {
        classify(std::process::id(), &Context(bottom))
    }

    #[test]
    fn an_error_is_told_by_the_system_error_at_its_root() {
        let errno = io::Error::from_raw_os_error;
        assert!(matches!(verdict(errno(libc::EPERM)), StackError::Forbidden(_)));
        assert!(matches!(verdict(errno(libc::EACCES)), StackError::Forbidden(_)));
        assert_eq!(verdict(errno(libc::ESRCH)), StackError::Gone);
        let torn = StackError::NotReady("Failed to copy something".into());
        assert_eq!(verdict(errno(libc::EFAULT)), torn);
    }

    #[test]
    fn a_version_that_nobody_knows_is_unsupported() {
        let error = io::Error::other("Unsupported version of Python: 4.0.0");
        let StackError::Unsupported(why) = classify(std::process::id(), &error) else { panic!() };
        assert_eq!(why, "Python 4.0.0 is unknown to the stack reader");
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(StackReader::attach(pid).err(), Some(StackError::Gone));
        assert_eq!(StackReader::attach(u32::MAX).err(), Some(StackError::Gone));
    }

    #[test]
    fn a_program_that_is_no_python_is_not_ready() {
        let attached = StackReader::attach(std::process::id());
        assert!(matches!(attached.err(), Some(StackError::NotReady(_))));
    }

    #[test]
    fn a_panic_inside_is_an_error() {
        let torn = guarded(std::process::id(), || -> Result<(), Box<dyn Error + Send + Sync>> {
            panic!("this must not be printed")
        });
        assert!(matches!(torn, Err(StackError::NotReady(_))));
    }
}
