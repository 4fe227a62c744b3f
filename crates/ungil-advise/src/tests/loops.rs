//! What goes to another process beside an event loop.

use super::story::{ASYNCIO, MS, Story};
use crate::Kind;
use crate::loops::{is_native, runs_loop};

/// A thread that waits for the GIL now and then and was seen in this loop, beside one that computes.
fn beside_a_loop(loop_frame: &str, worker: &'static str, stack: &[&str]) -> String {
    let mut story = Story::of(&["MainThread", worker]);
    story.acquire(0, 1);
    for round in 1..200 {
        let at_ns = round * 10 * MS;
        story.wait(at_ns, 0);
        story.ask(at_ns + 5 * MS, 0);
        story.held(at_ns + 5 * MS, 1, stack);
        story.forced(at_ns + 5 * MS + 10_000, 1);
        story.acquire(at_ns + 5 * MS + 20_000, 0);
        story.wait(at_ns + 5 * MS + 30_000, 1);
        story.release(at_ns + 5 * MS + 200_000, 0);
        story.off(at_ns + 6 * MS, 0, ("epoll_wait", ""), &["select ~selectors.py", loop_frame]);
        story.acquire(at_ns + 5 * MS + 220_000, 1);
    }
    let told = story.end(2_000 * MS);
    told.of(Kind::ToAProcess).unwrap().action.code.clone().unwrap()
}

const RUNS: &str = "run ~concurrent/futures/thread.py";

#[test]
fn what_a_loop_gives_to_a_thread_is_awaited_when_it_goes_to_a_process() {
    let code = beside_a_loop(ASYNCIO, "asyncio_0", &["export app.py", RUNS]);
    let line = "result = await asyncio.get_running_loop().run_in_executor(processes, export, \
                *arguments)\n";
    assert!(code.contains(line) && !code.contains("submit("), "{code}");
    assert!(code.contains("\nprocesses = ProcessPoolExecutor()\n"), "{code}");
    let trio = "unrolled_run /x/site-packages/trio/_core/_run.py";
    let code = beside_a_loop(trio, "Trio thread 0", &["export app.py", RUNS]);
    assert!(code.starts_with("result = await anyio.to_process.run_sync(export, *"), "{code}");
    // Nobody had to look at the loop to know of it.
    let code = beside_a_loop("main app.py", "asyncio_0", &["export app.py", RUNS]);
    assert!(code.contains(line), "{code}");
}

#[test]
fn a_thread_beside_a_loop_may_wait_for_a_process_by_itself() {
    let inner = ["rows app.py", "export app.py", RUNS];
    let code = beside_a_loop(ASYNCIO, "asyncio_0", &inner);
    let line = "result = processes.submit(rows, *arguments).result()  # in its own thread, not on";
    assert!(code.contains(line), "{code}");
    let code = beside_a_loop("main app.py", "builder", &["export app.py", RUNS]);
    assert!(code.contains("submit(export, *arguments).result()  # sends them"), "{code}");
}

#[test]
fn what_a_thread_computes_on_its_own_loop_may_be_a_coroutine() {
    let code = beside_a_loop("main app.py", "server", &["export app.py", "handle app.py", ASYNCIO]);
    let lines = "run_in_executor(processes, export, *arguments)\n\
                 # if export is async: what computes in it\n# what both";
    assert!(code.contains(lines), "{code}");
}

#[test]
fn a_loop_in_native_code_runs_a_loop_by_its_frame_which_has_no_line() {
    let frame = "run_forever (<event loop in native code>)";
    assert!(runs_loop(frame) && is_native(frame));
    assert!(!is_native("run_forever (/usr/lib/python3.11/asyncio/base_events.py)"));
}
