//! Findings, on the programs they are about and on programs that are well.

use super::scenario::*;
use crate::record::{ProcessId, Record, ThreadId, ThreadTotals};
use crate::report::{Evidence, Finding, Report};
use ungil_core::{Event, Kind};

/// The kinds of all findings, the strongest first.
pub(super) fn kinds(report: &Report) -> Vec<String> {
    let kind = |finding: &Finding| {
        serde_json::to_value(finding).unwrap()["kind"].as_str().unwrap().to_owned()
    };
    report.findings.iter().map(kind).collect()
}

/// Threads that always want the GIL, in turns of these lengths in ms, for so many rounds.
fn turns(lengths: &[u64], rounds: u64) -> Scenario {
    let threads = u32::try_from(lengths.len()).unwrap();
    let mut scenario = Scenario::new(threads);
    let mut at = 0;
    (1..threads).for_each(|thread| scenario.wait(0, thread));
    for _ in 0..rounds {
        for (thread, length) in (0..).zip(lengths) {
            scenario.acquire(at * MS, thread);
            at += length;
            scenario.ask(at * MS - 1_000, (thread + 1) % threads);
            scenario.forced(at * MS, thread);
            scenario.wait(at * MS, thread);
        }
    }
    scenario
}

/// The program of the README: `t1` blocks 1 ms, then needs the GIL for 0.1 ms; `t0` computes.
fn convoy(rounds: u64) -> Report {
    let mut scenario = Scenario::new(2);
    let mut at = 0;
    scenario.acquire(0, 0);
    for _ in 0..rounds {
        scenario.wait(at + MS, 1);
        scenario.ask(at + 6 * MS, 1);
        scenario.forced(at + 6 * MS, 0);
        scenario.acquire(at + 6 * MS, 1);
        scenario.wait(at + 6 * MS, 0);
        at += 6 * MS + MS / 10;
        scenario.release(at, 1);
        scenario.acquire(at, 0);
    }
    scenario.end(at)
}

#[test]
fn an_io_thread_behind_a_cpu_thread_is_a_convoy() {
    let report = convoy(821);
    assert_eq!(kinds(&report), ["convoy"], "the hog is named in it");
    let finding = &report.findings[0];
    assert_eq!(
        finding.text,
        "thread t1 waited 4.1 of 5.01 s for the GIL after blocking calls, behind t0: 820 of its \
         820 calls returned at least 4 ms late, 5 ms on average, 4.1 s in total"
    );
    assert_eq!((finding.pid, finding.gil, &finding.threads[..]), (Some(100), Some(0), &[101][..]));
    assert_close(finding.cost_s, 4.1);
}

#[test]
fn calls_that_come_back_at_once_hide_no_convoy() {
    let mut scenario = Scenario::new(2);
    let mut at = 0;
    for _ in 0..400 {
        for _ in 0..30 {
            scenario.hold(at, at + 10_000, 1);
            at += 12_000;
        }
        scenario.is_asked_in_vain(at);
        scenario.forced(at + 6 * MS, 0);
        at += 6 * MS;
        scenario.hold(at, at + 10_000, 1);
        at += 12_000;
    }
    assert_eq!(kinds(&scenario.end(at)), ["convoy"]);
}

#[test]
fn threads_that_compute_in_a_library_that_lets_go_now_and_then_are_no_convoy() {
    let late_in_each = |calls: u64| {
        let mut scenario = Scenario::new(2);
        let mut at = 0;
        for turn in 0..400 {
            let (thread, other) = (turn % 2, (turn + 1) % 2);
            scenario.acquire(at, thread);
            scenario.wait(at + 1, other);
            scenario.ask(at + 5 * MS, other);
            scenario.release(at + 5 * MS + 10_000, thread);
            at += 5 * MS + 10_001;
            for _ in 0..calls {
                scenario.hold(at, at + 10_000, other);
                at += 20_000;
            }
        }
        kinds(&scenario.end(at))
    };
    assert_eq!(late_in_each(40), ["convoy"]);
    assert_ne!(late_in_each(400)[0], "convoy");
}

#[test]
fn one_busy_thread_alone_has_nothing_wrong() {
    let mut scenario = Scenario::new(1);
    for second in 0..10 {
        scenario.hold(second * 1_000 * MS, (second * 1_000 + 990) * MS, 0);
    }
    let report = scenario.end(10_000 * MS);
    assert_eq!(kinds(&report), ["none"]);
    assert_eq!(
        report.findings[0].text,
        "nothing wrong with the GIL: it was held 99 % of the time and contended 0 %; nobody waited for it"
    );
}

