//! Traces in the formats of other tools, as Python sees them.

use crate::recording::unreadable;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{FromRawFd, RawFd};
use std::path::PathBuf;
use ungil_export::{Cell, Collapsed, Firefox, Rows, Speedscope, Weight};
use ungil_trace::perfetto::{self, ReadError};

/// Writes a trace to a file descriptor; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[pyo3(signature = (path, format, descriptor, part=None, most_markers=500_000, weight="waited"))]
pub fn export_trace(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    descriptor: RawFd,
    part: Option<(u64, u64)>,
    most_markers: usize,
    weight: &str,
) -> PyResult<(u64, u64)> {
    let weight = match weight {
        "waited" => Weight::Waited,
        "held" => Weight::Held,
        other => return Err(PyValueError::new_err(format!("{other:?} is not a weight"))),
    };
    let (from_ns, to_ns) = part.unwrap_or((0, u64::MAX));
    // SAFETY: dup takes any number, and fails for one that is no open file.
    let copy = unsafe { libc::dup(descriptor) };
    if copy < 0 {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: it was opened above, and nobody else knows of it.
    let file = unsafe { File::from_raw_fd(copy) };
    let mut out = BufWriter::new(file);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let clock = perfetto::wall_clock(&path)?;
    let omitted = match format {
        "firefox" => py.detach(|| {
            let mut firefox = Firefox::new(most_markers, from_ns, to_ns);
            perfetto::read(&path, |record| firefox.push(&record))?;
            let unix_ns = clock.map_or(0, |clock| clock.unix_ns(firefox.started_ns()));
            let omitted = firefox.write(u64::try_from(unix_ns).unwrap_or(0), &mut out)?;
            Ok((omitted.markers, omitted.markers_ns))
        }),
        "speedscope" => py.detach(|| {
            let exporter = format!("ungil {}", env!("CARGO_PKG_VERSION"));
            let mut speedscope = Speedscope::new(name, exporter, from_ns, to_ns);
            perfetto::read(&path, |record| speedscope.push(&record))?;
            speedscope.write(&mut out)?;
            Ok((0, 0))
        }),
        "collapsed" => py.detach(|| {
            let mut collapsed = Collapsed::new(weight, from_ns, to_ns);
            perfetto::read(&path, |record| collapsed.push(&record))?;
            collapsed.write(&mut out)?;
            Ok((0, 0))
        }),
        other => return Err(PyValueError::new_err(format!("{other:?} is not a format"))),
    };
    omitted.map_err(unreadable)
}

/// Hands the rows of a trace to a function; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[pyo3(signature = (path, take, part=None))]
pub fn trace_rows(
    py: Python<'_>,
    path: PathBuf,
    take: Py<PyAny>,
    part: Option<(u64, u64)>,
) -> PyResult<()> {
    let (from_ns, to_ns) = part.unwrap_or((0, u64::MAX));
    py.detach(|| {
        let mut hand_over = |(table, rows): (&'static str, Vec<Vec<Cell>>)| {
            Python::attach(|py| {
                let rows = rows.into_iter().map(|cells| as_tuple(py, cells));
                let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?;
                take.call1(py, (table, rows)).map(drop)
            })
        };
        let mut rows = Rows::new(from_ns, to_ns);
        let mut failed = None;
        let read: Result<_, ReadError> = perfetto::read(&path, |record| {
            if failed.is_none() {
                failed = rows.push(&record, &mut hand_over).err();
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        read.map_err(unreadable)?;
        rows.finish(&mut hand_over)
    })
}

fn as_tuple(py: Python<'_>, cells: Vec<Cell>) -> PyResult<Bound<'_, PyTuple>> {
    let cells = cells.into_iter().map(|cell| {
        Ok(match cell {
            Cell::Null => py.None().into_bound(py),
            Cell::Number(number) => number.into_pyobject(py)?.into_any(),
            Cell::Text(text) => text.into_pyobject(py)?.into_any(),
        })
    });
    PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)
}
