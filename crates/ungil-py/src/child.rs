//! A program between whose caller and itself ungil stands, as Python sees it.

use std::collections::HashMap;
use std::ffi::OsString;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ungil_trace::child::{self, Command, Own, Signals};
use ungil_trace::recorder::Ask;

use crate::recording::Recorder;

/// A program that was, or is about to be, started; see `_native.pyi`.
#[pyclass(module = "ungil._native", unsendable)]
pub struct Child {
    held: Option<Signals>,
    running: Option<child::Child>,
    is_over: bool,
}

#[pymethods]
impl Child {
    #[new]
    fn new() -> Self {
        Self { held: None, running: None, is_over: false }
    }

    fn __enter__(mut own: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        if own.held.is_none() {
            own.held = Some(Signals::hold());
        }
        own
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.running = None;
        if let Some(held) = self.held.take() {
            held.release(self.is_over);
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    #[pyo3(signature = (executable, words, environment, recorder=None))]
    fn start(
        &mut self,
        executable: OsString,
        words: Vec<OsString>,
        environment: HashMap<OsString, OsString>,
        recorder: Option<PyRef<'_, Recorder>>,
    ) -> PyResult<()> {
        let held = self
            .held
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("a program is started inside of `with`"))?;
        let command = Command::new(&executable, &words, environment)?;
        let asking: Option<Own> = recorder.map(|recorder| {
            let exchange = recorder.exchange();
            let ask = move || exchange.ask(Ask { path: None, answer: None });
            (libc::SIGUSR2, Box::new(ask) as Box<dyn Fn() + Send>)
        });
        self.running = Some(child::Child::start(&command, held, asking)?);
        Ok(())
    }

    #[getter]
    fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(child::Child::pid)
    }

    fn wait(&mut self, py: Python<'_>) -> PyResult<i32> {
        let running = self
            .running
            .as_mut()
            .ok_or_else(|| PyRuntimeError::new_err("the program was not started"))?;
        let status = py.detach(|| running.wait())?;
        self.is_over = true;
        Ok(status)
    }
}

/// Keeps every signal from the calling thread; see `_native.pyi`.
#[pyfunction]
pub fn block_all_signals() {
    child::block_all();
}

/// Ends this process by a signal; see `_native.pyi`.
#[pyfunction]
pub fn die_by(number: i32) {
    child::die_by(number);
}
