//! An event loop whose callbacks compute for long, while nobody waits for the GIL.

use super::story::{ASYNCIO, MS, Story, Told, first, texts};
use crate::{Advice, Cause, Sure};

/// A loop whose callbacks compute 20 times for so long, each 100 ms, and looks that find these
/// stacks in turn, in so many of them.
fn serves(length_ns: u64, looks: u64, stacks: &[&[&str]]) -> Told {
    let mut story = Story::of(&["MainThread"]);
    for (round, stack) in (0..20).zip(stacks.iter().cycle()) {
        let at_ns = round * 200 * MS;
        story.acquire(at_ns, 0);
        story.release(at_ns + MS, 0);
        let polls = ["select ~selectors.py", ASYNCIO, "main app.py"];
        story.off(at_ns + 60 * MS, 0, ("epoll_wait", ""), &polls);
        story.acquire(at_ns + 80 * MS, 0);
        if round < looks {
            story.computes(at_ns + 95 * MS, 0, stack);
        }
        story.release(at_ns + 80 * MS + length_ns, 0);
    }
    story.end(4_000 * MS)
}

fn is_of_loop(advice: &Advice) -> bool {
    advice.cause == Some(Cause::BlockedEventLoop)
}

#[test]
fn a_function_that_computes_on_an_event_loop_is_the_cause_and_its_line_is_named() {
    let told =
        serves(55 * MS, 20, &[&["tokenise app.py", "handle app.py", ASYNCIO, "main app.py"]]);
    let advice = first(&told);
    assert!(is_of_loop(advice), "{:?}", texts(&told));
    assert_eq!(advice.subject.function.as_deref(), Some("tokenise (app.py:7)"));
    assert!(
        advice.text.starts_with(
            "it is not the GIL: computing blocks the event loop of thread MainThread: tokenise \
             (app.py:7) computed for 1.1 s in 20 holds, the longest 55 ms"
        ),
        "{}",
        advice.text
    );
    assert!(advice.action.code.as_deref().unwrap().contains("ProcessPoolExecutor()"));
    assert_eq!(advice.confidence.level, Sure::High);
}

#[test]
fn code_of_a_package_is_told_by_the_line_of_the_users_own_that_called_it() {
    let package = "parse /x/site-packages/parsel/selector.py";
    let told = serves(55 * MS, 20, &[&[package, "handle app.py", ASYNCIO]]);
    assert_eq!(first(&told).subject.function.as_deref(), Some("handle (app.py:7)"));
}

#[test]
fn what_a_package_calls_back_on_a_loop_leaves_it_with_the_function_that_called_the_package() {
    let apply = "apply /x/site-packages/pandas/core/groupby/groupby.py";
    let stack =
        ["summarise app.py", apply, "totals app.py", "handle app.py", ASYNCIO, "main app.py"];
    let told = serves(55 * MS, 20, &[&stack]);
    assert_eq!(first(&told).subject.function.as_deref(), Some("summarise (app.py:7)"));
    let code = first(&told).action.code.as_deref().unwrap();
    assert!(code.contains("(processes, totals, *arguments)"), "{code}");
}

#[test]
fn of_several_functions_the_one_that_most_looks_found_is_told_and_how_many() {
    let handlers: [&[&str]; 3] =
        [&["rank app.py", ASYNCIO], &["split app.py", ASYNCIO], &["rank app.py", ASYNCIO]];
    let told = serves(55 * MS, 9, &handlers);
    let advice = first(&told);
    assert!(
        advice.text.contains("; 6 of 9 looks found it in rank (app.py:7); "),
        "{}",
        advice.text
    );
    assert_eq!(advice.confidence.level, Sure::Medium);
    assert!(advice.action.code.is_some());
}

#[test]
fn a_function_of_a_library_that_few_looks_found_is_not_what_goes_to_another_process() {
    let stacks: [&[&str]; 3] = [
        &["create_task ~asyncio/base_events.py", ASYNCIO],
        &["create_task ~asyncio/base_events.py", ASYNCIO],
        &["run /x/site-packages/scrapy/core.py", ASYNCIO],
    ];
    let told = serves(55 * MS, 9, &stacks);
    let says = "; 6 of 9 looks found it in create_task (asyncio/base_events.py:7), and the others \
                elsewhere; ";
    assert!(first(&told).text.contains(says), "{}", first(&told).text);
    assert_eq!(first(&told).action.code, None);
}

