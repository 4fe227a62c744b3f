//! Descheduled: threads that had the GIL and that the kernel did not run, while others waited.
//!
//! The processor was busy with something else, or a CPU limit had stopped the whole process. No
//! policy of the GIL helps: nobody can take it from a thread that does not run.

use super::scene::Scene;
use super::words;
use crate::report::{Evidence, Finding, ThreadReport, Throttled};

/// The threads that are told of make up this part of the cost.
const MAIN_PART: f64 = 0.8;
/// Threads named in one sentence.
const NAMED: usize = 3;
/// A limit is the reason if it stopped the process for this part of the time.
const LIMIT_PART: f64 = 0.5;

/// The holders of this GIL that the kernel did not run.
pub(super) fn find(scene: Scene) -> Option<Finding> {
    let cost_of = |thread: &ThreadReport| thread.descheduled.waited_s;
    let mut threads: Vec<_> = scene.gil.threads.iter().filter(|it| cost_of(it) > 0.0).collect();
    threads.sort_by(|a, b| cost_of(b).total_cmp(&cost_of(a)));
    let cost_s: f64 = threads.iter().map(|thread| cost_of(thread)).sum();
    if !scene.is_relevant(cost_s) {
        return None;
    }
    let mut told_s = 0.0;
    threads.retain(|thread| {
        let is_main = told_s < MAIN_PART * cost_s;
        told_s += cost_of(thread);
        is_main
    });
    let sum = |of: fn(&ThreadReport) -> f64| threads.iter().map(|thread| of(thread)).sum::<f64>();
    let (not_run_s, held_s) = (sum(|it| it.descheduled.not_run_s), sum(|it| it.held_s));
    let longest_ms = threads.iter().map(|it| it.descheduled.max_ms).fold(0.0, f64::max);
    let throttled = scene.process.throttled.filter(|throttled| throttled.times > 0);
    let limited = throttled.is_some_and(|it| it.stopped_s >= LIMIT_PART * not_run_s);
    let tids: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
    let text = format!(
        "the kernel did not run {} for {} of the {} in which {} held the GIL, the longest stop {}; \
         {}: {}",
        names(scene, &threads),
        words::length(not_run_s),
        words::length(held_s),
        if threads.len() == 1 { "it" } else { "they" },
        words::length(longest_ms / 1e3),
        scene.others_waited(&tids, cost_s),
        reason(throttled, limited),
    );
    let advice = if limited {
        "raise the CPU limit of the container or service, or run fewer threads and processes in \
         it; no GIL policy helps here"
    } else {
        "give the program a processor of its own (taskset, a cpuset, a CPU request), or run fewer \
         threads and processes beside it; no GIL policy helps here"
    };
    let waited_s = scene.waited_s();
    let evidence = Evidence::Descheduled { not_run_s, held_s, longest_ms, limited, waited_s };
    Some(Finding {
        advice: Some(advice.to_owned()),
        threads: tids,
        cost_s,
        ..scene.finding(evidence, text)
    })
}

fn names(scene: Scene, threads: &[&ThreadReport]) -> String {
    let named: Vec<_> = threads.iter().take(NAMED).map(|thread| scene.name(thread)).collect();
    match (&named[..], threads.len() - named.len()) {
        ([one], _) => format!("thread {one}"),
        ([first @ .., last], 0) => format!("threads {} and {last}", first.join(", ")),
        (_, more) => format!("threads {} and {more} more", named.join(", ")),
    }
}

fn reason(throttled: Option<Throttled>, limited: bool) -> String {
    let limit = throttled.map(|Throttled { times, stopped_s }| {
        let times = words::count(times, "time");
        format!("the CPU limit stopped it {times}, {} in all", words::length(stopped_s))
    });
    match limit {
        Some(limit) if limited => limit,
        Some(limit) => format!("something else ran on the processor, and {limit}"),
        None => "something else ran on the processor".to_owned(),
    }
}
