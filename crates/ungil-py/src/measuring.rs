//! What two traces are compared by, as Python sees it.

use crate::advising::WithAdvice;
use crate::recording::{as_json, nanoseconds, unreadable};
use pyo3::prelude::*;
use serde::Serialize;
use std::path::PathBuf;
use ungil_trace::analysis::{Analysis, Busy, Measured};
use ungil_trace::perfetto::{self, Ending, ReadError, why_cut};
use ungil_trace::report::Stretch;

/// The measures of a trace file; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn measure_trace(
    py: Python<'_>,
    path: PathBuf,
    blame_after_ms: f64,
    most_parts: u64,
    least_part_ms: f64,
) -> PyResult<String> {
    let blame_ns = nanoseconds(blame_after_ms)?;
    let least_ns = nanoseconds(least_part_ms)?;
    let clock = perfetto::wall_clock(&path)?;
    let measures = py.detach(|| {
        let mut busy = Busy::default();
        perfetto::read(&path, |record| busy.push(&record))?;
        let analysis = Analysis::new(blame_ns).with_wall_clock(clock);
        let mut measured = Measured::new(analysis, &busy, most_parts, least_ns);
        let ending = perfetto::read(&path, |record| measured.push(&record))?;
        Ok::<_, ReadError>((ending, measured.measures()))
    });
    let (ending, mut measures) = measures.map_err(unreadable)?;
    if ending == Ending::Cut {
        let why = why_cut(&path);
        let ends = measures.report.duration_s;
        measures.report.notes.insert(0, format!("the trace ends after {ends:.1} s: {why}"));
    }
    let report = py.detach(|| WithAdvice::of_causes(&measures.report));
    as_json(&WithCauses { report, whole: &measures.whole, parts: &measures.parts })
}

/// The measures of a trace, whose report says what it is where it is not the GIL.
#[derive(Serialize)]
struct WithCauses<'a> {
    report: WithAdvice<'a>,
    whole: &'a Stretch,
    parts: &'a [Stretch],
}
