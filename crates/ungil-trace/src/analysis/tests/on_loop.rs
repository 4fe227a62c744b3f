//! What the thread of an event loop computed, by looks at it while nobody waits.

use super::scenario::*;
use crate::record::{Doing, Frame, Record, ThreadId};
use crate::report::{EventLoop, Report, What};

const BASE: (&str, &str) =
    ("BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py");
const SERVE: [(&str, &str); 4] =
    [("tokenise", "app.py"), ("handle", "app.py"), BASE, ("<module>", "app.py")];

impl Scenario {
    /// A look at a thread that holds while so many wait.
    pub fn holds_in(&mut self, at_ns: u64, thread: u32, waiters: u32, stack: &[(&str, &str)]) {
        self.looks(at_ns, thread, Doing::Held { waiters }, stack);
    }

    fn looks(&mut self, at_ns: u64, thread: u32, doing: Doing, stack: &[(&str, &str)]) {
        let frame = |&(function, file): &(&str, &str)| Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line: 7,
        };
        let frames = stack.iter().map(frame).collect();
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.analysis.push(&Record::Look { thread, at_ns, doing, frames });
    }

    /// A loop without anything to do is looked at.
    fn polls(&mut self, at_ns: u64) {
        let select = ("EpollSelector.select", "/usr/lib/python3.11/selectors.py");
        self.polls_in(at_ns, &[select, BASE, ("<module>", "app.py")]);
    }

    fn polls_in(&mut self, at_ns: u64, stack: &[(&str, &str)]) {
        let doing = Doing::Off { stands_for_ns: MS, call: "epoll_wait".into(), on: String::new() };
        self.looks(at_ns, 0, doing, stack);
    }
}

fn event_loop(report: &Report) -> Option<&EventLoop> {
    thread(report, 0).event_loop.as_ref()
}

#[test]
fn long_holds_of_a_loop_count_for_as_long_as_the_kernel_ran_them_with_or_without_a_look() {
    let mut scenario = Scenario::new(1);
    for round in 0..4 {
        let from_ns = round * 100 * MS;
        scenario.acquire(from_ns, 0);
        if round == 1 {
            scenario.holds_in(from_ns + 20 * MS, 0, 0, &SERVE);
        }
        scenario.ran(from_ns, 0, 40 * MS, false);
        scenario.release(from_ns + 60 * MS, 0);
        // The last look comes when the hold that it is of is over.
        if round == 0 {
            scenario.holds_in(from_ns + 20 * MS, 0, 0, &SERVE);
        }
        scenario.hold(from_ns + 70 * MS, from_ns + 75 * MS, 0);
    }
    let report = scenario.end(400 * MS);
    let it = event_loop(&report).unwrap();
    assert_eq!((it.holds, it.looks), (4, 2));
    assert!((it.computed_s - 0.16).abs() < 1e-9, "{}", it.computed_s);
    assert!((it.longest_ms - 40.0).abs() < 1e-9, "{}", it.longest_ms);
    assert!(it.by.starts_with("BaseEventLoop._run_once ("), "{}", it.by);
    let functions: Vec<_> = it
        .functions
        .iter()
        .map(|it| (it.function.as_str(), it.depth, it.looks, it.innermost, it.frame.as_deref()))
        .collect();
    assert_eq!(
        functions,
        [
            ("handle (app.py)", 0, 2, 0, None),
            ("tokenise (app.py)", 1, 2, 2, Some("tokenise (app.py:7)"))
        ]
    );
    assert!(thread(&report, 0).held_in.is_empty(), "nobody waited");
}

#[test]
fn looks_without_waiters_leave_alone_where_a_thread_held_while_others_waited() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.holds_in(20 * MS, 0, 0, &SERVE);
    scenario.wait(30 * MS, 1);
    scenario.holds_in(40 * MS, 0, 2, &SERVE[1..]);
    scenario.release(50 * MS, 0);
    scenario.hold(50 * MS, 51 * MS, 1);
    let report = scenario.end(60 * MS);
    let held: Vec<_> = thread(&report, 0).held_in.iter().map(|it| (it.looks, it.waiters)).collect();
    assert_eq!(held, [(1, 2), (1, 2)], "handle, and the module outside of the loop");
    assert_eq!(event_loop(&report).unwrap().looks, 1);
}

