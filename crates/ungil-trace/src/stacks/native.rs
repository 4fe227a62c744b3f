//! Native frames of threads that hold a GIL, by `ungil-unwind`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ungil_unwind::{Look, NativeReader, Refusal};

use super::reader::guarded;
use crate::clock::now_ns;
use crate::prompt::be_prompt;
use crate::record::NativeFrame;

/// A thread is not looked at again for so long: a hundred times a second at most,
const PAUSE: Duration = Duration::from_millis(10);
/// and for so many times what it stood still: on a busy machine that can be milliseconds.
const PAUSES: u32 = 100;
/// Before Python 3.5 a system call that a stop interrupts may raise an exception (PEP 475).
const RETRIES_CALLS: (u64, u64) = (3, 5);
/// Threads remembered.
const MOST_THREADS: usize = 64;

/// What was seen of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeStack {
    /// Its kernel thread id.
    pub tid: u32,
    /// When it was looked at, in ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How long it stood still at most, if it was stopped.
    pub stood_ns: Option<u64>,
    /// The frames above the innermost Python frame, innermost first; `None` if the stack did not lead
    /// to Python, or does not belong to the Python stack that was read.
    pub frames: Option<Vec<NativeFrame>>,
}

/// The native frames of one process.
pub(super) struct NativeStacks {
    reader: Result<NativeReader, Refusal>,
    /// From when on a thread that was looked at may be looked at again.
    not_before: HashMap<u32, Instant>,
}

/// A thread that was looked at, with when.
pub(super) type Looked = (u32, u64, Look);

impl NativeStacks {
    /// Of process `pid`, which runs this version of Python.
    pub(super) fn of(pid: u32, version: (u64, u64)) -> Self {
        let stops: Option<fn()> = (version >= RETRIES_CALLS).then_some(be_prompt);
        Self { reader: NativeReader::of(pid, stops), not_before: HashMap::new() }
    }

    /// Why there will never be any.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.reader.as_ref().err().filter(|it| it.is_final())
    }

    /// Looks at these threads, except those that were looked at lately.
    pub(super) fn look(&mut self, threads: &[u32]) -> Vec<Looked> {
        let mut seen = Vec::new();
        for &tid in threads {
            let Ok(reader) = &self.reader else { break };
            let begun = Instant::now();
            if self.not_before.get(&tid).is_some_and(|&at| begun < at) {
                continue;
            }
            if self.not_before.len() >= MOST_THREADS {
                self.not_before.retain(|_, at| *at > begun);
            }
            let (at_ns, look) = (now_ns(), reader.look(tid));
            let stood = look.as_ref().ok().and_then(Look::stood).unwrap_or_default();
            self.not_before.insert(tid, begun + PAUSE.max(stood.saturating_mul(PAUSES)));
            match look {
                Ok(look) => seen.push((tid, at_ns, look)),
                Err(refusal) if refusal.is_final() => self.reader = Err(refusal),
                // The next look may do better.
                Err(_) => {}
            }
        }
        seen
    }

    /// What a look showed. It is kept if `belongs` says that the Python stack is of that moment.
    pub(super) fn stack(
        &mut self,
        pid: u32,
        (tid, at_ns, look): &Looked,
        belongs: bool,
    ) -> NativeStack {
        let frames = self.reader.as_mut().ok().filter(|_| belongs);
        // It reads what a program has in its memory and its files, which may be anything.
        let read = |reader: &mut NativeReader| {
            guarded(pid, || Ok::<_, anyhow::Error>(reader.frames(look))).ok().flatten()
        };
        let frames = frames.and_then(read);
        let stood_ns = look.stood().map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        let frames = frames.map(|frames| frames.into_iter().map(frame).collect());
        NativeStack { tid: *tid, at_ns: *at_ns, stood_ns, frames }
    }
}

fn frame(
    ungil_unwind::NativeFrame { symbol, method, library, by_ctypes }: ungil_unwind::NativeFrame,
) -> NativeFrame {
    NativeFrame { symbol, method, library, by_ctypes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    /// Looks at a thread of this process that runs. One that waits is seen without being stopped.
    fn look_at_one_that_runs(stacks: &mut NativeStacks) -> Vec<Looked> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let is_over = &is_over;
            scope.spawn(move || {
                // SAFETY: gettid has no preconditions.
                tell.send(unsafe { libc::gettid() }.cast_unsigned()).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let tid = told.recv().unwrap();
            // The call that tells of it may not be over yet.
            let runs =
                || std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap();
            while !runs().starts_with("running") {}
            let looked = stacks.look(&[tid]);
            is_over.store(true, Ordering::Relaxed);
            looked
        })
    }

    #[test]
    fn a_process_that_may_not_be_stopped_says_why_and_is_not_asked_again() {
        // No process may stop a thread of its own.
        let mut stacks = NativeStacks::of(std::process::id(), (3, 13));
        assert_eq!(stacks.refusal(), None);
        assert!(look_at_one_that_runs(&mut stacks).is_empty());
        assert!(matches!(stacks.refusal(), Some(Refusal::Forbidden(_))));
        assert!(stacks.reader.is_err());
    }

    #[test]
    fn an_old_python_is_never_stopped() {
        let mut stacks = NativeStacks::of(std::process::id(), (2, 7));
        assert!(look_at_one_that_runs(&mut stacks).is_empty());
        assert_eq!(stacks.refusal(), None);
    }
}