#[test]
fn a_heartbeat_beside_a_busy_thread_has_nothing_wrong() {
    let mut scenario = Scenario::new(2);
    for beat in 1..=20 {
        scenario.acquire((beat - 1) * 500 * MS, 0);
        scenario.wait((beat * 500 - 5) * MS, 1);
        scenario.forced(beat * 500 * MS, 0);
        scenario.hold(beat * 500 * MS, beat * 500 * MS, 1);
    }
    assert_eq!(kinds(&scenario.end(10_000 * MS)), ["none"]);
}

#[test]
fn a_script_that_ends_at_once_has_nothing_wrong() {
    assert_eq!(kinds(&convoy(9)), ["none"]);
}

#[test]
fn a_few_long_returns_are_no_convoy() {
    let mut scenario = Scenario::new(2);
    for call in 0..9 {
        let at = call * 500 * MS;
        scenario.acquire(at, 0);
        scenario.wait(at + 100 * MS, 1);
        scenario.release(at + 300 * MS, 0);
        scenario.hold(at + 300 * MS, at + 301 * MS, 1);
    }
    assert_eq!(kinds(&scenario.end(4_500 * MS)), ["hog"]);
}

#[test]
fn an_idle_program_has_nothing_wrong() {
    let mut scenario = Scenario::new(4);
    for thread in 0..4 {
        scenario.hold(u64::from(thread) * MS, u64::from(thread) * MS + 1_000, thread);
    }
    assert_eq!(kinds(&scenario.end(60_000 * MS)), ["none"]);
}

#[test]
fn equal_turns_are_fair() {
    let report = turns(&[5, 5, 5, 5], 200).end(4_000 * MS);
    assert_eq!(kinds(&report), ["none"]);
    assert_eq!(
        report.findings[0].text,
        "no thread is at a disadvantage, but the GIL is the bottleneck: 4.0 threads wanted it on \
         average; it \
         was held 100 % of the time and contended 100 %; no thread waited for it for more than \
         3 s in all"
    );
}

#[test]
fn a_run_of_a_few_ms_has_no_bottleneck_that_anybody_would_notice() {
    for (rounds, begins) in [(2, "nothing wrong with"), (20, "no thread is at a disadvantage, but")]
    {
        let report = turns(&[2, 2], rounds).end(4 * rounds * MS);
        let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
        assert!(finding.text.starts_with(begins), "{}", finding.text);
        assert_eq!(finding.advice.is_some(), rounds == 20);
    }
}

#[test]
fn a_gil_that_is_free_most_of_the_time_is_the_bottleneck_in_bursts() {
    let mut scenario = Scenario::new(4);
    for burst in 0..10 {
        let at_ns = burst * 1_000 * MS;
        (1..4).for_each(|thread| scenario.wait(at_ns, thread));
        for turn in 0..48_u32 {
            let (at_ns, thread) = (at_ns + u64::from(turn) * 5 * MS, turn % 4);
            scenario.acquire(at_ns, thread);
            if turn < 44 {
                scenario.forced(at_ns + 5 * MS, thread);
                scenario.wait(at_ns + 5 * MS, thread);
            } else {
                scenario.release(at_ns + 5 * MS, thread);
            }
        }
    }
    let report = scenario.end(10_000 * MS);
    assert_eq!(kinds(&report), ["none"]);
    let text = &report.findings[0].text;
    let says = "the GIL is the bottleneck in bursts: while it was held, 3.9 threads wanted it on \
                average; it was held 24 % of the time and contended 24 %";
    assert!(text.contains(says), "{text}");
}

#[test]
fn on_one_processor_nothing_runs_in_parallel_and_no_process_is_advised() {
    let advice = |processors| {
        let mut scenario = Scenario::on(processors, 2);
        scenario.wait(0, 1);
        for turn in 0..200_u32 {
            let (at_ns, thread) = (u64::from(turn) * 5 * MS, turn % 2);
            scenario.acquire(at_ns, thread);
            scenario.forced(at_ns + 5 * MS, thread);
            scenario.wait(at_ns + 5 * MS, thread);
        }
        let report = scenario.end(1_000 * MS);
        assert_eq!(kinds(&report), ["none"]);
        report.findings[0].advice.clone().unwrap()
    };
    assert!(advice(1).contains("only one processor"), "{}", advice(1));
    assert!(advice(2).contains("only processes"), "{}", advice(2));
}

