//! What it is where it is not the GIL: what threads did off the GIL while the program was slow, one
//! file a cause, as far as looks at them show it.

mod sight;
mod event_loop;
mod computing;
mod connections;
mod last_holder;
mod past_lock;
mod behind_lock;
mod unused;
mod pool;
mod polling;
mod short_threads;
mod kernel;
mod processes;
mod calls;
mod nothing;
mod no_use;

use crate::advice::{Advice, Unit};
use calls::Call;
pub use kernel::explains_most;
pub use no_use::say as say_no_use;
pub use sight::Sight;
use ungil_trace::report::Report;

/// Causes told at most.
const TOLD: usize = 3;

/// What threads did instead of running, worst first. `gil_is_limit` says whether the GIL is what to
/// look at first; otherwise there is always something to say.
pub fn find(report: &Report, gil_is_limit: bool) -> Vec<Advice> {
    let kernel = kernel::find(report, gil_is_limit);
    let found = of_threads(report, gil_is_limit, kernel.is_some());
    let longest_s = found.iter().filter(|it| !it.rests).map(|it| took_s(&it.advice));
    let longest_s = longest_s.fold(0.0, f64::max);
    let mut found: Vec<Advice> = found.into_iter().map(|it| it.advice).collect();
    if let Some(kernel) = kernel {
        if kernel.lost_s > longest_s && kernel.explains_most {
            found.insert(0, kernel.advice);
        } else {
            found.truncate(TOLD - 1);
            found.push(kernel.advice);
        }
    }
    found.truncate(TOLD);
    if found.is_empty() && !gil_is_limit {
        found.push(nothing::say(report));
    }
    found
}

/// What threads did, as looks at them show it. `is_told` says that there is something else to tell.
fn of_threads(report: &Report, gil_is_limit: bool, is_told: bool) -> Vec<Call> {
    let sights = || Sight::all(report);
    let (mut found, mut polls): (Vec<Advice>, Vec<Advice>) = (Vec::new(), Vec::new());
    for sight in sights() {
        let mut of_loops = event_loop::find(&sight);
        of_loops.extend(computing::find(&sight));
        of_loops.sort_by(|a, b| took_s(b).total_cmp(&took_s(a)));
        found.extend(of_loops);
        let connections = connections::find(&sight);
        let told = connections.as_ref().and_then(|it| it.subject.function.clone());
        found.extend(connections);
        // More threads would wait for the same connections.
        let is_new = |it: &Advice| told.is_none() || it.subject.function != told;
        found.extend(pool::find(&sight).into_iter().filter(is_new));
        polls.extend(short_threads::find(&sight));
        polls.extend(polling::find(&sight));
    }
    let working = |advice| Call { advice, takes_most: false, rests: false };
    let mut calls: Vec<Call> = Vec::new();
    if !gil_is_limit {
        let computing = processes::computing(report);
        calls.extend(processes::say(report, &computing).map(working));
        // Where a GIL is a limit, waits for something else need not be.
        let sights = || sights().filter(|sight| !sight.is_contended());
        let busy = processes::busy(report);
        let has_children = |sight: &Sight| busy.iter().any(|it| it.parent_pid == sight.process.pid);
        for sight in sights() {
            let all = found.iter().chain(&polls).chain(calls.iter().map(|it| &it.advice));
            let told: Vec<_> = all.filter_map(|it| it.subject.function.clone()).collect();
            calls.extend(calls::find(&sight, &told, has_children(&sight)));
        }
        if found.is_empty() && polls.is_empty() && calls.is_empty() && !is_told {
            let of = |sight: Sight| calls::of_housekeepers(&sight, has_children(&sight));
            calls.extend(sights().flat_map(of));
        }
    }
    // Threads that poll cost little.
    let comes_before = |it: &Call| !polls.is_empty() && it.takes_most;
    let (most, others): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(comes_before);
    let found = found.into_iter().map(working).chain(most);
    found.chain(polls.into_iter().map(working)).chain(others).collect()
}

/// For how long threads were in it, or it kept a loop from going on: the first time among its evidence.
fn took_s(advice: &Advice) -> f64 {
    let took = advice.evidence.iter().find(|it| it.unit == Unit::Seconds);
    took.map_or(0.0, |it| it.value)
}