#[test]
fn few_looks_are_medium_sure_and_next_to_none_name_no_line_unless_a_hold_was_slow() {
    let stack: &[&[&str]] = &[&["tokenise app.py", ASYNCIO]];
    let told = serves(55 * MS, 3, stack);
    assert!(is_of_loop(first(&told)));
    assert_eq!(first(&told).confidence.level, Sure::Medium);
    let told = serves(55 * MS, 2, stack);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::Unknown));
    assert_eq!(advice.confidence.level, Sure::Medium);
    assert!(
        advice.confidence.because.contains(
            "callbacks of the event loop of thread MainThread computed for 1.1 s in 20 holds, the \
             longest 55 ms, and looks did not find in which line"
        ),
        "{}",
        advice.confidence.because
    );
    assert!(is_of_loop(first(&serves(101 * MS, 1, stack))));
}

#[test]
fn short_callbacks_and_what_is_computed_without_a_loop_are_no_cause() {
    let told = serves(19 * MS, 20, &[&["tokenise app.py", ASYNCIO]]);
    assert_eq!(first(&told).cause, Some(Cause::Unknown), "{:?}", texts(&told));
    assert!(!first(&told).confidence.because.contains("event loop"));

    let mut story = Story::of(&["MainThread"]);
    for round in 0..20 {
        story.acquire(round * 100 * MS, 0);
        story.computes(round * 100 * MS + 20 * MS, 0, &["tokenise app.py", "main app.py"]);
        story.release(round * 100 * MS + 90 * MS, 0);
    }
    let told = story.end(2_000 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Unknown), "{:?}", texts(&told));
}

#[test]
fn what_to_await_instead_on_a_loop_of_trio_runs_in_another_process() {
    let trio = "unrolled_run /x/site-packages/trio/_core/_run.py";
    let mut story = Story::of(&["MainThread"]);
    for round in 0..20 {
        story.acquire(round * 100 * MS, 0);
        story.computes(round * 100 * MS + 20 * MS, 0, &["tokenise app.py", trio]);
        story.release(round * 100 * MS + 90 * MS, 0);
    }
    let code = first(&story.end(2_000 * MS)).action.code.clone().unwrap();
    assert!(code.starts_with("await anyio.to_process.run_sync(function, *arguments)"), "{code}");
}

/// What is advised where these stacks compute on a loop.
fn code(stack: &[&str]) -> String {
    let mut story = Story::of(&["MainThread"]);
    for round in 0..20 {
        story.acquire(round * 100 * MS, 0);
        story.computes(round * 100 * MS + 20 * MS, 0, stack);
        story.release(round * 100 * MS + 90 * MS, 0);
    }
    first(&story.end(2_000 * MS)).action.code.clone().unwrap()
}

#[test]
fn the_function_that_computes_is_what_goes_to_another_process() {
    let lines = "from concurrent.futures import ProcessPoolExecutor\n\
                 processes = ProcessPoolExecutor()\n\
                 await asyncio.get_running_loop().run_in_executor(processes, digest, *arguments)\n\
                 # if digest is async: what computes in it\n\
                 # in asyncio.to_thread it would share the GIL with the loop, which then runs in between";
    assert_eq!(code(&["digest app.py", "handle app.py", ASYNCIO, "main app.py"]), lines);
    // What has no name that can be called is a part of another one, or called by it.
    for inner in ["digest.<locals>.<genexpr> app.py", "root <template>"] {
        assert_eq!(code(&[inner, "digest app.py", "handle app.py", ASYNCIO]), lines);
    }
}

#[test]
fn a_function_that_the_loop_itself_called_is_not_what_another_process_can_run() {
    for stack in [&["handle app.py", ASYNCIO][..], &["handle.<locals>.<lambda> app.py", ASYNCIO]] {
        let code = code(stack);
        assert!(code.contains("(processes, function, *arguments)\n"), "{code}");
        assert_eq!(
            code.contains("\n# function: what computes in handle\n"),
            stack[0].starts_with("handle ")
        );
    }
}

#[test]
fn where_trio_is_used_it_is_said_that_anyio_is_another_package() {
    let trio = "unrolled_run /x/site-packages/trio/_core/_run.py";
    let lines = "await anyio.to_process.run_sync(digest, *arguments)\n\
                 # if digest is async: what computes in it\n\
                 # another process: a thread would share the GIL with the loop\n\
                 # anyio works with trio: pip install anyio";
    assert_eq!(code(&["digest app.py", "serve app.py", trio]), lines);
}
