//! What a report says of what could not be recorded, and of builds that may have no GIL.

use super::scenario::*;
use crate::analysis::Analysis;
use crate::record::{ProcessId, Record};
use crate::report::{Evidence, Report};
use ungil_core::table::GilState;

#[test]
fn a_process_that_was_not_recorded_says_why() {
    let mut scenario = Scenario::new(0);
    let reason = "a free-threaded build has no GIL".to_owned();
    let Record::ProcessStarted(mut known) = process(1) else { unreachable!() };
    known.not_recorded = Some(reason.clone());
    scenario.analysis.push(&Record::ProcessStarted(known));
    let end = process_end(1, START + MS);
    scenario.analysis.push(&end);
    let report = scenario.end(MS);
    let found = report.processes.iter().find(|process| process.pid == 101).unwrap();
    assert_eq!(found.not_recorded.as_ref(), Some(&reason));
    assert!(found.gils.is_empty());
    assert_eq!(report.findings[0].text, reason);
    assert_eq!(report.findings[0].evidence, Evidence::NotRecorded {});
    assert!(matches!(end, Record::ProcessEnded { process: ProcessId(1), .. }));
}

#[test]
fn a_trace_without_processes_says_why() {
    let why = |notes: &[&str]| {
        let mut analysis = Analysis::new(BLAME_AFTER);
        for text in notes {
            analysis.push(&Record::Note { text: (*text).to_owned() });
        }
        let mut report = analysis.report();
        assert_eq!(report.notes, ["no stacks"]);
        let finding = report.findings.remove(0);
        assert_eq!(finding.evidence, Evidence::NotRecorded {});
        finding.text
    };
    assert_eq!(why(&["no stacks", "nothing was recorded: it is no Python"]), "it is no Python");
    assert_eq!(why(&["no stacks"]), "no Python was seen");
}

#[test]
fn a_python_that_never_takes_its_gil_is_not_recorded() {
    let report = Scenario::new(0).end(MS);
    assert_eq!(report.findings[0].evidence, Evidence::NotRecorded {});
    assert!(report.findings[0].text.starts_with("no Python acquired its GIL: none was started"));
}

/// A free-threaded process with a hold of half its time, and its GIL as told.
fn free_threaded(state: GilState, gil_on_ns: u64) -> Report {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 5 * MS, 0);
    let Record::ProcessEnded { process, at_ns, mut totals } = process_end(0, START + 10 * MS)
    else {
        unreachable!()
    };
    totals.gil_state = state as u64;
    totals.gil_on_ns = gil_on_ns;
    scenario.analysis.push(&Record::ProcessEnded { process, at_ns, totals });
    scenario.analysis.report()
}

#[test]
fn a_free_threaded_build_is_reported_by_the_state_of_its_gil() {
    let verdict = |state, on_ns| {
        let report = free_threaded(state, on_ns);
        let process = &report.processes[0];
        let told = process.free_threaded.as_ref().map(|it| (it.gil, it.gil_on_s));
        (told, process.not_recorded.is_some(), report.findings[0].evidence.clone())
    };
    let half = Evidence::None { held_share: 0.5, contended_share: 0.0, waited_max_s: 0.0 };
    assert_eq!(verdict(GilState::Always, 0), (None, false, half.clone()));
    let on = Some((Some("on"), Some(0.0)));
    assert_eq!(verdict(GilState::On, START), (on, false, half.clone()));
    let switched_on = Some((Some("switched on"), Some(0.002)));
    assert_eq!(verdict(GilState::SwitchedOn, START + 2 * MS), (switched_on, false, half.clone()));
    assert_eq!(verdict(GilState::Unknown, 0), (Some((None, None)), false, half));
    let off = Some((Some("off"), None));
    let nothing = Evidence::None { held_share: 0.0, contended_share: 0.0, waited_max_s: 0.0 };
    assert_eq!(verdict(GilState::Off, 0), (off, true, nothing));
}
