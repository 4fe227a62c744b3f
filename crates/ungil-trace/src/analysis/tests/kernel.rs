//! Findings about what the kernel did, and about native code that only looks like that.

use super::finding::kinds;
use super::scenario::*;
use crate::analysis::findings;
use crate::record::ThreadTotals;
use crate::report::{Evidence, Finding, Report};

/// A holder of turns of 100 ms, each asked after 5 ms to let go, that ran for `cpu` of them.
fn long_turns(cpu: u64, blocked: bool, kernel: impl Fn(&mut Scenario, u64)) -> Scenario {
    let mut scenario = Scenario::new(2);
    for turn in 0..10 {
        let at = turn * 200 * MS;
        scenario.is_asked_in_vain(at);
        kernel(&mut scenario, at);
        scenario.ran(at, 0, cpu, blocked);
        scenario.forced(at + 100 * MS, 0);
        scenario.hold(at + 100 * MS, at + 101 * MS, 1);
    }
    scenario
}

#[test]
fn a_holder_that_the_kernel_does_not_run_is_descheduled_and_not_in_native_code() {
    let report = long_turns(8 * MS, false, |_, _| ()).end(2_000 * MS);
    assert_eq!(kinds(&report), ["descheduled"]);
    let finding = &report.findings[0];
    assert_eq!(
        finding.text,
        "the kernel did not run thread t0 for 920 ms of the 1 s in which it held the GIL, the \
         longest stop 92 ms; another thread waited 911 ms meanwhile: something else ran on the processor"
    );
    assert_eq!(finding.threads, [100]);
    assert_close(finding.cost_s, 0.92 * 0.99);
    let hold = &gil(&report).long_holds[0];
    assert_close(hold.cpu_ms.unwrap(), 8.0);
    assert_close(hold.not_run_ms.unwrap(), 92.0);
}

/// Three threads that compute in turns of 24 ms, of which the kernel runs each so long.
fn computing_beside_others(cpu: u64) -> Vec<String> {
    let mut scenario = Scenario::new(3);
    scenario.wait(0, 1);
    scenario.wait(0, 2);
    for turn in 0..80 {
        let (at, thread) = (turn * 24 * MS, u32::try_from(turn % 3).unwrap());
        scenario.acquire(at, thread);
        scenario.ask(at + 5 * MS, (thread + 1) % 3);
        scenario.ran(at, thread, cpu, false);
        scenario.forced(at + 24 * MS - 10, thread);
        scenario.wait(at + 24 * MS - 5, thread);
    }
    kinds(&scenario.end(80 * 24 * MS))
}

#[test]
fn where_threads_wait_for_holders_that_run_too_the_gil_is_the_limit_besides() {
    assert_eq!(computing_beside_others(10 * MS), ["descheduled", "none"]);
    assert_eq!(computing_beside_others(2 * MS), ["descheduled"]);
    // What the kernel did is not most of it.
    assert_eq!(computing_beside_others(17 * MS), ["none", "descheduled"]);
}

#[test]
fn what_the_kernel_did_comes_first_only_where_it_explains_most_waits_for_its_gil() {
    let finding = |evidence, cost_s| Finding { cost_s, ..Finding::of_run(evidence, String::new()) };
    let descheduled = |cost_s, waited_s| {
        let (not_run_s, held_s, longest_ms, limited) = (1.0, 2.0, 3.0, false);
        let evidence = Evidence::Descheduled { not_run_s, held_s, longest_ms, limited, waited_s };
        finding(evidence, cost_s)
    };
    let hog = |cost_s| finding(Evidence::Hog { held_share: 0.9, victims: 1 }, cost_s);
    let sorted = |mut findings: Vec<Finding>| {
        findings::sort(&mut findings);
        findings.iter().map(|it| it.cost_s).collect::<Vec<_>>()
    };
    assert_eq!(sorted(vec![hog(1.0), descheduled(3.0, 7.0), hog(2.0)]), [2.0, 1.0, 3.0]);
    assert_eq!(sorted(vec![hog(1.0), descheduled(3.0, 6.0), hog(2.0)]), [3.0, 2.0, 1.0]);
}

