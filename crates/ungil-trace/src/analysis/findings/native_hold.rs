//! Native hold: a thread that did not let go when asked.
//!
//! The interpreter looks for a drop request at every backward jump and call of a function, and so
//! answers within microseconds while it runs bytecode. A request that stays unanswered for the
//! blame time means that one single operation kept the GIL: a C extension, or a long built-in.

use super::place::Place;
use super::scene::{RELEVANT_S, Scene};
use super::{advice, words};
use crate::analysis::groups::pattern_of;
use crate::report::{Evidence, Finding, LongHoldReport, ThreadReport, Unanswered};
use std::collections::BTreeMap;

/// The part of the run that such holds must make others wait for to be told,
const COST_SHARE: f64 = 0.01;
/// and how many there must be: one alone may be a holder that the kernel did not let run.
const REPEATED: u64 = 3;
/// A person notices a single one from this length.
const NOTICED_MS: f64 = 100.0;

/// One finding for each thread that kept the GIL in native code, and one for threads of like names
/// that did so together: where each request has a thread of its own, none does it often.
pub(super) fn find(scene: Scene) -> Vec<Finding> {
    let kept = scene.gil.threads.iter().filter(|thread| thread.kept.holds > 0);
    let (alone, others): (Vec<&ThreadReport>, Vec<_>) =
        kept.partition(|thread| is_told(scene, &[thread]));
    let mut groups: BTreeMap<String, Vec<&ThreadReport>> = BTreeMap::new();
    for thread in others {
        groups.entry(pattern_of(&thread.name)).or_default().push(thread);
    }
    let together = groups.into_values().map(|mut group| {
        group.sort_by(|a, b| b.kept.waited_s.total_cmp(&a.kept.waited_s));
        group
    });
    let together = together.filter(|group| is_told(scene, group));
    let all = alone.into_iter().map(|thread| vec![thread]).chain(together);
    all.map(|threads| describe(scene, &threads)).collect()
}

/// Whether it is worth telling what native code of these threads cost others.
fn is_told(scene: Scene, threads: &[&ThreadReport]) -> bool {
    let Unanswered { holds, max_ms, waited_s, .. } = sum_of(threads);
    let repeated = holds >= REPEATED && waited_s > COST_SHARE * scene.process.duration_s;
    // A thread that asked may end while it waits, as all do where the interpreter exits: a request
    // that nobody waits for costs nothing.
    waited_s >= RELEVANT_S && (repeated || max_ms >= NOTICED_MS)
}

fn sum_of(threads: &[&ThreadReport]) -> Unanswered {
    threads.iter().fold(Unanswered::default(), |all, thread| Unanswered {
        holds: all.holds + thread.kept.holds,
        total_s: all.total_s + thread.kept.total_s,
        max_ms: all.max_ms.max(thread.kept.max_ms),
        waited_s: all.waited_s + thread.kept.waited_s,
    })
}

/// The finding about these threads, the costliest first.
fn describe(scene: Scene, threads: &[&ThreadReport]) -> Finding {
    let unanswered = sum_of(threads);
    let holds: Vec<_> = threads.iter().flat_map(|thread| holds_of(scene, thread)).collect();
    let place = Place::of(&holds.into_iter());
    let longest = match unanswered.holds {
        1 => String::new(),
        _ => format!(", the longest {}", words::length(unanswered.max_ms / 1e3)),
    };
    let first = scene.name(threads[0]);
    let (who, were) = match threads {
        [_] => (format!("thread {first}"), "it was"),
        _ => (format!("threads {first} and {} more", threads.len() - 1), "they were"),
    };
    let tids: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
    let text = format!(
        "{who} kept the GIL for {} after {were} asked to release it, in {} by native \
         code{longest}; {}; {}",
        words::length(unanswered.total_s),
        words::count(unanswered.holds, "hold"),
        scene.others_waited(&tids, unanswered.waited_s),
        place.clause(),
    );
    let advice = advice::against_native_hold(&place, &scene.process.libraries);
    let evidence = Evidence::NativeHold {
        holds: unanswered.holds,
        unanswered_s: unanswered.total_s,
        longest_ms: unanswered.max_ms,
        frame: place.frame,
        user_frame: place.user_frame,
        samples: place.samples,
        frame_samples: place.frame_samples,
        native: place.native,
    };
    Finding {
        advice: Some(advice),
        threads: tids,
        cost_s: unanswered.waited_s,
        ..scene.finding(evidence, text)
    }
}

/// The listed ones of the holds that were counted: those that were longest unanswered. Where a
/// thread was while the kernel did not run it says nothing.
fn holds_of<'a>(scene: Scene<'a>, thread: &ThreadReport) -> Vec<&'a LongHoldReport> {
    let mut holds: Vec<_> = scene
        .gil
        .long_holds
        .iter()
        .filter(|hold| hold.tid == thread.tid && hold.contended)
        .filter_map(|hold| {
            let unanswered_ms = hold.drop_request_unanswered_ms?;
            Some((unanswered_ms - hold.not_run_ms.unwrap_or(0.0), hold))
        })
        .collect();
    holds.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    holds.truncate(usize::try_from(thread.kept.holds).unwrap_or(usize::MAX));
    holds.into_iter().map(|(_, hold)| hold).collect()
}
