//! Replaying a trace under other rules, as Python sees it.

use crate::recording::{as_json, cut, nanoseconds, unreadable};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_simulate::{Change, Collector, Demand, Gil, Rules, Unpredictable};
use ungil_trace::analysis::Span;
use ungil_trace::perfetto;

/// What the threads of a trace wanted; see `_native.pyi`.
#[pyclass(module = "ungil._native", frozen)]
pub struct Demands {
    demands: Vec<Demand>,
    /// A sentence, if the trace ends too early.
    #[pyo3(get)]
    cut: Option<String>,
}

#[pymethods]
impl Demands {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (mut collector, mut span) = (Collector::default(), Span::default());
        let read = py.detach(|| {
            perfetto::read(&path, |record| {
                span.push(&record);
                collector.push(&record);
            })
        });
        let cut = cut(&path, read.map_err(unreadable)?, &span);
        Ok(Self { demands: py.detach(|| collector.finish()), cut })
    }

    fn listed(&self) -> PyResult<String> {
        as_json(&self.demands.iter().map(Demand::listed).collect::<Vec<_>>())
    }

    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    #[pyo3(signature = (
        index, *, policy, quantum_ms, cores, without, work, times, levels, once, runs, seed
    ))]
    fn predict(
        &self,
        py: Python<'_>,
        index: usize,
        policy: Option<&str>,
        quantum_ms: Option<f64>,
        cores: Option<usize>,
        without: Vec<usize>,
        work: Vec<(usize, f64)>,
        times: Vec<(usize, usize)>,
        levels: Vec<(usize, String)>,
        once: bool,
        runs: u32,
        seed: u64,
    ) -> PyResult<String> {
        let demand = self.demands.get(index).ok_or_else(|| PyIndexError::new_err("no such GIL"))?;
        let changes = work.into_iter().map(|(thread, factor)| (thread, Change::Work(factor)));
        let times = times.into_iter().map(|(thread, count)| (thread, Change::Times(count)));
        let levels = levels.into_iter().map(|(thread, name)| Ok((thread, level(&name)?)));
        let rules = Rules {
            gil: gil(policy, quantum_ms)?,
            cores,
            without,
            changes: changes.chain(times).collect(),
            levels: levels.collect::<PyResult<_>>()?,
            once,
            runs,
            seed,
        };
        py.detach(|| demand.answer(&rules))
            .map_err(|error| unpredictable(&error))
            .and_then(|it| as_json(&it))
    }
}

fn gil(policy: Option<&str>, quantum_ms: Option<f64>) -> PyResult<Gil> {
    let Some(name) = policy else { return Ok(Gil::Free) };
    let policy: Policy =
        name.parse().map_err(|_| PyValueError::new_err(format!("{name:?} is not a policy")))?;
    let asked = quantum_ms.map(nanoseconds).transpose()?;
    let settings = Settings { policy, quantum_ns: asked.unwrap_or(policy.quantum_ns()).max(1) };
    Ok(Gil::Scheduled(settings))
}

fn level(name: &str) -> PyResult<Level> {
    name.parse().map_err(|_| PyValueError::new_err(format!("{name:?} is not a level")))
}

fn unpredictable(error: &Unpredictable) -> PyErr {
    match error {
        Unpredictable::NoThread | Unpredictable::TooLong(_) => {
            PyValueError::new_err(error.to_string())
        }
        Unpredictable::TooMany(_) => PyMemoryError::new_err(error.to_string()),
    }
}
