//! Which native functions the samples of one hold showed.

use crate::record::NativeFrame;
use crate::report::{NativeReport, is_collector};

/// Different functions kept of one hold, called by Python and running.
const FUNCTIONS: usize = 8;
/// Frames kept of one stack: those that ran, and as many next to Python.
const FRAMES: usize = 24;

/// The native stacks of one hold, those in which Python called one function counted together.
#[derive(Clone, Debug, Default)]
pub(super) struct Natives {
    /// Samples in which native frames would have been seen.
    looks: u64,
    /// Those of them that show the garbage collector.
    collections: u64,
    called: Vec<Called>,
}

/// A function that Python called.
#[derive(Clone, Debug)]
struct Called {
    function: Place,
    count: u64,
    by_ctypes: bool,
    /// The functions that were running.
    innermost: Vec<(Place, u64)>,
    stack: Vec<String>,
}

/// A function and its library.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    function: Option<String>,
    library: String,
}

impl Place {
    fn of(frame: &NativeFrame) -> Self {
        Self { function: frame.function().map(str::to_owned), library: frame.library.clone() }
    }
}

impl Natives {
    /// Counts a sample; `frames` is empty if the thread ran Python code.
    pub(super) fn add(&mut self, frames: &[NativeFrame]) {
        self.looks += 1;
        self.collections += u64::from(frames.iter().any(collects));
        let (Some(innermost), Some(outermost)) = (frames.first(), frames.last()) else { return };
        let function = Place::of(outermost);
        let known = self.called.iter().position(|it| it.function == function);
        let index = known.unwrap_or(self.called.len());
        if known.is_none() {
            if self.called.len() == FUNCTIONS {
                return;
            }
            let stack = shortened(frames);
            let by_ctypes = outermost.by_ctypes;
            let innermost = Vec::new();
            self.called.push(Called { function, count: 0, by_ctypes, innermost, stack });
        }
        let called = &mut self.called[index];
        called.count += 1;
        let innermost = Place::of(innermost);
        if let Some((_, count)) = called.innermost.iter_mut().find(|(it, _)| *it == innermost) {
            *count += 1;
        } else if called.innermost.len() < FUNCTIONS {
            called.innermost.push((innermost, 1));
        }
    }

    /// How many samples there were.
    pub(super) const fn looks(&self) -> u64 {
        self.looks
    }

    /// The most frequent one; the earliest of those that are equally frequent.
    pub(super) fn report(&self) -> Option<NativeReport> {
        let called = self.called.iter().rev().max_by_key(|it| it.count)?;
        let Place { function, library } = called.function.clone();
        // Of the library in which most of the time goes, and there the function: where it goes to
        // many small ones, the library is what they have in common.
        let in_library = |library: &str| -> u64 {
            let there = called.innermost.iter().filter(|(it, _)| it.library == library);
            there.map(|(_, count)| count).sum()
        };
        let innermost = called.innermost.iter().rev();
        let innermost = innermost.max_by_key(|(it, count)| (in_library(&it.library), *count));
        let innermost = innermost.map(|(it, _)| it.clone());
        let (innermost, innermost_library) =
            innermost.map_or((None, String::new()), |it| (it.function, it.library));
        Some(NativeReport {
            function,
            library,
            innermost,
            innermost_library,
            samples: called.count,
            looks: self.looks,
            collections: self.collections,
            by_ctypes: called.by_ctypes,
            stack: called.stack.clone(),
        })
    }
}

/// Whether a frame is of the garbage collector.
fn collects(frame: &NativeFrame) -> bool {
    frame.method == "gc.collect" || is_collector(&frame.symbol)
}

/// A stack in words; of a very deep one the middle is left out.
fn shortened(frames: &[NativeFrame]) -> Vec<String> {
    let texts = |frames: &[NativeFrame]| frames.iter().map(line_of).collect::<Vec<_>>();
    if frames.len() <= 2 * FRAMES {
        return texts(frames);
    }
    [texts(&frames[..FRAMES]), texts(&frames[frames.len() - FRAMES..])].concat()
}

