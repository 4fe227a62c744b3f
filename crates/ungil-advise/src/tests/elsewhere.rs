//! What it is where threads do not wait for the GIL.

use super::pools::WORKER;
use super::story::{MS, PID, Story, Told, first, off, texts};
use crate::{Advice, Cause, Kind, Sure, advise};
use ungil_trace::report::{Evidence, Report};

const BASE: &str = "_run_once ~asyncio/base_events.py";

#[test]
fn a_blocking_call_on_an_event_loop_is_the_cause_and_its_line_is_named() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["fetch app.py", "handle app.py", BASE];
    off(&mut story, 0, 150 * MS, ("recvfrom", "socket"), &stack);
    let told = story.end(1_600 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::BlockedEventLoop));
    assert_eq!(advice.subject.function.as_deref(), Some("fetch (app.py:7)"));
    assert!(
        advice.text.contains("waited for the network (recvfrom) for 1.5 s in 10 looks"),
        "{}",
        advice.text
    );
    assert!(advice.action.code.as_deref().unwrap().contains("to_thread"));
    assert_eq!(advice.confidence.level, Sure::High);
}

#[test]
fn each_line_that_blocks_an_event_loop_is_told_as_a_whole() {
    let mut story = Story::of(&["MainThread"]);
    let save = ["save app.py", BASE];
    for (round, call) in (0..).zip([("fsync", "file"), ("computing", "")].repeat(5)) {
        for (line, stack) in [(0, &save[..]), (1, &["rank app.py", BASE])] {
            let at_ns = (2 * round + line) * 121 * MS;
            story.acquire(at_ns, 0);
            story.release(at_ns + MS / 2, 0);
            if line == 0 || round % 2 == 0 {
                story.off(at_ns + 110 * MS, 0, call, stack);
            }
        }
    }
    story.acquire(20 * 121 * MS, 0);
    let told = story.end(2_430 * MS);
    let said: Vec<_> = told.advised.advice.iter().map(|it| (it.cause, it.text.clone())).collect();
    let [(first, of_save), (second, of_rank)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((*first, *second), (Some(Cause::BlockedEventLoop), Some(Cause::BlockedEventLoop)));
    assert!(
        of_save.contains("save (app.py:7)") && of_save.contains("for 1.21 s in 10 looks"),
        "{of_save}"
    );
    assert!(of_rank.contains("rank (app.py:7)") && of_rank.contains("in 5 looks"), "{of_rank}");
}

/// A convoy of 2 s, after whose end other threads sleep here so often for 150 ms each.
fn convoy_and(threads: &[&'static str], innermost: &str, outermost: &str, looks: u64) -> Told {
    let mut story = Story::convoy_of(threads);
    for thread in (2..).take(threads.len()) {
        for round in 0..looks {
            let at_ns = (2_010 + 151 * round) * MS;
            story.acquire(at_ns, thread);
            story.release(at_ns + MS / 2, thread);
            story.off(at_ns + 75 * MS, thread, ("clock_nanosleep", ""), &[innermost, outermost]);
        }
        story.acquire((2_010 + 151 * looks) * MS, thread);
        story.release((2_010 + 151 * looks) * MS + 10, thread);
    }
    story.end((2_011 + 151 * looks) * MS)
}

#[test]
fn a_call_that_blocks_a_loop_comes_first_only_if_that_takes_longer_than_threads_wait() {
    let cause = |looks| {
        let told = convoy_and(&["loop"], "nap app.py", BASE, looks);
        assert!(told.advised.advice.iter().any(|it| it.cause == Some(Cause::BlockedEventLoop)));
        told.advised.advice[0].cause
    };
    assert_eq!(cause(3), None, "0.45 s of 1 s");
    assert_eq!(cause(10), Some(Cause::BlockedEventLoop));
}

#[test]
fn an_exhausted_pool_comes_first_if_that_takes_longer_than_threads_wait_for_a_gil_seldom_contended()
{
    let told = convoy_and(&["pool_0", "pool_1"], "nap app.py", WORKER, 40);
    assert_eq!(first(&told).cause, Some(Cause::ExhaustedPool), "{:?}", texts(&told));
    assert!(told.kinds().contains(&Kind::Policy));
    let told = convoy_and(&["pool_0", "pool_1"], "nap app.py", WORKER, 14);
    assert_eq!(told.kinds()[0], Kind::Policy, "{:?}", texts(&told));
    assert_eq!(told.advised.advice.last().unwrap().cause, Some(Cause::ExhaustedPool));
}

#[test]
fn what_to_await_instead_is_of_the_library_that_the_loop_is_of() {
    let code = |innermost: &str, call, runs| {
        let mut story = Story::of(&["MainThread"]);
        off(&mut story, 0, 150 * MS, (call, "socket"), &[innermost, "handle app.py", runs]);
        first(&story.end(1_600 * MS)).action.code.clone().unwrap()
    };
    let trio = "unrolled_run /x/site-packages/trio/_core/_run.py";
    let twisted = "mainLoop /x/site-packages/twisted/internet/base.py";
    let gevent = "run /x/site-packages/gevent/hub.py";
    for (runs, call, begins) in [
        (trio, "clock_nanosleep", "await trio.sleep(seconds)"),
        (trio, "recvfrom", "await trio.to_thread.run_sync("),
        (trio, "futex", "async with trio.Lock()"),
        (twisted, "clock_nanosleep", "await deferLater(reactor, seconds)"),
        (twisted, "recvfrom", "await deferToThread(fetch, *arguments)  # or use a library for Tw"),
        (twisted, "futex", "async with DeferredLock()"),
        (gevent, "clock_nanosleep", "gevent.sleep(seconds)"),
        (gevent, "recvfrom", "gevent.get_hub().threadpool.apply(fetch, arguments)"),
        (gevent, "futex", "with gevent.lock.RLock()"),
    ] {
        let code = code("fetch app.py", call, runs);
        assert!(code.starts_with(begins), "{code}");
    }
    assert!(code("wait ~threading.py", "futex", trio).ends_with("run_sync(future.result)"));
    assert!(code("wait ~threading.py", "futex", twisted).ends_with("(future.result)"));
}

#[test]
fn of_a_loop_in_native_code_it_is_less_sure_that_it_was_blocked() {
    let sure = |runs: &str| {
        let mut story = Story::of(&["MainThread"]);
        off(
            &mut story,
            0,
            150 * MS,
            ("recvfrom", "socket"),
            &["fetch app.py", runs, "main app.py"],
        );
        let told = story.end(1_600 * MS);
        assert_eq!(first(&told).cause, Some(Cause::BlockedEventLoop), "{:?}", texts(&told));
        first(&told).confidence.level
    };
    assert_eq!(sure(BASE), Sure::High);
    assert_eq!(sure("run_forever <event loop in native code>"), Sure::Medium);
}

#[test]
fn the_users_own_function_that_blocks_is_what_goes_to_a_thread() {
    let code = |stack: &[&str]| {
        let mut story = Story::of(&["MainThread"]);
        off(&mut story, 0, 150 * MS, ("recvfrom", "socket"), stack);
        first(&story.end(1_600 * MS)).action.code.clone().unwrap()
    };
    let lines = "await asyncio.to_thread(notify, *arguments)  # or use a library for asyncio\n\
                 # if notify is async: what blocks in it";
    let package = "get /x/site-packages/requests/api.py";
    assert_eq!(code(&["notify app.py", "handle app.py", BASE, "main app.py"]), lines);
    assert_eq!(code(&[package, "notify app.py", "handle app.py", BASE]), lines);
    assert_eq!(code(&["<lambda> app.py", "notify app.py", "handle app.py", BASE]), lines);
    // Who is called by the loop has to await, and not to be handed over.
    let lines = "await asyncio.to_thread(function, *arguments)  # or use a library for asyncio\n\
                 # function: what blocks in handle";
    assert_eq!(code(&[package, "handle app.py", BASE, "main app.py"]), lines);
}

#[test]
fn a_loop_that_waits_for_the_result_of_a_thread_is_told_to_await_that_and_no_lock() {
    let code = |stack: &[&str]| {
        let mut story = Story::of(&["MainThread"]);
        off(&mut story, 0, 150 * MS, ("futex", ""), &[stack, &["handle app.py", BASE]].concat());
        first(&story.end(1_600 * MS)).action.code.clone().unwrap()
    };
    let result = ["Condition.wait ~threading.py", "Future.result ~concurrent/futures/_base.py"];
    let line =
        "await asyncio.wrap_future(future)  # or: await asyncio.to_thread(function, *arguments)";
    assert_eq!(code(&result), line);
    assert!(code(&[]).starts_with("async with asyncio.Lock()"));
    assert!(
        code(&["collect /x/site-packages/polars/frame.py"]).starts_with("await asyncio.to_thr")
    );
}

#[test]
fn what_a_package_sleeps_for_may_be_no_lock() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["collect /x/site-packages/polars/frame.py", "load app.py"];
    off(&mut story, 0, 150 * MS, ("futex", ""), &stack);
    let told = story.end(1_600 * MS);
    let text = texts(&told)[0];
    assert!(text.contains("waited for a lock or for native code of other threads (futex) at load"));
}

#[test]
fn a_thread_that_rests_all_the_time_is_told_after_one_that_works() {
    let mut story = Story::of(&["MainThread", "saver"]);
    off(&mut story, 1, 100 * MS, ("computing", ""), &["save app.py"]);
    story.acquire(10 * MS, 0);
    story.release(20 * MS, 0);
    story.off(700 * MS, 0, ("clock_nanosleep", ""), &["<module> app.py"]);
    story.acquire(1_490 * MS, 0);
    story.release(1_495 * MS, 0);
    let told = story.end(1_500 * MS);
    let causes: Vec<_> = told.advised.advice.iter().map(|it| it.cause).collect();
    assert_eq!(causes, [Some(Cause::Computing), Some(Cause::Sleep)], "{:?}", texts(&told));
    assert!(texts(&told)[1].contains("slept (clock_nanosleep) at <module>"), "{:?}", texts(&told));
}

#[test]
fn a_thread_that_naps_for_moments_and_hardly_runs_does_not_compute() {
    let causes = |ran_ns| {
        let mut story = Story::of(&["MainThread"]);
        for round in 0..10 {
            let at_ns = round * 151 * MS;
            story.acquire(at_ns, 0);
            story.release(at_ns + MS / 2, 0);
            // Of a nap that is as short as a look, no line is known.
            let stack: &[&str] = if round < 4 { &[] } else { &["main app.py"] };
            let call = if round < 4 { "clock_nanosleep" } else { "computing" };
            story.off(at_ns + 75 * MS, 0, (call, ""), stack);
        }
        story.acquire(1_510 * MS, 0);
        story.ran(0, ran_ns);
        let told = story.end(1_520 * MS);
        told.advised.advice.iter().map(|it| it.cause).collect::<Vec<_>>()
    };
    assert_eq!(causes(100 * MS), [Some(Cause::Unknown)]);
    assert_eq!(causes(600 * MS), [Some(Cause::Computing)]);
}

#[test]
fn a_thread_that_slept_as_often_as_it_let_go_of_the_gil_does_not_want_a_processor() {
    let causes = |slept| {
        let mut story = Story::of(&["MainThread", "progress"]);
        off(&mut story, 1, 150 * MS, ("computing", ""), &["beat app.py"]);
        story.ran(1, 26 * MS);
        story.switched(1, slept, 2);
        let told = story.end(1_510 * MS);
        told.advised.advice.iter().map(|it| it.cause.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(causes(11), [Cause::Unknown]);
    assert_eq!(causes(3), [Cause::Computing]);
}

/// A thread of a package that sleeps, beside one that does this.
fn beside_a_housekeeper(call: (&str, &str), stack: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "reaper"]);
    off(&mut story, 0, 100 * MS, call, stack);
    let own = ["Reaper.run /x/site-packages/reaper/thread.py", "_bootstrap ~threading.py"];
    off(&mut story, 1, 150 * MS, ("clock_nanosleep", ""), &own);
    story.end(1_600 * MS)
}

#[test]
fn a_thread_of_a_package_that_only_sleeps_is_told_of_only_where_there_is_nothing_else_to_say() {
    let told = beside_a_housekeeper(("fsync", "file"), &["save app.py"]);
    assert_eq!(first(&told).cause, Some(Cause::Disk));
    assert_eq!(told.advised.advice.len(), 1, "{:?}", texts(&told));
    let select = ["select ~selectors.py", BASE, "main app.py"];
    let told = beside_a_housekeeper(("epoll_wait", ""), &select);
    assert!(first(&told).text.contains("thread reaper slept"), "{:?}", texts(&told));
}

#[test]
fn a_loop_that_waits_for_something_to_do_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["select ~selectors.py", BASE, "main app.py"];
    off(&mut story, 0, 150 * MS, ("epoll_wait", ""), &stack);
    let told = story.end(1_600 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::Unknown));
    assert!(advice.text.starts_with("nothing to gain here: the GIL was held"), "{}", advice.text);
    // Its tasks may wait for one another.
    assert_eq!(advice.confidence.level, Sure::Medium);
    assert!(advice.confidence.because.contains("the tasks of an event loop"), "{advice:?}");
}

