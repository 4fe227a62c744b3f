//! One process, its images read once and its threads looked at as often as wanted.

use std::time::Duration;

use ungil_attach::filter::{Call, kills};
use ungil_attach::memory::Memory;
use ungil_attach::process::Process;

use crate::module::Function;
use crate::modules::Modules;
use crate::plumbing::{
    allocates, calls_foreign_code, is_ctypes, is_plumbing, is_trampoline, makes_object,
};
use crate::refusal::Refusal;
use crate::stopped::{Copied, Stack, stop_and_copy};
use crate::unwinding::{Way, known_callee, way_to_python};
use crate::waiting::{Place, place_of};

/// How often a thread is looked at that begins or ends to wait meanwhile.
const TRIES: u32 = 3;
/// As many frames of a deep stack are told at most, of those that ran and of those next to Python.
const MOST_AT_AN_END: usize = 64;
/// What a constructor is called of which nothing tells whose it is.
const CONSTRUCTOR: &str = "a constructor";
/// A longer path is cut.
const LONGEST_LIBRARY: usize = 4096;

/// A frame of native code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// The function as its library names it, C++ and Rust as they were written; empty if the library
    /// has no symbol for it.
    pub symbol: String,
    /// What Python calls it (`re.Pattern.match`); empty if Python does not call it, or that is not
    /// known.
    pub method: String,
    /// The file that the code is from, as the process names it; empty for code that was made while
    /// the program ran.
    pub library: String,
    /// Whether Python code called it by ctypes.
    pub by_ctypes: bool,
}

/// A thread as it was at one moment.
#[derive(Debug)]
pub struct Look(Copied);

impl Look {
    /// How long the thread stood still for it, at most; `None` if it was not stopped.
    pub fn stood(&self) -> Option<Duration> {
        self.0.stood
    }
}

/// A process whose threads can be looked at.
pub struct NativeReader {
    process: Process,
    memory: Memory,
    modules: Modules,
    stops: Option<fn()>,
}

impl NativeReader {
    /// Of process `pid`. Nothing is read yet. `stops` is called by each thread that is about to stop
    /// one of the process; without it only threads that wait in the kernel are looked at.
    pub fn of(pid: u32, stops: Option<fn()>) -> Result<Self, Refusal> {
        if stops.is_some() && kills(Call::Trace) {
            return Err(Refusal::Forbidden(
                "a seccomp filter kills processes that call ptrace".to_owned(),
            ));
        }
        let process = Process { pid };
        let memory = Memory::of(process).map_err(|error| Refusal::of_read(process, &error))?;
        Ok(Self { process, memory, modules: Modules::of(process), stops })
    }

    /// Copies where thread `tid` is now. One that runs stands still meanwhile.
    pub fn look(&self, tid: u32) -> Result<Look, Refusal> {
        for _ in 0..TRIES {
            let copied = match (place_of(self.process, tid)?, self.stops) {
                (Place::Unknown, _) => return Err(Refusal::Untold),
                (Place::Waiting(_), _) => self.copy_waiting(tid)?,
                (Place::Running, Some(prepare)) => {
                    stop_and_copy(self.process, &self.memory, tid, prepare)?
                }
                (Place::Running, None) => return Err(Refusal::NotWaiting),
            };
            if let Some(copied) = copied {
                return Ok(Look(copied));
            }
        }
        Err(Refusal::Unreadable("it went from one system call to the next".to_owned()))
    }

    /// Copies the stack of a thread that waits before and afterwards.
    fn copy_waiting(&self, tid: u32) -> Result<Option<Copied>, Refusal> {
        let before = place_of(self.process, tid)?;
        let Place::Waiting(registers) = before else { return Ok(None) };
        let mut stack = Stack::empty();
        let copied = stack.copy(&self.memory, registers.sp);
        copied.map_err(|error| Refusal::of_read(self.process, &error))?;
        let stays = place_of(self.process, tid)? == before;
        Ok(stays.then_some(Copied { registers, stack, stood: None }))
    }

