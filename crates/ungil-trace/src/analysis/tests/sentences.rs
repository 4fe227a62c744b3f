//! What findings say: whose GIL, which code, and figures that add up.

use super::scenario::*;
use crate::analysis::findings;
use crate::record::{ProcessId, Record, ThreadId};
use crate::report::{Evidence, Finding, ProcessReport, Report};
use ungil_core::{Event, Kind};

/// Ten holds of 30 ms by thread 0 that another thread asks in vain to end; `sample` tells what was
/// seen of the one that begins at a time.
fn kept(mut sample: impl FnMut(&mut Scenario, u64)) -> Report {
    let mut scenario = Scenario::new(2);
    for turn in 0..10 {
        let at = turn * 200 * MS;
        scenario.is_asked_in_vain(at);
        sample(&mut scenario, at);
        scenario.forced(at + 30 * MS, 0);
        scenario.hold(at + 30 * MS, at + 40 * MS, 1);
    }
    scenario.end(2_000 * MS)
}

fn native_hold(report: &Report) -> &Finding {
    let is_native = |it: &&Finding| matches!(it.evidence, Evidence::NativeHold { .. });
    report.findings.iter().find(is_native).unwrap()
}

#[test]
fn threads_that_keep_the_gil_once_each_are_told_of_together() {
    let told = |threads: u32| {
        let mut scenario = Scenario::new(threads + 1);
        for turn in 1..=threads {
            let at = u64::from(turn) * 100 * MS;
            scenario.acquire(at, turn);
            scenario.wait(at + MS, 0);
            scenario.ask(at + 6 * MS, 0);
            scenario.stack(at + 20 * MS, turn, "compress");
            scenario.forced(at + 46 * MS, turn);
            scenario.hold(at + 46 * MS, at + 47 * MS, 0);
        }
        scenario.end(1_000 * MS)
    };
    let report = told(4);
    let finding = native_hold(&report);
    assert_eq!(
        finding.text,
        "threads t1 and 3 more kept the GIL for 160 ms after they were asked to release it, in 4 \
         holds by native code, the longest 40 ms; another thread waited 160 ms meanwhile; all 4 \
         samples show compress (app.py:7)"
    );
    assert_eq!(finding.threads, [101, 102, 103, 104]);
    let is_native = |it: &Finding| matches!(it.evidence, Evidence::NativeHold { .. });
    assert!(!told(2).findings.iter().any(is_native), "twice may be chance");
}

#[test]
fn native_holds_in_one_function_are_told_of_together_whatever_thread_they_are_of() {
    let mut scenario = Scenario::new(8);
    let rename = |scenario: &mut Scenario, thread: u32, name: &str| {
        let (thread, name) = (ThreadId(thread), name.to_owned());
        scenario.analysis.push(&Record::ThreadNamed { thread, name });
    };
    rename(&mut scenario, 3, "handler");
    rename(&mut scenario, 6, "cleaner");
    // Each alone is long enough; of the fifth none was seen, nor of one with another name.
    for (turn, functions) in
        [(1, Some("rank")), (2, Some("rank")), (3, Some("rank")), (4, Some("pack")), (5, None)]
            .into_iter()
            .chain([(6, None), (7, Some("rank"))])
    {
        let at = u64::from(turn) * 300 * MS;
        scenario.acquire(at, turn);
        scenario.wait(at + MS, 0);
        scenario.ask(at + 6 * MS, 0);
        if let Some(function) = functions {
            scenario.stack_in(at + 20 * MS, turn, &[(function, "app.py"), ("main", "app.py")]);
        }
        scenario.forced(at + 156 * MS + u64::from(turn) * MS, turn);
        scenario.hold(at + 170 * MS, at + 171 * MS, 0);
    }
    let report = scenario.end(3_000 * MS);
    let is_native = |it: &&Finding| matches!(it.evidence, Evidence::NativeHold { .. });
    let told: Vec<_> = report.findings.iter().filter(is_native).map(|it| &it.threads[..]).collect();
    assert_eq!(told, [&[107, 103, 102, 101][..], &[106], &[105], &[104]]);
}

