//! Where long holds were, in words.

use super::words;
use crate::report::{LongHoldReport, NativeReport};

/// What the samples of some holds showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// The innermost frame of most of them.
    pub(super) frame: Option<String>,
    /// The innermost frame that is the user's own code, of one of these.
    pub(super) user_frame: Option<String>,
    pub(super) samples: u64,
    /// How many had `frame`.
    pub(super) frame_samples: u64,
    /// The native function of most of the holds that show `frame`, if native code was seen in them.
    pub(super) native: Option<NativeReport>,
    /// Why there is no sample, if there is a reason that holds for one of the holds.
    pub(super) why_none: Option<String>,
}

impl Place {
    /// Of all these holds together.
    pub(super) fn of<'a>(holds: &(impl Iterator<Item = &'a LongHoldReport> + Clone)) -> Self {
        let innermost = |hold: &'a LongHoldReport| hold.stack.first();
        let samples_at = |frame: &String| -> u64 {
            let there = holds.clone().filter(|hold| hold.stack.first() == Some(frame));
            there.map(|hold| hold.stack_samples).sum()
        };
        // The first of those that are equally frequent: it is in the longest hold.
        let mut frame: Option<(&String, u64)> = None;
        for candidate in holds.clone().filter_map(innermost) {
            let samples = samples_at(candidate);
            if frame.is_none_or(|(_, most)| samples > most) {
                frame = Some((candidate, samples));
            }
        }
        let there =
            |hold: &&LongHoldReport| frame.is_some_and(|it| Some(it.0) == hold.stack.first());
        Self {
            frame: frame.map(|(frame, _)| frame.clone()),
            user_frame: holds.clone().filter(there).find_map(|hold| hold.user_frame.clone()),
            samples: holds.clone().map(|hold| hold.samples).sum(),
            frame_samples: frame.map_or(0, |(_, samples)| samples),
            native: native_at(holds, &holds.clone().filter(there)),
            why_none: holds.clone().find_map(|hold| hold.stack_missing.clone()),
        }
    }

    /// A clause: `all 7 samples show match (re/__init__.py:167), called by parse (app/parser.py:42)`.
    pub(super) fn clause(&self) -> String {
        let Some(frame) = &self.frame else {
            let why = self.why_none.as_deref().unwrap_or("no sample was taken");
            return format!("there is no stack: {why}");
        };
        let show = match (self.frame_samples, self.samples) {
            (1, 1) => "the only sample shows".to_owned(),
            (some, all) if some == all => format!("all {} samples show", words::number(all)),
            (some, all) => {
                format!("{} of {} samples show", words::number(some), words::number(all))
            }
        };
        let caller = match &self.user_frame {
            Some(user) if user != frame => format!(", called by {}", words::short(user)),
            _ => String::new(),
        };
        let native = self.native.as_ref().map(native_clause).unwrap_or_default();
        format!("{show} {}{caller}{native}", words::short(frame))
    }
}

