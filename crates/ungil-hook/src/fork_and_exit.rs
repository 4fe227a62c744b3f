//! What happens when this process forks and when it ends.

use crate::{any_libc, asked, free_threaded, gil, handoff, settings, slice, table, thread, turn};
use libc::c_int;
use std::sync::Once;

/// Asks to be told of forks and of threads that end, once.
pub fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        thread::prepare();
        any_libc::at_fork(before_fork, after_fork_in_child);
    });
}

/// The child inherits what the kernel knows of the thread that forks.
extern "C" fn before_fork() {
    slice::before_a_start();
}

/// The child has one thread and its parent's memory; the table is the parent's.
extern "C" fn after_fork_in_child() {
    table::leave_to_parent();
    thread::after_fork();
    turn::after_fork();
    handoff::after_fork();
    gil::after_fork();
    settings::after_fork();
    table::begin_anew();
}

/// Runs at `exit` and at the interpreter's `_exit`, not at death by a signal.
pub extern "C" fn on_exit() {
    asked::on_exit();
    settings::on_exit();
    free_threaded::on_exit();
    table::end();
}

/// Stands in for `_exit`, with which forked children end: `atexit` would not see them.
pub extern "C" fn exit_at_once(status: c_int) -> ! {
    on_exit();
    // SAFETY: ends the process, as the caller wanted.
    unsafe { libc::_exit(status) }
}
