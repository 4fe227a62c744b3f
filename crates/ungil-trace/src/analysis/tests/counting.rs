//! What is counted, on schedules small enough to check by hand.

use super::scenario::*;
use crate::record::{Record, ThreadId, ThreadTotals};
use crate::report::Who;
use ungil_core::Kind;

#[test]
fn a_hold_a_wait_and_a_gap_are_measured_between_their_events() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 10 * MS, 0);
    scenario.wait(4 * MS, 1);
    scenario.acquire(11 * MS, 1);
    scenario.wait(12 * MS, 0);
    scenario.ask(17 * MS, 0);
    scenario.forced(18 * MS, 1);
    scenario.hold(18 * MS, 20 * MS, 0);
    let report = scenario.end(40 * MS);
    let (first, second) = (thread(&report, 0), thread(&report, 1));
    assert_close(first.held_s, 0.012);
    assert_close(second.held_s, 0.007);
    assert_close(second.waited_s, 0.007);
    assert_close(first.gaps.mean_ms, 8.0);
    assert_close(first.holds.mean_us, 6_000.0);
    assert_eq!((first.voluntary, first.forced, first.drop_requests), (2, 0, 1));
    assert_eq!((second.voluntary, second.forced, second.drop_requests), (0, 1, 0));
    assert_eq!((first.main, second.main), (true, false));
    let gil = gil(&report);
    assert_eq!((gil.handoffs, gil.voluntary, gil.forced), (2, 2, 1));
    assert_close(gil.held_s, 0.019);
    assert_close(gil.contended_s, 0.012);
    assert_close(gil.wanting_mean, (19.0 + 13.0) / 40.0);
}

#[test]
fn a_wait_is_charged_to_each_holder_and_the_rest_to_nobody() {
    let mut scenario = Scenario::new(3);
    scenario.acquire(0, 0);
    scenario.wait(MS, 2);
    scenario.release(4 * MS, 0);
    scenario.hold(5 * MS, 11 * MS, 1);
    assert_eq!(scenario.acquire(13 * MS, 2), Some(ThreadId(1)));
    let report = scenario.end(20 * MS);
    assert_close(blamed_ms(&report, 2, who(0)), 3.0);
    assert_close(blamed_ms(&report, 2, who(1)), 6.0);
    assert_close(blamed_ms(&report, 2, Who::Nobody), 3.0);
    assert_close(thread(&report, 2).waited_s, 0.012);
}

#[test]
fn the_culprit_of_a_wait_is_who_held_longest_in_all_not_at_once() {
    let mut scenario = Scenario::new(3);
    scenario.wait(0, 2);
    for turn in 0..4 {
        scenario.hold(turn * 10 * MS, (turn * 10 + 3) * MS, 0);
    }
    scenario.hold(40 * MS, 49 * MS, 1);
    assert_eq!(scenario.acquire(50 * MS, 2), Some(ThreadId(0)));
    assert_eq!(scenario.acquire(60 * MS, 2), None, "it did not wait");
}

#[test]
fn a_wait_told_of_late_is_charged_to_the_hold_that_ended_meanwhile() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 10 * MS, 0);
    scenario.wait(9 * MS, 1);
    assert_eq!(scenario.acquire(11 * MS, 1), Some(ThreadId(0)));
    let report = scenario.end(20 * MS);
    assert_close(blamed_ms(&report, 1, who(0)), 1.0);
    assert_close(gil(&report).contended_s, 0.001);
}

#[test]
fn what_goes_on_at_the_end_is_counted_up_to_the_end() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(10 * MS, 1);
    scenario.event(20 * MS, 1, Kind::DropRequest);
    let live = scenario.analysis.report();
    assert_close(thread(&live, 0).held_s, 0.020);
    assert_close(thread(&live, 1).waited_s, 0.010);
    assert_eq!(thread(&live, 1).ended_s, None);
    let report = scenario.end(50 * MS);
    assert_close(thread(&report, 0).held_s, 0.050);
    assert_close(blamed_ms(&report, 1, who(0)), 40.0);
    assert_close(gil(&report).contended_s, 0.040);
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.waiters_max, hold.forced), (1, false));
    assert_close(hold.waited_s, 0.040);
    assert_close(hold.drop_request_unanswered_ms.unwrap(), 30.0);
}

/// In a sub-interpreter a holder is known by what the recorder knew last, and events come late: the
/// stack may be of the thread that has taken over.
#[test]
fn a_stack_that_was_taken_after_a_hold_is_none_of_it() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.stack(50 * MS, 0, "mine");
    scenario.stack(101 * MS, 0, "of_the_next");
    scenario.stack(102 * MS, 0, "of_the_next");
    scenario.release(100 * MS, 0);
    let report = scenario.end(200 * MS);
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.samples, hold.stack_samples), (1, 1));
    assert_eq!(hold.stack, ["mine (app.py:7)"]);
}

