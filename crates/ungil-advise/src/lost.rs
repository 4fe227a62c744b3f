//! Lost events: what the trace lacks, advice cannot be sure of.

use crate::advice::{Advice, Sure};
use ungil_trace::analysis::words;
use ungil_trace::report::Report;

/// If more than this part (of 1) of the events was lost, what is left may be anything.
const MUCH: f64 = 0.1;

/// Lets each piece of advice say how many events it lacks, and be less sure for that.
pub fn say(report: &Report, all: &mut [Advice]) {
    for advice in all {
        let mut images = report.processes.iter();
        let process = images.find(|process| Some(process.pid) == advice.subject.pid);
        // What was found in one process rests on the events of that one.
        let (lost, share) = match process {
            Some(process) if report.processes.len() > 1 => {
                (process.lost_events(), process.lost_share())
            }
            _ => (report.lost_events, report.lost_share),
        };
        if lost == 0 {
            continue;
        }
        let most = if share > MUCH { Sure::Low } else { Sure::Medium };
        let confidence = &mut advice.confidence;
        confidence.level = confidence.level.max(most);
        let were = if lost == 1 { "was" } else { "were" };
        let events = words::count(lost, "event");
        confidence.because = format!("{}; {events} {were} lost", confidence.because);
    }
}
