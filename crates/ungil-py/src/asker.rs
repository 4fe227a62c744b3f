//! A thread that wants the GIL again and again, so that a holder that keeps it is noticed.
//!
//! While nobody waits for the GIL a thread keeps it for as long as it computes, and nothing tells
//! bytecode, which would let go, from native code, which would not. One that asks tells them apart.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{Builder, JoinHandle, park, park_timeout};
use std::time::Duration;
use ungil_trace::prompt::be_prompt;

/// Between two times that it has the GIL.
const PAUSE: Duration = Duration::from_millis(1);

/// See `_native.pyi`.
#[pyclass(module = "ungil._native", frozen)]
pub struct Asker {
    shared: Arc<Shared>,
    tid: u32,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    asks: AtomicBool,
    stop: AtomicBool,
}

#[pymethods]
impl Asker {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let shared = Arc::new(Shared::default());
        let (sender, started) = mpsc::channel();
        let its = shared.clone();
        let thread = Builder::new().name("ungil-asker".into()).spawn(move || {
            // SAFETY: gettid has no preconditions.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            let _ = sender.send(u32::try_from(tid).unwrap_or(0));
            its.run();
        })?;
        let tid = py.detach(move || started.recv());
        let tid = tid.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Self { shared, tid, thread: Mutex::new(Some(thread)) })
    }

    #[getter]
    const fn tid(&self) -> u32 {
        self.tid
    }

    /// Whether it asks from now on.
    fn ask(&self, asks: bool) -> PyResult<()> {
        self.shared.asks.store(asks, Relaxed);
        let thread = self.thread.lock().map_err(|_| PyRuntimeError::new_err("it is stopped"))?;
        if let Some(thread) = &*thread {
            thread.thread().unpark();
        }
        Ok(())
    }

    fn stop(&self, py: Python<'_>) {
        self.shared.stop.store(true, Relaxed);
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = py.detach(|| thread.join());
        }
    }
}

impl Shared {
    fn run(&self) {
        be_prompt();
        while !self.stop.load(Relaxed) {
            if self.asks.load(Relaxed) {
                // `None` once the interpreter ends.
                if Python::try_attach(|_| ()).is_none() {
                    return;
                }
                park_timeout(PAUSE);
            } else {
                park();
            }
        }
    }
}