#[test]
fn a_loop_that_looks_find_as_it_wakes_up_to_poll_again_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["EpollSelector.select ~selectors.py", BASE, "<module> bin/server"];
    off(&mut story, 0, 102 * MS, ("computing", ""), &stack);
    let told = story.end(1_100 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::Unknown));
    assert!(advice.text.starts_with("nothing to gain here: the GIL was held"), "{}", advice.text);
}

/// What is told of a loop that runs callbacks which sleep for 20 ms, of which so many are sampled.
fn sleeps_on_a_loop(sampled: u64) -> Told {
    let mut story = Story::of(&["MainThread"]);
    for round in 0..50 {
        let at_ns = round * 21 * MS;
        story.acquire(at_ns, 0);
        story.release(at_ns + MS, 0);
        if round % 10 == 5 && round / 10 < sampled {
            story.sampled(at_ns + 15 * MS, 0, 210 * MS, &["nap app.py", BASE]);
        }
    }
    story.acquire(1_050 * MS, 0);
    story.release(1_051 * MS, 0);
    story.end(1_060 * MS)
}

#[test]
fn short_calls_that_block_a_loop_are_told_with_their_whole_time_but_not_after_one_look() {
    let told = sleeps_on_a_loop(5);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::BlockedEventLoop));
    assert!(advice.text.contains("slept (clock_nanosleep) for 1 s in 5 looks"), "{}", advice.text);
    let told = sleeps_on_a_loop(1);
    assert_ne!(first(&told).cause, Some(Cause::BlockedEventLoop));
}