/// Four threads use the GIL for 0.1 ms each after their calls, and have it so long after the release
/// before.
fn woken_after(gap: u64) -> Report {
    woken_on(Scenario::new(4), gap, 0)
}

/// The same, and so much CPU time of each thread.
fn woken_on(mut scenario: Scenario, gap: u64, cpu: u64) -> Report {
    (1..4).for_each(|thread| scenario.wait(0, thread));
    let mut at = 0;
    for turn in 0..400 {
        let thread = turn % 4;
        scenario.hold(at, at + MS / 10, thread);
        scenario.wait(at + MS / 10 + 10, thread);
        at += MS / 10 + gap;
    }
    if cpu > 0 {
        let totals = ThreadTotals { cpu_ns: cpu, ..ThreadTotals::default() };
        (0..4).for_each(|thread| scenario.end_thread(at, thread, totals));
    }
    scenario.end(at)
}

#[test]
fn waits_for_a_gil_that_nobody_has_are_late_wake_ups_and_no_convoy() {
    let report = woken_after(4 * MS);
    assert_eq!(kinds(&report), ["late-wakeups"]);
    let finding = &report.findings[0];
    assert_eq!(
        finding.text,
        "nobody had the GIL for 6.4 s of the 6.52 s that threads waited for it, summed over them: \
         a thread that is woken for it waits for a processor; 4.0 threads wanted to run on average"
    );
    assert_eq!(finding.threads.len(), 4);
    assert!(finding.cost_s > 6.0);
}

#[test]
fn threads_that_use_most_of_the_processors_are_the_ones_of_which_there_are_too_many() {
    let advised = |cpu: u64| {
        let report = woken_on(Scenario::on(2, 4), 4 * MS, cpu);
        let finding = report.findings.into_iter().next().unwrap();
        let Evidence::LateWakeups { used, are_its_own, .. } = finding.evidence else {
            panic!("{finding:?}");
        };
        (used, are_its_own, finding.text, finding.advice.unwrap())
    };
    // The run lasts 1.64 s.
    let (used, are_its_own, text, advice) = advised(600 * MS);
    assert_close(used.unwrap(), 2.4 / 1.64);
    assert!(are_its_own);
    assert!(text.ends_with("on 2 processors, and the process used 1.5 of them"), "{text}");
    assert!(advice.starts_with("run fewer threads"), "{advice}");
    let (used, are_its_own, _, advice) = advised(200 * MS);
    assert_close(used.unwrap(), 0.8 / 1.64);
    assert!(!are_its_own);
    assert!(advice.starts_with("run fewer other programs or fewer threads"), "{advice}");
    let (used, are_its_own, text, _) = advised(0);
    assert_eq!((used, are_its_own), (None, false));
    assert!(text.ends_with("on 2 processors"), "{text}");
}

#[test]
fn a_thread_that_takes_as_long_as_usual_to_wake_up_does_not_wait_for_a_processor() {
    assert!(!kinds(&woken_after(MS / 20)).contains(&"late-wakeups".to_owned()));
}

#[test]
fn a_holder_that_runs_is_in_native_code_and_not_descheduled() {
    let report = long_turns(99 * MS, false, |_, _| ()).end(2_000 * MS);
    assert_eq!(kinds(&report), ["native-hold"]);
    assert_close(thread(&report, 0).kept.total_s, 10.0 * 0.093);
    assert_close(thread(&report, 0).unanswered.total_s, 10.0 * 0.094);
}