#[test]
fn what_a_program_computes_before_its_loop_runs_and_what_a_server_imports_is_not_counted() {
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.holds_in(20 * MS, 0, 0, &[("<module>", "tables.py"), ("<module>", "app.py")]);
    scenario.release(200 * MS, 0);
    assert_eq!(event_loop(&scenario.end(201 * MS)), None);

    let mut scenario = Scenario::new(1);
    scenario.hold(0, MS, 0);
    scenario.polls(10 * MS);
    scenario.acquire(100 * MS, 0);
    let import = ("_find_and_load", "<frozen importlib._bootstrap>");
    scenario.holds_in(120 * MS, 0, 0, &[("<module>", "tables.py"), import, BASE]);
    scenario.release(300 * MS, 0);
    scenario.hold(310 * MS, 340 * MS, 0);
    let report = scenario.end(350 * MS);
    let it = event_loop(&report).unwrap();
    assert_eq!((it.holds, it.looks), (0, 0));
}

#[test]
fn a_loop_that_was_only_seen_as_it_waits_computed_in_its_long_holds_until_it_is_over() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, MS, 0);
    scenario.polls(10 * MS);
    scenario.hold(100 * MS, 150 * MS, 0);
    scenario.acquire(200 * MS, 0);
    scenario.holds_in(220 * MS, 0, 0, &[("write", "app.py"), ("<module>", "app.py")]);
    scenario.release(300 * MS, 0);
    scenario.hold(310 * MS, 400 * MS, 0);
    let report = scenario.end(401 * MS);
    let it = event_loop(&report).unwrap();
    assert_eq!((it.holds, it.looks), (1, 0));
    assert!(it.functions.is_empty());
}

#[test]
fn where_no_function_of_the_users_own_is_on_the_loop_the_innermost_one_is_told() {
    let mut scenario = Scenario::new(1);
    let package = ("parse", "/x/site-packages/parsel/selector.py");
    scenario.acquire(0, 0);
    scenario.holds_in(20 * MS, 0, 0, &[package, BASE, ("main", "app.py")]);
    scenario.release(50 * MS, 0);
    let report = scenario.end(60 * MS);
    let [only] = &event_loop(&report).unwrap().functions[..] else { panic!("{report:?}") };
    assert_eq!(only.function, "parse (/x/site-packages/parsel/selector.py)");
}

#[test]
fn greenlets_are_on_the_loop_of_a_thread_that_was_seen_in_the_hub_and_the_program_itself_is_not() {
    let looks = |hub: &str, outermost: &str| {
        let mut scenario = Scenario::new(1);
        scenario.hold(0, MS, 0);
        scenario.polls_in(10 * MS, &[("Hub.run", hub)]);
        scenario.acquire(100 * MS, 0);
        scenario.holds_in(120 * MS, 0, 0, &[("tokenise", "app.py"), (outermost, "app.py")]);
        scenario.release(200 * MS, 0);
        let report = scenario.end(201 * MS);
        event_loop(&report).map(|it| (it.looks, it.holds))
    };
    let hub = "/x/site-packages/gevent/hub.py";
    assert_eq!(looks(hub, "handle"), Some((1, 1)));
    assert_eq!(looks(hub, "<module>"), Some((0, 0)));
    assert_eq!(looks("/x/site-packages/eventlet/hubs/hub.py", "handle"), None);
}

#[test]
fn a_process_that_a_loop_has_forked_is_not_on_that_loop() {
    let worker = ("_process_worker", "/usr/lib/python3.11/concurrent/futures/process.py");
    let begin = ("BaseProcess._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py");
    let forker = [worker, begin, ("handle", "app.py"), BASE, ("<module>", "app.py")];
    let stack = |inner: &[(&'static str, &'static str)]| [inner, &forker[..]].concat();
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.holds_in(20 * MS, 0, 0, &stack(&[("digest", "app.py")]));
    scenario.release(50 * MS, 0);
    let read = ("Connection._recv", "/usr/lib/python3.11/multiprocessing/connection.py");
    for (at_ns, inner) in [(110 * MS, read), (310 * MS, ("save", "app.py"))] {
        let doing = Doing::Off { stands_for_ns: 0, call: "read".into(), on: "pipe".into() };
        scenario.looks(at_ns, 0, doing, &stack(&[inner]));
        scenario.hold(at_ns + 90 * MS, at_ns + 91 * MS, 0);
    }
    let report = scenario.end(500 * MS);
    assert_eq!(event_loop(&report), None);
    let off = &thread(&report, 0).off_gil;
    let told: Vec<_> =
        off.iter().map(|it| (it.what, it.on_event_loop, it.user_frame.as_deref())).collect();
    let save = (What::Descriptor, false, Some("save (app.py:7)"));
    assert_eq!(told, [save, (What::Idle, false, None)]);
}
