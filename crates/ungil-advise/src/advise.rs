//! All advice about a trace.

use crate::advice::{Advice, Advised, Cause, SCHEMA, Unit};
use crate::elsewhere::Sight;
use crate::{elsewhere, lost, remedies, repeats, scene};
use std::time::Instant;
use ungil_simulate::Demand;
use ungil_trace::report::{Evidence, Report};

/// What to do about the trace of `report`, best first. `demands` is what its threads wanted, for
/// predictions; without it there are none.
///
/// Each prediction replays the trace, some two dozen times for each of up to 20 GILs at which threads
/// wait, on as many processors as there are.
pub fn advise(report: &Report, demands: &[Demand]) -> Advised {
    advise_until(report, demands, None).expect("without an end it is never late")
}

/// The same; `None` if it would not be ready by then, soon after that moment.
pub fn advise_until(
    report: &Report,
    demands: &[Demand],
    until: Option<Instant>,
) -> Option<Advised> {
    let gil_is_limit = report.findings.iter().any(scene::is_about_waits);
    let mut advised =
        if gil_is_limit { remedies::find(report, demands, until) } else { Advised::default() };
    if until.is_some_and(|until| Instant::now() >= until) {
        return None;
    }
    let elsewhere = elsewhere::find(report, gil_is_limit);
    // What took longer comes before it, and that may come after cures of the GIL.
    let leads = elsewhere.first().is_some_and(is_of_kernel);
    let is_first =
        |advice: &Advice| (leads || !is_of_kernel(advice)) && costs_more_than_waits(report, advice);
    let (mut first, mut last): (Vec<_>, Vec<_>) = elsewhere.into_iter().partition(is_first);
    first.append(&mut advised.advice);
    first.append(&mut last);
    if first.is_empty() {
        let worst = scene::scenes(report, demands).into_iter().next();
        first.extend(worst.map(|scene| elsewhere::say_no_use(report, &scene)));
    }
    lost::say(report, &mut first);
    lost::say(report, &mut advised.rejected);
    repeats::mark(&mut first);
    repeats::mark(&mut advised.rejected);
    Some(Advised { schema: SCHEMA, advice: first, ..advised })
}

/// Whether it says that the kernel did not run threads.
fn is_of_kernel(advice: &Advice) -> bool {
    matches!(advice.cause, Some(Cause::Descheduled | Cause::LateWakeups | Cause::CpuLimit))
}

/// Whether it is about what costs more than waits for a GIL, so that no cure of those is the first
/// thing to do.
fn costs_more_than_waits(report: &Report, advice: &Advice) -> bool {
    match advice.cause {
        Some(Cause::CpuLimit) => {
            let worst = report.findings.first().map(|it| &it.evidence);
            matches!(worst, Some(Evidence::Descheduled { .. } | Evidence::LateWakeups { .. }))
        }
        Some(Cause::Descheduled | Cause::LateWakeups) => {
            let worst = report.findings.first();
            worst.is_some_and(elsewhere::explains_most)
        }
        // All that the loop has to do waits as long as it is blocked.
        Some(Cause::BlockedEventLoop) => takes_longer_than_waits(report, advice),
        Some(Cause::ExhaustedPool) => {
            !sight_of(report, advice).is_some_and(|it| it.is_contended())
                && takes_longer_than_waits(report, advice)
        }
        // Where others are late behind a pool, what its threads have to wait for is another matter.
        Some(Cause::Computing | Cause::Lock) => {
            !sight_of(report, advice).is_some_and(|it| it.is_contended() || it.is_held())
                && takes_longer_than_waits(report, advice)
                && is_about_batch(report, advice)
        }
        _ => false,
    }
}

/// Whether threads were longer in what it is about than they waited for a GIL by any finding. The
/// first time among its evidence is that one; those of the GIL come last.
fn takes_longer_than_waits(report: &Report, advice: &Advice) -> bool {
    let waits = report.findings.iter().filter(|it| scene::is_about_waits(it));
    let waited_s = waits.map(|it| it.cost_s).fold(0.0, f64::max);
    let took = advice.evidence.iter().find(|it| it.unit == Unit::Seconds);
    took.is_some_and(|it| it.value > waited_s)
}

/// The process and the GIL that it is about.
fn sight_of<'a>(report: &'a Report, advice: &Advice) -> Option<Sight<'a>> {
    let place = (advice.subject.pid, advice.subject.gil);
    Sight::all(report).find(|it| place == (Some(it.process.pid), Some(it.gil.gil)))
}

/// Whether those who wait for its GIL do the work of a batch, or collect its results.
fn is_about_batch(report: &Report, advice: &Advice) -> bool {
    let place = (advice.subject.pid, advice.subject.gil);
    scene::scenes(report, &[])
        .iter()
        .any(|it| place == (Some(it.process.pid), Some(it.gil.gil)) && it.is_batch())
}