    /// The native frames that a look showed above the innermost Python frame, innermost first: the
    /// last one is what Python code called. Empty if the thread ran Python code itself, `None` if the
    /// stack did not lead to Python.
    pub fn frames(&mut self, look: &Look) -> Option<Vec<NativeFrame>> {
        // What was mapped before is better than nothing.
        let _ = self.modules.look_again();
        let Look(Copied { registers, stack, .. }) = look;
        let way = way_to_python(&mut self.modules, &self.memory, stack, *registers);
        let Way { functions, interpreter } = way;
        Some(called_by_python(functions, &interpreter?))
    }
}

/// Without the functions of the interpreter that handed the call on, and without the middle of a very
/// deep stack.
fn called_by_python(mut functions: Vec<Function>, interpreter: &str) -> Vec<NativeFrame> {
    let is_plumbing = |it: &Function| it.library == interpreter && is_plumbing(&it.name.symbol);
    let not_handing_on = || functions.iter().rposition(|it| !is_plumbing(it));
    if let Some(callee) = known_callee(&functions, interpreter) {
        functions.truncate(callee + 1);
    } else if let Some(constructor) = nameless_constructor(&functions, interpreter) {
        functions.truncate(constructor + 1);
        CONSTRUCTOR.clone_into(&mut functions[constructor].name.method);
    } else if let Some(callee) = not_handing_on() {
        functions.truncate(callee + 1);
    }
    // What ctypes or PyO3 calls is what Python code wanted to call.
    let is_foreign = |it: &Function| {
        calls_foreign_code(&it.name.symbol, &it.library) || is_trampoline(&it.name.symbol)
    };
    let mut by_ctypes = false;
    if let Some(called) = functions.iter().rposition(|it| !is_foreign(it)) {
        let mut callers = functions.drain(called + 1..);
        by_ctypes = callers.any(|it| is_ctypes(&it.name.symbol, &it.library));
    }
    if functions.len() > 2 * MOST_AT_AN_END {
        functions.drain(MOST_AT_AN_END..functions.len() - MOST_AT_AN_END);
    }
    let frame = |Function { name, library, .. }: Function| NativeFrame {
        symbol: name.symbol,
        method: name.method,
        library: library.chars().take(LONGEST_LIBRARY).collect(),
        by_ctypes: false,
    };
    let mut frames: Vec<NativeFrame> = functions.into_iter().map(frame).collect();
    if let Some(called) = frames.last_mut() {
        called.by_ctypes = by_ctypes;
    }
    frames
}