#[test]
fn long_holds_tell_their_stack_however_late_it_comes() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.stack(25 * MS, 0, "compress");
    scenario.stack(26 * MS, 0, "later");
    scenario.release(30 * MS, 0);
    scenario.wait(31 * MS, 1);
    scenario.hold(31 * MS, 61 * MS, 0);
    scenario.acquire(61 * MS, 1);
    scenario.stack(51 * MS, 0, "parse");
    scenario.release(70 * MS, 1);
    let report = scenario.end(100 * MS);
    let told: Vec<_> =
        gil(&report).long_holds.iter().map(|hold| (hold.contended, hold.stack.clone())).collect();
    let stack = |function: &str| vec![format!("{function} (app.py:7)")];
    assert_eq!(told, [(true, stack("parse")), (false, stack("compress"))]);
    assert_eq!(gil(&report).long_holds_count, 2, "9 ms are not long");
}

#[test]
fn own_totals_replace_those_of_a_thread_that_lost_events() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(10 * MS, 1);
    scenario.release(20 * MS, 0);
    scenario.hold(20 * MS, 25 * MS, 1);
    let totals = ThreadTotals {
        waits: 50,
        waited_ns: 500 * MS,
        holds: 51,
        held_ns: 255 * MS,
        voluntary: 30,
        forced: 21,
        lost_events: 198,
        cpu_ns: 250 * MS,
        ..ThreadTotals::default()
    };
    scenario.end_thread(900 * MS, 1, totals);
    let report = scenario.end(1_000 * MS);
    let lossy = thread(&report, 1);
    assert_close(lossy.waited_s, 0.5);
    assert_eq!((lossy.waits.count, lossy.holds.count, lossy.forced), (50, 51, 21));
    assert_close(lossy.waits.mean_us, 10_000.0);
    assert_close(lossy.cpu_s.unwrap(), 0.25);
    assert_close(blamed_ms(&report, 1, who(0)), 10.0);
    assert_close(blamed_ms(&report, 1, Who::Unknown), 490.0);
    assert_eq!((report.lost_events, lossy.lost_events), (198, 198));
    assert_close(gil(&report).held_s, 0.275);
    // As far as is known, somebody always had the GIL while it waited.
    assert_close(gil(&report).contended_s, 0.5);
}

#[test]
fn the_share_of_lost_events_is_of_what_threads_told_and_lost() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 10 * MS, 0);
    scenario.hold(10 * MS, 20 * MS, 1);
    let totals =
        ThreadTotals { holds: 99, held_ns: 99 * MS, lost_events: 50, ..ThreadTotals::default() };
    scenario.end_thread(900 * MS, 1, totals);
    let mut report = scenario.end(1_000 * MS);
    assert_close(report.lost_share, 50.0 / 200.0);
    assert_close(report.processes[0].lost_share(), 50.0 / 200.0);
    // What one that still runs has counted does not contain what it lost.
    for thread in &mut report.processes[0].gils[0].threads {
        thread.ended_s = None;
    }
    assert_close(report.processes[0].lost_share(), 50.0 / 250.0);
    report.processes[0].gils.clear();
    assert_close(report.processes[0].lost_share(), 0.0);
}

#[test]
fn own_totals_do_not_know_what_the_end_of_the_thread_cut_off() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 10 * MS, 1);
    scenario.acquire(10 * MS, 0);
    scenario.wait(20 * MS, 1);
    for (thread, held_ns) in [(1, 10 * MS), (0, 0)] {
        let waits = u64::from(thread == 0);
        let totals = ThreadTotals { holds: 1, held_ns, waits, lost_events: 1, ..<_>::default() };
        scenario.end_thread(50 * MS, thread, totals);
    }
    let report = scenario.end(50 * MS);
    let (holder, waiter) = (thread(&report, 0), thread(&report, 1));
    assert_close(waiter.waited_s, 0.030);
    assert_close(blamed_ms(&report, 1, who(0)), 30.0);
    assert_close(holder.held_s, 0.040);
    assert_eq!((waiter.waits.count, holder.holds.count), (1, 2));
}

#[test]
fn a_request_made_to_the_holder_before_is_none_to_the_next() {
    let mut scenario = Scenario::new(3);
    scenario.hold(0, 10 * MS, 0);
    scenario.wait(0, 2);
    scenario.acquire(11 * MS, 1);
    scenario.ask(9 * MS, 2);
    scenario.release(40 * MS, 1);
    let report = scenario.end(50 * MS);
    assert_eq!(gil(&report).long_holds[0].drop_request_unanswered_ms, None);
}

