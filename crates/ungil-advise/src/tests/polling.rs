//! Threads that poll.

use super::story::{MS, Story, Told, first, off, texts};
use crate::{Advice, Cause};

const US: u64 = 1_000;

/// What four threads do for two seconds: they sleep for a millisecond again and again, between holds
/// of that length, and are looked at now and then; every other look may find them elsewhere. The
/// kernel ran each of them for so long.
fn naps(hold_ns: u64, cpu_ns: u64, stack: &[&str], is_elsewhere: bool) -> Told {
    let mut story = Story::of(&["MainThread", "poller-0", "poller-1", "poller-2", "poller-3"]);
    for tick in 0..2_000 {
        for thread in 1..5 {
            let at_ns = tick * MS + u64::from(thread) * 200 * US;
            story.acquire(at_ns, thread);
            story.release(at_ns + hold_ns, thread);
            let is_looked_at = tick % 50 == 0;
            if is_looked_at && is_elsewhere && tick % 100 == 0 {
                story.off(at_ns + 180 * US, thread, ("recvfrom", "socket"), &["read app.py"]);
            } else if is_looked_at {
                story.sampled(at_ns + 180 * US, thread, 50 * MS, stack);
            }
        }
    }
    (1..5).for_each(|thread| story.ran(thread, cpu_ns));
    story.end(2_000 * MS)
}

fn of_polls(told: &Told) -> Option<&Advice> {
    told.advised.advice.iter().find(|it| it.cause == Some(Cause::Polling))
}

#[test]
fn threads_that_poll_are_told_with_what_that_costs_and_what_to_write() {
    let told = naps(10 * US, 40 * MS, &["nap app.py"], false);
    let advice = of_polls(&told).unwrap();
    let says = "4 threads poller-* poll: they woke up 4,000 times a second, from sleep at nap (app.py:7), and \
                took 8 % of a processor for that";
    assert!(advice.text.contains(says), "{}", advice.text);
    assert_eq!(advice.subject.thread_group.as_deref(), Some("poller-*"));
    assert_eq!(advice.subject.function.as_deref(), Some("nap (app.py:7)"));
    assert!(advice.action.code.as_deref().unwrap().starts_with("event.wait()"));
    assert_eq!(told.advised.advice.len(), 1, "the line is told once: {:?}", texts(&told));
}

#[test]
fn threads_whose_sleeps_are_too_short_for_their_stacks_to_be_read_poll_all_the_same() {
    let told = naps(10 * US, 40 * MS, &[], false);
    let advice = of_polls(&told).unwrap();
    assert!(advice.text.contains("4,000 times a second, from sleep, and took 8 %"));
    assert_eq!(advice.subject.function, None);
    assert!(
        advice.confidence.because.contains("neither from which line, because these calls are over")
    );
}

#[test]
fn threads_of_several_names_that_poll_are_told_of_by_their_names() {
    let names = ["a-0", "a-1", "b", "c-3", "c-4", "d", "e"];
    let told = |many: usize| {
        let mut story = Story::of(&[&["MainThread"], &names[..many]].concat());
        for tick in 0..2_000 {
            for thread in (1..=many as u64).map(|it| u32::try_from(it).unwrap()) {
                let at_ns = tick * MS + u64::from(thread) * 100 * US;
                story.acquire(at_ns, thread);
                story.release(at_ns + 10 * US, thread);
                if tick % 50 == 0 {
                    story.sampled(at_ns + 80 * US, thread, 50 * MS, &[]);
                }
            }
        }
        (1..=many).for_each(|thread| story.ran(u32::try_from(thread).unwrap(), 40 * MS));
        let told = story.end(2_000 * MS);
        of_polls(&told).unwrap().text.split_once(" poll: ").unwrap().0.to_owned()
    };
    assert_eq!(told(3), "it is not the GIL: 3 threads a-* and b");
    assert_eq!(told(7), "it is not the GIL: 7 threads a-*, b, c-* and 2 more");
}

/// A thread whose naps are too short for their stacks, and that one look finds awake.
fn naps_beside(awake: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "poller-0"]);
    for tick in 0..2_000 {
        let at_ns = tick * MS;
        story.acquire(at_ns, 1);
        story.release(at_ns + 10 * US, 1);
        if tick % 50 == 0 {
            let stack = if tick == 1_000 { awake } else { &[] };
            let call = if tick == 1_000 { "computing" } else { "clock_nanosleep" };
            story.sampled_in(at_ns + 500 * US, 1, 50 * MS, call, stack);
        }
    }
    story.ran(1, 160 * MS);
    story.end(2_000 * MS)
}

