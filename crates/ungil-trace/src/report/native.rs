//! Native functions: what Python code called when its thread kept the GIL.

use serde::Serialize;

/// What the symbols of the garbage collector begin with, from CPython 3.8 on.
const COLLECTOR: [&str; 5] =
    ["gc_collect", "collect_with_callback", "PyGC_Collect", "_PyGC_Collect", "_Py_RunGC"];

/// Whether a symbol is of the garbage collector.
pub fn is_collector(symbol: &str) -> bool {
    COLLECTOR.iter().any(|begin| symbol.starts_with(begin))
}

/// The native function that most samples of a hold, or of several, show.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NativeReport {
    /// What the Python line called: as Python calls it, else the symbol of its library; `None` if it
    /// has no name.
    pub function: Option<String>,
    /// The file that it is from; empty for code that was made while the program ran.
    pub library: String,
    /// The function that was running, called by `function`, in most of these samples; `None` if it
    /// has no name.
    pub innermost: Option<String>,
    /// The file that this one is from.
    pub innermost_library: String,
    /// How many samples show `function`.
    pub samples: u64,
    /// How many samples were taken in which native code could have been seen.
    pub looks: u64,
    /// How many of `looks` show the garbage collector, whatever function it runs in: it may begin in
    /// any that makes an object.
    #[serde(skip)]
    pub collections: u64,
    /// Whether the Python line called it by ctypes. What to do about it says so.
    #[serde(skip)]
    pub by_ctypes: bool,
    /// The native frames of one of these samples, innermost first, each `symbol [library]`, or
    /// `symbol = name in Python [library]`; `?` stands for a function without a name.
    pub stack: Vec<String>,
}

impl NativeReport {
    /// Whether most looks have shown the function.
    pub fn is_sure(&self) -> bool {
        self.samples * 2 > self.looks
    }

    /// Whether it keeps the GIL because ctypes does: because its library was loaded with
    /// `ctypes.PyDLL`, as none has to be but one whose functions use objects of Python.
    pub fn is_kept_by_ctypes(&self) -> bool {
        self.by_ctypes && self.is_sure() && !self.is_of_python()
    }

    /// Whether it keeps the GIL because numba does: around what it compiled without `nogil=True`
    /// (numba/_dispatcher.cpp calls that).
    pub fn is_kept_by_numba(&self) -> bool {
        self.library.contains("/numba/_dispatcher.") && self.is_sure()
    }

    /// Whether it is no function that Python code can call, but a step of the interpreter itself: an
    /// addition, an object that is freed. These are over in no time, and a garbage collection is not.
    pub fn is_a_step(&self) -> bool {
        let has_name = self.stack.iter().any(|frame| frame.contains(" = "));
        let is_symbol = self.function.as_ref().is_some_and(|name| !name.contains('.'));
        self.is_of_python() && is_symbol && !has_name && !self.is_collection()
    }

    fn is_of_python(&self) -> bool {
        let file = self.library.rsplit('/').next().unwrap_or(&self.library);
        ["python", "libpython"].iter().any(|it| file.starts_with(it))
    }

    /// Whether the innermost function is the garbage collector's.
    pub fn is_innermost_collection(&self) -> bool {
        self.innermost.as_deref().is_some_and(is_collector)
    }

    /// Whether it was mostly garbage collections, be they called for or not.
    pub fn is_collection(&self) -> bool {
        self.collections * 2 > self.looks
    }
}

/// How often threads of a process were stopped so that their native frames could be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoppedReport {
    /// How often.
    pub times: u64,
    /// How long they stood still, at most: half of these times, all but 1 % of them, each of them,
    /// and all together.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// See `p50_us`.
    pub max_us: f64,
    /// See `p50_us`.
    pub total_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_interpreter_is_no_function_that_python_code_calls() {
        let native = |library: &str, outermost: &str| NativeReport {
            function: outermost.split(' ').next().map(str::to_owned),
            library: library.to_owned(),
            samples: 1,
            looks: 1,
            stack: vec!["inner [libpython3.11.so.1.0]".to_owned(), outermost.to_owned()],
            ..NativeReport::default()
        };
        let python = "/opt/lib/libpython3.11.so.1.0";
        assert!(native(python, "PyNumber_Remainder [libpython3.11.so.1.0]").is_a_step());
        assert!(!native(python, "match = re.Pattern.match [libpython3.11.so.1.0]").is_a_step());
        let collection =
            NativeReport { collections: 1, ..native(python, "PyNumber_Remainder [libpython]") };
        assert!(!collection.is_a_step());
        assert!(!native("/srv/truth.so", "compute [truth.so]").is_a_step());
        // Debian's Python has no symbols.
        let unknown = NativeReport { function: None, ..native(python, "? [libpython]") };
        assert!(!unknown.is_a_step());
    }
}
