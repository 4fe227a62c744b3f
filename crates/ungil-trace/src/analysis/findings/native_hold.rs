//! Native hold: a thread that did not let go when asked.
//!
//! The interpreter looks for a drop request at every backward jump and call of a function, and so
//! answers within microseconds while it runs bytecode. A request that stays unanswered for the
//! blame time means that one single operation kept the GIL: a C extension, or a long built-in.

use super::{Scene, words};
use crate::report::{Evidence, Finding, ThreadReport};

/// The part of the run that such holds must make others wait for to be told,
const COST_SHARE: f64 = 0.01;
/// and how many there must be: one alone may be a holder that the kernel did not let run, or the
/// interpreter shutting down.
const REPEATED: u64 = 3;
/// A person notices a single one from this length.
const NOTICED_MS: f64 = 100.0;

/// One finding for each thread that kept the GIL in native code.
pub(super) fn find(scene: Scene) -> Vec<Finding> {
    let kept_on = |thread: &&ThreadReport| {
        let unanswered = &thread.kept;
        let repeated = unanswered.holds >= REPEATED
            && unanswered.waited_s > COST_SHARE * scene.process.duration_s;
        repeated || unanswered.max_ms >= NOTICED_MS
    };
    scene.gil.threads.iter().filter(kept_on).map(|thread| describe(scene, thread)).collect()
}

fn describe(scene: Scene, thread: &ThreadReport) -> Finding {
    let unanswered = &thread.kept;
    let holds = scene.gil.long_holds.iter().filter(|hold| hold.tid == thread.tid && hold.contended);
    // Where it was in a hold in which the kernel did not run it says nothing.
    let mut kept: Vec<_> = holds
        .filter_map(|hold| {
            let unanswered_ms = hold.drop_request_unanswered_ms?;
            Some((unanswered_ms - hold.not_run_ms.unwrap_or(0.0), hold.stack.first()?))
        })
        .collect();
    kept.sort_by(|a, b| b.0.total_cmp(&a.0));
    let frame = kept.first().map(|&(_, frame)| frame.clone());
    let place = frame.as_ref().map_or_else(String::new, |frame| format!(", in {frame}"));
    let text = format!(
        "thread {} kept the GIL for {} after it was asked to let go, in {} of native code, the \
         longest {}{place}; others waited {} meanwhile",
        scene.name(thread),
        words::length(unanswered.total_s),
        words::count(unanswered.holds, "hold"),
        words::length(unanswered.max_ms / 1e3),
        words::length(unanswered.waited_s),
    );
    let evidence = Evidence::NativeHold {
        holds: unanswered.holds,
        unanswered_s: unanswered.total_s,
        longest_ms: unanswered.max_ms,
        frame,
    };
    Finding {
        advice: Some(
            "the native function should let go of the GIL (Py_BEGIN_ALLOW_THREADS, Cython's \
             nogil, pybind11's gil_scoped_release, ctypes.CDLL in place of PyDLL), or be given \
             less work at a time, or run in another process; no switch interval helps here"
                .to_owned(),
        ),
        threads: vec![thread.tid],
        cost_s: unanswered.waited_s,
        ..scene.finding(evidence, text)
    }
}
