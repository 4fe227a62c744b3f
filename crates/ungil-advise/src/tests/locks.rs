//! Locks, with a GIL and without one.

use super::story::{MS, Story, Told, first, off, texts};
use crate::{Advice, Cause, Kind, Sure};

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
    locked_beside("e", wait, past)
}

/// The same beside a thread of this name.
fn locked_beside(other: &'static str, wait: &[&str], past: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "a", "b", "c", "d", other]);
    (1..4).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), wait));
    off(&mut story, 4, 150 * MS, ("clock_nanosleep", ""), past);
    story.acquire(1_505 * MS, 5);
    story.release(1_505 * MS + 1_000, 5);
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

/// Three threads wait for a lock, for 1 s each, of which these ended so many ms.
fn ended_by(wakers: &[(u32, u64)]) -> Told {
    let mut story = Story::of(&["MainThread", "a", "b", "c", "d"]);
    (1..4).for_each(|thread| {
        off(&mut story, thread, 150 * MS, ("futex", ""), &["handle app.py:8", "work app.py:20"]);
        let mut at_ns = 200 * MS;
        for &(waker, ms) in wakers {
            story.slept_for_lock((at_ns, at_ns + ms * MS), thread, waker);
            at_ns += ms * MS;
        }
    });
    story.end(1_510 * MS)
}

#[test]
fn who_let_go_of_a_lock_is_told_with_the_wait_for_it() {
    for (wakers, clause) in [
        (&[(4, 800), (0, 200)][..], "; 80 % of that time ended when d let go of it"),
        (
            &[(4, 450), (0, 400), (1, 150)],
            "; it ended when d (45 %) or MainThread (40 %) let go of it",
        ),
    ] {
        let told = ended_by(wakers);
        let advice = first(&told);
        assert_eq!(advice.cause, Some(Cause::Lock));
        assert!(advice.text.contains(clause), "{}", advice.text);
        let evidence = advice.evidence.iter().find(|it| it.what.ends_with("let go of it"));
        assert!(evidence.unwrap().value > 0.75, "{:?}", advice.evidence);
        assert!(advice.confidence.because.contains("since when"), "{:?}", advice.confidence);
    }
}

#[test]
fn who_gives_a_signal_does_not_let_go_of_a_lock() {
    let mut story = Story::of(&["MainThread", "a", "feeder"]);
    off(&mut story, 1, 150 * MS, ("futex", ""), &["handle app.py:8", "work app.py:20"]);
    story.slept_for_signal((200 * MS, 1_200 * MS), 1, 2);
    let told = story.end(1_510 * MS);
    let text = &first(&told).text;
    assert!(text.contains("; 100 % of that time ended when feeder woke them"), "{text}");
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
        let told = locked_beside("Thread-1 (_monitor)", &wait, &emit);
        let lock = |it: &&Advice| it.cause == Some(Cause::Lock);
        let advice = told.advised.advice.iter().find(lock).unwrap();
        assert_eq!(advice.action.code, None, "it has a queue");
    }
    let told = locked(&["handle app.py:8"], &["load app.py:5", "handle app.py:9"]);
    assert_eq!(first(&told).action.code, None);
}

#[test]
fn beside_a_gil_that_is_held_nearly_all_the_time_a_lock_is_told_to_be_in_front_of_it() {
    let told = |held_ns: u64| {
        let mut story = Story::of(&["MainThread", "worker"]);
        for round in 0..10 {
            let at_ns = round * 150 * MS;
            story.acquire(at_ns, 1);
            story.release(at_ns + MS / 2, 1);
            story.acquire(at_ns + MS, 0);
            story.release(at_ns + MS + held_ns, 0);
            story.off(at_ns + 90 * MS, 1, ("futex", ""), &["add app.py"]);
        }
        first(&story.end(1_510 * MS)).text.clone()
    };
    let says = ": without the lock, threads would wait for the GIL, and only other processes for \
                neither";
    let text = told(140 * MS);
    assert!(text.contains("waited for a lock") && text.ends_with(says), "{text}");
    let text = told(50 * MS);
    assert!(text.contains("waited for a lock") && !text.ends_with(says), "{text}");
}