#[test]
fn a_holder_that_sleeps_is_in_native_code_if_the_kernel_did_not_delay_it() {
    let slept = |scenario: &mut Scenario, at| {
        scenario.kernel_counted(at + 10 * MS, 0, 3 * MS);
        scenario.kernel_counted(at + 105 * MS, 0, 3 * MS);
    };
    let report = long_turns(MS, true, slept).end(2_000 * MS);
    assert_eq!(kinds(&report), ["native-hold"]);
    let hold = &gil(&report).long_holds[0];
    assert_close(hold.cpu_ms.unwrap(), 1.0);
    assert_close(hold.not_run_ms.unwrap(), 0.0);
}

#[test]
fn a_holder_that_may_have_slept_or_not_is_not_accused() {
    let report = long_turns(MS, true, |_, _| ()).end(2_000 * MS);
    assert_eq!(gil(&report).long_holds[0].not_run_ms, None);
    assert!(!kinds(&report).contains(&"native-hold".to_owned()), "{:?}", kinds(&report));
}

#[test]
fn a_cpu_limit_that_stopped_the_process_is_the_reason() {
    let mut scenario = long_turns(8 * MS, false, |_, _| ());
    scenario.throttled(10, 800 * MS);
    let report = scenario.end(2_000 * MS);
    let finding = &report.findings[0];
    assert!(finding.text.ends_with("meanwhile: the CPU limit stopped it 10 times, 800 ms in all"));
    assert!(finding.advice.as_ref().unwrap().starts_with("raise the CPU limit"));

    let mut scenario = long_turns(8 * MS, false, |_, _| ());
    scenario.throttled(1, 70 * MS);
    let report = scenario.end(2_000 * MS);
    let finding = &report.findings[0];
    let reason =
        "something else ran on the processor, and the CPU limit stopped it 1 time, 70 ms in all";
    assert!(finding.text.ends_with(reason), "{}", finding.text);
    assert!(finding.advice.as_ref().unwrap().starts_with("give the program a processor"));
}

/// The native function of holds of 100 ms that ran so long.
fn step_seen_in(cpu: u64) -> Option<String> {
    let seen = |scenario: &mut Scenario, at| {
        scenario.native_stack(at + 20 * MS, 0, "make", &[("make_new_set", "/usr/bin/python3")]);
    };
    let report = long_turns(cpu, false, seen).end(2_000 * MS);
    gil(&report).long_holds[0].native.clone()?.function
}

#[test]
fn a_step_of_the_interpreter_is_native_code_only_if_the_thread_ran_in_it_for_long() {
    let step = Some("make_new_set".to_owned());
    assert_eq!(step_seen_in(99 * MS), step);
    assert_eq!(step_seen_in(8 * MS), None);
    // It was asked to let go after 6 ms, and ran for 24 ms afterwards.
    assert_eq!(step_seen_in(30 * MS), step);
}

#[test]
fn a_stack_from_a_hold_that_was_not_run_is_no_native_code() {
    let mut scenario = Scenario::new(2);
    for (turn, cpu, function) in [(0, 8, "innocent"), (1, 60, "compress"), (2, 60, "compress")] {
        let at = turn * 200 * MS;
        let length = if function == "innocent" { 150 } else { 60 };
        scenario.is_asked_in_vain(at);
        scenario.stack(at + 20 * MS, 0, function);
        scenario.ran(at, 0, cpu * MS, false);
        scenario.forced(at + length * MS, 0);
        scenario.hold(at + length * MS, at + (length + 1) * MS, 1);
    }
    // One more, so that there are enough of them.
    scenario.acquire(600 * MS, 0);
    scenario.wait(601 * MS, 1);
    scenario.ask(606 * MS, 1);
    scenario.forced(640 * MS, 0);
    let report = scenario.end(641 * MS);
    let native =
        report.findings.iter().find(|it| matches!(it.evidence, Evidence::NativeHold { .. }));
    let Evidence::NativeHold { frame, holds, .. } = &native.unwrap().evidence else { panic!() };
    assert_eq!((frame.as_deref(), *holds), (Some("compress (app.py:7)"), 3));
}