#[test]
fn a_line_at_which_threads_wanted_to_run_tells_for_how_long_they_got_a_processor() {
    let says = |ran_ns| {
        let mut story = Story::of(&["MainThread", "saver"]);
        off(&mut story, 1, 150 * MS, ("computing", ""), &["save app.py"]);
        story.ran(1, ran_ns);
        first(&story.end(1_510 * MS)).text.clone()
    };
    let lacked = "thread saver wanted to run without the GIL at save (app.py:7) for 1.5 s in all in \
                  10 looks, the longest 150 ms, and got a processor for 26 ms at most";
    assert!(says(26 * MS).contains(lacked), "{}", says(26 * MS));
    let ran =
        "thread saver ran without the GIL, in native code or in the kernel at save (app.py:7)";
    assert!(says(1_500 * MS).contains(ran), "{}", says(1_500 * MS));
}

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
fn each_thing_that_threads_wait_for_is_a_cause_of_its_own() {
    for (call, cause) in [
        (("futex", ""), Cause::Lock),
        (("fsync", "file"), Cause::Disk),
        (("recvfrom", "socket"), Cause::Network),
        (("clock_nanosleep", ""), Cause::Sleep),
        (("wait4", ""), Cause::Process),
        (("read", "pipe"), Cause::Descriptor),
        (("computing", ""), Cause::Computing),
    ] {
        let mut story = Story::of(&["MainThread", "other"]);
        off(&mut story, 1, 150 * MS, call, &["work app.py"]);
        let told = story.end(1_510 * MS);
        let advice = first(&told);
        assert_eq!(advice.cause, Some(cause));
        assert!(advice.text.contains("work (app.py:7)"), "{}", advice.text);
    }
}

