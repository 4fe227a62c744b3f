//! `ungil._native`: conversions between Python and the Rust parts, and nothing else.

mod advising;
mod asker;
mod attaching;
mod child;
mod clock;
mod exporting;
mod fanout;
mod guarded;
mod hook;
mod in_process;
mod json;
mod live;
mod loader;
mod measuring;
mod page;
mod process_policy;
mod recording;
mod scheduled;
mod share;
mod simulating;
mod this_thread;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use ungil_control::hookable::Hookable;

/// Where the hook library is installed: beside this module.
#[pyfunction]
fn hook_path() -> PyResult<OsString> {
    Ok(hook::path()?.into_os_string())
}

/// `None` if nothing speaks against recording this program, else why not, in a sentence.
///
/// A program that is no Python is fine: the Python programs that it starts are recorded.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
fn hookable(executable: PathBuf) -> Option<String> {
    match ungil_control::hookable::program(&executable) {
        Hookable::Yes
        | Hookable::FreeThreaded(_)
        | Hookable::NotScheduled(_)
        | Hookable::NotPython { .. } => None,
        Hookable::No(why) => Some(why),
    }
}

#[pymodule]
mod _native {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    #[pymodule_export]
    use super::asker::Asker;
    #[pymodule_export]
    use super::attaching::{attach_policy, detach_policy};
    #[pymodule_export]
    use super::child::{Child, block_all_signals, die_by};
    #[pymodule_export]
    use super::exporting::{export_trace, trace_rows};
    #[pymodule_export]
    use super::fanout::{
        Connecting, Connection, Lean, Operation, connect, connect_unix, sleep, wait_readable,
        wait_writable,
    };
    #[pymodule_export]
    use super::fanout::{Dispatcher, Outcome, Slot, Slots, kept_waiting};
    #[pymodule_export]
    use super::in_process::{
        gil_install, gil_installed, gil_level, gil_policy, gil_regroup, gil_set_group,
        gil_set_level, gil_set_policy, gil_stats, gil_thread_stats, gil_thread_waits, gil_totals,
        gil_uncounted_threads,
    };
    #[pymodule_export]
    use super::live::{Live, Stacks, look_at_recorded};
    #[pymodule_export]
    use super::measuring::measure_trace;
    #[pymodule_export]
    use super::page::write_page;
    #[pymodule_export]
    use super::process_policy::{
        StillStarting, WithoutPolicy, mark_path, process_policy, remove_stale_pages,
        set_process_policy,
    };
    #[pymodule_export]
    use super::recording::{
        Recorder, Snapshots, ask_for_snapshot, read_trace, remove_dead_sessions, trace_span,
        trace_stretches, unfinished_traces,
    };
    #[pymodule_export]
    use super::scheduled::{preload_value, restore_signals, unscheduled};
    #[pymodule_export]
    use super::share::{
        Absent, Barrier, Condition, Event, Lock, Monitor, Schema, Semaphore, Struct, owner_died,
        struct_cas, struct_incr,
    };
    #[pymodule_export]
    use super::share::{Array, Buffer};
    #[pymodule_export]
    use super::share::{
        Deque, Dict, Heap, Held, List, ListIterator, Set, Transaction, Walk, after_fork_in_child,
        after_fork_in_parent, before_fork, is_shared, leave_transaction, receive_handle,
        send_handle, set_proxy, set_stand_in, set_values, set_watch,
    };
    #[pymodule_export]
    use super::share::{
        FrozenIterator, Lease, Queue, freeze, frozen_parts, open_frozen, receive_frozen,
        set_frozen_views, version, wait_for_change, wait_for_queues, watch_bell, watch_disturb,
        watch_heap, watch_object, watch_queue, watch_sleep,
    };
    #[pymodule_export]
    use super::simulating::Demands;
    #[pymodule_export]
    use super::{hook_path, hookable};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The names that the command line knows.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Cancelled", module.py().get_type::<super::fanout::Cancelled>())?;
        module.add("CutOff", module.py().get_type::<super::fanout::CutOff>())?;
        module.add("POLICIES", PyTuple::new(module.py(), super::scheduled::policies())?)?;
        module.add("LEVELS", PyTuple::new(module.py(), super::scheduled::levels())?)?;
        super::share::add_classes(module)
    }
}
