//! Processors that something else has, and what that is worth beside a contended GIL.

use super::story::{ASYNCIO, MS, PID, Story, Told, first, off, texts};
use crate::{Cause, Kind, advise};
use ungil_trace::report::{Evidence, Report};

/// Two threads that compute in turns of 24 ms, of which the kernel runs each so long.
fn computing_beside_others(cpu_ns: u64) -> Told {
    let mut story = Story::of(&["MainThread", "worker"]);
    for turn in 0..80 {
        let (at_ns, thread) = (turn * 24 * MS, u32::try_from(turn % 2).unwrap());
        story.acquire(at_ns, thread);
        if turn == 0 {
            story.wait(MS, 1);
        }
        story.ask(at_ns + 6 * MS, 1 - thread);
        story.ran_of_hold(at_ns, thread, cpu_ns);
        story.forced(at_ns + 24 * MS - 10, thread);
        story.wait(at_ns + 24 * MS - 5, thread);
    }
    story.end(80 * 24 * MS)
}

#[test]
fn where_holders_lack_processors_the_gil_is_no_cause_unless_it_is_the_limit_besides() {
    let told = computing_beside_others(2 * MS);
    assert!(first(&told).text.starts_with("it is not the GIL: something"), "{:?}", texts(&told));
    assert_eq!(told.advised.advice.len(), 1, "{:?}", texts(&told));
    let told = computing_beside_others(10 * MS);
    let begins = "it is not only the GIL: something";
    assert!(first(&told).text.starts_with(begins), "{:?}", texts(&told));
    assert!(told.kinds().contains(&Kind::ToAProcess), "{:?}", texts(&told));
}

/// That the kernel did not run holders for so long, where threads waited so long for the GIL.
fn not_run(not_run_s: f64, waited_s: f64) -> Evidence {
    Evidence::Descheduled { not_run_s, held_s: 1.2, longest_ms: 50.0, limited: false, waited_s }
}

/// The kernel did not run holders of a GIL for so long, for which others waited, while two threads were
/// in this call for 1.5 s each.
fn descheduled_beside(not_run_s: f64, waits_s: [f64; 2], call: (&str, &str)) -> Vec<Cause> {
    let mut story = Story::of(&["MainThread", "a", "b"]);
    (1..3).for_each(|thread| off(&mut story, thread, 150 * MS, call, &["work app.py"]));
    let mut report = story.end(1_510 * MS).report;
    let [explained_s, all_s] = waits_s;
    let finding = &mut report.findings[0];
    let evidence = not_run(not_run_s, all_s);
    (finding.evidence, finding.cost_s) = (evidence, explained_s);
    (finding.pid, finding.gil) = (Some(PID), Some(0));
    advise(&report, &[]).advice.iter().map(|it| it.cause.unwrap()).collect()
}

#[test]
fn that_the_kernel_did_not_run_holders_comes_first_only_where_that_took_more_time_than_all_else() {
    let network = ("recvfrom", "socket");
    assert_eq!(descheduled_beside(0.4, [0.5, 0.6], network), [Cause::Network, Cause::Descheduled]);
    assert_eq!(descheduled_beside(1.4, [2.0, 2.1], network), [Cause::Descheduled, Cause::Network]);
    let little = descheduled_beside(1.4, [2.0, 5.0], network);
    assert_eq!(little, [Cause::Network, Cause::Descheduled], "it explains 2 of 5 s of waits");
    // Threads sleep as long as the program says.
    let sleep = ("clock_nanosleep", "");
    assert_eq!(descheduled_beside(0.4, [0.5, 0.6], sleep), [Cause::Descheduled, Cause::Sleep]);
}

#[test]
fn that_the_kernel_did_not_run_holders_comes_after_the_cures_of_a_gil_at_which_most_waits_are() {
    let first = |explained_s| {
        let Told { mut report, .. } = Story::convoy().end(2_000 * MS);
        let mut finding = report.findings[0].clone();
        finding.evidence = not_run(0.1, 1.0);
        finding.cost_s = explained_s;
        report.findings.insert(0, finding);
        let advice = advise(&report, &[]).advice;
        assert!(advice.iter().any(|it| it.cause == Some(Cause::Descheduled)), "{advice:?}");
        advice[0].cause
    };
    assert_eq!(first(0.1), None);
    assert_eq!(first(2.0), Some(Cause::Descheduled));
}