#[test]
fn a_thread_that_is_found_on_its_way_to_sleep_does_not_compute() {
    let causes = |sleeps: u64| {
        let mut story = Story::of(&["MainThread", "napper"]);
        for round in 0..10 {
            let at_ns = round * 151 * MS;
            story.acquire(at_ns, 1);
            story.release(at_ns + MS / 2, 1);
            let call = if round < sleeps { "clock_nanosleep" } else { "computing" };
            story.off(at_ns + 75 * MS, 1, (call, ""), &["nap app.py"]);
        }
        story.acquire(1_510 * MS, 1);
        let told = story.end(1_520 * MS);
        told.advised.advice.iter().map(|it| it.cause).collect::<Vec<_>>()
    };
    assert_eq!(causes(7), [Some(Cause::Sleep)]);
    assert_eq!(causes(3), [Some(Cause::Computing), Some(Cause::Sleep)]);
}

#[test]
fn where_most_was_not_seen_that_is_said() {
    let mut story = Story::of(&["MainThread"]);
    for round in 0..200 {
        story.acquire(round * 10 * MS, 0);
        story.release(round * 10 * MS + MS, 0);
    }
    let told = story.end(2_000 * MS);
    let confidence = &first(&told).confidence;
    assert_eq!(confidence.level, Sure::Medium);
    assert!(confidence.because.contains("90 % of their time"), "{}", confidence.because);
}

