//! What looks at threads showed.

use super::scenario::*;
use crate::record::{Doing, Frame, Record, ThreadId};
use crate::report::What;

impl Scenario {
    /// A look at a thread off the GIL that stands for so long, or for all of its gap if that is 0.
    fn off(&mut self, at_ns: u64, thread: u32, stands_for_ns: u64, call: &str) {
        let doing = Doing::Off { stands_for_ns, call: call.to_owned(), on: String::new() };
        self.look(at_ns, thread, doing, &["work"]);
    }

    /// Of thread 0, which holds, and of thread 1 in a gap of the past.
    pub fn looked_at_all_ways(&mut self, at_ns: u64) {
        self.look(at_ns, 0, Doing::Held { waiters: 1 }, &["work"]);
        let base = ("run_forever", "/usr/lib/python3.11/asyncio/base_events.py");
        self.holds_in(at_ns, 0, 0, &[("work", "app.py"), base]);
        self.start(5_000, at_ns);
        self.hold(at_ns, at_ns, 5_000);
        self.off(at_ns, 5_000, MS, "futex");
        self.acquire(at_ns, 0);
    }

    fn look(&mut self, at_ns: u64, thread: u32, doing: Doing, functions: &[&str]) {
        let frame = |function: &&str| Frame {
            function: (*function).to_owned(),
            file: "app.py".to_owned(),
            line: 7,
        };
        let frames = functions.iter().map(frame).collect();
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.analysis.push(&Record::Look { thread, at_ns, doing, frames });
    }
}

#[test]
fn a_long_gap_counts_as_a_whole_and_without_the_wait_at_its_end() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, MS, 0);
    scenario.off(60 * MS, 0, 0, "fsync");
    scenario.acquire(90 * MS, 1);
    scenario.wait(201 * MS, 0);
    scenario.release(210 * MS, 1);
    scenario.hold(211 * MS, 212 * MS, 0);
    let report = scenario.end(300 * MS);
    let thread = report.processes[0].gils[0].threads.iter().find(|it| it.tid == PID).unwrap();
    let [off] = &thread.off_gil[..] else { panic!("{:?}", thread.off_gil) };
    assert_eq!((off.what, off.gaps, off.samples), (What::Disk, 1, 0));
    assert!((off.total_s - 0.2).abs() < 1e-9 && (off.longest_ms - 200.0).abs() < 1e-6);
    assert_eq!(off.user_frame.as_deref(), Some("work (app.py:7)"));
}

#[test]
fn a_gap_that_goes_on_at_the_end_counts_until_then() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, MS, 0);
    scenario.off(60 * MS, 0, 0, "futex");
    let report = scenario.end(501 * MS);
    let off = &report.processes[0].gils[0].threads[0].off_gil[0];
    assert_eq!((off.what, off.gaps), (What::Lock, 1));
    assert!((off.total_s - 0.5).abs() < 1e-9, "{}", off.total_s);
}

#[test]
fn samples_of_short_gaps_stand_for_their_time_and_one_of_a_long_gap_is_not_counted_twice() {
    let mut scenario = Scenario::new(1);
    for round in 0..4 {
        scenario.hold(round * 50 * MS, round * 50 * MS + MS, 0);
        scenario.off(round * 50 * MS + 20 * MS, 0, 50 * MS, "recvfrom");
    }
    // The last one goes on, and is seen again.
    scenario.off(220 * MS, 0, 0, "recvfrom");
    scenario.hold(301 * MS, 302 * MS, 0);
    let report = scenario.end(400 * MS);
    let [off] = &report.processes[0].gils[0].threads[0].off_gil[..] else { panic!() };
    assert_eq!((off.what, off.gaps, off.samples), (What::Network, 1, 3));
    assert!((off.sampled_s - 0.147).abs() < 1e-9, "{}", off.sampled_s);
    assert!((off.total_s - 0.297).abs() < 1e-9, "{}", off.total_s);
}

#[test]
fn gaps_that_no_look_found_count_as_the_sampled_ones_of_their_length() {
    let mut scenario = Scenario::new(2);
    // Each fifth of 50 gaps of 20 ms is sampled, since a look is taken each 100 ms.
    for round in 0..50 {
        scenario.hold(round * 21 * MS, round * 21 * MS + MS, 0);
        if round % 5 == 2 {
            scenario.off(round * 21 * MS + 15 * MS, 0, 105 * MS, "clock_nanosleep");
        }
        // The wait for the GIL at the end of it is no part of a gap.
        if round % 5 == 3 {
            scenario.wait(round * 21 * MS + 21 * MS - 1, 0);
        }
    }
    scenario.hold(1_050 * MS, 1_051 * MS, 0);
    let report = scenario.end(1_051 * MS);
    let [off] = &report.processes[0].gils[0].threads[0].off_gil[..] else { panic!() };
    assert_eq!((off.what, off.gaps, off.samples), (What::Sleep, 0, 10));
    assert!((off.total_s - 1.0).abs() < 1e-6, "{}", off.total_s);
}

#[test]
fn gaps_that_could_have_been_told_as_a_whole_count_as_those_that_were() {
    let mut scenario = Scenario::new(1);
    for round in 0..4 {
        scenario.hold(round * 151 * MS, round * 151 * MS + MS, 0);
        if round == 1 {
            scenario.off(round * 151 * MS + 40 * MS, 0, 150 * MS, "clock_nanosleep");
            scenario.off(round * 151 * MS + 90 * MS, 0, 0, "clock_nanosleep");
        }
    }
    let report = scenario.end(453 * MS + MS);
    let [off] = &report.processes[0].gils[0].threads[0].off_gil[..] else { panic!() };
    assert_eq!((off.what, off.gaps, off.samples), (What::Sleep, 1, 0));
    assert!((off.sampled_s - 0.3).abs() < 1e-6, "{}", off.sampled_s);
    assert!((off.total_s - 0.45).abs() < 1e-6, "{}", off.total_s);
}

#[test]
fn a_look_at_a_thread_that_holds_or_has_not_let_go_is_not_of_a_gap() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.off(10 * MS, 0, 0, "futex");
    scenario.off(10 * MS, 1, 0, "futex");
    scenario.release(20 * MS, 0);
    scenario.hold(30 * MS, 40 * MS, 1);
    let report = scenario.end(50 * MS);
    assert!(report.processes[0].gils[0].threads.iter().all(|it| it.off_gil.is_empty()));
}

#[test]
fn functions_in_which_a_thread_held_count_with_those_they_call_and_once_if_they_call_themselves() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    let held = |waiters| Doing::Held { waiters };
    scenario.look(MS, 0, held(2), &["leaf", "walk", "walk", "main"]);
    scenario.look(2 * MS, 0, held(1), &["walk", "main"]);
    scenario.release(3 * MS, 0);
    let report = scenario.end(10 * MS);
    let threads = &report.processes[0].gils[0].threads;
    let functions: Vec<_> = threads[0]
        .held_in
        .iter()
        .map(|it| (it.function.as_str(), it.depth, it.looks, it.waiters, it.innermost))
        .collect();
    assert_eq!(
        functions,
        [
            ("main (app.py)", 0, 2, 3, 0),
            ("walk (app.py)", 1, 2, 3, 1),
            ("leaf (app.py)", 2, 1, 2, 1)
        ]
    );
    assert_eq!(threads[0].held_in[1].frame.as_deref(), Some("walk (app.py:7)"));
}
