//! Functions of the interpreter by what they do for a stack.

/// A function without what compilers add to the names of its parts and copies (`.cold`, `.lto_priv.0`,
/// `.constprop.0`).
fn stem(symbol: &str) -> &str {
    match symbol.find('.') {
        Some(dot) if dot > 0 => &symbol[..dot],
        _ => symbol,
    }
}

/// Whether a function runs Python code: a Python frame is where it is.
pub fn is_evaluation(symbol: &str) -> bool {
    let stem = stem(symbol);
    matches!(stem, "_PyEval_EvalFrameDefault" | "PyEval_EvalFrameEx" | "_PyEval_EvalFrame")
        // One function for each instruction (3.14, built by Clang).
        || stem.starts_with("_TAIL_CALL_")
}

/// Whether a function only hands a call from Python code on to the function that is called.
pub fn is_plumbing(symbol: &str) -> bool {
    let stem = stem(symbol);
    PLUMBING.contains(&stem) || PLUMBING_BEGINS.iter().any(|it| stem.starts_with(it))
}

/// Whether a function makes an object of any type.
pub fn makes_object(symbol: &str) -> bool {
    stem(symbol) == MAKES_OBJECT
}

/// Whether a function gets memory for an object of any type.
pub fn allocates(symbol: &str) -> bool {
    let stem = stem(symbol);
    ALLOCATES.contains(&stem) || ALLOCATES_BEGINS.iter().any(|it| stem.starts_with(it))
}

/// Whether a function calls a function of any library for Python code: ctypes and cffi, with libffi.
pub fn calls_foreign_code(symbol: &str, library: &str) -> bool {
    is_ctypes(symbol, library)
        || ["_cffi_backend.", "libffi.", "libffi-"]
            .iter()
            .any(|it| file_of(library).starts_with(it))
        || stem(symbol).starts_with("ffi_call")
}

/// Whether a function is one of ctypes.
pub fn is_ctypes(symbol: &str, library: &str) -> bool {
    file_of(library).starts_with("_ctypes.")
        || matches!(stem(symbol), "PyCFuncPtr_call" | "_ctypes_callproc")
}

fn file_of(library: &str) -> &str {
    library.rsplit('/').next().unwrap_or(library)
}

/// Whether a function of PyO3 hands a call on to the function of an extension in Rust.
pub fn is_trampoline(symbol: &str) -> bool {
    symbol.starts_with("pyo3::impl_::trampoline::")
}

/// `Objects/call.c`, `methodobject.c`, `descrobject.c`, `typeobject.c`, `Python/ceval.c` and
/// `Modules/_functoolsmodule.c` of 2.7 to 3.14.
const PLUMBING: [&str; 35] = [
    "_PyObject_MakeTpCall",
    "_PyObject_FastCall",
    "_PyObject_FastCallDict",
    "_PyObject_FastCallDictTstate",
    "_PyObject_Call",
    "_PyObject_Call_Prepend",
    "_PyObject_Call_NoArgs",
    "_PyObject_CallNoArgs",
    "_PyObject_FastCallKeywords",
    "PyObject_Call",
    "PyObject_CallObject",
    "PyObject_CallNoArgs",
    "PyObject_CallOneArg",
    "PyVectorcall_Call",
    "_PyVectorcall_Call",
    "PyObject_Vectorcall",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallTstate",
    "PyCFunction_Call",
    "call_function",
    "do_call_core",
    "do_call",
    "ext_do_call",
    "fast_function",
    "wrapper_call",
    "wrap_call",
    "lru_cache_call",
    "bounded_lru_cache_wrapper",
    "infinite_lru_cache_wrapper",
    "uncached_lru_cache_wrapper",
    MAKES_OBJECT,
    "object_vacall",
    "vectorcall_maybe",
    "tp_new_wrapper",
    "wrap_init",
];
/// `type.__call__`: makes an object by what its type has for that.
const MAKES_OBJECT: &str = "type_call";
/// They get memory for an object, of whatever type (`Objects/typeobject.c`, `obmalloc.c`, `gc.c`).
const ALLOCATES: [&str; 5] =
    ["PyType_GenericAlloc", "PyType_GenericNew", "_PyType_AllocNoTrack", "object_new", "gc_alloc"];
const ALLOCATES_BEGINS: [&str; 6] =
    ["_PyObject_GC_", "PyObject_GC_", "PyObject_Malloc", "_PyObject_Malloc", "PyMem_", "_PyMem_"];
const PLUMBING_BEGINS: [&str; 13] = [
    "slot_",
    "vectorcall_method",
    "cfunction_",
    "method_vectorcall",
    "_PyCFunction_",
    "_PyMethodDef_Raw",
    "_PyMethodDescr_",
    "classmethoddescr_",
    "methoddescr_call",
    "method_call",
    "partial_call",
    "partial_fastcall",
    "partial_vectorcall",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evaluation_loop_is_known_with_its_parts_and_by_its_old_name() {
        for symbol in [
            "_PyEval_EvalFrameDefault",
            "_PyEval_EvalFrameDefault.cold",
            "_PyEval_EvalFrameDefault.localalias",
            "PyEval_EvalFrameEx",
            "_TAIL_CALL_BINARY_OP",
        ] {
            assert!(is_evaluation(symbol), "{symbol}");
        }
        for symbol in ["", ".cold", "_PyEval_Vector", "PyEval_EvalCode", "sre_match"] {
            assert!(!is_evaluation(symbol), "{symbol}");
        }
    }

    #[test]
    fn ctypes_is_known_by_its_file_and_by_its_functions() {
        for (symbol, library) in [
            ("", "/lib/_ctypes.cpython-311-x86_64-linux-gnu.so"),
            ("", "/usr/lib/libffi.so.8.1.2"),
            ("", "/venv/_cffi_backend.cpython-311-x86_64-linux-gnu.so"),
            ("PyCFuncPtr_call.lto_priv.0", "/usr/bin/python3.11"),
            ("ffi_call_int", "/usr/bin/python3.11"),
        ] {
            assert!(calls_foreign_code(symbol, library), "{symbol} {library}");
        }
        assert!(!calls_foreign_code("ffi", "/srv/my_ctypes.so"));
    }

    #[test]
    fn what_hands_a_call_on_is_not_what_is_called() {
        for symbol in [
            "cfunction_vectorcall_FASTCALL.lto_priv.0",
            "method_vectorcall_VARARGS_KEYWORDS",
            "PyObject_Vectorcall",
            "PyObject_Call.localalias",
            "partial_vectorcall",
            "type_call",
            "slot_tp_init.lto_priv.0",
        ] {
            assert!(is_plumbing(symbol), "{symbol}");
        }
        for symbol in
            ["", "builtin_sorted", "list_sort", "PyNumber_Add", "type_new", "set_vectorcall"]
        {
            assert!(!is_plumbing(symbol), "{symbol}");
        }
    }
}