#[test]
fn a_thread_whose_native_hold_was_not_seen_did_what_threads_of_such_a_name_do() {
    let told = |threads: u32| {
        let mut scenario = Scenario::new(threads + 1);
        for turn in 1..=threads {
            let at = u64::from(turn) * 300 * MS;
            scenario.acquire(at, turn);
            scenario.wait(at + MS, 0);
            scenario.ask(at + 6 * MS, 0);
            if turn < threads {
                scenario.stack(at + 20 * MS, turn, "rank");
            }
            scenario.forced(at + 150 * MS, turn);
            scenario.hold(at + 170 * MS, at + 171 * MS, 0);
        }
        native_hold(&scenario.end(2_000 * MS)).clone()
    };
    let finding = told(3);
    assert_eq!(finding.threads, [101, 102, 103]);
    assert!(finding.text.contains("; all 2 samples show rank (app.py:7)"), "{}", finding.text);
    assert!(told(2).text.starts_with("threads t1 and t2 kept the GIL for "));
}

#[test]
fn a_native_hold_names_the_native_function_and_its_library() {
    let native = [("dgemm", "/srv/x/libblas.so"), ("dot", "/srv/x/_fast.so")];
    let report = kept(|scenario, at| {
        for ms in [10, 20] {
            scenario.native_stack(at + ms * MS, 0, "multiply", &native);
        }
        scenario.stopped(at + 10 * MS, 0, 25_000);
    });
    let finding = native_hold(&report);
    let told = "all 20 samples show multiply (app.py:7); the native code is dot (_fast.so), mostly \
                dgemm (libblas.so)";
    assert!(finding.text.ends_with(told), "{}", finding.text);
    let Evidence::NativeHold { native: Some(native), .. } = &finding.evidence else { panic!() };
    assert_eq!((native.function.as_deref(), &*native.library), (Some("dot"), "/srv/x/_fast.so"));
    assert_eq!((native.samples, native.looks), (20, 20));
    assert_eq!(native.stack, ["dgemm [/srv/x/libblas.so]", "dot [/srv/x/_fast.so]"]);
    let hold = gil(&report).long_holds[0].native.as_ref().unwrap();
    assert_eq!((hold.samples, hold.looks), (2, 2));
    let advice = finding.advice.as_deref().unwrap();
    assert!(advice.starts_with("release the GIL in your own dot (_fast.so)"), "{advice}");
    let stopped = report.processes[0].stopped.as_ref().unwrap();
    assert_eq!((stopped.times, stopped.max_us, stopped.total_ms), (10, 25.0, 0.25));
}

#[test]
fn a_thread_that_ran_python_in_most_looks_is_in_no_native_function_for_sure() {
    let mut turn = 0;
    let report = kept(|scenario, at| {
        turn += 1;
        let native: &[_] = if turn % 3 == 0 { &[("f", "/srv/_fast.so")] } else { &[] };
        scenario.native_stack(at + 10 * MS, 0, "compute", native);
    });
    let finding = native_hold(&report);
    assert!(finding.text.ends_with("the native code is f (_fast.so) in 3 of 10 looks at it"));
    assert!(!finding.advice.as_deref().unwrap().contains("your own f"));
}

#[test]
fn a_native_hold_names_the_users_own_frame_beside_the_librarys() {
    let report = kept(|scenario, at| {
        let library = ("match", "/usr/lib/python3.11/re/__init__.py");
        let package = ("scan", "/srv/venv/lib/python3.11/site-packages/rules/scan.py");
        let frames = [library, package, ("parse_line", "/srv/app/parser.py"), ("main", "main.py")];
        for ms in [10, 20] {
            scenario.stack_in(at + ms * MS, 0, &frames);
        }
    });
    let finding = native_hold(&report);
    assert_eq!(
        finding.text,
        "thread t0 kept the GIL for 240 ms after it was asked to release it, in 10 holds by native \
         code, the longest 24 ms; another thread waited 240 ms meanwhile; all 20 samples show match \
         (re/__init__.py:7), called by parse_line (app/parser.py:7)"
    );
    let Evidence::NativeHold { frame, user_frame, samples, frame_samples, .. } = &finding.evidence
    else {
        unreachable!()
    };
    assert_eq!(frame.as_deref(), Some("match (/usr/lib/python3.11/re/__init__.py:7)"));
    assert_eq!(user_frame.as_deref(), Some("parse_line (/srv/app/parser.py:7)"));
    assert_eq!((samples, frame_samples), (&20, &20));
    let advice = finding.advice.as_deref().unwrap();
    assert!(advice.starts_with("Python's own compiled code"), "{advice}");
    assert!(!advice.contains("ALLOW_THREADS"), "{advice}");
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.samples, hold.stack_samples), (2, 2));
    assert_eq!(hold.user_frame, *user_frame);
    assert_eq!(hold.stack_missing, None);
}

