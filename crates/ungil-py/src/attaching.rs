//! Processes that already run, asked for something, as Python sees it.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyProcessLookupError, PyRuntimeError};
use pyo3::prelude::*;
use ungil_attach::{Asked, Refusal};
use ungil_control::Page;
use ungil_core::request::{Answer, Request};
use ungil_core::schedule::Settings;
use ungil_trace::recorder::Recorder;

use crate::hook;
use crate::recording::unprepared;

/// How long a process that uses its GIL may take to leave it to CPython.
const LEAVES: Duration = Duration::from_secs(1);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(1);

/// Has a process follow a policy; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (pid, policy, quantum_ns=None))]
pub fn attach_policy(
    py: Python<'_>,
    pid: u32,
    policy: &str,
    quantum_ns: Option<u64>,
) -> PyResult<Option<f64>> {
    let policy = policy.parse().map_err(|_| {
        pyo3::exceptions::PyValueError::new_err(format!("there is no policy {policy:?}"))
    })?;
    let quantum_ns = quantum_ns.unwrap_or(0);
    ask(py, pid, &Request::schedule(Settings { policy, quantum_ns }))
}

/// Has a process follow none any more; see `_native.pyi`.
#[pyfunction]
pub fn detach_policy(py: Python<'_>, pid: u32) -> PyResult<Option<f64>> {
    let stopped = ask(py, pid, &Request::unschedule())?;
    // Threads that stand in its line leave that first, at the next releases.
    py.detach(|| {
        let begun = Instant::now();
        while begun.elapsed() < LEAVES && Page::of(pid).is_ok_and(|page| !page.is_standby()) {
            sleep(LOOK);
        }
    });
    Ok(stopped)
}

/// Asks a process: through its control page if it has one and looks at it, else on one of its own
/// threads. For how many seconds that one was stopped, if one was.
pub fn ask(py: Python<'_>, pid: u32, request: &Request) -> PyResult<Option<f64>> {
    let hook = hook::path()?;
    let by_page = || {
        let page = Page::of(pid).ok()?;
        page.ask(*request, || ungil_control::wake::wake(pid)).ok().flatten()
    };
    let ask = || match by_page() {
        Some(answer) => Ok((answer, None)),
        None => ungil_attach::ask(pid, &hook, request)
            .map(|Asked { answer, stopped }| (answer, Some(stopped.as_secs_f64()))),
    };
    match py.detach(|| patiently(ask)) {
        Ok((Answer::Done, stopped)) => Ok(stopped),
        Ok((other, _)) => Err(PyRuntimeError::new_err(other.to_string())),
        Err(Refusal::Gone) => Err(PyProcessLookupError::new_err(Refusal::Gone.to_string())),
        Err(Refusal::System(_, error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(PyProcessLookupError::new_err(Refusal::Gone.to_string()))
        }
        Err(refusal) => Err(PyRuntimeError::new_err(refusal.to_string())),
    }
}

/// Has a process join a recording, and begins it; as [`ask`].
pub fn attach(py: Python<'_>, recorder: &mut Recorder, pid: u32) -> PyResult<Option<f64>> {
    let request = recorder.request(pid).map_err(unprepared)?;
    let stopped = ask(py, pid, &request)?;
    // Once; further processes are found.
    recorder.start(format!("/proc/{pid}/exe").into())?;
    Ok(stopped)
}

/// Has processes leave a recording that is over. One that cannot be asked is idle, or gone; it leaves
/// when it uses its GIL again.
pub fn leave(py: Python<'_>, pids: Vec<u32>) {
    for pid in pids {
        let _ = ask(py, pid, &Request::leave());
    }
}

/// Another request is being served for a moment only.
fn patiently<T>(
    mut ask: impl FnMut() -> Result<(Answer, T), Refusal>,
) -> Result<(Answer, T), Refusal> {
    for _ in 0..20 {
        match ask() {
            Ok((Answer::Busy, _)) => sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    ask()
}
