//! Processes that compute side by side, each with a GIL of its own: there is nothing to gain from any
//! of these GILs, and that others wait for the processes is no cause.

use super::sight::Sight;
use crate::advice::{Action, Advice, Cause, Confidence, Evidence, Kind, Subject, Sure, Unit};
use ungil_trace::analysis::words;
use ungil_trace::report::{GilReport, ProcessReport, Report, What};

/// A process computes if its threads had the GIL, or ran without it, for at least this part (of 1)
/// of its life.
const PART: f64 = 0.8;
/// What is over in less than this is no work.
const LEAST_S: f64 = 0.2;

/// The processes that compute, and whose threads do not wait for their GIL; none if that is not what
/// the run is about.
pub fn computing(report: &Report) -> Vec<&ProcessReport> {
    that_compute(report, |sight| !sight.is_contended())
}

/// The processes that compute, whether their threads wait for their GIL or not.
pub fn busy(report: &Report) -> Vec<&ProcessReport> {
    that_compute(report, |_| true)
}

fn that_compute(report: &Report, is_meant: impl Fn(&Sight) -> bool) -> Vec<&ProcessReport> {
    let computes = |sight: &Sight| {
        sight.process.duration_s >= LEAST_S
            && sight.process.gils.len() == 1
            && share(sight.process, sight.gil) >= PART
            && is_meant(sight)
    };
    let computing: Vec<_> = Sight::all(report).filter(computes).map(|it| it.process).collect();
    let together_s: f64 = computing.iter().map(|it| it.duration_s).sum();
    // A few that computed for a moment say nothing about a long run.
    if computing.len() > 1 && together_s >= report.duration_s { computing } else { Vec::new() }
}

/// What is told of them, if there are any.
pub fn say(report: &Report, computing: &[&ProcessReport]) -> Option<Advice> {
    let first = computing.first()?;
    let shares = || computing.iter().map(|it| share(it, &it.gils[0]));
    let (least, most) =
        shares().fold((1.0, 0.0), |(least, most), it| (it.min(least), it.max(most)));
    let waited_s = computing.iter().flat_map(|it| &it.gils[0].threads).map(|it| it.waited_s);
    let waited_s = waited_s.sum::<f64>() + 0.0;
    let range = match (words::percent(least), words::percent(most)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least} to {most}"),
    };
    let text = format!(
        "nothing to gain here: {} of {} processes computed, each with a GIL of its own, for {range} \
         of their time; threads waited {} for these GILs, summed",
        words::number(computing.len() as u64),
        words::number(report.processes.len() as u64),
        words::length(waited_s),
    );
    Some(Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::Unknown),
        text,
        subject: Subject { pid: Some(first.pid), ..Subject::default() },
        action: Action::default(),
        gain: None,
        confidence: Confidence {
            level: Sure::High,
            because:
                "a process that holds its GIL all the time, and whose threads do not wait for \
                      it, gains nothing from another policy"
                    .to_owned(),
        },
        evidence: vec![
            Evidence::made("processes that computed", computing.len() as f64, Unit::Count),
            Evidence::made("least of the shares of their time", least, Unit::Share),
            Evidence::made("waits of their threads for a GIL, summed", waited_s, Unit::Seconds),
        ],
        same_as: None,
    })
}

/// The part (of 1) of its life in which a process computed.
fn share(process: &ProcessReport, gil: &GilReport) -> f64 {
    let off = gil.threads.iter().flat_map(|thread| &thread.off_gil);
    let without_s: f64 = off.filter(|off| off.what == What::Computing).map(|off| off.total_s).sum();
    ((gil.held_s + without_s) / process.duration_s.max(1e-9)).min(1.0)
}
