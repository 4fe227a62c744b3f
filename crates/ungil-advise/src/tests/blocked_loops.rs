//! Event loops that a call blocks, and those that only wait for something to do.

use super::pools::WORKER;
use super::story::{ASYNCIO, MS, Story, Told, first, off, texts};
use crate::{Cause, Kind, Sure, advise};

#[test]
fn a_blocking_call_on_an_event_loop_is_the_cause_and_its_line_is_named() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["fetch app.py", "handle app.py", ASYNCIO];
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
fn a_loop_that_starts_a_thread_waits_for_the_gil_and_is_not_told_to_await() {
    let told = |innermost: &[&'static str]| {
        let mut story = Story::of(&["MainThread"]);
        let stack = [innermost, &["serve app.py", ASYNCIO]].concat();
        off(&mut story, 0, 150 * MS, ("futex", ""), &stack);
        first(&story.end(1_600 * MS)).cause
    };
    let wait = ["Condition.wait ~threading.py", "Event.wait ~threading.py"];
    assert_eq!(told(&wait), Some(Cause::BlockedEventLoop));
    let start = [&wait[..], &["Thread.start ~threading.py"]].concat();
    assert_ne!(told(&start), Some(Cause::BlockedEventLoop));
}

#[test]
fn each_line_that_blocks_an_event_loop_is_told_as_a_whole() {
    let mut story = Story::of(&["MainThread"]);
    let save = ["save app.py", ASYNCIO];
    for (round, call) in (0..).zip([("fsync", "file"), ("computing", "")].repeat(5)) {
        for (line, stack) in [(0, &save[..]), (1, &["rank app.py", ASYNCIO])] {
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
        let told = convoy_and(&["loop"], "nap app.py", ASYNCIO, looks);
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
    assert_eq!(sure(ASYNCIO), Sure::High);
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
    assert_eq!(code(&["notify app.py", "handle app.py", ASYNCIO, "main app.py"]), lines);
    assert_eq!(code(&[package, "notify app.py", "handle app.py", ASYNCIO]), lines);
    assert_eq!(code(&["<lambda> app.py", "notify app.py", "handle app.py", ASYNCIO]), lines);
    // Who is called by the loop has to await, and not to be handed over.
    let lines = "await asyncio.to_thread(function, *arguments)  # or use a library for asyncio\n\
                 # function: what blocks in handle";
    assert_eq!(code(&[package, "handle app.py", ASYNCIO, "main app.py"]), lines);
}

#[test]
fn a_loop_that_waits_for_the_result_of_a_thread_is_told_to_await_that_and_no_lock() {
    let code = |stack: &[&str]| {
        let mut story = Story::of(&["MainThread"]);
        off(&mut story, 0, 150 * MS, ("futex", ""), &[stack, &["handle app.py", ASYNCIO]].concat());
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
fn a_loop_that_waits_for_something_to_do_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["select ~selectors.py", ASYNCIO, "main app.py"];
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
    let stack = ["EpollSelector.select ~selectors.py", ASYNCIO, "<module> bin/server"];
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
            story.sampled(at_ns + 15 * MS, 0, 210 * MS, &["nap app.py", ASYNCIO]);
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
fn a_loop_that_is_blocked_for_longer_than_threads_wait_is_told_first() {
    let first = |cost_s: f64| {
        let mut story = Story::of(&["MainThread", "computes", "other"]);
        off(&mut story, 0, 150 * MS, ("clock_nanosleep", ""), &["handle app.py", ASYNCIO]);
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
