//! Threads wait for a GIL, and nothing that was tried helps.

use crate::advice::{Action, Advice, Cause, Confidence, Evidence, Kind, Sure, Unit};
use crate::scene::Scene;
use crate::supply::usable;
use ungil_trace::analysis::words;
use ungil_trace::report::Report;

/// What is told of the GIL at which threads waited longest.
pub fn say(report: &Report, scene: &Scene) -> Advice {
    let processors = usable(scene.process).filter(|_| scene.lacks_processors(report));
    let (text, level, because) = match processors {
        Some(usable) => (
            format!(
                "nothing to gain here: threads take turns at the GIL to compute, and the program \
                 keeps the {} busy that it may use",
                words::processors(usable),
            ),
            Sure::High,
            "every wait was recorded; threads that compute all the time do the same work in any \
             order, and side by side they need more processors",
        ),
        None => (
            format!("nothing that was tried helps: {}", scene.finding.1.text),
            Sure::Medium,
            "every change was simulated, and none is sure to save a tenth",
        ),
    };
    let evidence = [
        ("time that the GIL was contended", scene.gil.contended_s, Unit::Seconds, "contended_s"),
        (
            "threads that wanted to run",
            scene.gil.wanting_busy_mean,
            Unit::Count,
            "wanting_busy_mean",
        ),
    ];
    let evidence = evidence
        .map(|(what, value, unit, key)| Evidence::at(what, value, unit, scene.place.gil_key(key)));
    Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::Unknown),
        text,
        subject: scene.subject(&scene.victims),
        action: Action::default(),
        gain: None,
        confidence: Confidence { level, because: because.to_owned() },
        evidence: evidence.into(),
        same_as: None,
    }
}
