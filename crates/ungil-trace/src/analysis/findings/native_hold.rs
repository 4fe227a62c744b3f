//! Native hold: a thread that did not let go when asked.
//!
//! The interpreter looks for a drop request at every backward jump and call of a function, and so
//! answers within microseconds while it runs bytecode. A request that stays unanswered for the
//! blame time means that one single operation kept the GIL: a C extension, or a long built-in.

use super::place::Place;
use super::scene::{RELEVANT_S, Scene};
use super::{advice, words};
use crate::report::{Evidence, Finding, LongHoldReport, ThreadReport};

/// The part of the run that such holds must make others wait for to be told,
const COST_SHARE: f64 = 0.01;
/// and how many there must be: one alone may be a holder that the kernel did not let run.
const REPEATED: u64 = 3;
/// A person notices a single one from this length.
const NOTICED_MS: f64 = 100.0;

/// One finding for each thread that kept the GIL in native code.
pub(super) fn find(scene: Scene) -> Vec<Finding> {
    let kept_on = |thread: &&ThreadReport| {
        let unanswered = &thread.kept;
        let repeated = unanswered.holds >= REPEATED
            && unanswered.waited_s > COST_SHARE * scene.process.duration_s;
        // A thread that asked may end while it waits, as all do where the interpreter exits: a
        // request that nobody waits for costs nothing.
        unanswered.waited_s >= RELEVANT_S && (repeated || unanswered.max_ms >= NOTICED_MS)
    };
    scene.gil.threads.iter().filter(kept_on).map(|thread| describe(scene, thread)).collect()
}

fn describe(scene: Scene, thread: &ThreadReport) -> Finding {
    let unanswered = &thread.kept;
    let place = Place::of(&holds_of(scene, thread).into_iter());
    let longest = match unanswered.holds {
        1 => String::new(),
        _ => format!(", the longest {}", words::length(unanswered.max_ms / 1e3)),
    };
    let text = format!(
        "thread {} kept the GIL for {} after it was asked to release it, in {} by native \
         code{longest}; {}; {}",
        scene.name(thread),
        words::length(unanswered.total_s),
        words::count(unanswered.holds, "hold"),
        scene.others_waited(&[thread.tid], unanswered.waited_s),
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
        threads: vec![thread.tid],
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
