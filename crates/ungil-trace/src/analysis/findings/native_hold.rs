//! Native hold: a thread that did not let go when asked.
//!
//! The interpreter looks for a drop request at every backward jump and call of a function, and so
//! answers within microseconds while it runs bytecode. A request that stays unanswered for the
//! blame time means that one single operation kept the GIL: a C extension, or a long built-in.

use super::place::Place;
use super::scene::{RELEVANT_S, Scene};
use super::{advice, words};
use crate::analysis::groups::pattern_of;
use crate::analysis::samples::without_line;
use crate::report::{Evidence, Finding, LongHoldReport, ThreadReport, Unanswered};
use std::collections::{BTreeMap, BTreeSet};

/// The part of the run that such holds must make others wait for to be told,
const COST_SHARE: f64 = 0.01;
/// and how many there must be: one alone may be a holder that the kernel did not let run.
const REPEATED: u64 = 3;
/// A person notices a single one from this length.
const NOTICED_MS: f64 = 100.0;

/// One finding for each function of the user's own in which threads kept the GIL in native code: a
/// server may have a thread for each request, and none does it often. And one for threads of like
/// names of which none was seen in one function for long enough.
pub(super) fn find(scene: Scene) -> Vec<Finding> {
    let kept = scene.gil.threads.iter().filter(|thread| thread.kept.holds > 0);
    let (seen, unseen): (Vec<_>, Vec<_>) = kept
        .map(|thread| (function_of(scene, thread), thread))
        .partition(|(function, _)| function.is_some());
    let (mut told, others): (Vec<_>, Vec<_>) =
        grouped(seen.into_iter()).partition(|group: &Vec<_>| is_told(scene, group));
    let mut others: Vec<&ThreadReport> = others.into_iter().flatten().collect();
    let patterns: Vec<BTreeSet<String>> = told.iter().map(|group| patterns_of(group)).collect();
    for (_, thread) in unseen {
        // What threads of such a name were seen to do, where that is one thing.
        let pattern = pattern_of(&thread.name);
        let mut alike = (0..told.len()).filter(|&group| patterns[group].contains(&pattern));
        match (alike.next(), alike.next()) {
            (Some(group), None) => told[group].push(thread),
            _ => others.push(thread),
        }
    }
    let alike = grouped(others.into_iter().map(|thread| (pattern_of(&thread.name), thread)));
    told.extend(alike.filter(|group| is_told(scene, group)));
    for group in &mut told {
        group.sort_by(|a, b| b.kept.waited_s.total_cmp(&a.kept.waited_s));
    }
    told.iter().map(|threads| describe(scene, threads)).collect()
}

/// The threads that have the same key.
fn grouped<'a, K: Ord>(
    threads: impl Iterator<Item = (K, &'a ThreadReport)>,
) -> impl Iterator<Item = Vec<&'a ThreadReport>> {
    let mut groups: BTreeMap<K, Vec<&ThreadReport>> = BTreeMap::new();
    for (key, thread) in threads {
        groups.entry(key).or_default().push(thread);
    }
    groups.into_values()
}

fn patterns_of(threads: &[&ThreadReport]) -> BTreeSet<String> {
    threads.iter().map(|thread| pattern_of(&thread.name)).collect()
}

/// The function of the user's own in which a thread mostly kept it, if that was seen.
fn function_of(scene: Scene, thread: &ThreadReport) -> Option<String> {
    let place = Place::of(&holds_of(scene, thread).into_iter());
    place.user_frame.map(|frame| without_line(&frame).to_owned())
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
        [_, second] => (format!("threads {first} and {}", scene.name(second)), "they were"),
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
