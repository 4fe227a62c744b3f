//! Ended threads and processes beyond the first thousand are summed.

use super::scenario::*;
use crate::analysis::fold::{KEPT, PILE};
use crate::record::ThreadTotals;
use crate::report::Who;

/// Many short threads, each waiting 1 us behind thread 0, which holds 3 us; the last waits 1 ms.
fn churn(threads: u32) -> crate::report::Report {
    let mut scenario = Scenario::new(1);
    let mut at_ns = 0;
    for thread in 1..=threads {
        let long = if thread == threads / 2 { MS } else { 1_000 };
        scenario.start(thread, at_ns);
        scenario.acquire(at_ns, 0);
        scenario.wait(at_ns + 2_000, thread);
        scenario.release(at_ns + 2_000 + long, 0);
        scenario.hold(at_ns + 2_000 + long, at_ns + 3_000 + long, thread);
        at_ns += 4_000 + long;
        scenario.end_thread(at_ns, thread, ThreadTotals { cpu_ns: 500, ..<_>::default() });
    }
    scenario.end(at_ns)
}

#[test]
fn thread_churn_is_summed_and_nothing_is_lost() {
    let threads = 5_000;
    let report = churn(threads);
    let gil = gil(&report);
    let others = gil.others.unwrap();
    assert!(gil.threads.len() <= KEPT + PILE + 1);
    assert_eq!(others.threads + gil.threads.len() as u64, u64::from(threads) + 1);
    assert_eq!(
        others.waits + gil.threads.iter().map(|thread| thread.waits.count).sum::<u64>(),
        5_000
    );
    assert_close(others.cpu_s, others.threads as f64 * 5e-7);
    let waited_s = others.waited_s + gil.threads.iter().map(|thread| thread.waited_s).sum::<f64>();
    assert_close(waited_s, 4_999e-6 + 1e-3);
    let charged_s: f64 = gil.blame.iter().map(|row| row.waited_s).sum();
    assert_close(charged_s, waited_s);
    assert!(gil.blame.iter().all(|row| row.culprit == who(0)));
    let folded = gil.blame.iter().find(|row| row.victim == Who::Others).unwrap();
    assert_close(folded.waited_s, others.waited_s);
    assert_close(thread(&report, threads / 2).waited_s, 1e-3);
}

#[test]
fn a_culprit_that_was_folded_is_one_of_the_others() {
    let mut scenario = Scenario::new(1);
    let threads = 2 * u32::try_from(KEPT + PILE).unwrap();
    let mut at_ns = 0;
    scenario.wait(0, 0);
    for thread in 1..=threads {
        scenario.start(thread, at_ns);
        scenario.hold(at_ns, at_ns + 1_000, thread);
        at_ns += 1_000;
        scenario.end_thread(at_ns, thread, ThreadTotals::default());
    }
    scenario.acquire(at_ns, 0);
    let report = scenario.end(at_ns);
    let charged_ms: f64 = gil(&report).blame.iter().map(|row| row.waited_s * 1e3).sum();
    assert_close(charged_ms, f64::from(threads) * 1e-3);
    let others = gil(&report).others.unwrap();
    assert_close(blamed_ms(&report, 0, Who::Others), others.held_s * 1e3);
    assert!(others.held_s > 0.0);
}

#[test]
fn a_long_hold_keeps_the_name_of_a_folded_thread() {
    let mut scenario = Scenario::new(2);
    scenario.hold(0, 25 * MS, 1);
    scenario.end_thread(25 * MS, 1, ThreadTotals::default());
    let mut at_ns = 25 * MS;
    for thread in 2..3_000 {
        scenario.start(thread, at_ns);
        scenario.hold(at_ns, at_ns + MS, thread);
        scenario.wait(at_ns + MS, thread);
        at_ns += 31 * MS;
        scenario.end_thread(at_ns, thread, ThreadTotals::default());
    }
    let report = scenario.end(at_ns);
    assert!(gil(&report).threads.iter().all(|thread| thread.name != "t1"), "it is folded");
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.tid, hold.name.as_str()), (PID + 1, "t1"));
}

#[test]
fn long_lists_of_blame_keep_the_sum_of_each_victim() {
    let threads = 80;
    let mut scenario = Scenario::new(threads);
    let mut at_ns = 0;
    (1..threads).for_each(|thread| scenario.wait(0, thread));
    for turn in 0..3 * threads {
        let thread = turn % threads;
        scenario.acquire(at_ns, thread);
        at_ns += 1_000 + u64::from(thread);
        scenario.forced(at_ns, thread);
        scenario.wait(at_ns, thread);
    }
    let report = scenario.end(at_ns);
    let gil = gil(&report);
    assert!(gil.blame.iter().any(|row| row.culprit == Who::Others));
    assert!(gil.blame.len() < (threads * threads) as usize);
    for thread in &gil.threads {
        let rows = gil.blame.iter().filter(|row| row.victim == Who::Thread(thread.tid));
        assert_close(rows.map(|row| row.waited_s).sum(), thread.waited_s);
    }
}

#[test]
fn many_processes_are_summed_too() {
    let mut scenario = Scenario::new(0);
    let processes = 3_000;
    for id in 1..=processes {
        scenario.analysis.push(&process(id));
        scenario.analysis.push(&thread_of(id, id, START));
        scenario.hold(0, 1_000, id);
        scenario.analysis.push(&process_end(id, START + 2_000));
    }
    let report = scenario.end(3_000);
    let others = report.other_processes.unwrap();
    assert_eq!(others.processes + report.processes.len() as u64, u64::from(processes) + 1);
    let listed: f64 =
        report.processes.iter().flat_map(|process| &process.gils).map(|gil| gil.held_s).sum();
    assert_close(others.held_s + listed, f64::from(processes) * 1e-6);
}