#[test]
fn unequal_turns_are_unfair() {
    let report = turns(&[40, 5, 5], 100).end(5_000 * MS);
    assert_eq!(kinds(&report), ["unfair"]);
    let finding = &report.findings[0];
    let Evidence::Unfair { jain, best_share, worst_share, worst_gap_ms } = finding.evidence else {
        panic!("{finding:?}");
    };
    assert_close(jain, 1.0 / (3.0 * (0.8f64.powi(2) + 2.0 * 0.1f64.powi(2))));
    assert_close(best_share, 0.8);
    assert_close(worst_share, 0.1);
    assert_close(worst_gap_ms, 45.0);
    assert_eq!(
        finding.text,
        "3 threads wanted the GIL all the time but got unequal shares: t0 held it for 4 of 5 s \
         (80 %), t2 for 500 ms of 5 s (10 %) with gaps of up to 45 ms (Jain index 0.51)"
    );
}

#[test]
fn threads_that_run_one_after_the_other_are_no_rivals() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 4_000 * MS, 0);
    scenario.end_thread(4_000 * MS, 0, crate::record::ThreadTotals::default());
    scenario.start(1, 4_000 * MS);
    scenario.hold(4_000 * MS, 4_500 * MS, 1);
    scenario.wait(4_500 * MS, 1);
    scenario.acquire(8_000 * MS, 1);
    let report = scenario.end(8_000 * MS);
    assert!(!kinds(&report).contains(&"unfair".to_owned()));
}

#[test]
fn unanswered_drop_requests_are_a_native_hold() {
    let mut scenario = Scenario::new(2);
    for turn in 0..10 {
        let at = turn * 200 * MS;
        scenario.is_asked_in_vain(at);
        scenario.stack(at + 20 * MS, 0, "compress");
        scenario.forced(at + (30 + turn) * MS, 0);
        scenario.hold(at + (30 + turn) * MS, at + 40 * MS, 1);
    }
    let report = scenario.end(2_000 * MS);
    let native = report
        .findings
        .iter()
        .find(|finding| matches!(finding.evidence, Evidence::NativeHold { .. }))
        .unwrap();
    assert_eq!(
        native.text,
        "thread t0 kept the GIL for 285 ms after it was asked to release it, in 10 holds by native \
         code, the longest 33 ms; another thread waited 285 ms meanwhile; all 10 samples show compress \
         (app.py:7)"
    );
    assert_eq!(native.threads, [100]);
}

/// A thread asks for the GIL, and ends so much later; the holder goes on for 850 ms after the request.
fn asked_by_one_that_ends(waits_ns: u64) -> Report {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(1_000 * MS, 1);
    scenario.ask(1_005 * MS, 1);
    scenario.end_thread(1_005 * MS + waits_ns, 1, ThreadTotals::default());
    scenario.release(1_855 * MS, 0);
    scenario.end(1_900 * MS)
}

#[test]
fn a_request_for_which_nobody_waited_is_no_native_hold() {
    assert_eq!(kinds(&asked_by_one_that_ends(MS / 3)), ["none"]);
    assert_eq!(kinds(&asked_by_one_that_ends(300 * MS)), ["native-hold"]);
}

#[test]
fn a_gil_that_threads_wait_for_is_told_before_a_busier_one() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 3_000 * MS, 0);
    for at in [process(1), thread_of(1, 10, START), thread_of(1, 11, START)] {
        scenario.analysis.push(&at);
    }
    let mut push = |at_ns, thread, kind| {
        let event = Event { at_ns: START + at_ns, kind, gil: 0, seq: 0 };
        let (process, thread) = (ProcessId(1), ThreadId(thread));
        scenario.analysis.push(&Record::Gil { process, thread, event });
    };
    // They take turns of 5 ms for a second.
    push(0, 10, Kind::Acquire);
    push(0, 11, Kind::Wait);
    for turn in 1..200 {
        let (from, to) = if turn % 2 == 0 { (11, 10) } else { (10, 11) };
        push(turn * 5 * MS, from, Kind::ReleaseForced);
        push(turn * 5 * MS, to, Kind::Acquire);
        push(turn * 5 * MS, from, Kind::Wait);
    }
    scenario.analysis.push(&process_end(1, START + 1_000 * MS));
    let report = scenario.end(3_000 * MS);
    assert_eq!(kinds(&report), ["none"]);
    let text = &report.findings[0].text;
    assert!(text.starts_with("no thread is at a disadvantage, but the GIL of app1.py"), "{text}");
}

