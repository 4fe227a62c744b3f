//! Less work for the garbage collector, which keeps the GIL until it has looked at all objects.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, Finding};

/// The work that goes away is worth it if it was at least this part (of 1) of that of its threads,
/// however long others then wait for the rest.
const MUCH: f64 = 0.5;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let Collections { finding, culprits, kept_s, kept } = Collections::of(ward)?;
    let Found::NativeHold { user_frame, frame, holds, .. } = &finding.evidence else {
        return None;
    };
    let tids = scene.tids(&culprits);
    let rests_on = "it assumes that collections then cost next to nothing";
    let (gain, confidence) = ward.predicted_with_less_work(&tids, kept, rests_on);
    let becomes = becomes(gain.as_ref());
    let mut subject = scene.subject(&culprits);
    subject.function = user_frame.clone().or_else(|| frame.clone());
    let of_work = if kept < MUCH {
        String::new()
    } else {
        let threads = if culprits.len() == 1 { "thread" } else { "threads" };
        format!(", {} of the time that its {threads} ran with it", words::percent(kept))
    };
    Some(Advice {
        kind: Kind::FewerCollections,
        cause: None,
        text: format!(
            "let the garbage collector look at less, and less often: it kept the GIL for {} in \
             {}{of_work}{}{becomes}",
            words::length(kept_s),
            words::count(*holds, "hold"),
            scene.of_which(ward.report),
        ),
        subject,
        action: Action::code(
            "import gc\n\
             gc.collect(); gc.freeze()  # once all is loaded: collections leave out what is there\n\
             gc.set_threshold(50_000, 20, 50)  # and collect less often; call gc.collect() less \
             often, too",
        ),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}

/// Whether collections are so much of the work of their threads that these do much more without.
pub(super) fn are_much_work(ward: &Ward) -> bool {
    Collections::of(ward).is_some_and(|it| it.kept >= MUCH)
}

/// Whether collections are what others wait for, or most of the work: another process has other objects,
/// and a free-threaded build stops all threads for a collection.
pub(super) fn are_what_to_end(ward: &Ward) -> bool {
    is_about_collections(ward.scene.finding.1) || are_much_work(ward)
}

/// The collections that kept a GIL.
struct Collections<'a> {
    finding: &'a Finding,
    culprits: Vec<usize>,
    /// How long they kept it, by the looks at holds that also did other things.
    kept_s: f64,
    /// The part (of 1) of what these threads ran with the GIL.
    kept: f64,
}

impl<'a> Collections<'a> {
    fn of(ward: &Ward<'a>) -> Option<Self> {
        let scene = &ward.scene;
        // It may be costlier that threads also wait for other work of the same one.
        let mut findings = ward.report.findings.iter();
        let finding = findings.find(|it| scene.is_of(it) && is_about_collections(it))?;
        let Found::NativeHold { unanswered_s, native: Some(native), .. } = &finding.evidence else {
            return None;
        };
        let kept_s = unanswered_s * native.collections as f64 / native.looks.max(1) as f64;
        let culprits = scene.places(&finding.threads);
        let kept = scene.kept_share(&culprits, kept_s);
        Some(Self { finding, culprits, kept_s, kept })
    }
}

/// Whether it is the garbage collector for which threads wait.
fn is_about_collections(finding: &Finding) -> bool {
    match &finding.evidence {
        Found::NativeHold { native: Some(native), .. } => native.is_collection(),
        _ => false,
    }
}