/// Where an object is made, if nothing but memory for it is got there, so that no function tells of
/// which type it is.
fn nameless_constructor(functions: &[Function], interpreter: &str) -> Option<usize> {
    let of_interpreter = |it: &Function| it.library == interpreter;
    let makes = |it: &Function| of_interpreter(it) && makes_object(&it.name.symbol);
    let tells = |it: &Function| {
        let symbol = &it.name.symbol;
        let is_general = symbol.is_empty() || is_plumbing(symbol) || allocates(symbol);
        !it.name.method.is_empty() || it.is_extensions || (of_interpreter(it) && !is_general)
    };
    let made = functions.iter().rposition(makes)?;
    (!functions.iter().any(tells)).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::Name;

    fn function(symbol: &str, method: &str, library: &str) -> Function {
        let name = Name { symbol: symbol.into(), method: method.into() };
        Function { name, library: library.into(), is_extensions: library.ends_with("_x.so") }
    }

    #[test]
    fn the_last_frame_is_what_python_called() {
        let inner = function("memcpy", "", "/libc.so.6");
        let callee = function("", "zlib.compress", "/python");
        let handing =
            [function("cfunction_vectorcall_FASTCALL", "", "/python"), function("", "", "/python")];
        let all = [&[inner, callee][..], &handing].concat();
        let frames = called_by_python(all, "/python");
        assert_eq!(frames.len(), 2);
        assert_eq!((&*frames[0].symbol, &*frames[1].method), ("memcpy", "zlib.compress"));
    }

    #[test]
    fn a_constructor_is_called_by_what_makes_the_object() {
        let handing = [
            function("type_call.lto_priv.0", "", "/python"),
            function("_PyObject_MakeTpCall", "", "/python"),
        ];
        let last = |inner: &[Function]| {
            let all = [inner, &handing].concat();
            called_by_python(all, "/python").pop().unwrap()
        };
        let memory =
            [function("malloc", "", "/libc.so"), function("PyType_GenericAlloc", "", "/python")];
        let made = |function| last(&[&memory[..], &[function]].concat());
        assert_eq!(
            made(function("deque_init", "collections.deque", "/python")).method,
            "collections.deque"
        );
        assert_eq!(
            made(function("bytearray___init__", "", "/python")).symbol,
            "bytearray___init__"
        );
        assert_eq!(made(function("", "", "/srv/_x.so")).library, "/srv/_x.so");
        // Of none of these anybody can tell which type it is.
        for inner in [&memory[..], &memory[..1], &[], &[function("", "", "/python")]] {
            let constructor = last(inner);
            assert_eq!(
                (&*constructor.symbol, &*constructor.method),
                ("type_call.lto_priv.0", "a constructor")
            );
        }
    }

    #[test]
    fn a_nameless_function_of_a_library_is_what_python_called() {
        let frames = called_by_python(vec![function("", "", "/srv/fast.so")], "/python");
        assert_eq!(frames.len(), 1);
    }

    #[test]
    fn a_nameless_function_of_the_interpreter_is_told_unless_an_extension_is_called_by_it() {
        let nameless = || function("", "", "/python");
        let last = |inner| called_by_python(vec![inner, nameless()], "/python").pop().unwrap();
        assert_eq!(last(function("malloc", "", "/libc.so.6")).library, "/python");
        assert_eq!(last(function("PyDict_New", "", "/python")).symbol, "");
        assert_eq!(last(function("", "", "/srv/_x.so")).library, "/srv/_x.so");
        assert_eq!(last(function("", "len", "/python")).method, "len");
    }

    #[test]
    fn what_ctypes_calls_is_what_python_called() {
        let called = function("cblas_dgemm", "", "/x/libblas.so");
        let ctypes = [
            function("", "", "/lib/libffi.so.8"),
            function("ffi_call", "", "/lib/libffi.so.8"),
            function("_ctypes_callproc", "", "/lib/_ctypes.cpython-311-x86_64-linux-gnu.so"),
            function("PyCFuncPtr_call", "", "/python"),
        ];
        let all = [&[called][..], &ctypes].concat();
        let frame = called_by_python(all, "/python").pop().unwrap();
        assert_eq!((&*frame.symbol, frame.by_ctypes), ("cblas_dgemm", true));
        let itself = called_by_python(ctypes[2..].to_vec(), "/python");
        assert_eq!(itself.len(), 2);
        let cffi = function("", "", "/x/_cffi_backend.cpython-311-x86_64-linux-gnu.so");
        let called = vec![function("work", "", "/x/libwork.so"), cffi];
        assert!(!called_by_python(called, "/python").pop().unwrap().by_ctypes);
    }

    #[test]
    fn what_a_trampoline_of_pyo3_calls_is_what_python_called() {
        let of = |symbol| function(symbol, "", "/srv/fast.abi3.so");
        let begins = "pyo3::impl_::trampoline::";
        let functions = vec![
            of("<fast::Words>::count"),
            of("<fast::Words>::__pymethod_count__"),
            of(&format!("{begins}trampoline::<{begins}fastcall_cfunction_with_keywords::inner>")),
            of(&format!("{begins}fastcall_cfunction_with_keywords::<fast::Words>")),
        ];
        let frames = called_by_python(functions, "/python");
        assert_eq!(frames.last().unwrap().symbol, "<fast::Words>::__pymethod_count__");
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn the_middle_of_a_very_deep_stack_is_left_out() {
        let mut functions = vec![function("inner", "", "/python")];
        functions.extend((0..1000).map(|_| function("recurse", "", "/python")));
        functions.push(function("outer", "", "/python"));
        let frames = called_by_python(functions, "/python");
        assert_eq!(frames.len(), 2 * MOST_AT_AN_END);
        assert_eq!((&*frames[0].symbol, &*frames[127].symbol), ("inner", "outer"));
    }

    #[test]
    fn where_there_is_nothing_but_the_interpreter_all_of_it_stays() {
        let frames = called_by_python(vec![function("", "", "/python")], "/python");
        assert_eq!(frames.len(), 1);
        assert!(called_by_python(Vec::new(), "/python").is_empty());
    }
}
