//! What it is where it is not the GIL: what threads did off the GIL while the program was slow, one
//! file a cause, as far as looks at them show it.

mod sight;
mod event_loop;
mod computing;
mod connections;
mod past_lock;
mod unused;
mod pool;
mod polling;
mod kernel;
mod processes;
mod calls;
mod nothing;

use crate::advice::{Advice, Unit};
pub use sight::Sight;
use ungil_trace::report::Report;

/// Causes told at most.
const TOLD: usize = 3;

/// What threads did instead of running, worst first. `gil_is_limit` says whether the GIL is what to
/// look at first; otherwise there is always something to say.
pub fn find(report: &Report, gil_is_limit: bool) -> Vec<Advice> {
    let sights = || Sight::all(report);
    let mut found: Vec<Advice> = kernel::find(report, gil_is_limit).into_iter().collect();
    for sight in sights() {
        let mut of_loops = event_loop::find(&sight);
        of_loops.extend(computing::find(&sight));
        of_loops.sort_by(|a, b| took_s(b).total_cmp(&took_s(a)));
        found.extend(of_loops);
        found.extend(connections::find(&sight));
        found.extend(pool::find(&sight));
        found.extend(polling::find(&sight));
    }
    if !gil_is_limit {
        let computing = processes::computing(report);
        found.extend(processes::say(report, &computing));
        // Where a GIL is a limit, waits for something else need not be.
        let sights = || sights().filter(|sight| !sight.is_contended());
        let has_children =
            |sight: &Sight| computing.iter().any(|it| it.parent_pid == sight.process.pid);
        for sight in sights() {
            let told: Vec<_> = found.iter().filter_map(|it| it.subject.function.clone()).collect();
            found.extend(calls::find(&sight, &told, has_children(&sight)));
        }
        if found.is_empty() {
            let of = |sight: Sight| calls::of_housekeepers(&sight, has_children(&sight));
            found.extend(sights().flat_map(of));
        }
    }
    found.truncate(TOLD);
    if found.is_empty() && !gil_is_limit {
        found.push(nothing::say(report));
    }
    found
}

/// For how long it kept a loop from going on: the first time among its evidence.
fn took_s(advice: &Advice) -> f64 {
    let took = advice.evidence.iter().find(|it| it.unit == Unit::Seconds);
    took.map_or(0.0, |it| it.value)
}
