//! `limit="auto"` when nothing ends, and when this process itself comes late.

use std::collections::VecDeque;

use ungil_fanout::limit::{Adaptive, Driver, Opening, Outcome, Sample, Settings, Ticket};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A limit of `running`, whose items have all ended after `latency`.
fn after(running: usize, latency: u64) -> Adaptive {
    let mut limit = Adaptive::new(Settings::new(running, Opening::Hosts), 0);
    let starts = (0..running as u64).map(|group| Sample {
        ticket: limit.started(0, Some(group)),
        started: 0,
        finished: latency,
        cpu_so_far: 0,
        outcome: Outcome::Completed,
        asked: 0,
        group: Some(group),
    });
    let samples: Vec<Sample> = starts.collect();
    for sample in samples {
        limit.finished(sample);
    }
    limit
}

/// The limit after the loop was late twice.
fn twice_late(mut limit: Adaptive, lag: u64) -> usize {
    limit.lagged(S, lag);
    limit.lagged(S + lag, lag);
    limit.limit()
}

#[test]
fn a_loop_that_comes_late_again_and_again_lowers_the_limit() {
    let mut limit = after(1_000, 50 * MS);
    let before = limit.limit();
    limit.lagged(60 * MS, 200 * MS);
    assert_eq!(limit.limit(), before, "once is no reason");
    limit.lagged(260 * MS, 200 * MS);
    let after = limit.limit();
    assert!(after < before, "{after}");
    assert!(limit.report().to_string().contains("the event loop came 200 ms late"));
}

#[test]
fn after_that_what_was_started_before_has_time_to_end() {
    let mut limit = after(1_000, 50 * MS);
    limit.lagged(60 * MS, 200 * MS);
    limit.lagged(260 * MS, 200 * MS);
    let lowered = limit.limit();
    // Twice the 250 ms that an item takes.
    limit.lagged(755 * MS, 200 * MS);
    assert_eq!(limit.limit(), lowered);
    limit.lagged(765 * MS, 200 * MS);
    assert!(limit.limit() < lowered);
}

#[test]
fn less_than_20_ms_are_not_late() {
    assert_eq!(twice_late(after(1_000, MS), 19 * MS), 1_000);
    assert!(twice_late(after(1_000, MS), 21 * MS) < 1_000);
}

#[test]
fn the_limit_is_lowered_in_proportion_and_to_no_less_than_half() {
    // A fifth more than 50 ms of 110.
    assert_eq!(twice_late(after(1_000, 50 * MS), 60 * MS), 545);
    assert_eq!(twice_late(after(1_000, 50 * MS), S), 500);
}

#[test]
fn it_stays_half_of_what_the_processor_can_keep_up_with() {
    const EACH: u64 = 60_000;
    let settings = Settings { driver: Driver::Threads, ..Settings::new(1_000, Opening::Hosts) };
    let mut limit = Adaptive::new(settings, 0);
    let mut running = VecDeque::new();
    // One ends and another starts whenever the processor has time for it.
    for number in 1..=8_000 {
        let (now, group) = (number * EACH, Some(number));
        if running.len() == 1_000 {
            let (ticket, started, group) = running.pop_front().expect("it is full");
            let (finished, cpu_so_far, outcome) = (now, now, Outcome::Completed);
            limit.finished(Sample {
                ticket,
                started,
                finished,
                cpu_so_far,
                outcome,
                asked: 0,
                group,
            });
        }
        running.push_back((limit.started(now, group), now, group));
    }
    let little = limit.report().little.expect("processor time is told");
    assert!((1_100..1_900).contains(&little), "{little}");
    assert_eq!(limit.limit(), 1_000);
    assert_eq!(twice_late(limit, S), little / 2);
}

#[test]
fn a_loop_that_is_late_before_anything_came_back_is_started_no_more_in() {
    let mut limit = Adaptive::new(Settings::new(10_000, Opening::Hosts), 0);
    for group in 0..300 {
        limit.started(0, Some(group));
    }
    limit.lagged(45 * MS, 45 * MS);
    assert_eq!(limit.limit(), 10_000, "an item may take 50 ms");
    limit.lagged(55 * MS, 55 * MS);
    assert_eq!(limit.limit(), 300);
}

/// When the limit grows although nothing ends, after the last end, and to how many: the first times,
/// of a service of which 16 items have ended after `latency`.
fn stalls(latency: u64, times: usize) -> Vec<(u64, usize)> {
    let mut limit = Adaptive::new(Settings::new(10_000, Opening::Service), 0);
    let tickets: Vec<Ticket> = (0..16).map(|_| limit.started(0, None)).collect();
    for ticket in tickets {
        let (started, finished, outcome) = (0, latency, Outcome::Completed);
        let (cpu_so_far, asked, group) = (0, 0, None);
        limit.finished(Sample { ticket, started, finished, cpu_so_far, outcome, asked, group });
    }
    let (mut now, mut running, mut grown) = (latency, 0, Vec::new());
    while grown.len() < times {
        while running < limit.limit() {
            limit.started(now, None);
            running += 1;
        }
        now = limit.due().expect("it will be higher some time");
        limit.tick(now);
        // Before that slots are opened one after the other.
        if limit.limit() > running && now - latency >= S {
            grown.push((now - latency, limit.limit()));
        }
    }
    grown
}

#[test]
fn a_quarter_more_are_started_when_nothing_has_ended_for_two_seconds_or_eight_latencies() {
    assert_eq!(stalls(MS, 2), [(2 * S, 36), (4 * S, 45)]);
    let at = stalls(500 * MS, 1)[0].0;
    assert!(at.abs_diff(4 * S) < MS, "{at}");
}

#[test]
fn the_patience_doubles_until_it_is_some_weeks() {
    let grown = stalls(MS, 22);
    assert_eq!(grown[20].0, (2 * S) << 20);
    assert_eq!(grown[21].0, grown[20].0);
}

#[test]
fn twice_as_many_are_started_when_nothing_at_all_has_ended() {
    let mut limit = Adaptive::new(Settings::new(1_000, Opening::Service), 0);
    for _ in 0..16 {
        limit.started(0, None);
    }
    limit.tick(2 * S - 1);
    assert_eq!(limit.limit(), 16);
    limit.tick(2 * S);
    assert_eq!(limit.limit(), 32);
}