#[test]
fn a_native_hold_says_how_many_samples_stand_for_it() {
    let mut first = true;
    let report = kept(|scenario, at| {
        if std::mem::take(&mut first) {
            scenario.stack(at + 10 * MS, 0, "compress");
        }
    });
    let text = &native_hold(&report).text;
    assert!(text.ends_with("; the only sample shows compress (app.py:7)"), "{text}");
}

#[test]
fn a_native_hold_without_a_stack_says_why() {
    let report = kept(|scenario, at| scenario.no_stack(at + 10 * MS, 0, "it was too dark"));
    let text = &native_hold(&report).text;
    assert!(text.ends_with("; there is no stack: it was too dark"), "{text}");
    assert_eq!(gil(&report).long_holds[0].stack_missing.as_deref(), Some("it was too dark"));
    let report = kept(|_, _| {});
    let text = &native_hold(&report).text;
    assert!(text.ends_with("; there is no stack: it ended before a sample was taken"), "{text}");
}

#[test]
fn a_stack_is_no_longer_missing_once_there_is_one() {
    let report = kept(|scenario, at| {
        scenario.no_stack(at + 10 * MS, 0, "it was too dark");
        scenario.stack(at + 20 * MS, 0, "compress");
        scenario.no_stack(at + 25 * MS, 0, "it was too dark");
    });
    assert_eq!(gil(&report).long_holds[0].stack_missing, None);
    assert_eq!(gil(&report).long_holds[0].samples, 1);
}

#[test]
fn only_a_library_of_the_users_own_is_to_let_go() {
    let own = |scenario: &mut Scenario, at: u64| {
        scenario.stack(at + 10 * MS, 0, "compress");
        scenario.analysis.push(&Record::Libraries {
            process: ProcessId(0),
            at_ns: START + at,
            files: vec!["/srv/app/_fast.so".to_owned()],
        });
    };
    let report = kept(own);
    assert_eq!(report.processes[0].libraries, ["/srv/app/_fast.so"]);
    let advice = native_hold(&report).advice.as_deref().unwrap();
    assert!(advice.starts_with("if that is a call into your own _fast.so, release"), "{advice}");
    let report = kept(|scenario, at| scenario.stack(at + 10 * MS, 0, "compress"));
    let advice = native_hold(&report).advice.as_deref().unwrap();
    assert!(!advice.contains("ALLOW_THREADS"), "{advice}");
}

#[test]
fn the_late_calls_of_a_convoy_add_up() {
    let mut scenario = Scenario::new(2);
    let mut at = 0;
    scenario.acquire(0, 0);
    // Most calls come back soon; 20 wait 5 ms, and 5 wait 100 ms.
    let waits = std::iter::repeat_n(MS, 200).chain([5 * MS; 20]).chain([100 * MS; 5]);
    for wait in waits {
        scenario.wait(at + MS, 1);
        at += MS + wait;
        scenario.forced(at, 0);
        scenario.acquire(at, 1);
        at += MS / 10;
        scenario.release(at, 1);
        scenario.acquire(at, 0);
    }
    let report = scenario.end(at);
    let finding = &report.findings[0];
    // The first acquire ends no blocking call.
    assert_eq!(
        finding.text,
        "thread t1 waited 799 ms of 1.05 s for the GIL after blocking calls, behind t0: 25 of its \
         224 calls returned at least 4 ms late, 24 ms on average, 600 ms in total"
    );
    let Evidence::Convoy { late, late_s, waited_s, .. } = finding.evidence else { unreachable!() };
    assert_eq!(late, 25);
    assert_close(late_s, 0.6);
    assert_close(waited_s, 0.799);
}

/// A convoy of two threads at GIL `gil` of process `process`; its threads are `2 * process` and the
/// next one.
fn convoy_at(scenario: &mut Scenario, process: u32, gil: u8) -> u64 {
    let mut event = |at: u64, thread: u32, kind: Kind| {
        let (process, thread) = (ProcessId(process), ThreadId(2 * process + thread));
        let event = Event { at_ns: START + at, kind, gil, seq: 0 };
        scenario.analysis.push(&Record::Gil { process, thread, event });
    };
    let mut at = 0;
    event(0, 0, Kind::Acquire);
    for _ in 0..100 {
        event(at + MS, 1, Kind::Wait);
        at += 6 * MS;
        event(at, 0, Kind::ReleaseForced);
        event(at, 1, Kind::Acquire);
        event(at, 0, Kind::Wait);
        at += MS / 10;
        event(at, 1, Kind::ReleaseVoluntary);
        event(at, 0, Kind::Acquire);
    }
    at
}

