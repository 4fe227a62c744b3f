//! The interpreter states of a process: of the main interpreter, and of its sub-interpreters.
//!
//! py-spy reads one interpreter, the first of the list in `_PyRuntime`, which is the one that was
//! made last. Its layout of that one is enough to read any of them: what differs between two
//! interpreters of a process is where they are, and from 3.12 on which GIL they use.

use std::ops::Range;

use py_spy::PythonSpy;
use py_spy::python_process_info::{PythonProcessInfo, PythonProcessLayout};
use remoteprocess::{Process, ProcessMemory};

/// InterpreterStates read at most. A list that is longer changed while it was read, or is none.
const MOST: usize = 256;
/// `PyThreadState.interp`, behind `prev` and `next`, in 3.7 to 3.15
/// (`Include/internal/pycore_pystate.h`, `Include/cpython/pystate.h`).
const THREAD_INTERPRETER: usize = 16;
/// `_gil_runtime_state.last_holder` and `.locked` (`Include/internal/pycore_gil.h`, as in 3.12).
const GIL_LAST_HOLDER: usize = 8;
const GIL_LOCKED: usize = 16;
/// Its beginning, up to and with `cond`, is shorter than this, and the whole is longer.
const GIL_SIZE: u64 = 64;

/// Where the interpreters of one process are listed, and where in one of them its parts are.
#[derive(Debug)]
pub struct InterpreterStates {
    /// Address of `_PyRuntime.interpreters.head`, the newest interpreter.
    head: usize,
    /// Offset of `PyInterpreterState.next`, the next older one.
    next: usize,
    /// Offset of the address of its dict of modules.
    modules: usize,
    gil: Gil,
}

/// Where the GIL of an interpreter is told.
#[derive(Clone, Copy, Debug)]
enum Gil {
    /// Offset of `PyInterpreterState.ceval.gil`: since 3.12 each may have its own.
    At(usize),
    /// All share one, whose holder is the `PyThreadState` that this address points to.
    HolderAt(usize),
}

impl InterpreterStates {
    /// Finds the list. `None` before Python 3.7, and where no symbol tells where `_PyRuntime` is;
    /// then py-spy's own interpreter is the only one that can be read.
    ///
    /// Costs about as much as [`PythonSpy::new`], 1 to 20 ms: the program's symbols are read
    /// a second time, because py-spy does not keep them.
    pub fn find(spy: &PythonSpy) -> Option<Self> {
        let info = PythonProcessInfo::new(&spy.process).ok()?;
        let runtime = usize::try_from(*info.get_symbol("_PyRuntime")?).ok()?;
        let layout = &spy.addresses;
        let modules = layout.imports_modules_address.checked_sub(layout.interpreter_address)?;
        // The offsets of `interpreters.head` are those of struct pyruntimestate, and `next` is the
        // first field of struct _is up to 3.12 (`Include/internal/pycore_runtime.h`,
        // `pycore_interp.h`; in 3.7 `pystate.h`).
        let (head, next, gil) = match (spy.version.major, spy.version.minor) {
            (3, 7) => (24, 0, Gil::HolderAt(layout.threadstate_address)),
            (3, 8..=10) => (32, 0, Gil::HolderAt(layout.threadstate_address)),
            (3, 11) => (40, 0, Gil::HolderAt(layout.threadstate_address)),
            (3, 12) => (40, 0, Gil::At(384)),
            (3, minor @ 13..) => debug_offsets(&spy.process, runtime, minor)?,
            _ => return None,
        };
        Some(Self { head: runtime + head, next, modules, gil })
    }

    /// All interpreters that are there now, the main one first. Empty if the list changed while it
    /// was read.
    pub fn list(&self, process: &Process) -> Vec<PythonProcessLayout> {
        let read = |at: usize| process.copy_struct::<usize>(at).ok();
        let mut found = Vec::new();
        let mut at = read(self.head);
        while let Some(address) = at.filter(|&address| address != 0) {
            let gil = match self.gil {
                Gil::At(offset) => read(address.wrapping_add(offset)),
                Gil::HolderAt(address) => Some(address),
            };
            // One that is being made has no GIL yet.
            if let Some(threadstate_address) = gil.filter(|&gil| gil != 0) {
                found.push(PythonProcessLayout {
                    interpreter_address: address,
                    threadstate_address,
                    imports_modules_address: address.wrapping_add(self.modules),
                });
            }
            at = read(address.wrapping_add(self.next));
            if at.is_none() || found.len() > MOST {
                return Vec::new();
            }
        }
        found.reverse();
        found
    }

    /// The addresses of a GIL, if there can be several: its struct begins with what is about its
    /// holder, and goes on with its condition variable.
    pub fn range_of(&self, gil: usize) -> Option<Range<u64>> {
        let gil = gil as u64;
        matches!(self.gil, Gil::At(_)).then_some(gil..gil.wrapping_add(GIL_SIZE))
    }

    /// The interpreter whose code the holder of the GIL at `gil` runs: a thread can have a state in
    /// several. `None` if nobody holds it.
    pub fn of_holder(&self, process: &Process, gil: usize) -> Option<usize> {
        let read = |at: usize| process.copy_struct::<usize>(at).ok();
        let holder = match self.gil {
            Gil::At(_) => {
                let locked: i32 = process.copy_struct(gil.wrapping_add(GIL_LOCKED)).ok()?;
                read(gil.wrapping_add(GIL_LAST_HOLDER)).filter(|_| locked != 0)
            }
            Gil::HolderAt(address) => read(address),
        };
        let holder = holder.filter(|&holder| holder != 0)?;
        read(holder.wrapping_add(THREAD_INTERPRETER))
    }
}

/// The same from `_Py_DebugOffsets`, with which `_PyRuntime` begins since 3.13
/// (`Include/internal/pycore_runtime.h`, from 3.14 on `pycore_debug_offsets.h`).
fn debug_offsets(process: &Process, runtime: usize, minor: u64) -> Option<(usize, usize, Gil)> {
    const COOKIE: usize = usize::from_ne_bytes(*b"xdebugpy");
    const INTERPRETERS_HEAD: usize = 5;
    const INTERPRETER_NEXT: usize = 8;
    // 3.14 has put `threads_main` before it.
    let ceval_gil = if minor == 13 { 14 } else { 15 };
    let words: [usize; 16] = process.copy_struct(runtime).ok()?;
    (words[0] == COOKIE)
        .then(|| (words[INTERPRETERS_HEAD], words[INTERPRETER_NEXT], Gil::At(words[ceval_gil])))
}
