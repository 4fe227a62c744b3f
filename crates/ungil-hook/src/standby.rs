//! Standby: this library is loaded, and none of the calls that a GIL is made of leads to it until
//! somebody asks for something, which needs no privilege that a signal does not need.
//!
//! The request lies in the control page. A thread that uses its GIL would look there, but no call
//! leads here; so whoever asks sends `SIGURG`, which nothing in Python uses, and which the kernel
//! ignores in a process that has no handler for it. The handler redirects the calls itself. What it
//! needs for that is found when the interpreter is met, because nothing can be searched for in a
//! signal handler.

use crate::interpreter::Interpreter;
use crate::session::variable;
use crate::{fork_and_exit, lock, requests, settings, system};
use libc::c_int;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Environment variable that is "1" if a process is to wait in standby.
pub const STANDBY: &CStr = c"UNGIL_STANDBY";

static INTERPRETER: OnceLock<Kept> = OnceLock::new();

/// An interpreter that is never unloaded.
struct Kept(Interpreter);

// SAFETY: what it refers to, the image of an interpreter, is only read.
unsafe impl Sync for Kept {}
// SAFETY: as above.
unsafe impl Send for Kept {}

/// Whether the environment asks for it. Only for the constructor.
pub fn is_asked_for() -> bool {
    variable(STANDBY).is_some_and(|value| value == c"1")
}

/// Waits with an interpreter that has not made its GIL yet.
pub fn begin(interpreter: Interpreter, leave_children: bool) {
    lock::find_clock_wait();
    fork_and_exit::prepare();
    if let Ok(()) = INTERPRETER.set(Kept(interpreter))
        && handle_signal()
    {
        wait();
        settings::stand_by(leave_children);
    }
}

/// No call leads here but those of a beginning, which tell where GILs are.
pub fn wait() {
    if let Some(interpreter) = interpreter() {
        interpreter.hook_beginnings();
    }
}

/// The interpreter of a process in standby.
pub fn interpreter() -> Option<&'static Interpreter> {
    INTERPRETER.get().map(|kept| &kept.0)
}

/// Handles the signal, unless somebody else does.
fn handle_signal() -> bool {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `before` is valid for writing.
    if unsafe { libc::sigaction(libc::SIGURG, std::ptr::null(), before.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: sigaction has filled it in.
    if unsafe { before.assume_init() }.sa_sigaction != libc::SIG_DFL {
        return false;
    }
    // SAFETY: all-zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    // System calls that can be made anew are; the others, Python makes anew (PEP 475).
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and the handler does only what a handler may.
    unsafe { libc::sigaction(libc::SIGURG, &raw const action, null_mut()) == 0 }
}

extern "C" fn on_signal(_: c_int) {
    if settings::page().is_asked() {
        system::keeping_errno(requests::serve_pending);
    }
}