/// What the native code is of the holds that show one frame: others are in another call. The garbage
/// collector may begin in any, so that is looked for in all holds.
fn native_at<'a>(
    all: &(impl Iterator<Item = &'a LongHoldReport> + Clone),
    there: &(impl Iterator<Item = &'a LongHoldReport> + Clone),
) -> Option<NativeReport> {
    let of_all = native_of(all)?;
    if of_all.is_collection() {
        return Some(of_all);
    }
    native_of(there).or(Some(of_all))
}

/// What several holds show together.
fn native_of<'a>(
    holds: &(impl Iterator<Item = &'a LongHoldReport> + Clone),
) -> Option<NativeReport> {
    let natives = holds.clone().filter_map(|hold| hold.native.as_ref());
    let is_same =
        |a: &NativeReport, b: &NativeReport| (&a.function, &a.library) == (&b.function, &b.library);
    let samples_of = |it: &NativeReport| -> u64 {
        natives.clone().filter(|other| is_same(it, other)).map(|other| other.samples).sum()
    };
    // The first of those that are equally frequent: it is in the longest hold.
    let mut most: Option<(&NativeReport, u64)> = None;
    for candidate in natives.clone() {
        let samples = samples_of(candidate);
        if most.is_none_or(|(_, most)| samples > most) {
            most = Some((candidate, samples));
        }
    }
    let (native, samples) = most?;
    let looks = holds.clone().map(|hold| hold.native_looks).sum();
    let collections = natives.map(|it| it.collections).sum();
    Some(NativeReport { samples, looks, collections, ..native.clone() })
}

/// A clause that goes on: `; 5 of 7 looks show that it is in re.Pattern.match (python3.11)`.
fn native_clause(native: &NativeReport) -> String {
    let is_called = native.function.as_deref() == Some("gc.collect");
    let (name, samples) = if native.is_collection() && !is_called {
        ("the garbage collector".to_owned(), native.collections)
    } else {
        (native_name(native), native.samples)
    };
    let seen = match (samples, native.looks) {
        (some, all) if some == all => String::new(),
        (some, all) => {
            format!(" in {} of {} looks at it", words::number(some), words::number(all))
        }
    };
    format!("; the native code is {name}{seen}")
}

/// `re.Pattern.match (python3.11)`, `dot (_umath.so), mostly dgemm (libblas.so)`, or the library of a
/// function without a name.
fn native_name(native: &NativeReport) -> String {
    let NativeReport { function, library, innermost, innermost_library, .. } = native;
    let called = called_name(native);
    let is_there = library == innermost_library || innermost_library.is_empty();
    if is_there && (innermost.is_none() || innermost == function) {
        return called;
    }
    if native.is_innermost_collection() {
        return format!("{called}, mostly the garbage collector");
    }
    format!("{called}, mostly {}", in_library(innermost.as_deref(), innermost_library))
}

/// The function that was called, with its library.
pub(super) fn called_name(native: &NativeReport) -> String {
    in_library(native.function.as_deref(), &native.library)
}

fn in_library(function: Option<&str>, library: &str) -> String {
    let library = match library.rsplit('/').next().unwrap_or(library) {
        "" => "code generated at run time",
        name => name,
    };
    match function {
        Some(function) => format!("{function} ({library})"),
        None => format!("a function in {library}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATCH: &str = "match (/usr/lib/python3.11/re/__init__.py:167)";
    const PARSE: &str = "parse (/srv/app/parser.py:42)";

    fn hold(frame: Option<&str>, samples: u64, stack_samples: u64) -> LongHoldReport {
        LongHoldReport {
            tid: 1,
            name: String::new(),
            start_s: 0.0,
            duration_ms: 50.0,
            contended: true,
            waiters_max: 1,
            waited_s: 0.0,
            forced: true,
            drop_request_unanswered_ms: Some(45.0),
            cpu_ms: None,
            not_run_ms: None,
            stopped_ms: 0.0,
            stack: frame.into_iter().map(str::to_owned).collect(),
            user_frame: frame.map(|_| PARSE.to_owned()),
            samples,
            stack_samples,
            native_looks: 0,
            native: None,
            stack_missing: frame.is_none().then(|| "it was too dark".to_owned()),
        }
    }

    fn clause(holds: &[LongHoldReport]) -> String {
        Place::of(&holds.iter()).clause()
    }

    #[test]
    fn the_most_frequent_frame_is_told_with_its_samples_and_the_users_caller() {
        let holds = [hold(Some(PARSE), 3, 3), hold(None, 0, 0), hold(Some(MATCH), 4, 4)];
        assert_eq!(
            clause(&holds),
            "4 of 7 samples show match (re/__init__.py:167), called by parse (app/parser.py:42)"
        );
        let holds = [hold(Some(PARSE), 3, 3), hold(Some(PARSE), 4, 4)];
        assert_eq!(clause(&holds), "all 7 samples show parse (app/parser.py:42)");
    }

    #[test]
    fn one_sample_is_called_that() {
        let shown = clause(&[hold(Some(PARSE), 1, 1)]);
        assert_eq!(shown, "the only sample shows parse (app/parser.py:42)");
    }

    fn native(function: Option<&str>, library: &str, samples: u64, looks: u64) -> NativeReport {
        NativeReport {
            function: function.map(str::to_owned),
            library: library.to_owned(),
            innermost: function.map(str::to_owned),
            innermost_library: library.to_owned(),
            samples,
            looks,
            ..NativeReport::default()
        }
    }

    #[test]
    fn the_native_function_is_told_behind_the_python_line_that_called_it() {
        let is_in = |native: Option<NativeReport>| LongHoldReport {
            native_looks: native.as_ref().map_or(1, |it| it.looks),
            native,
            ..hold(Some(PARSE), 4, 4)
        };
        let pattern = || native(Some("re.Pattern.match"), "/usr/bin/python3.11", 4, 4);
        assert_eq!(
            clause(&[is_in(Some(pattern()))]),
            "all 4 samples show parse (app/parser.py:42); the native code is re.Pattern.match \
             (python3.11)"
        );
        let other = native(Some("sorted"), "/usr/bin/python3.11", 3, 5);
        let both = clause(&[is_in(Some(other)), is_in(Some(pattern())), is_in(None)]);
        assert!(
            both.ends_with("is re.Pattern.match (python3.11) in 4 of 10 looks at it"),
            "{both}"
        );
    }

    #[test]
    fn the_native_function_is_one_that_the_named_frame_called() {
        let called = |frame, function: &str, samples, collections| LongHoldReport {
            native_looks: samples,
            native: Some(NativeReport {
                collections,
                ..native(Some(function), "/x/_x.so", samples, samples)
            }),
            ..hold(Some(frame), samples, samples)
        };
        let sorted = || LongHoldReport { native_looks: 1, ..hold(Some(PARSE), 6, 6) };
        let holds = [called(PARSE, "draw", 4, 0), sorted(), called(MATCH, "save", 8, 0)];
        let shown = clause(&holds);
        assert!(shown.starts_with("10 of 18 samples show parse"), "{shown}");
        assert!(
            shown.ends_with("the native code is draw (_x.so) in 4 of 5 looks at it"),
            "{shown}"
        );
        let shown = clause(&[sorted(), called(MATCH, "save", 4, 0)]);
        assert!(
            shown.ends_with("the native code is save (_x.so) in 4 of 5 looks at it"),
            "{shown}"
        );
        let shown = clause(&[called(PARSE, "draw", 9, 1), called(MATCH, "save", 8, 8)]);
        assert!(shown.contains("the garbage collector in 9 of 17 looks"), "{shown}");
    }

    #[test]
    fn the_garbage_collector_is_told_by_that_name_unless_it_was_called() {
        let is_in = |function: &str| LongHoldReport {
            native_looks: 5,
            native: Some(NativeReport {
                collections: 4,
                ..native(Some(function), "/usr/bin/python3.11", 2, 5)
            }),
            ..hold(Some(PARSE), 5, 5)
        };
        let by_itself = clause(&[is_in("super_vectorcall"), is_in("PyFunction_New")]);
        let told = "; the native code is the garbage collector in 8 of 10 looks at it";
        assert!(by_itself.ends_with(told), "{by_itself}");
        let called = clause(&[is_in("gc.collect")]);
        assert!(called.contains("is gc.collect (python3.11) in 2 of 5 looks"), "{called}");
    }

    #[test]
    fn where_the_time_goes_in_another_function_that_is_told_too() {
        let kernel = NativeReport {
            innermost: Some("dgemm".into()),
            innermost_library: "/x/libblas.so".into(),
            ..native(Some("dot"), "/x/_umath.so", 1, 1)
        };
        assert_eq!(native_name(&kernel), "dot (_umath.so), mostly dgemm (libblas.so)");
        assert_eq!(native_name(&native(None, "/x/fast.so", 1, 1)), "a function in fast.so");
        let collects = NativeReport { innermost: Some("gc_collect_main".into()), ..kernel };
        assert_eq!(native_name(&collects), "dot (_umath.so), mostly the garbage collector");
        let made = native_name(&native(None, "", 1, 1));
        assert_eq!(made, "a function in code generated at run time");
    }

    #[test]
    fn without_a_stack_there_is_a_reason() {
        assert_eq!(clause(&[hold(None, 0, 0)]), "there is no stack: it was too dark");
    }

    #[test]
    fn a_frame_is_shown_with_its_file_and_one_folder() {
        for (frame, shown) in [
            (MATCH, "match (re/__init__.py:167)"),
            ("f (/app.py:1)", "f (app.py:1)"),
            ("f (app/x.py:1)", "f (app/x.py:1)"),
            ("f (<string>:1)", "f (<string>:1)"),
            ("f", "f"),
        ] {
            assert_eq!(words::short(frame), shown);
        }
    }
}
