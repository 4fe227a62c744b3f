//! What is said of a free-threaded process whose GIL an import switched on.

use super::scenario::*;
use crate::record::{Frame, ProcessId, Record};
use crate::report::{Evidence, Finding};
use ungil_core::table::GilState;

/// What is said if the recorder saw this of the import, and the GIL ended in this state.
fn said(seen: Option<(&str, &[Frame])>, state: GilState, on_ns: u64) -> Option<Finding> {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 5 * MS, 0);
    if let Some((library, frames)) = seen {
        scenario.analysis.push(&Record::GilSwitchedOn {
            process: ProcessId(0),
            at_ns: START + 2 * MS,
            library: library.to_owned(),
            frames: frames.to_vec(),
        });
    }
    let Record::ProcessEnded { process, at_ns, mut totals } = process_end(0, START + 10 * MS)
    else {
        unreachable!()
    };
    (totals.gil_state, totals.gil_on_ns) = (state as u64, on_ns);
    scenario.analysis.push(&Record::ProcessEnded { process, at_ns, totals });
    let findings = scenario.analysis.report().findings;
    findings.into_iter().find(|it| matches!(it.evidence, Evidence::GilSwitchedOn { .. }))
}

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame { function: function.to_owned(), file: file.to_owned(), line }
}

const LIBRARY: &str =
    "/srv/venv/lib/python3.13t/site-packages/fast/_speedups.cpython-313t-x86_64-linux-gnu.so";

#[test]
fn the_module_its_import_and_the_time_are_named() {
    let package = frame("<module>", "/srv/venv/lib/python3.13t/site-packages/fast/__init__.py", 3);
    let frames = [package, frame("<module>", "/srv/app.py", 4)];
    let finding = said(Some((LIBRARY, &frames)), GilState::SwitchedOn, START + 2 * MS).unwrap();
    assert_eq!(
        finding.text,
        "the import of fast._speedups (app.py:4) switched the GIL of this process on 2 ms after \
         its start: this module does not declare that it works without a GIL"
    );
    let Evidence::GilSwitchedOn { module, library, frame } = finding.evidence else { panic!() };
    assert_eq!(module.as_deref(), Some("fast._speedups"));
    assert_eq!(library.as_deref(), Some(LIBRARY));
    assert_eq!(frame.as_deref(), Some("<module> (/srv/app.py:4)"));
    assert_eq!(finding.pid, Some(PID));
    assert!(finding.advice.unwrap().contains("PYTHON_GIL=0"));
}

#[test]
fn an_import_outside_of_the_users_own_code_has_the_innermost_line() {
    let frames = [frame("<module>", "/usr/lib/python3.13t/site-packages/fast/__init__.py", 3)];
    let finding = said(Some((LIBRARY, &frames)), GilState::SwitchedOn, START + MS).unwrap();
    assert!(
        finding.text.contains("of fast._speedups (__init__.py:3) switched"),
        "{}",
        finding.text
    );
}

#[test]
fn what_is_not_known_is_not_said() {
    let unknown = "an import switched the GIL of this process on 2 ms after its start: an \
                   extension module did not declare that it works without a GIL";
    for seen in [None, Some(("", &[][..]))] {
        let finding = said(seen, GilState::SwitchedOn, START + 2 * MS).unwrap();
        assert_eq!(finding.text, unknown);
        let nothing = Evidence::GilSwitchedOn { module: None, library: None, frame: None };
        assert_eq!(finding.evidence, nothing);
    }
    let finding = said(None, GilState::SwitchedOn, 0).unwrap();
    assert!(finding.text.contains("on: an extension module did"), "{}", finding.text);
}

#[test]
fn a_time_before_the_process_was_seen_is_its_start() {
    let finding = said(None, GilState::SwitchedOn, START - MS).unwrap();
    assert!(finding.text.contains(" on 0 s after its start"), "{}", finding.text);
}

#[test]
fn no_other_state_of_the_gil_is_a_finding() {
    for state in [GilState::Always, GilState::Unknown, GilState::Off, GilState::On] {
        assert!(said(Some((LIBRARY, &[])), state, START + 2 * MS).is_none(), "{state:?}");
    }
}
