//! What the hook (inside the traced interpreter) and the recorder (outside) agree on:
//! the events, the ring they travel in, and the layout of the shared memory that holds the rings;
//! and how the GIL is scheduled.
//!
//! Pure by design: no Python, no libc hooks, and the clock is never read here;
//! every time comes in as an argument, in nanoseconds of `CLOCK_MONOTONIC` or in ticks of the clock
//! that a table's times are of ([`tick`]).

pub mod atomic;
pub mod event;
pub mod park;
pub mod ring;
#[cfg(not(loom))]
pub mod debug_offsets;
#[cfg(not(loom))]
pub mod tick;
#[cfg(not(loom))]
pub mod table;
pub mod schedule;
#[cfg(not(loom))]
pub mod request;
#[cfg(not(loom))]
pub mod control_page;

use std::ffi::CStr;

pub use event::{Entry, Event, Kind};
pub use park::ParkEntry;

/// Name of the hook library's file. Processes that have loaded it are known by this name, whichever
/// installation of ungil it belongs to.
pub const HOOK_FILE: &str = "libungil_hook.so";

/// The function by which an image is known to have a CPython.
pub const CPYTHON_FUNCTION: &CStr = c"Py_GetVersion";

/// The functions of which one tells that an image has a PyPy.
pub const PYPY_FUNCTIONS: [&CStr; 2] = [c"pypy_main_startup", c"pypy_execute_source"];

/// Name of the stub's file, which is preloaded and opens the hook.
pub const STUB_FILE: &str = "libungil_preload.so";

/// The folder beside the hook that has a stub, and in it a folder for each platform with another.
pub const STUB_FOLDER: &str = "preload";

/// Whether a file of this name, if it is preloaded, brings the hook: the stub, or the hook itself,
/// as older versions of ungil had it.
pub fn brings_hook(file_name: &[u8]) -> bool {
    [STUB_FILE, HOOK_FILE].into_iter().any(|it| it.as_bytes() == file_name)
}