/// A frame as the report shows it.
fn line_of(NativeFrame { symbol, method, library, .. }: &NativeFrame) -> String {
    match (symbol.as_str(), method.as_str()) {
        ("", "") => format!("? [{library}]"),
        (name, "") | ("", name) => format!("{name} [{library}]"),
        (symbol, method) => format!("{symbol} = {method} [{library}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(symbol: &str, library: &str) -> NativeFrame {
        let (symbol, library) = (symbol.into(), library.into());
        NativeFrame { symbol, library, ..NativeFrame::default() }
    }

    #[test]
    fn the_function_that_python_called_most_often_is_told_with_where_it_was() {
        let (dot, kernel) = (frame("dot", "/numpy.so"), frame("dgemm", "/blas.so"));
        let mut natives = Natives::default();
        assert_eq!(natives.report(), None);
        natives.add(&[]);
        natives.add(&[frame("memcpy", "/libc.so"), dot.clone()]);
        natives.add(&[kernel.clone(), dot.clone()]);
        natives.add(&[frame("copy", "/blas.so"), dot.clone()]);
        natives.add(&[frame("sorted", "/python")]);
        let report = natives.report().unwrap();
        assert_eq!((report.function.as_deref(), &*report.library), (Some("dot"), "/numpy.so"));
        assert_eq!((report.samples, report.looks), (3, 5));
        assert_eq!(
            (report.innermost.as_deref(), &*report.innermost_library),
            (Some("dgemm"), "/blas.so")
        );
        assert_eq!(report.stack, ["memcpy [/libc.so]", "dot [/numpy.so]"]);
    }

    #[test]
    fn the_garbage_collector_is_counted_whatever_function_it_runs_in() {
        let mut natives = Natives::default();
        for outermost in ["super_vectorcall", "PyFunction_New", "super_vectorcall"] {
            let frames = ["visit_decref", "gc_collect_main", outermost];
            natives.add(&frames.map(|symbol| frame(symbol, "/libpython.so")));
        }
        natives.add(&[NativeFrame { method: "gc.collect".into(), ..frame("", "/python") }]);
        natives.add(&[frame("super_vectorcall", "/libpython.so")]);
        natives.add(&[]);
        let report = natives.report().unwrap();
        assert_eq!((report.samples, report.collections, report.looks), (3, 4, 6));
        assert!(report.is_collection() && !report.is_sure());
        natives.add(&[]);
        natives.add(&[]);
        assert!(!natives.report().unwrap().is_collection());
    }

    #[test]
    fn a_function_has_the_name_by_which_python_knows_it() {
        let mut natives = Natives::default();
        let method = "re.Pattern.match".to_owned();
        natives.add(&[NativeFrame { method, ..frame("pattern_match", "/python") }]);
        let report = natives.report().unwrap();
        assert_eq!(report.function.as_deref(), Some("re.Pattern.match"));
        assert_eq!(report.stack, ["pattern_match = re.Pattern.match [/python]"]);
    }

    #[test]
    fn a_function_without_a_name_is_told_by_its_library() {
        let mut natives = Natives::default();
        natives.add(&[frame("", "/stripped.so")]);
        let report = natives.report().unwrap();
        assert_eq!((report.function, &*report.library), (None, "/stripped.so"));
    }

    #[test]
    fn a_very_deep_stack_and_very_many_functions_take_little_room() {
        let mut natives = Natives::default();
        natives.add(&vec![frame("recurse", "/a.so"); 1000]);
        for number in 0..1000 {
            natives.add(&[frame(&number.to_string(), "/a.so"), frame("recurse", "/a.so")]);
            natives.add(&[frame(&number.to_string(), "/a.so")]);
        }
        assert_eq!(natives.called.len(), FUNCTIONS);
        assert_eq!(natives.called[0].innermost.len(), FUNCTIONS);
        let report = natives.report().unwrap();
        assert_eq!((report.stack.len(), report.looks), (2 * FRAMES, 2001));
    }
}
