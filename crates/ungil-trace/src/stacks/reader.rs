//! One process, its interpreter found once and then read as often as wanted.

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::before_forks::done_before_forks;
use super::forbidden::{why_all_are_forbidden, why_forbidden};
use super::free_threaded;
use super::libraries::users_libraries;
use super::native::NativeStacks;
use super::spied::Spied;
use super::{Sample, StackError, ThreadNames};
use crate::clock::{now_ns, with_cpu_ns};
use crate::free_threaded::FreeThreaded;
use crate::numbers::Numbers;

/// A look at the libraries of a process is followed by so many times its CPU time without one,
const LIBRARIES_REST: u32 = 100;
/// but not by less or more than this.
const LIBRARIES_EVERY: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Why there is no stack of a process that runs on while it is read.
const TORN: &str = "its data changed while it was read";
/// What py-spy has not found where there is no Python.
const VERSION_SOUGHT: &str = "find python version";

/// A process whose stacks can be read.
///
/// Finding the interpreter takes 2 to 50 ms, reading the holder's stack some 0.15 ms, and reading
/// names 0.6 ms with 3 threads and 6 ms with 200.
pub struct StackReader {
    pub(super) pid: u32,
    pub(super) numbers: Numbers,
    pub(super) inside: Inside,
    libraries: Vec<String>,
    /// When they may be looked up again.
    libraries_at: Option<Instant>,
    /// Once they are asked for.
    natives: Option<NativeStacks>,
}

/// Who reads the interpreter.
pub(super) enum Inside {
    Spied(Box<Spied>),
    FreeThreaded(Box<FreeThreaded>),
}

impl StackReader {
    /// Finds the interpreter of process `pid`, of which `runtime` says where `_PyRuntime` is if it is a
    /// free-threaded one. Tries once; it does not wait for one to start.
    pub fn attach(pid: u32, runtime: Option<u64>) -> Result<Self, StackError> {
        done_before_forks(|| Self::look_into(pid, runtime))
    }

    fn look_into(pid: u32, runtime: Option<u64>) -> Result<Self, StackError> {
        if let Some(why) = why_all_are_forbidden() {
            return Err(StackError::Forbidden(why));
        }
        let Ok(py_spy_pid) = py_spy::Pid::try_from(pid) else { return Err(StackError::Gone) };
        guarded(pid, || {
            let inside = match runtime {
                Some(runtime) => Inside::FreeThreaded(Box::new(FreeThreaded::open(pid, runtime)?)),
                None => Inside::Spied(Box::new(Spied::find(py_spy_pid)?)),
            };
            let libraries = Vec::new();
            Ok::<_, anyhow::Error>(Self {
                pid,
                numbers: Numbers::of_process(pid),
                inside,
                libraries,
                libraries_at: None,
                natives: None,
            })
        })
    }

    /// The stacks of the threads that hold a GIL now.
    pub fn read(&mut self) -> Result<Sample, StackError> {
        let begun_ns = now_ns();
        let (holders, at_ns) = guarded(self.pid, || {
            let holders = match &mut self.inside {
                Inside::Spied(spied) => spied.read_holders()?,
                Inside::FreeThreaded(interpreter) => free_threaded::holders(interpreter)?,
            };
            Ok::<_, anyhow::Error>((holders, now_ns()))
        })?;
        let libraries = if holders.is_empty() { None } else { self.changed_libraries() };
        let (names, natives) = (None, Vec::new());
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
        let version = match &self.inside {
            Inside::Spied(spied) => (spied.spy.version.major, spied.spy.version.minor),
            Inside::FreeThreaded(interpreter) => interpreter.version(),
        };
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
        sample.names = Some(self.read_names()?);
        Ok(sample)
    }

    /// The names of all threads.
    pub(super) fn read_names(&mut self) -> Result<ThreadNames, StackError> {
        let begun_ns = now_ns();
        guarded(self.pid, || {
            let threads = match &mut self.inside {
                Inside::Spied(spied) => spied.read_names()?,
                Inside::FreeThreaded(interpreter) => free_threaded::names(interpreter)?,
            };
            Ok::<_, anyhow::Error>(ThreadNames { begun_ns, at_ns: now_ns(), threads })
        })
    }

    /// What was told of the libraries of the user was not heard.
    pub(super) fn tell_libraries_again(&mut self) {
        self.libraries.clear();
        self.libraries_at = None;
    }

    /// The libraries of the user if they have changed; not looked up at every sample.
    fn changed_libraries(&mut self) -> Option<Vec<String>> {
        if self.libraries_at.is_some_and(|at| Instant::now() < at) {
            return None;
        }
        // On a busy machine a look may last long, and cost little.
        let (libraries, cpu_ns) = with_cpu_ns(|| users_libraries(self.pid));
        let [least, most] = LIBRARIES_EVERY;
        let rest = (Duration::from_nanos(cpu_ns) * LIBRARIES_REST).clamp(least, most);
        self.libraries_at = Some(Instant::now() + rest);
        let libraries = libraries?;
        (libraries != self.libraries).then(|| {
            self.libraries.clone_from(&libraries);
            libraries
        })
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
        Err(_) => Err(StackError::NotReady(TORN.into())),
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
            // Also what /proc says of a thread that ends while its file is read.
            Some(libc::ESRCH) if !is_running(pid) => return StackError::Gone,
            // What it points to is there no more, or one of its threads is not.
            Some(libc::ESRCH | libc::EFAULT) => return StackError::NotReady(TORN.into()),
            _ => cause = error.source(),
        }
    }
    match said.strip_prefix("Unsupported version of Python: ") {
        Some(version) => {
            StackError::Unsupported(format!("the stack reader does not know Python {version}"))
        }
        // Of a program that is no Python it says what it has looked for.
        None if said.contains(VERSION_SOUGHT) => {
            StackError::NotReady("no Python was found in it".into())
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
        let torn = StackError::NotReady(TORN.into());
        assert_eq!(verdict(errno(libc::EFAULT)), torn);
        // A thread has ended, and its process goes on.
        assert_eq!(verdict(errno(libc::ESRCH)), torn);
    }

    #[test]
    fn a_version_that_nobody_knows_is_unsupported() {
        let error = io::Error::other("Unsupported version of Python: 4.0.0");
        let StackError::Unsupported(why) = classify(std::process::id(), &error) else { panic!() };
        assert_eq!(why, "the stack reader does not know Python 4.0.0");
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(StackReader::attach(pid, None).err(), Some(StackError::Gone));
        assert_eq!(StackReader::attach(u32::MAX, None).err(), Some(StackError::Gone));
    }

    #[test]
    fn a_program_that_is_no_python_is_not_ready() {
        let attached = StackReader::attach(std::process::id(), None);
        let Some(StackError::NotReady(why)) = attached.err() else { panic!() };
        assert_eq!(why, "no Python was found in it");
    }

    #[test]
    fn a_panic_inside_is_an_error() {
        let torn = guarded(std::process::id(), || -> Result<(), Box<dyn Error + Send + Sync>> {
            panic!("this must not be printed")
        });
        assert!(matches!(torn, Err(StackError::NotReady(_))));
    }
}
