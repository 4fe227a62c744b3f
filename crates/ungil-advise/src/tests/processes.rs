//! Processes that compute beside each other, and one that waits for others.

use super::story::{MS, PID, Story, off};
use crate::{Cause, advise};
use std::collections::BTreeSet;
use ungil_trace::report::Report;

/// The report of a program that starts others and waits for them, with two that compute for 1.5 s.
fn parent_of_two() -> Report {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("wait4", ""), &["join app.py"]);
    let mut report = story.end(1_510 * MS).report;
    for child in 1..3 {
        let mut story = Story::of(&["MainThread"]);
        story.acquire(20 * MS, 0);
        story.release(1_500 * MS, 0);
        let mut process = story.end(1_500 * MS).report.processes.remove(0);
        (process.pid, process.parent_pid) = (PID + child, PID);
        report.processes.push(process);
    }
    report
}

#[test]
fn processes_that_compute_side_by_side_have_nothing_to_gain_from_the_gil() {
    let advised = advise(&parent_of_two(), &[]);
    let [advice] = &advised.advice[..] else { panic!("{:?}", advised.advice) };
    let text = "nothing to gain here: 2 of 3 processes computed, each with a GIL of its own, for 99 % \
                of their time; threads waited 0 s for these GILs, summed";
    assert_eq!((advice.text.as_str(), advice.cause), (text, Some(Cause::Unknown)));
}

#[test]
fn that_a_process_waits_for_those_whose_threads_compute_is_no_cause() {
    let mut report = parent_of_two();
    for child in &mut report.processes[1..] {
        child.gils[0].contended_s = 0.5 * child.duration_s;
    }
    let causes: Vec<_> = advise(&report, &[]).advice.iter().map(|it| it.cause).collect();
    assert!(!causes.contains(&Some(Cause::Process)), "{causes:?}");
}

#[test]
fn a_process_that_waits_for_one_that_does_not_compute_says_so() {
    let mut report = parent_of_two();
    report.processes.truncate(1);
    assert_eq!(advise(&report, &[]).advice[0].cause, Some(Cause::Process));
}

#[test]
fn processes_that_compute_for_a_moment_say_nothing_about_a_long_run() {
    let mut report = parent_of_two();
    report.duration_s = 100.0;
    assert_eq!(advise(&report, &[]).advice[0].cause, Some(Cause::Process));
}

#[test]
fn remedies_are_looked_for_at_the_twenty_gils_that_cost_most() {
    let told = Story::convoy().end(2_000 * MS);
    let mut report = told.report;
    let (worst, findings) = (report.processes[0].clone(), report.findings.clone());
    for number in 1..23 {
        report.processes.push(worst.clone());
        report.processes.last_mut().unwrap().pid += number;
        for finding in &findings {
            report.findings.push(finding.clone());
            report.findings.last_mut().unwrap().pid = Some(PID + number);
        }
    }
    let advised = advise(&report, &told.demands);
    assert_eq!((told.advised.gils_left_out, advised.gils_left_out), (0, 3));
    let all = advised.advice.iter().chain(&advised.rejected);
    let pids: BTreeSet<_> = all.filter_map(|it| it.subject.pid).collect();
    assert_eq!(pids, (PID..PID + 20).collect());
}