#[test]
fn calls_that_come_back_behind_native_code_are_no_convoy() {
    let mut scenario = Scenario::new(2);
    let mut at = 0;
    for _ in 0..20 {
        scenario.is_asked_in_vain(at);
        scenario.forced(at + 50 * MS, 0);
        scenario.hold(at + 50 * MS, at + 51 * MS, 1);
        at += 52 * MS;
    }
    assert_eq!(kinds(&scenario.end(at)), ["native-hold"]);
}

#[test]
fn one_short_delay_of_an_answer_is_not_worth_telling() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(MS, 1);
    scenario.ask(6 * MS, 1);
    scenario.forced(30 * MS, 0);
    scenario.hold(30 * MS, 31 * MS, 1);
    assert_eq!(kinds(&scenario.end(1_000 * MS)), ["none"]);
}

#[test]
fn short_lived_threads_behind_a_hog_find_it() {
    let mut scenario = Scenario::new(1);
    let mut at = 0;
    for thread in 1..=200 {
        scenario.acquire(at, 0);
        scenario.start(thread, at);
        scenario.wait(at, thread);
        at += 10 * MS;
        scenario.forced(at, 0);
        scenario.hold(at, at + MS / 10, thread);
        at += MS / 10;
        scenario.end_thread(at, thread, crate::record::ThreadTotals::default());
    }
    let report = scenario.end(at);
    assert_eq!(kinds(&report), ["hog"]);
    assert_eq!(
        report.findings[0].text,
        "thread t0 held the GIL for 2 of 2.02 s in which any thread held it (99 %); 200 other \
         threads waited for it for 2 s summed over them, within 2.02 s"
    );
}

/// Threads that compute in turns of 5 ms, among which the last one comes back from a call in each fourth.
fn computing_beside_a_caller(computing: u32) -> Report {
    let mut scenario = Scenario::new(computing + 1);
    (1..computing).for_each(|thread| scenario.wait(0, thread));
    let caller = computing;
    let mut at = 0;
    for turn in 0..600 {
        let thread = turn % computing;
        scenario.acquire(at, thread);
        let next = if turn % 4 == 3 { caller } else { (thread + 1) % computing };
        if next == caller {
            scenario.wait(at, caller);
        }
        scenario.ask(at + 5 * MS - 100, next);
        scenario.forced(at + 5 * MS, thread);
        scenario.wait(at + 5 * MS + 1, thread);
        at += 5 * MS + 10;
        if next == caller {
            scenario.hold(at, at + 1_000, caller);
            at += 1_010;
        }
    }
    scenario.end(at)
}

#[test]
fn where_a_convoy_is_the_smaller_part_of_the_waits_the_gil_is_the_limit_besides() {
    let report = computing_beside_a_caller(4);
    assert_eq!(kinds(&report), ["convoy", "none"]);
    let text = &report.findings[1].text;
    assert!(text.starts_with("besides, the GIL is the bottleneck: "), "{text}");
    assert_eq!(kinds(&computing_beside_a_caller(1)), ["convoy"]);
}

#[test]
fn where_all_else_is_next_to_none_of_the_waits_the_gil_as_the_limit_comes_first() {
    let computing = |kept: u64| {
        let mut scenario = Scenario::new(4);
        (1..4).for_each(|thread| scenario.wait(0, thread));
        let mut at = 0;
        for turn in 0..400 {
            let (thread, next) = (turn % 4, (turn + 1) % 4);
            // Now and then native code keeps it.
            let held = if turn % 40 == 0 { kept } else { 5 * MS };
            scenario.acquire(at, thread);
            scenario.ask(at + 5 * MS - 100, next);
            scenario.forced(at + held, thread);
            scenario.wait(at + held + 1, thread);
            at += held + 10;
        }
        scenario.end(at)
    };
    let report = computing(25 * MS);
    assert_eq!(kinds(&report), ["none", "native-hold"]);
    let text = &report.findings[0].text;
    assert!(text.starts_with("the GIL is the bottleneck: "), "{text}");
    let report = computing(40 * MS);
    assert_eq!(kinds(&report), ["native-hold", "none"]);
    assert!(report.findings[1].text.starts_with("besides, "), "{}", report.findings[1].text);
}