#[test]
fn findings_name_the_process_if_there_are_several() {
    let mut scenario = Scenario::new(2);
    scenario.analysis.push(&process(1));
    let mut end = 0;
    for thread in 2..4 {
        scenario.analysis.push(&thread_of(1, thread, START));
    }
    for process in 0..2 {
        end = convoy_at(&mut scenario, process, 0);
    }
    scenario.analysis.push(&process_end(1, START + end));
    let report = scenario.end(end);
    let texts: Vec<_> = report.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().any(|it| it.starts_with("app0.py (pid 100): thread t1 waited")));
    assert!(texts.iter().any(|it| it.starts_with("app1.py (pid 101): thread t3 waited")));
    // Numbers apart, it is the same command, and the same thread of it.
    let repeats: Vec<_> = report.findings.iter().map(|finding| finding.same_as).collect();
    assert_eq!(repeats, [None, Some(0)]);
}

#[test]
fn what_is_the_same_in_another_process_is_of_the_same_kind_and_code() {
    let report = kept(|scenario, at| scenario.stack_in(at + 10 * MS, 0, &[("scan", "/srv/a.py")]));
    let mut processes = vec![report.processes[0].clone(), report.processes[0].clone()];
    processes[1].pid += 1;
    let there = |finding: &Finding| Finding { pid: Some(processes[1].pid), ..finding.clone() };
    let here = native_hold(&report).clone();
    let mut elsewhere = there(&here);
    if let Evidence::NativeHold { user_frame, frame, .. } = &mut elsewhere.evidence {
        (*user_frame, *frame) = (Some("other (/srv/b.py:7)".to_owned()), None);
    }
    let mut other_kind = there(&here);
    other_kind.evidence = Evidence::Hog { held_share: 1.0, victims: 1 };
    let mut findings = [here.clone(), there(&here), elsewhere, other_kind, here];
    findings::mark_repeats(&processes, &mut findings);
    assert_eq!(findings.map(|finding| finding.same_as), [None, Some(0), None, None, None]);
}

#[test]
fn findings_name_the_gil_if_there_are_several() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 1, 0);
    let end = convoy_at(&mut scenario, 0, 3);
    let report = scenario.end(end);
    let texts: Vec<_> = report.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert!(texts[0].starts_with("GIL 3: thread t1 waited"), "{texts:?}");
    assert_eq!(report.findings[0].gil, Some(3));
}

#[test]
fn a_verdict_on_several_processes_says_whose_gil_it_is_about() {
    let mut scenario = Scenario::new(1);
    scenario.analysis.push(&process(1));
    scenario.hold(0, 500 * MS, 0);
    let report = scenario.end(1_000 * MS);
    assert_eq!(
        report.findings[0].text,
        "nothing wrong with the GIL of app0.py (pid 100): it was held 50 % of the time and contended 0 %; \
         nobody waited for it"
    );
}

#[test]
fn a_process_that_multiprocessing_started_has_the_name_of_its_program() {
    let mut all = Scenario::new(1).end(10 * MS).processes;
    let code =
        |module: &str| format!("python3 -B -c from\u{a0}multiprocessing.{module}\u{a0}import x");
    let started: [(u32, String); 6] = [
        (1, "/venv/bin/python /venv/bin/uvicorn app:app".to_owned()),
        (100, code("spawn")),
        (100, code("resource_tracker")),
        (100, code("forkserver")),
        (103, code("forkserver")),
        (77, code("spawn")),
    ];
    let first = all.remove(0);
    for (pid, (parent_pid, command)) in (PID..).zip(started) {
        let argv = command.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
        all.push(ProcessReport { pid, parent_pid, argv, ..first.clone() });
    }
    let says = |process: &ProcessReport| {
        let evidence = Evidence::NotRecorded {};
        let finding =
            Finding { pid: Some(process.pid), ..Finding::of_run(evidence, String::new()) };
        let mut findings = [finding];
        findings::say_whose(&all, &mut findings);
        findings[0].text.clone()
    };
    let told: Vec<_> = all.iter().map(says).collect();
    let expected = [
        "uvicorn (pid 100): ",
        "uvicorn worker (pid 101): ",
        "uvicorn resource tracker (pid 102): ",
        "uvicorn fork server (pid 103): ",
        "uvicorn worker (pid 104): ",
        "python3 -c (pid 105): ",
    ];
    assert_eq!(told, expected);
}
