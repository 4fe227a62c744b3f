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
mod gil;
mod image;
mod interpreter;
mod process;
mod sem;
mod session;
mod thread;

use interpreter::Interpreter;
use session::Session;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use ungil_core::table::Status;

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = process::on_exit;

/// Whether the interpreter's calls have been redirected.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Hooks the interpreter of this process if a recorder asked for it in the environment.
extern "C" fn on_load() {
    if let Some(session) = Session::from_environment()
        && let Some(interpreter) = Interpreter::find()
    {
        if !session.follow_children {
            session::leave_environment();
        }
        let status = match interpreter.unsupported() {
            Some(status) => status,
            None if interpreter.hook(gil::Seen::FromTheStart) => interpreter.status(),
            None => Status::UnknownInterpreter,
        };
        INSTALLED.store(status != Status::UnknownInterpreter, Ordering::Relaxed);
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
    match interpreter.unsupported() {
        Some(Status::FreeThreaded) => return 1,
        Some(Status::PyPy) => return 2,
        Some(_) => return 3,
        None => {}
    }
    if interpreter.status() == Status::FreeThreaded {
        return 1;
    }
    if process::table_start().is_null() && !process::count_only(interpreter::version()) {
        return 5;
    }
    // A child after fork has inherited the redirection, but not the table.
    if !INSTALLED.swap(true, Ordering::AcqRel) && !interpreter.hook(gil::Seen::WhileHeldHere) {
        return 3;
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