#[test]
fn charges_shrink_when_a_lost_acquire_made_a_wait_too_long() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(0, 1);
    scenario.release(80 * MS, 0);
    scenario.hold(100 * MS, 101 * MS, 1);
    let totals = ThreadTotals {
        waits: 2,
        waited_ns: 10 * MS,
        holds: 2,
        held_ns: 3 * MS,
        lost_events: 3,
        ..<_>::default()
    };
    scenario.end_thread(200 * MS, 1, totals);
    let report = scenario.end(200 * MS);
    assert_close(thread(&report, 1).waited_s, 0.01);
    assert_close(blamed_ms(&report, 1, who(0)), 8.0);
    assert_close(blamed_ms(&report, 1, Who::Nobody), 2.0);
}

#[test]
fn a_thread_whose_events_were_all_lost_is_still_in_the_report() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, MS, 0);
    let totals = ThreadTotals { holds: 7, held_ns: 7 * MS, lost_events: 14, ..<_>::default() };
    scenario.end_thread(20 * MS, 1, totals);
    let report = scenario.end(20 * MS);
    assert_eq!(thread(&report, 1).holds.count, 7);
    assert_close(gil(&report).held_s, 0.008);
}

#[test]
fn each_gil_of_a_process_has_its_own_entry() {
    let mut scenario = Scenario::new(2);
    scenario.analysis.push(&event(3, 1, START, Kind::Acquire));
    scenario.hold(0, 10 * MS, 0);
    scenario.analysis.push(&event(3, 1, START + 30 * MS, Kind::ReleaseVoluntary));
    scenario.hold(40 * MS, 41 * MS, 1);
    let report = scenario.end(50 * MS);
    let gils = &report.processes[0].gils;
    assert_eq!(gils.iter().map(|gil| gil.gil).collect::<Vec<_>>(), [0, 3]);
    assert_close(gils[0].held_s, 0.011);
    assert_close(gils[1].held_s, 0.030);
    assert_eq!((gils[0].threads.len(), gils[1].threads.len()), (2, 1));
    assert_close(gils[0].contended_s + gils[1].contended_s, 0.0);
}

#[test]
fn the_largest_process_and_the_worst_thread_come_first() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, MS, 0);
    scenario.analysis.push(&process(1));
    for thread in 1..=2 {
        scenario.analysis.push(&thread_of(1, thread, START));
    }
    scenario.hold(0, 2 * MS, 1);
    scenario.hold(2 * MS, 9 * MS, 2);
    let text = "stacks are missing".to_owned();
    for _ in 0..2 {
        scenario.analysis.push(&Record::Note { text: text.clone() });
    }
    let report = scenario.end(20 * MS);
    assert_eq!(report.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [101, 100]);
    let names: Vec<_> = gil(&report).threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["t2", "t1"]);
    assert_eq!(report.notes, [text]);
}

#[test]
fn the_json_has_the_keys_that_were_promised() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(10 * MS, 1);
    scenario.release(35 * MS, 0);
    scenario.acquire(36 * MS, 1);
    let thread = ThreadId(1);
    scenario.analysis.push(&Record::ThreadNamed { thread, name: "io".to_owned() });
    let json = serde_json::to_value(scenario.end(50 * MS)).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["python"], "3.13.0");
    assert_eq!(json["processes"][0]["switch_interval_ms"], 5.0);
    assert_eq!(json["processes"][0]["policy"], "stock");
    let gil = &json["processes"][0]["gils"][0];
    let io = &gil["threads"][0];
    assert_eq!((&io["name"], &io["waits"]["count"]), (&"io".into(), &1.into()));
    for key in ["count", "mean_us", "p50_us", "p99_us", "max_us"] {
        assert!(io["holds"][key].is_number() && io["waits"][key].is_number(), "{key}");
    }
    for key in ["held_s", "waited_s", "voluntary", "forced", "drop_requests", "lost_events"] {
        assert!(io[key].is_number(), "{key}");
    }
    let blame = gil["blame"].as_array().unwrap();
    let culprits: Vec<_> = blame.iter().map(|row| (&row["victim"], &row["culprit"])).collect();
    assert_eq!(culprits, [(&101.into(), &100.into()), (&101.into(), &serde_json::Value::Null)]);
    assert_eq!(gil["long_holds"][0]["stack"], serde_json::json!([]));
    assert_eq!(json["findings"][0]["kind"], "none");
}
