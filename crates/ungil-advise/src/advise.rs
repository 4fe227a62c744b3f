//! All advice about a trace.

use crate::advice::{Advised, SCHEMA};
use crate::{elsewhere, remedies, scene};
use ungil_simulate::Demand;
use ungil_trace::report::Report;

/// What to do about the trace of `report`, best first. `demands` is what its threads wanted, for
/// predictions; without it there are none.
///
/// Each prediction replays the trace, a dozen times for each GIL at which threads wait, so it takes
/// about as long as reading the trace as often.
pub fn advise(report: &Report, demands: &[Demand]) -> Advised {
    let gil_is_limit = report.findings.iter().any(scene::is_about_waits);
    let mut advised =
        if gil_is_limit { remedies::find(report, demands) } else { Advised::default() };
    let mut elsewhere = elsewhere::find(report, gil_is_limit);
    advised.advice.append(&mut elsewhere);
    Advised { schema: SCHEMA, ..advised }
}
