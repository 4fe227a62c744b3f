//! What helps against compiled code that keeps the GIL. It depends on who can change that code. Where
//! no native frame was seen, nothing tells which function it is: a sample shows the Python line that
//! called it.

use super::place::{Place, called_name};
use crate::origin::{Origin, file_of, is_users_library};
use crate::report::NativeReport;

/// The libraries named in one sentence.
const NAMED: usize = 3;
/// How compiled code lets go of the GIL.
const LET_GO: &str = "(Py_BEGIN_ALLOW_THREADS, Cython's nogil, pybind11's gil_scoped_release, \
                      ctypes.CDLL instead of PyDLL)";
/// Another process has other objects: to collect there frees nothing here.
const AGAINST_COLLECTIONS: &str = "that is the garbage collector, which looks at all objects that \
                                   can refer to others: call gc.freeze() once all is loaded, so \
                                   that it leaves that out, and let it collect less often \
                                   (gc.set_threshold, fewer calls of gc.collect); a shorter switch \
                                   interval does not help here";

/// What to do about the holds at `place`, in a process that has loaded `libraries` of its user's
/// own.
pub(super) fn against_native_hold(place: &Place, libraries: &[String]) -> String {
    if place.native.as_ref().is_some_and(NativeReport::is_collection) {
        return AGAINST_COLLECTIONS.to_owned();
    }
    if let Some(native) = place.native.as_ref().filter(|it| it.is_sure()) {
        return against_native_function(native, libraries);
    }
    let file = place.frame.as_deref().map(file_of);
    let callee = match file.map(Origin::of) {
        Some(Origin::Python) => "Python's own compiled code keeps the GIL there".to_owned(),
        Some(Origin::Package("")) => "compiled code keeps the GIL there".to_owned(),
        Some(Origin::Package(name)) => {
            format!("compiled code that {name} calls keeps the GIL there")
        }
        Some(Origin::User) | None if !libraries.is_empty() => {
            let libraries = named(libraries);
            return format!(
                "if that is a call into your own {libraries}, release the GIL in it {LET_GO}; \
                 give any other compiled code less work at a time, or run it in another process; \
                 a shorter switch interval does not help here"
            );
        }
        Some(Origin::User) => {
            "the compiled code that is called there (of a built-in function or a package) keeps \
             the GIL"
                .to_owned()
        }
        None => "compiled code keeps the GIL".to_owned(),
    };
    format!(
        "{callee} until it returns: give it less work at a time, or run it in another process; a \
         shorter switch interval does not help here"
    )
}

/// What to do about a function that most looks have shown.
fn against_native_function(native: &NativeReport, libraries: &[String]) -> String {
    let name = called_name(native);
    if native.is_kept_by_ctypes() {
        return format!(
            "ctypes.PyDLL keeps the GIL while {name} runs: load its library with ctypes.CDLL, \
             which lets go of the GIL, unless the function uses Python objects; a shorter switch \
             interval does not help here"
        );
    }
    if native.is_kept_by_numba() {
        return "numba keeps the GIL while what it compiled runs: compile the function that is called \
                there with nogil=True, unless it uses Python objects; a shorter switch interval does \
                not help here"
            .to_owned();
    }
    if is_users_library(&native.library) || libraries.contains(&native.library) {
        return format!(
            "release the GIL in your own {name} {LET_GO}; a shorter switch interval does not help \
             here"
        );
    }
    format!(
        "{name} keeps the GIL until it returns: give it less work at a time, or run it in another \
         process; a shorter switch interval does not help here"
    )
}

