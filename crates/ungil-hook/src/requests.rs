//! What this process is asked to do while it runs: by a call of [`crate::ungil_request_v1`], from
//! this program or on a thread that somebody outside has borrowed, or through its control page.
//!
//! Serving a request allocates nothing and waits for nothing, so it can be done in a hooked call.

use crate::interpreter::Interpreter;
use crate::session::Session;
use crate::{asked, gil, settings, standby, system, table};
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use ungil_core::request::{Answer, Deed, Request};
use ungil_core::schedule::Policy;
use ungil_core::table::Status;

/// The process in which a thread serves a request, or 0. A child that was forked meanwhile finds its
/// parent's number.
static SERVING: AtomicU32 = AtomicU32::new(0);
/// Whether nothing needs the hook any more, and the calls still lead to it.
static IS_LEAVING: AtomicBool = AtomicBool::new(false);

/// Does what is pending. Called at every release of a GIL, by the thread that holds it.
#[inline]
pub fn look() {
    if settings::page().is_asked() || IS_LEAVING.load(Relaxed) || table::is_to_be_left() {
        system::keeping_errno(serve_pending);
    }
}

/// Does what is pending, also in a signal handler.
#[cold]
pub fn serve_pending() {
    if table::is_to_be_left() {
        obey(&Request::leave());
    }
    let page = settings::page();
    if let Some(request) = page.take() {
        // Before anything is left: the page goes then.
        page.reply(obey(&request));
    }
    leave_if_due();
}

/// Serves a request.
pub fn serve(request: &Request) -> Answer {
    let answer = obey(request);
    leave_if_due();
    answer
}

fn obey(request: &Request) -> Answer {
    alone(|| match request.deed() {
        Some(Deed::Join) => join(request),
        Some(Deed::Schedule) => schedule(request),
        Some(Deed::Leave) => {
            table::leave();
            asked::stay_or(|| IS_LEAVING.store(true, Relaxed));
            Answer::Done
        }
        Some(Deed::Unschedule) => {
            settings::change(Policy::Stock.into());
            asked::unschedule();
            asked::stay_or(|| IS_LEAVING.store(true, Relaxed));
            Answer::Done
        }
        None => Answer::Senseless,
    })
}

/// Calls `deed`, unless another thread is about one.
fn alone(deed: impl FnOnce() -> Answer) -> Answer {
    let pid = system::current_pid();
    let before = SERVING.load(Acquire);
    if before == pid || SERVING.compare_exchange(before, pid, AcqRel, Acquire).is_err() {
        return Answer::Busy;
    }
    let answer = deed();
    SERVING.store(0, Release);
    answer
}

fn join(request: &Request) -> Answer {
    let Some(session) = Session::requested(request) else { return Answer::Senseless };
    hooked(|interpreter| {
        if !table::join(&session, interpreter.version(), interpreter.status()) {
            return Answer::NoTable;
        }
        Answer::Done
    })
}

fn schedule(request: &Request) -> Answer {
    let Some(settings) = request.settings() else { return Answer::Senseless };
    hooked(|_| {
        let is_first = !asked::schedules();
        asked::schedule(settings, false);
        if !settings::is_reachable() {
            if is_first {
                asked::unschedule();
                settings::stop();
            }
            return Answer::NoPage;
        }
        settings::change(settings);
        Answer::Done
    })
}

/// Does something with the interpreter, whose calls lead here then if it was done.
fn hooked(deed: impl FnOnce(&Interpreter) -> Answer) -> Answer {
    let found;
    let interpreter = if let Some(kept) = standby::interpreter() {
        kept
    } else {
        let Some(it) = Interpreter::find() else { return Answer::NoInterpreter };
        found = it;
        &found
    };
    match interpreter.status() {
        Status::Hooked if interpreter.can_be_scheduled() => {}
        Status::FreeThreaded => return Answer::FreeThreaded,
        Status::PyPy => return Answer::PyPy,
        _ => return Answer::Unknown,
    }
    let answer = deed(interpreter);
    if answer == Answer::Done {
        IS_LEAVING.store(false, Relaxed);
        asked::hook_while_it_runs(interpreter, gil::Seen::Running);
    }
    answer
}

/// Has the calls lead to libc again if nothing needs the hook any more. Threads that stand in a line of
/// ours leave it first.
fn leave_if_due() {
    if !IS_LEAVING.load(Relaxed) || !gil::are_lines_empty() {
        return;
    }
    alone(|| {
        Interpreter::unhook();
        asked::is_unhooked();
        if standby::interpreter().is_some() {
            standby::wait();
        } else {
            settings::stop();
        }
        IS_LEAVING.store(false, Relaxed);
        Answer::Done
    });
}
