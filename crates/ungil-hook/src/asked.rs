//! What the environment asks of this process, and an interpreter that does it: one that is there
//! when the program starts, one that is loaded later, or one that asks for it itself.

use crate::interpreter::Interpreter;
use crate::session::{self, Session};
use crate::{
    any_libc, clock, first_thread, fork_and_exit, gil, late, settings, slice, standby, starting,
    stub, system, table, thread, unscheduled,
};
use libc::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Relaxed};
use ungil_core::schedule::{Policy, Settings};
use ungil_core::table::Status;

static ASKED: OnceLock<Asked> = OnceLock::new();
/// Whether an interpreter's calls lead to this library, or will when there is a second thread.
static HOOKED: AtomicBool = AtomicBool::new(false);
/// Whether a policy is obeyed by it.
static SCHEDULED: AtomicBool = AtomicBool::new(false);
/// Whether the program itself has asked for the counters.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// What the environment asks for.
struct Asked {
    session: Option<Session>,
    settings: Option<Settings>,
    /// Whether it is to wait until somebody asks.
    standby: bool,
    leave_children: bool,
    /// The process whose environment it was.
    pid: u32,
}

impl Asked {
    /// `None` if it asks for nothing. Only for the constructor: it allocates.
    fn from_environment() -> Option<Self> {
        let (session, settings) = (Session::from_environment(), settings::from_environment());
        let standby = session.is_none() && settings.is_none() && standby::is_asked_for();
        (session.is_some() || settings.is_some() || standby).then(|| Self {
            session,
            settings,
            standby,
            leave_children: session::leaves_children_alone(),
            pid: system::current_pid(),
        })
    }
}

/// What is asked of this process, which may be a child of the one that was asked.
fn asked() -> Option<&'static Asked> {
    ASKED.get().filter(|asked| !asked.leave_children || asked.pid == system::current_pid())
}

/// Runs when this library is loaded.
pub extern "C" fn on_load() {
    any_libc::on_load();
    stub::on_load();
    starting::find_next();
    slice::on_load();
    let Some(asked) = Asked::from_environment() else { return };
    let asked = ASKED.get_or_init(|| asked);
    if asked.settings.is_some() {
        unscheduled::on_load();
    }
    match Interpreter::find() {
        None => {
            unscheduled::await_python();
            late::watch();
        }
        // This library was loaded by `dlopen`, and the interpreter may ask for it.
        Some(interpreter) if interpreter.is_running() => {}
        Some(interpreter) => join(interpreter),
    }
}

/// Does what is asked with an interpreter that has not made its GIL yet.
pub fn join(interpreter: Interpreter) {
    let Some(asked) = asked() else { return };
    if asked.standby {
        if interpreter.can_be_scheduled() {
            standby::begin(interpreter, asked.leave_children);
        }
        return;
    }
    let settings = asked.settings.filter(|_| interpreter.can_be_scheduled());
    if asked.leave_children {
        session::leave_environment();
    }
    if asked.session.is_some() {
        interpreter.hook(gil::Seen::FromTheStart);
    } else if settings.is_some() {
        first_thread::await_it(&interpreter);
    } else {
        unscheduled::came_in_vain(interpreter.status());
        return;
    }
    let status = interpreter.status();
    HOOKED.store(matches!(status, Status::Hooked | Status::FreeThreaded), Relaxed);
    fork_and_exit::prepare();
    if let Some(settings) = settings {
        schedule(settings, asked.leave_children);
    }
    if let Some(session) = &asked.session
        && !table::is_recorded()
    {
        table::join(session, interpreter.version(), status);
    }
}

/// Has the interpreter, which is hooked or is about to be, follow a policy.
pub fn schedule(settings: Settings, leave_children: bool) {
    SCHEDULED.store(true, Relaxed);
    settings::start(settings, leave_children);
    unscheduled::scheduled();
}

/// It follows none any more.
pub fn unschedule() {
    SCHEDULED.store(false, Relaxed);
}

/// Redirects the calls of an interpreter that runs, unless they lead here.
pub fn hook_while_it_runs(interpreter: &Interpreter, seen: gil::Seen) {
    fork_and_exit::prepare();
    if HOOKED.swap(true, AcqRel) {
        first_thread::anticipate();
    } else {
        interpreter.hook(seen);
    }
}

/// Calls `leave` if nothing needs the hook any more.
pub fn stay_or(leave: impl FnOnce()) {
    if INSTALLED.load(Relaxed) {
        if table::address().is_null()
            && let Some(interpreter) = Interpreter::find()
        {
            table::count_only(interpreter.version());
        }
    } else if !SCHEDULED.load(Relaxed) && !table::is_recorded() {
        leave();
    }
}

/// The calls lead to libc again.
pub fn is_unhooked() {
    HOOKED.store(false, Relaxed);
}

/// The process is about to end. An interpreter that is here now and was not noticed is told to the
/// recorder, which would know nothing of it.
pub fn on_exit() {
    let is_missed = || !HOOKED.load(Relaxed) && table::own().is_none();
    // Also no child of vfork, which has its parent's memory.
    if let Some(Asked { session: Some(session), pid, .. }) = asked()
        && *pid == system::current_pid()
        && is_missed()
        && let Some(interpreter) = Interpreter::find()
    {
        table::join(session, interpreter.version(), Status::NotSeen);
    }
    unscheduled::on_exit();
}

/// Hooks the interpreter of this process while it runs; the rest as `ungil_install_v1` says.
pub fn install() -> c_int {
    let Some(interpreter) = Interpreter::find() else { return 4 };
    match interpreter.status() {
        Status::FreeThreaded => return 1,
        Status::PyPy => return 2,
        Status::Hooked => {}
        _ => return 3,
    }
    let asked = asked();
    INSTALLED.store(true, Relaxed);
    fork_and_exit::prepare();
    // A child after fork has inherited the redirection, but not the table.
    let is_new = table::address().is_null();
    if is_new {
        if let Some(session) = asked.and_then(|asked| asked.session.as_ref()) {
            table::join(session, interpreter.version(), Status::Hooked);
        }
        if table::address().is_null() && !table::count_only(interpreter.version()) {
            return 5;
        }
        // The caller holds the GIL, which nobody else can take before its calls are redirected.
        if let Some(thread) = thread::current() {
            thread.acquired(gil::main(), clock::now_ticks());
        }
    }
    hook_while_it_runs(&interpreter, gil::Seen::WhileHeldHere);
    if interpreter.can_be_scheduled() {
        let settings = asked.and_then(|asked| asked.settings);
        let leave_children = ASKED.get().is_some_and(|asked| asked.leave_children);
        schedule(settings.unwrap_or(Policy::Stock.into()), leave_children);
    }
    0
}

/// Whether a policy would be obeyed here.
pub fn schedules() -> bool {
    SCHEDULED.load(Relaxed)
}