#[test]
fn a_thread_that_uses_several_gils_has_one_life() {
    let mut story = Story::of(&["MainThread", "napper"]);
    for thread in 0..2 {
        off(&mut story, thread, 15 * MS, ("futex", ""), &["wait ~threading.py", "work app.py"]);
    }
    let mut report = story.end(190 * MS).report;
    let because = |report: &Report| advise(report, &[]).advice[0].confidence.because.clone();
    let seen = because(&report);
    assert!(seen.contains("found no line that took long"), "{seen}");
    // In a sub-interpreter nobody looked at it.
    let mut sub = report.processes[0].gils[0].clone();
    sub.gil = 1;
    for thread in &mut sub.threads {
        thread.off_gil.clear();
    }
    report.processes[0].gils.push(sub);
    assert_eq!(because(&report), seen);
}

#[test]
fn a_moment_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 15 * MS, ("fsync", "file"), &["work app.py"]);
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Unknown));
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

#[test]
fn where_nothing_was_recorded_there_is_no_advice_and_no_certainty() {
    let told = Story::of(&[]).end(100 * MS);
    let advice = first(&told);
    assert!(advice.text.starts_with("no advice: "), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::Low);
}

/// Two threads of a free-threaded Python. The hook sees a GIL for moments there, and looks find the
/// threads off it.
fn without_a_gil(slept_ns: u64) -> Told {
    let mut story = Story::of(&["MainThread", "worker"]);
    off(&mut story, 0, 150 * MS, ("", ""), &["work app.py"]);
    story.parked((100 * MS, 100 * MS + slept_ns), 1, 0);
    story.end(1_600 * MS)
}

