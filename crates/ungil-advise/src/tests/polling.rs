//! Threads that poll.

use super::story::{MS, Story, Told, first, texts};
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
    let says = "4 threads poll: they woke up 4,000 times a second, from sleep at nap (app.py:7), and \
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
