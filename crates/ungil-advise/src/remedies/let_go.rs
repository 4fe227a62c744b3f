//! Compiled code that could let go of the GIL: the user's own, or what the user's code calls by
//! ctypes, or has numba compile.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use crate::functions::{is_users, short};
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, Finding, NativeReport};

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    // It may be costlier that threads also wait for other work of the same one.
    ward.report.findings.iter().filter(|it| scene.is_of(it)).find_map(|it| of(ward, it))
}

fn of(ward: &Ward, finding: &Finding) -> Option<Advice> {
    let scene = &ward.scene;
    let Found::NativeHold { frame, user_frame, unanswered_s, native, .. } = &finding.evidence
    else {
        return None;
    };
    let is_own = frame.as_deref().is_none_or(is_users);
    let culprits = scene.places(&finding.threads);
    culprits.first().filter(|_| is_own)?;
    let Way { what, code, assumes } = match native {
        Some(native) if native.is_kept_by_ctypes() => by_ctypes(native),
        Some(native) if native.is_kept_by_numba() => by_numba(),
        _ => in_own(own_library(&scene.process.libraries, native.as_ref())?),
    };
    let kept = scene.kept_share(&culprits, *unanswered_s);
    let tids = scene.tids(&culprits);
    let (gain, confidence) = ward.predicted_without_gil(&tids, kept, assumes);
    let becomes = becomes(gain.as_ref());
    let called =
        frame.as_deref().map_or_else(String::new, |it| format!(" called at {}", short(it)));
    let mut subject = scene.subject(&culprits);
    subject.function = user_frame.clone().or_else(|| frame.clone());
    Some(Advice {
        kind: Kind::LetGo,
        cause: None,
        text: format!(
            "{what}{called}, which kept it for {}{}{becomes}",
            words::length(*unanswered_s),
            scene.of_which(ward.report),
        ),
        subject,
        action: Action::code(code),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}

/// The one of the user's own libraries that keeps the GIL: the one that looks have found, if they
/// have found any. Recorders have counted ungil's own among these.
fn own_library<'a>(libraries: &'a [String], native: Option<&NativeReport>) -> Option<&'a str> {
    let is_it = |file: &&String| match native {
        Some(native) => **file == native.library,
        None => !file.contains("/ungil/_native."),
    };
    libraries.iter().find(is_it).map(String::as_str)
}

/// How a function lets go of the GIL.
struct Way {
    what: String,
    code: String,
    /// What its prediction assumes.
    assumes: &'static str,
}

/// A call by ctypes, which decides by the class of the library whether it lets go.
fn by_ctypes(native: &NativeReport) -> Way {
    let library = native.library.rsplit('/').next().unwrap_or(&native.library);
    let function = native.function.as_deref().unwrap_or("the function");
    Way {
        what: format!("load {library} with ctypes.CDLL, which releases the GIL, for {function}"),
        code: format!(
            "library = ctypes.CDLL(\"{library}\")  # instead of ctypes.PyDLL, which keeps the GIL"
        ),
        assumes: "it assumes that the function needs no Python object",
    }
}

/// A function that numba has compiled, which is asked for by an option.
fn by_numba() -> Way {
    Way {
        what: "have numba release the GIL around the function".to_owned(),
        code: "@njit(nogil=True)  # or nogil=True beside the options that it has now".to_owned(),
        assumes: "it assumes that the function uses no Python object",
    }
}

/// A call into a library of the user's own.
fn in_own(library: &str) -> Way {
    let library = library.rsplit('/').next().unwrap_or(library);
    Way {
        what: format!("release the GIL in your own {library}"),
        code: "Py_BEGIN_ALLOW_THREADS /* compute */ Py_END_ALLOW_THREADS\n\
               # Cython: with nogil; pybind11: py::gil_scoped_release; PyO3: py.detach(); ctypes: \
               CDLL instead of PyDLL"
            .to_owned(),
        assumes: "it assumes that the call goes into that library, and needs no Python object \
                  while it computes",
    }
}