#[test]
fn what_the_kernel_did_not_run_of_many_processes_is_told_as_a_sum() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("clock_nanosleep", ""), &["work app.py"]);
    let mut report = story.end(1_510 * MS).report;
    let finding = &mut report.findings[0];
    (finding.evidence, finding.cost_s) = (not_run(0.3, 0.5), 0.4);
    let others = (1..4).map(|number| {
        let mut process = report.processes[0].clone();
        let mut finding = report.findings[0].clone();
        process.pid = PID + number;
        (finding.pid, finding.same_as) = (Some(process.pid), Some(0));
        (process, finding)
    });
    let (processes, findings): (Vec<_>, Vec<_>) = others.unzip();
    report.processes.extend(processes);
    report.findings.extend(findings);
    let advice = advise(&report, &[]).advice;
    let told: Vec<_> = advice.iter().filter(|it| it.cause == Some(Cause::Descheduled)).collect();
    let [only] = told[..] else { panic!("{advice:?}") };
    assert!(only.text.ends_with("held the GIL, 1.2 s summed over 4 processes"), "{}", only.text);
    let evidence: Vec<_> = only.evidence.iter().map(|it| (it.value, &it.pointer)).collect();
    assert!((evidence[0].0 - 1.2).abs() < 1e-9 && evidence[0].1.is_none(), "{evidence:?}");
}

#[test]
fn a_cpu_limit_is_told_although_nobody_waited_for_the_gil() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("computing", ""), &["work app.py"]);
    story.throttled(900 * MS);
    let told = story.end(1_510 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::CpuLimit));
    assert!(advice.text.contains("9 times, for 900 ms"), "{}", advice.text);
}

/// A thread sleeps, while others wait for the GIL of the same process for so much of the time.
fn sleeps_beside(contended_share: f64, stack: &[&str]) -> Report {
    let mut story = Story::of(&["MainThread", "other"]);
    off(&mut story, 0, 150 * MS, ("clock_nanosleep", ""), stack);
    let mut report = story.end(1_510 * MS).report;
    let process = &mut report.processes[0];
    process.gils[0].contended_s = contended_share * process.duration_s;
    // The kernel had not run the holders, so nothing at the GIL would have helped.
    report.findings[0].evidence = not_run(1.0, 2.0);
    report.findings[0].cost_s = 1.5;
    report
}

#[test]
fn where_nobody_had_the_gil_that_threads_waited_for_fewer_threads_are_the_first_advice() {
    let mut report = sleeps_beside(0.8, &["work app.py"]);
    let mut advised = |used: Option<f64>, are_its_own: bool| {
        report.findings[0].evidence = Evidence::LateWakeups {
            unheld_s: 1.2,
            waited_s: 1.5,
            handoffs: 300,
            wanting: 6.0,
            used,
            are_its_own,
        };
        advise(&report, &[]).advice.swap_remove(0)
    };
    let own = advised(Some(1.9), true);
    assert_eq!(own.cause, Some(Cause::LateWakeups));
    assert_eq!(
        own.text,
        "it is not the GIL: threads that were woken for the GIL waited for a processor, and nobody \
         had the GIL for 1.2 s of their waits; run fewer threads (a smaller pool, n_jobs, \
         OMP_NUM_THREADS), or give the program more processors"
    );
    assert!(own.evidence.last().unwrap().what.contains("processors that the process used"));
    let unknown = advised(None, false);
    assert!(unknown.text.contains("run fewer other programs or fewer threads"), "{unknown:?}");
    assert_eq!(unknown.evidence.len(), own.evidence.len() - 1);
}

#[test]
fn a_sleep_beside_a_contended_gil_is_not_told_instead_of_it() {
    let causes = |share: f64| -> Vec<_> {
        let advised = advise(&sleeps_beside(share, &["work app.py"]), &[]);
        advised.advice.iter().map(|it| it.cause.unwrap()).collect()
    };
    assert_eq!(causes(0.1), [Cause::Descheduled, Cause::Sleep]);
    assert_eq!(causes(0.8), [Cause::Descheduled]);
}

#[test]
fn a_blocked_event_loop_beside_a_contended_gil_is_not_told_to_be_all() {
    let advised = advise(&sleeps_beside(0.8, &["handle app.py", ASYNCIO]), &[]);
    let advice = advised.advice.iter().find(|it| it.cause == Some(Cause::BlockedEventLoop));
    let text = &advice.unwrap().text;
    assert!(text.starts_with("it is not only the GIL: a call blocks the event loop"), "{text}");
    assert!(text.ends_with("the GIL was contended for 80 % of that time"), "{text}");
}
