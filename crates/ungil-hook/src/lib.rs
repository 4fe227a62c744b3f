//! The library that sits inside a traced interpreter.
//!
//! CPython builds its GIL from calls to libc. This library points those calls, in the interpreter
//! image only, at functions of its own, which note what the call means and then make it.
//! It is opened by the stub that `LD_PRELOAD` names, before the program begins (then it hooks at once,
//! or when an interpreter is loaded later, if the environment names a session or a policy), or by
//! `dlopen` while it runs (then it waits for [`ungil_install_v1`]). In a process that loads no
//! interpreter it does nothing.
//!
//! Rules of everything that runs inside a hooked call: no allocation, no Python API, no lock, no
//! panic, `errno` is kept.

mod any_libc;
mod asked;
mod clock;
mod collecting;
mod cond;
mod first_thread;
mod fork_and_exit;
mod free_threaded;
mod gil;
mod handoff;
mod image;
mod interpreter;
mod interval;
mod late;
mod lock;
mod next;
mod objects;
mod own;
mod park;
mod places;
mod ran;
mod redirection;
mod requests;
mod sem;
mod session;
mod settings;
mod slice;
mod stacks;
mod standby;
mod starting;
mod stub;
mod symbols;
mod system;
mod table;
mod taken;
mod thread;
mod turn;
mod unscheduled;

use std::ffi::c_int;
use ungil_core::request::{Asking, Request};
use ungil_core::schedule::{Level, Policy, Settings};

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = asked::on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = fork_and_exit::on_exit;

/// Hooks the interpreter of this running process, for its own counters and for the recording and
/// the policy that the environment names.
///
/// Must be called by a thread that holds the GIL. Returns 0 if the hook is in place (or was), 1
/// for a free-threaded interpreter, 2 for `PyPy`, 3 for an interpreter whose calls are not the
/// known ones, 4 if there is no interpreter, 5 without memory.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_install_v1() -> c_int {
    asked::install()
}

/// Serves a request, on any thread: the caller need not hold the GIL. Returns an
/// [`ungil_core::request::Answer`] as a number.
///
/// # Safety
/// `request` is valid for reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ungil_request_v1(request: *const Request) -> c_int {
    // SAFETY: the caller's promise.
    let request = unsafe { request.read_unaligned() };
    requests::serve(&request) as c_int
}

/// The same for a thread that somebody outside has borrowed: the answer goes behind the request.
///
/// # Safety
/// `asking` is valid for reading and writing an [`Asking`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ungil_attach_v1(asking: *mut Asking) {
    // SAFETY: the caller's promise; an `Asking` begins with a request.
    let request = unsafe { asking.cast::<Request>().read_unaligned() };
    let answer = requests::serve(&request) as c_int;
    // SAFETY: the caller's promise; there is room behind the request.
    let place = unsafe { asking.cast::<Request>().add(1) };
    // SAFETY: as above.
    unsafe { place.cast::<c_int>().write_unaligned(answer) };
}

/// The [`ungil_core::table::Table`] of this process, or null if the hook is not installed.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_table_v1() -> *const u8 {
    table::address()
}

/// The slot of the calling thread in that table, or -1 if it has none.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_slot_v1() -> c_int {
    thread::current().map_or(-1, |thread| c_int::try_from(thread.index).unwrap_or(-1))
}

/// Now, in ticks of the clock of that table.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_now_v1() -> u64 {
    clock::now_ticks()
}

/// Sets the policy of this process and its quantum in nanoseconds, 0 for the policy's own.
///
/// Returns 0, 1 if the hook is not installed or cannot schedule this interpreter, 2 for an
/// unknown policy.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_set_policy_v1(policy: u32, quantum_ns: u64) -> c_int {
    let Some(policy) = Policy::from_number(policy) else { return 2 };
    if !asked::schedules() {
        return 1;
    }
    let quantum_ns = if quantum_ns == 0 { policy.quantum_ns() } else { quantum_ns };
    settings::change(Settings { policy, quantum_ns });
    0
}

/// The policy of this process; its quantum goes to `quantum_ns`.
///
/// # Safety
/// `quantum_ns` is valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ungil_policy_v1(quantum_ns: *mut u64) -> u32 {
    let settings = settings::in_force();
    // SAFETY: the caller's promise.
    unsafe { *quantum_ns = settings.quantum_ns };
    settings.policy as u32
}

/// The level of the calling thread, or -1 if the hook is not installed or cannot schedule this
/// interpreter.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_level_v1() -> c_int {
    if asked::schedules() { turn::level() as c_int } else { -1 }
}

/// Gives the calling thread a level and returns the one it had, or -1 for an unknown level.
#[unsafe(no_mangle)]
pub extern "C" fn ungil_set_level_v1(level: u32) -> c_int {
    Level::from_number(level).map_or(-1, |level| turn::set_level(level) as c_int)
}