#[test]
fn a_thread_that_runs_without_a_gil_is_not_told_to_be_off_it() {
    let told = without_a_gil(MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", told.advised.advice) };
    assert_eq!(
        advice.text,
        "nothing to gain here: this Python is free-threaded, and its GIL was off; \
         no thread slept for others for more than 1 ms in all"
    );
    assert_eq!(advice.confidence.level, Sure::Medium);
    assert!(
        advice.confidence.because.starts_with("every sleep for a lock or a pause was recorded")
    );
}

#[test]
fn a_lock_that_took_the_place_of_the_gil_is_told_with_what_helps() {
    let told = without_a_gil(800 * MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", told.advised.advice) };
    assert_eq!((advice.kind, advice.cause), (Kind::NotTheGil, Some(Cause::Lock)));
    let begins = "it is not the GIL, which was off then: thread worker waited 800 ms of 1.6 s for the lock of \
                  one dict";
    assert!(advice.text.starts_with(begins), "{}", advice.text);
    assert!(advice.text.contains("; give each thread an object of its own"), "{}", advice.text);
    assert_eq!(advice.evidence[0].value.to_bits(), told.report.findings[0].cost_s.to_bits());
}

/// Three threads wait for a lock, and one that had got past that line does `past`.
fn locked(wait: &[&str], past: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "a", "b", "c", "d"]);
    (1..4).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), wait));
    off(&mut story, 4, 150 * MS, ("clock_nanosleep", ""), past);
    story.end(1_510 * MS)
}

#[test]
fn what_threads_did_that_had_passed_the_line_of_a_lock_is_told_with_the_lock() {
    let clause = "; past that line, threads slept (clock_nanosleep) at load (app.py:5) for 1.5";
    let past = ["load app.py:5", "handle app.py:9", "work app.py:20"];
    for wait in [
        &["handle app.py:8", "work app.py:20"][..],
        &["Condition.__enter__ ~threading.py:271", "handle app.py:8", "work app.py:20"],
    ] {
        let told = locked(wait, &past);
        let [advice] = &told.advised.advice[..] else { panic!("{:?}", texts(&told)) };
        assert_eq!(advice.cause, Some(Cause::Lock));
        assert!(advice.text.contains(clause), "{}", advice.text);
    }
}

#[test]
fn who_has_not_passed_the_line_of_a_lock_is_none_that_may_have_it() {
    let wait = ["handle app.py:8", "work app.py:20"];
    for other in [&["nap app.py:30", "work app.py:21"][..], &["handle app.py:8", "work app.py:20"]]
    {
        let told = locked(&wait, other);
        assert_eq!(told.advised.advice.len(), 2, "{:?}", texts(&told));
        assert!(texts(&told).iter().all(|text| !text.contains("past that line")));
    }
}

#[test]
fn a_moment_past_the_line_of_a_lock_tells_where_many_threads_wait_all_the_time() {
    let clause = |past_ms: u64| {
        let names = ["MainThread", "a", "b", "c", "d", "e", "f", "g", "h"];
        let mut story = Story::of(&names);
        let wait = ["handle app.py:8", "work app.py:20"];
        (1..8).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &wait));
        let past = ["emit app.py:5", "handle app.py:9", "work app.py:20"];
        story.acquire(20 * MS, 8);
        story.release(21 * MS, 8);
        story.off(22 * MS, 8, ("clock_nanosleep", ""), &past);
        story.acquire((21 + past_ms) * MS, 8);
        let told = story.end(1_510 * MS);
        let text = texts(&told)[0].to_owned();
        text.split_once("; past that line, ").map(|(_, clause)| clause.to_owned())
    };
    let says = "threads slept (clock_nanosleep) at emit (app.py:5) for at least 120 ms; ";
    let text = clause(120).unwrap();
    assert!(text.starts_with(says), "{text}");
    assert_eq!(clause(60), None);
}