#[test]
fn the_line_of_a_thread_that_polls_may_be_known_from_one_look_that_found_it_awake() {
    let told = naps_beside(&["nap app.py"]);
    let advice = of_polls(&told).unwrap();
    assert!(advice.text.contains("from sleep near nap (app.py:7), and took"), "{}", advice.text);
    assert_eq!(advice.subject.function.as_deref(), Some("nap (app.py:7)"));
    assert!(advice.action.code.as_deref().unwrap().contains("socket or a queue: its own call"));
}

#[test]
fn a_thread_that_polls_a_socket_of_zmq_is_told_of_its_poller() {
    let told = naps_beside(&["Socket.recv /x/site-packages/zmq/sugar/socket.py", "nap app.py"]);
    let code = of_polls(&told).unwrap().action.code.as_deref().unwrap();
    assert!(code.starts_with("poller.poll()  # zmq.Poller()"), "{code}");
}

/// A thread that sleeps for 20 ms again and again, and lets go of the GIL 20 times in between; the
/// kernel tells of so many sleeps.
fn is_paced(slept: u64) -> Told {
    let mut story = Story::of(&["MainThread", "producer"]);
    for tick in 0..100 {
        let at_ns = tick * 20 * MS;
        for call in 0..20 {
            story.acquire(at_ns + call * 20 * US, 1);
            story.release(at_ns + call * 20 * US + 10 * US, 1);
        }
        if tick % 3 == 0 {
            story.sampled(at_ns + 10 * MS, 1, 60 * MS, &["publish app.py"]);
        }
    }
    story.ran(1, 160 * MS);
    story.switched(1, slept, 0);
    story.end(2_000 * MS)
}

#[test]
fn a_thread_wakes_up_as_often_as_it_slept_and_not_as_often_as_it_let_go_of_the_gil() {
    assert_eq!(of_polls(&is_paced(99)), None);
    let told = is_paced(300);
    assert!(of_polls(&told).unwrap().text.contains("woke up 150 times a second"));
}

#[test]
fn what_costs_most_of_the_life_of_threads_is_told_before_threads_that_poll() {
    let causes = |call| {
        let mut story = Story::of(&["MainThread", "poller-0", "a", "b"]);
        for tick in 0..2_000 {
            story.acquire(tick * MS, 1);
            story.release(tick * MS + 10 * US, 1);
            if tick % 50 == 0 {
                story.sampled(tick * MS + 500 * US, 1, 50 * MS, &["nap app.py"]);
            }
        }
        story.ran(1, 160 * MS);
        (2..4).for_each(|thread| off(&mut story, thread, 190 * MS, call, &["book app.py:9"]));
        let told = story.end(2_000 * MS);
        told.advised.advice.iter().map(|it| it.cause.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(causes(("futex", "")), [Cause::Lock, Cause::Polling]);
    assert_eq!(causes(("clock_nanosleep", "")), [Cause::Polling, Cause::Sleep]);
}

#[test]
fn polls_that_cost_next_to_nothing_are_nobodys_business() {
    let told = naps(10 * US, 10 * MS, &[], false);
    assert_eq!(first(&told).cause, Some(Cause::Unknown), "{:?}", texts(&told));
}

#[test]
fn a_thread_that_makes_many_calls_between_long_sleeps_does_not_poll() {
    let mut story = Story::of(&["MainThread", "reader"]);
    for round in 0..10 {
        let at_ns = round * 200 * MS;
        for call in 0..500 {
            story.acquire(at_ns + call * 100 * US, 1);
            story.release(at_ns + call * 100 * US + 10 * US, 1);
        }
        story.off(at_ns + 100 * MS, 1, ("clock_nanosleep", ""), &["nap app.py"]);
    }
    story.ran(1, 400 * MS);
    assert_eq!(of_polls(&story.end(2_000 * MS)), None);
}

#[test]
fn a_thread_that_works_between_its_sleeps_or_waits_for_something_else_does_not_poll() {
    for told in [naps(150 * US, 400 * MS, &[], false), naps(10 * US, 40 * MS, &[], true)] {
        assert_eq!(of_polls(&told), None);
    }
}
