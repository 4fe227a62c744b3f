//! The kernel: a CPU limit, or another program that has the processors.

use crate::advice::{Action, Advice, Cause, Confidence, Evidence, Kind, Subject, Sure, Unit};
use crate::place::{GilPlace, finding_key};
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, ProcessReport, Report};

/// A CPU limit that stops a process for this part (of 1) of its life is felt.
const PART: f64 = 0.1;

/// What the kernel did to threads that wanted to run; `gil_is_limit` if they waited for one that it
/// ran, too.
pub fn find(report: &Report, gil_is_limit: bool) -> Option<Advice> {
    let begins = if gil_is_limit { "it is not only the GIL" } else { "it is not the GIL" };
    of_finding(report, begins).or_else(|| of_limit(report, begins))
}

fn of_finding(report: &Report, begins: &str) -> Option<Advice> {
    let mut findings = report.findings.iter().enumerate();
    let (number, finding, not_run_s, limited) =
        findings.find_map(|(number, finding)| match finding.evidence {
            Found::Descheduled { not_run_s, limited, .. } => {
                Some((number, finding, not_run_s, limited))
            }
            _ => None,
        })?;
    let cost = Evidence::at(
        "waits of other threads for the GIL meanwhile, summed",
        finding.cost_s,
        Unit::Seconds,
        finding_key(number, "cost_s"),
    );
    let not_run = Evidence::at(
        "time that the kernel did not run holders of the GIL",
        not_run_s,
        Unit::Seconds,
        finding_key(number, "not_run_s"),
    );
    let (cause, what) = if limited {
        (Cause::CpuLimit, "a CPU limit stopped the process while threads held the GIL")
    } else {
        (Cause::Descheduled, "something else ran on the processors while threads held the GIL")
    };
    Some(Advice {
        kind: Kind::NotTheGil,
        cause: Some(cause),
        text: format!("{begins}: {what}, {} in all", words::length(not_run_s)),
        subject: Subject {
            pid: finding.pid,
            gil: finding.gil,
            threads: finding.threads.clone(),
            thread_group: None,
            function: None,
        },
        action: Action::default(),
        gain: None,
        confidence: Confidence {
            level: Sure::High,
            because: "the kernel counts how long it does not run a thread, and how long a limit \
                      stops it"
                .to_owned(),
        },
        evidence: vec![not_run, cost],
        same_as: None,
    })
}

/// A limit under which nobody waited for the GIL: the process as a whole stood still.
fn of_limit(report: &Report, begins: &str) -> Option<Advice> {
    let stopped_s = |process: &ProcessReport| process.throttled.map_or(0.0, |it| it.stopped_s);
    let processes = report.processes.iter().enumerate();
    let (number, process) = processes
        .filter(|(_, process)| stopped_s(process) > PART * process.duration_s)
        .max_by(|(_, a), (_, b)| stopped_s(a).total_cmp(&stopped_s(b)))?;
    let throttled = process.throttled?;
    let place = GilPlace { process: number, gil: 0 };
    let at = |what: &str, value, unit, key: &str| {
        Evidence::at(what, value, unit, place.process_key(&format!("throttled/{key}")))
    };
    Some(Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::CpuLimit),
        text: format!(
            "{begins}: the CPU limit of its control group stopped the programs in it {}, \
             for {} summed over processors; raise the limit, or give them less work",
            words::count(throttled.times, "time"),
            words::length(throttled.stopped_s),
        ),
        subject: Subject { pid: Some(process.pid), ..Subject::default() },
        action: Action::default(),
        gain: None,
        confidence: Confidence {
            level: Sure::High,
            because:
                "cpu.stat of the control group counts this, but not which of its programs were \
                 stopped"
                    .to_owned(),
        },
        evidence: vec![
            at(
                "periods in which the limit stopped them",
                throttled.times as f64,
                Unit::Count,
                "times",
            ),
            at("time that they were stopped", throttled.stopped_s, Unit::Seconds, "stopped_s"),
        ],
        same_as: None,
    })
}