#[test]
fn threads_that_wait_for_the_lock_of_a_logging_handler_are_told_of_a_queue() {
    let log = "Logger.info ~logging/__init__.py:1489";
    for wait in [
        &["Handler.acquire ~logging/__init__.py:927", "Handler.handle ~logging/__init__.py:976"][..],
        &["Handler.handle ~logging/__init__.py:1028"],
    ] {
        let wait = [wait, &[log, "work app.py:20"]].concat();
        let emit =
            ["emit app.py:5", "Handler.handle ~logging/__init__.py:978", log, "work app.py:20"];
        let told = locked(&wait, &emit);
        let advice = told.advised.advice.iter().find(|it| it.cause == Some(Cause::Lock)).unwrap();
        let code = advice.action.code.as_deref().unwrap();
        assert!(code.contains("QueueListener(records, handler)"), "{code}");
        assert!(advice.text.contains("at emit (app.py:5) for 1.5"), "{}", advice.text);
    }
    let told = locked(&["handle app.py:8"], &["load app.py:5", "handle app.py:9"]);
    assert_eq!(first(&told).action.code, None);
}

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
    let advised = advise(&sleeps_beside(0.8, &["handle app.py", BASE]), &[]);
    let advice = advised.advice.iter().find(|it| it.cause == Some(Cause::BlockedEventLoop));
    let text = &advice.unwrap().text;
    assert!(text.starts_with("it is not only the GIL: a call blocks the event loop"), "{text}");
    assert!(text.ends_with("the GIL was contended for 80 % of that time"), "{text}");
}

#[test]
fn a_loop_that_is_blocked_for_longer_than_threads_wait_is_told_first() {
    let first = |cost_s: f64| {
        let mut story = Story::of(&["MainThread", "computes", "other"]);
        off(&mut story, 0, 150 * MS, ("clock_nanosleep", ""), &["handle app.py", BASE]);
        for round in 0..100 {
            story.acquire(1_520 * MS + 10 * round * MS, 1);
            story.wait(1_521 * MS + 10 * round * MS, 2);
            story.release(1_526 * MS + 10 * round * MS, 1);
            story.acquire(1_526 * MS + 10 * round * MS, 2);
            story.release(1_527 * MS + 10 * round * MS, 2);
        }
        let Told { mut report, .. } = story.end(2_600 * MS);
        assert!(crate::scene::is_about_waits(&report.findings[0]), "{:?}", report.findings);
        report.findings.iter_mut().for_each(|it| it.cost_s = cost_s);
        advise(&report, &[]).advice[0].cause
    };
    assert_eq!(first(1.4), Some(Cause::BlockedEventLoop));
    assert_eq!(first(1.6), None);
}

/// A thread that is known all the time, and so many of whose events were lost.
fn with_lost(events: u64) -> Advice {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("futex", ""), &[WORKER]);
    story.lost(0, events);
    story.end(1_600 * MS).advised.advice.remove(0)
}

#[test]
fn advice_about_a_trace_with_lost_events_is_not_sure_and_says_so() {
    let said = |events| {
        let confidence = with_lost(events).confidence;
        (confidence.level, confidence.because)
    };
    let all =
        "very wait was recorded, and looks at threads off the GIL found no line that took long";
    assert_eq!(said(0), (Sure::High, format!("e{all}")));
    assert_eq!(said(1), (Sure::Medium, format!("not e{all}; 1 event was lost")));
    let lost = format!("not e{all}; 12,000,000 events were lost");
    assert_eq!(said(12_000_000), (Sure::Low, lost));
}
