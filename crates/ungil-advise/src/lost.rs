//! Lost events: what the trace lacks, advice cannot be sure of.

use crate::advice::{Advice, Sure};
use ungil_trace::analysis::words;
use ungil_trace::report::{GilReport, ProcessReport, Report};

/// If more than this part (of 1) of the events was lost, what is left may be anything.
const MUCH: f64 = 0.1;

/// Lets each piece of advice say how many events it lacks, and be less sure for that.
pub fn say(report: &Report, all: &mut [Advice]) {
    for advice in all {
        let mut images = report.processes.iter();
        let process = images.find(|process| Some(process.pid) == advice.subject.pid);
        // What was found in one process rests on the events of that one.
        let (lost, known) = match process {
            Some(process) if report.processes.len() > 1 => (lost(process), process.events()),
            _ => (report.lost_events, report.processes.iter().map(ProcessReport::events).sum()),
        };
        if lost == 0 {
            continue;
        }
        // The counts of a thread that has ended contain what was lost; those of others do not.
        let is_much = lost as f64 > MUCH * known.max(lost) as f64;
        let most = if is_much { Sure::Low } else { Sure::Medium };
        let confidence = &mut advice.confidence;
        confidence.level = confidence.level.max(most);
        let were = if lost == 1 { "was" } else { "were" };
        let events = words::count(lost, "event");
        confidence.because = format!("{}; {events} {were} lost", confidence.because);
    }
}

fn lost(process: &ProcessReport) -> u64 {
    let of = |gil: &GilReport| {
        let others = gil.others.map_or(0, |others| others.lost_events);
        others + gil.threads.iter().map(|thread| thread.lost_events).sum::<u64>()
    };
    process.gils.iter().map(of).sum()
}