/// `a.so`, `a.so or b.so`.
fn named(libraries: &[String]) -> String {
    let names = libraries.iter().map(|file| file.rsplit('/').next().unwrap_or(file));
    let mut names: Vec<String> = names.take(NAMED).map(str::to_owned).collect();
    if libraries.len() > NAMED {
        names.push(format!("{} more", libraries.len() - NAMED));
    }
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(frame: Option<&str>, libraries: &[&str]) -> String {
        let place = Place { frame: frame.map(str::to_owned), ..Place::default() };
        let libraries: Vec<_> = libraries.iter().map(|&file| file.to_owned()).collect();
        against_native_hold(&place, &libraries)
    }

    const LIBRARY: &str = "match (/usr/lib/python3.11/re/__init__.py:167)";
    const PACKAGE: &str = "sum (/srv/venv/lib/python3.11/site-packages/numpy/core/x.py:1)";
    const OWN: &str = "rank (/srv/app.py:12)";

    #[test]
    fn nobody_is_told_to_change_the_code_of_python_or_of_a_package() {
        for libraries in [&[][..], &["/srv/_fast.so"]] {
            for frame in [LIBRARY, PACKAGE] {
                let advice = advice(Some(frame), libraries);
                assert!(!advice.contains("ALLOW_THREADS"), "{advice}");
                assert!(advice.contains("less work at a time, or run it in another process"));
            }
        }
        assert!(advice(Some(LIBRARY), &[]).starts_with("Python's own compiled code"));
        assert!(advice(Some(PACKAGE), &[]).starts_with("compiled code that numpy calls"));
    }

    #[test]
    fn without_compiled_code_of_ones_own_there_is_none_to_change() {
        for frame in [Some(OWN), None] {
            assert!(!advice(frame, &[]).contains("ALLOW_THREADS"));
        }
    }

    #[test]
    fn compiled_code_of_ones_own_is_named_and_may_let_go() {
        for frame in [Some(OWN), None] {
            let advice = advice(frame, &["/srv/_fast.so", "/srv/b.so"]);
            assert!(
                advice.starts_with("if that is a call into your own _fast.so or b.so, release")
            );
            assert!(advice.contains("Py_BEGIN_ALLOW_THREADS"));
        }
        let many = advice(None, &["/a.so", "/b.so", "/c.so", "/d.so", "/e.so"]);
        assert!(many.contains("your own a.so or b.so or c.so or 2 more, release"), "{many}");
    }

    #[test]
    fn a_function_that_was_seen_is_told_in_the_place_of_guesses() {
        let native = |library: &str, samples| NativeReport {
            function: Some("f".into()),
            library: library.into(),
            samples,
            looks: 4,
            ..NativeReport::default()
        };
        let advice = |native| {
            let place = Place { frame: Some(OWN.into()), native: Some(native), ..Place::default() };
            against_native_hold(&place, &["/srv/_fast.so".to_owned()])
        };
        let own = advice(native("/srv/_fast.so", 4));
        assert!(own.starts_with("release the GIL in your own f (_fast.so) (Py_BEGIN"), "{own}");
        let package = advice(native("/srv/lib/python3.11/site-packages/x/_x.so", 3));
        assert!(package.starts_with("f (_x.so) keeps the GIL until it returns"), "{package}");
        let seldom = advice(native("/srv/_fast.so", 2));
        assert!(seldom.starts_with("if that is a call into your own"), "{seldom}");
    }

    #[test]
    fn what_ctypes_calls_with_the_gil_is_to_be_called_without_it() {
        let advice = |function: &str, library: &str| {
            let native = NativeReport {
                function: Some(function.into()),
                library: library.into(),
                samples: 4,
                looks: 4,
                by_ctypes: true,
                ..NativeReport::default()
            };
            let place = Place { frame: Some(OWN.into()), native: Some(native), ..Place::default() };
            against_native_hold(&place, &["/srv/libx.so".to_owned()])
        };
        for (function, library) in [("usleep", "/usr/lib/libc.so.6"), ("work", "/srv/libx.so")] {
            let advice = advice(function, library);
            assert!(advice.starts_with("ctypes.PyDLL keeps the GIL while "), "{advice}");
            assert!(advice.contains("load its library with ctypes.CDLL"), "{advice}");
        }
        // Python's own functions need the GIL.
        for library in ["/usr/lib/libpython3.13.so.1.0", "/usr/bin/python3.11"] {
            assert!(!advice("PyObject_Repr", library).contains("ctypes"));
        }
    }

    #[test]
    fn nobody_is_told_to_collect_garbage_in_another_process() {
        let native = |collections| NativeReport {
            function: Some("_Py_HandlePending".into()),
            library: "/usr/lib/libpython3.13.so.1.0".into(),
            samples: 2,
            looks: 5,
            collections,
            ..NativeReport::default()
        };
        let advice = |collections| {
            let native = Some(native(collections));
            let place = Place { frame: Some(OWN.into()), native, ..Place::default() };
            against_native_hold(&place, &[])
        };
        let of_garbage = advice(3);
        assert!(of_garbage.starts_with("that is the garbage collector"), "{of_garbage}");
        assert!(!of_garbage.contains("process"), "{of_garbage}");
        assert!(advice(2).contains("in another process"));
    }
}
