//! The threads of an interpreter: their names and their stacks.

use super::FreeThreaded;
use super::memory::torn;
use crate::record::Frame;
use std::io;

/// Interpreters, threads of one, and frames of a thread that are read at most. A list that is longer
/// changed while it was read, or is none.
const INTERPRETERS: usize = 256;
const THREADS: usize = 10_000;
const FRAMES: usize = 1_024;
/// Frames whose owner has such a number have no code (`enum _frameowner` in
/// `Include/internal/pycore_frame.h`).
const OWNED_BY_NOBODY: u64 = 3;
/// References from a frame carry a tag in their lowest bits from 3.14 on.
const TAG: u64 = 7;
/// `struct _gil_runtime_state` of a free-threaded build (`Include/internal/pycore_gil.h`).
const GIL_LAST_HOLDER: u64 = 16;
const GIL_LOCKED: u64 = 24;

/// A thread as an interpreter knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// Its `threading.get_ident()`.
    pub ident: u64,
    /// Kernel thread id.
    pub tid: u64,
    /// Whether it has the GIL, if that is on.
    pub owns_gil: bool,
    /// Its Python stack, innermost frame first.
    pub frames: Vec<Frame>,
}

impl FreeThreaded {
    /// What Python calls the threads, by `threading.get_ident()`.
    pub fn names(&self) -> io::Result<Vec<(u64, String)>> {
        let known = *self.active.borrow();
        let active = known.map_or_else(|| self.find_active(), Ok)?;
        let mut names = Vec::new();
        for (key, thread) in self.entries(active)? {
            // A thread that comes or goes meanwhile is told next time.
            if key != 0
                && let Ok(ident) = self.number(key)
                && let Ok(name) = self.attribute(thread, "_name")
                && name != 0
                && let Ok(name) = self.text(name)
            {
                names.push((ident, name));
            }
        }
        *self.active.borrow_mut() = Some(active);
        Ok(names)
    }

    /// What all threads do, those of the oldest interpreter last, and of each the youngest first.
    pub fn threads(&self) -> io::Result<Vec<ThreadState>> {
        let mut threads: Vec<ThreadState> = Vec::new();
        for interpreter in self.interpreters()? {
            let holder = self.holder_of(interpreter)?;
            for state in self.states(interpreter)? {
                let thread = self.thread(state, holder == Some(state))?;
                // What it runs in a sub-interpreter comes before what it runs in the main one.
                match threads.iter_mut().find(|it| it.tid == thread.tid) {
                    Some(known) => {
                        known.frames.extend(thread.frames);
                        known.owns_gil |= thread.owns_gil;
                    }
                    None => threads.push(thread),
                }
            }
        }
        Ok(threads)
    }

    /// The thread that has the main GIL, if that is on and held, and where the GIL is.
    pub fn holder(&self) -> io::Result<Option<(u64, ThreadState)>> {
        let Some(main) = self.interpreters()?.pop() else { return Ok(None) };
        let Some(state) = self.holder_of(main)? else { return Ok(None) };
        let gil = self.memory.word(main + self.offsets.ceval_gil as u64)?;
        Ok(Some((gil, self.thread(state, true)?)))
    }

    /// The address of `threading._active`.
    fn find_active(&self) -> io::Result<u64> {
        let main = self.interpreters()?.pop().ok_or_else(torn)?;
        let modules = self.memory.word(main + self.offsets.imports_modules as u64)?;
        let modules = self.entries(modules)?;
        let threading = Some(self.found(&modules, "threading")).filter(|&it| it != 0);
        let threading =
            threading.ok_or_else(|| io::Error::other("it has not imported threading"))?;
        // struct PyModuleObject { PyObject_HEAD PyObject *md_dict; ... }
        let dict = self.memory.word(threading + self.offsets.object_bytes as u64)?;
        Some(self.found(&self.entries(dict)?, "_active")).filter(|&it| it != 0).ok_or_else(torn)
    }

    /// Addresses of the interpreters, the main one last.
    fn interpreters(&self) -> io::Result<Vec<u64>> {
        let head = self.runtime + self.offsets.interpreters_head as u64;
        self.list(head, self.offsets.interpreter_next, INTERPRETERS)
    }

    /// Addresses of the thread states of an interpreter.
    fn states(&self, interpreter: u64) -> io::Result<Vec<u64>> {
        let head = interpreter + self.offsets.threads_head as u64;
        self.list(head, self.offsets.thread_next, THREADS)
    }

    fn list(&self, head: u64, next: usize, most: usize) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let mut at = self.memory.word(head)?;
        while at != 0 {
            if found.len() >= most {
                return Err(torn());
            }
            found.push(at);
            at = self.memory.word(at + next as u64)?;
        }
        Ok(found)
    }

    /// The thread state that has the GIL of an interpreter.
    fn holder_of(&self, interpreter: u64) -> io::Result<Option<u64>> {
        let gil = self.memory.word(interpreter + self.offsets.ceval_gil as u64)?;
        let [enabled] = [self.memory.half_word(gil)?];
        if enabled == 0 || self.memory.half_word(gil + GIL_LOCKED)? != 1 {
            return Ok(None);
        }
        Ok(Some(self.memory.word(gil + GIL_LAST_HOLDER)?).filter(|&holder| holder != 0))
    }

    fn thread(&self, state: u64, owns_gil: bool) -> io::Result<ThreadState> {
        let it = &self.offsets;
        let of = |offset: usize| self.memory.word(state + offset as u64);
        let (ident, tid) = (of(it.thread_ident)?, of(it.native_thread_id)?);
        Ok(ThreadState { ident, tid, owns_gil, frames: self.frames(of(it.current_frame)?)? })
    }

    /// The frames from the one at `frame` on.
    fn frames(&self, frame: u64) -> io::Result<Vec<Frame>> {
        let it = &self.offsets;
        let (mut at, mut frames) = (frame, Vec::new());
        for _ in 0..FRAMES {
            if at == 0 {
                break;
            }
            let of = |offset: usize| self.memory.word(at + offset as u64);
            let owner = of(it.owner)? & 0xff;
            if owner < OWNED_BY_NOBODY {
                let code = of(it.executable)? & !TAG;
                let first = match it.tlbc {
                    None => code + it.code_adaptive as u64,
                    // struct _PyCodeArray { Py_ssize_t size; char *entries[]; }
                    Some(tlbc) => {
                        let index = of(it.tlbc_index.unwrap_or(0))? & 0xffff_ffff;
                        let array = self.memory.word(code + tlbc as u64)?;
                        self.memory.word(array + 8 + 8 * index)?
                    }
                };
                let bytes = of(it.instr_ptr)?.checked_sub(first);
                let instruction = bytes.and_then(|bytes| u32::try_from(bytes / 2).ok());
                frames.push(self.frame_at(code, instruction)?);
            }
            at = of(it.previous)?;
        }
        Ok(frames)
    }
}
