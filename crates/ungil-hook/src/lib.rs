//! The library that sits inside a traced interpreter.
//!
//! CPython builds its GIL from calls to libc. This library points those calls, in the interpreter
//! image only, at functions of its own, which note what the call means and then make it.
//! It is loaded by `LD_PRELOAD` (then it hooks at once, if a session is named in the environment)
//! or by `dlopen` (then it waits for [`ungil_install_v1`]). In a process without an interpreter
//! it does nothing.
//!
//! Rules of everything that runs inside a hooked call: no allocation, no Python API, no lock, no
//! panic, `errno` is kept.

mod cond;
mod control;
mod first_thread;
mod gil;
mod handoff;
mod image;
mod interpreter;
mod lock;
mod process;
mod sem;
mod session;
mod thread;
mod turn;

use interpreter::Interpreter;
use session::Session;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_core::table::Status;

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = process::on_exit;

/// Whether the interpreter's calls have been redirected.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Hooks the interpreter of this process if the environment asks for a recording or a policy.
extern "C" fn on_load() {
    let (session, settings) = (Session::from_environment(), control::from_environment());
    if session.is_none() && settings.is_none() {
        return;
    }
    let Some(interpreter) = Interpreter::find() else { return };
    if interpreter::is_running() {
        return; // It was loaded by `dlopen`, and its GIL is there already.
    }
    let leave_children = session::leaves_children_alone();
    if leave_children {
        session::leave_environment();
    }
    let status = interpreter.status();
    let settings = settings.filter(|_| interpreter.can_be_scheduled());
    if session.is_some() {
        interpreter.hook(gil::Seen::FromTheStart);
    } else if settings.is_some() {
        first_thread::await_it(&interpreter);
    } else {
        return;
    }
    INSTALLED.store(status != Status::UnknownInterpreter, Ordering::Relaxed);
    process::prepare();
    if let Some(settings) = settings {
        control::start(settings, leave_children);
    }
    if let Some(session) = session {
        process::record(session, interpreter::version(), status);
    }
}

/// Hooks the interpreter of this running process, for its own counters.
///
/// Must be called by a thread that holds the GIL. Returns 0 if the hook is in place (or was), 1
/// for a free-threaded interpreter, 2 for `PyPy`, 3 for an interpreter whose calls are not the
/// known ones, 4 if there is no interpreter, 5 without memory.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_install_v1() -> c_int {
    let Some(interpreter) = Interpreter::find() else { return 4 };
    match interpreter.status() {
        Status::FreeThreaded => return 1,
        Status::PyPy => return 2,
        Status::UnknownInterpreter => return 3,
        Status::Hooked => {}
    }
    if process::table_start().is_null() && !process::count_only(interpreter::version()) {
        return 5;
    }
    // A child after fork has inherited the redirection, but not the table.
    if INSTALLED.swap(true, Ordering::AcqRel) {
        first_thread::anticipate();
    } else {
        interpreter.hook(gil::Seen::WhileHeldHere);
    }
    0
}

/// The [`ungil_core::table::Table`] of this process, or null if the hook is not installed.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_table_v1() -> *const u8 {
    process::table_start()
}

/// The slot of the calling thread in that table, or -1 if it has none.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_slot_v1() -> c_int {
    thread::current().map_or(-1, |thread| c_int::try_from(thread.index).unwrap_or(-1))
}

/// Sets the policy of this process and its quantum in nanoseconds, 0 for the policy's own.
///
/// Returns 0, 1 if the hook is not installed or cannot schedule this interpreter, 2 for an
/// unknown policy.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_set_policy_v1(policy: u32, quantum_ns: u64) -> c_int {
    let Some(policy) = Policy::from_number(policy) else { return 2 };
    if !schedules() {
        return 1;
    }
    let quantum_ns = if quantum_ns == 0 { policy.quantum_ns() } else { quantum_ns };
    control::set_settings(Settings { policy, quantum_ns });
    0
}

/// The policy of this process; its quantum goes to `quantum_ns`.
///
/// # Safety
/// `quantum_ns` is valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ungil_policy_v1(quantum_ns: *mut u64) -> u32 {
    let settings = control::settings();
    // SAFETY: the caller's promise.
    unsafe { *quantum_ns = settings.quantum_ns };
    settings.policy as u32
}

/// The level of the calling thread, or -1 if the hook is not installed or cannot schedule this
/// interpreter.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_level_v1() -> c_int {
    if schedules() { turn::level() as c_int } else { -1 }
}

/// Gives the calling thread a level and returns the one it had, or -1 for an unknown level.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_set_level_v1(level: u32) -> c_int {
    Level::from_number(level).map_or(-1, |level| turn::set_level(level) as c_int)
}

/// Whether a policy would be obeyed here.
fn schedules() -> bool {
    static CAN_BE_SCHEDULED: OnceLock<bool> = OnceLock::new();
    let look = || Interpreter::find().is_some_and(|interpreter| interpreter.can_be_scheduled());
    INSTALLED.load(Ordering::Relaxed) && *CAN_BE_SCHEDULED.get_or_init(look)
}
