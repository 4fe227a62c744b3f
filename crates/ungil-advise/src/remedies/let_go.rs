//! Compiled code of the user's own that could let go of the GIL.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use crate::functions::short;
use crate::scene::Scene;
use ungil_trace::analysis::words;
use ungil_trace::origin::Origin;
use ungil_trace::report::Evidence as Found;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let Found::NativeHold { frame, user_frame, unanswered_s, .. } = &scene.finding.1.evidence
    else {
        return None;
    };
    let libraries = &scene.process.libraries;
    let is_users = frame.as_deref().is_none_or(|it| Origin::of(file_of(it)) == Origin::User);
    let (&culprit, false) = (scene.culprits.first()?, libraries.is_empty() || !is_users) else {
        return None;
    };
    let kept = Scene::kept_share(scene.thread(culprit), *unanswered_s);
    let tids = scene.tids(&scene.culprits);
    let rests_on = "it assumes that the call goes into that library, and needs no Python object \
                    while it computes";
    let (gain, confidence) = ward.predicted_with_less_work(&tids, kept, rests_on);
    let becomes = becomes(gain.as_ref());
    let library = libraries[0].rsplit('/').next().unwrap_or(&libraries[0]);
    let called =
        frame.as_deref().map_or_else(String::new, |it| format!(" called at {}", short(it)));
    let mut subject = scene.subject(&scene.culprits);
    subject.function = user_frame.clone().or_else(|| frame.clone());
    Some(Advice {
        kind: Kind::LetGo,
        cause: None,
        text: format!(
            "release the GIL in your own {library}{called}, which kept it for {}{}{becomes}",
            words::length(*unanswered_s),
            scene.of_which(ward.report),
        ),
        subject,
        action: Action::code(
            "Py_BEGIN_ALLOW_THREADS /* compute */ Py_END_ALLOW_THREADS\n\
             # Cython: with nogil; pybind11: py::gil_scoped_release; PyO3: py.detach(); ctypes: \
             CDLL instead of PyDLL",
        ),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}

/// The file in `function (file:line)`.
fn file_of(frame: &str) -> &str {
    let place = frame.split_once(" (").map_or(frame, |(_, place)| place);
    let place = place.strip_suffix(')').unwrap_or(place);
    match place.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => file,
        _ => place,
    }
}
