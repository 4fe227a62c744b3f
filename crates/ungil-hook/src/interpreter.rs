//! The interpreter in this process: which it is, whether its GIL can be seen, and the redirection
//! of its calls.

use crate::image::{self, Image};
use crate::{cond, gil, handoff, process, sem};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use ungil_core::table::Status;

/// How an interpreter builds its GIL.
enum Make {
    /// `CPython` >= 3.7: a mutex and two condition variables inside `_PyRuntime`
    /// (`Python/ceval_gil.c`).
    Conditions {
        /// Addresses of `_PyRuntime`.
        runtime: Range<usize>,
    },
    /// `CPython` 2.7: one semaphore (`Python/thread_pthread.h`).
    Semaphore,
    /// None that is made of libc calls.
    PyPy,
    /// Made of calls, but on what is not known (CPython 3.2 to 3.6).
    Unknown,
}

/// An interpreter found in this process.
pub struct Interpreter {
    make: Make,
}

impl Interpreter {
    /// The interpreter among the images that were loaded at start, if any.
    pub fn find() -> Option<Self> {
        let make = if let Some(runtime) = image::symbol(c"_PyRuntime") {
            let start = runtime as usize;
            Make::Conditions { runtime: start..start + image::size_of_symbol(runtime)? }
        } else if image::symbol(c"pypy_main_startup").is_some()
            || image::symbol(c"pypy_execute_source").is_some()
        {
            Make::PyPy
        } else if image::symbol(c"Py_GetVersion").is_none() {
            return None;
        } else if version().to_bytes().starts_with(b"2.") {
            Make::Semaphore
        } else {
            Make::Unknown
        };
        Some(Self { make })
    }

    /// Why this interpreter cannot be hooked, if that is known without trying.
    pub fn unsupported(&self) -> Option<Status> {
        match self.make {
            Make::PyPy => Some(Status::PyPy),
            Make::Unknown => Some(Status::UnknownInterpreter),
            Make::Conditions { .. } | Make::Semaphore => None,
        }
    }

    /// What a hooked interpreter of this kind reports. A free-threaded one is hooked all the
    /// same, because its GIL can be switched on (`PYTHON_GIL=1`, or an import that asks for it).
    pub fn status(&self) -> Status {
        match &self.make {
            Make::Conditions { runtime } if is_free_threaded(runtime) => Status::FreeThreaded,
            _ => Status::Hooked,
        }
    }

    /// Whether a policy can be put in place of this interpreter's own.
    pub fn can_be_scheduled(&self) -> bool {
        matches!(self.make, Make::Conditions { .. }) && self.status() == Status::Hooked
    }

    /// Redirects the calls that the GIL is made of. `false` if this build does not make them.
    pub fn hook(&self, seen: gil::Seen) -> bool {
        // Any function's address leads to the image that contains the calls; the address of data
        // may lie in the executable, if it holds a copy.
        let Some(image) = image::symbol(c"Py_GetVersion").and_then(Image::containing) else {
            return false;
        };
        let redirect = |name, to: *const c_void| image.redirect(name, to) > 0;
        // Not what a GIL is made of, so they need not be there.
        redirect(c"_exit", process::exit_at_once as *const c_void);
        redirect(c"clock_nanosleep", cond::nanosleep as *const c_void);
        match &self.make {
            Make::Conditions { runtime } => {
                gil::expect_main(runtime.clone(), seen);
                // The last two before what makes work for them.
                redirect(c"pthread_mutex_unlock", handoff::unlock as *const c_void)
                    && redirect(c"pthread_mutex_lock", handoff::lock as *const c_void)
                    && redirect(c"pthread_cond_wait", handoff::wait as *const c_void)
                    && redirect(c"pthread_cond_init", cond::init as *const c_void)
                    && redirect(c"pthread_cond_timedwait", cond::timedwait as *const c_void)
                    && redirect(c"pthread_cond_signal", cond::signal as *const c_void)
            }
            Make::Semaphore => {
                sem::find_ticker();
                redirect(c"sem_init", sem::init as *const c_void)
                    && redirect(c"sem_wait", sem::wait as *const c_void)
                    && redirect(c"sem_post", sem::post as *const c_void)
            }
            Make::PyPy | Make::Unknown => false,
        }
    }
}

/// `Py_GetVersion()`, which may be called before the interpreter is initialised.
pub fn version() -> &'static CStr {
    let Some(address) = image::symbol(c"Py_GetVersion") else { return c"" };
    // SAFETY: the function of this name takes nothing and returns a static string in every
    // CPython since 1.5; it only formats constants.
    unsafe {
        let get_version: extern "C" fn() -> *const c_char = std::mem::transmute(address);
        CStr::from_ptr(get_version())
    }
}

/// Whether the interpreter is initialised, and so has made its GIL.
pub fn is_running() -> bool {
    image::symbol(c"Py_IsInitialized").is_some_and(|address| {
        // SAFETY: the function of this name takes nothing and returns an int in every CPython; it
        // only reads a static variable, and may be called before the initialisation.
        let is_initialized: extern "C" fn() -> c_int = unsafe { std::mem::transmute(address) };
        is_initialized() != 0
    })
}

/// Whether `_PyRuntime` begins with debug offsets (3.13 and later) that say so. The layout, a
/// cookie, a version and the flag, is fixed by `Include/internal/pycore_debug_offsets.h`.
fn is_free_threaded(runtime: &Range<usize>) -> bool {
    if runtime.len() < 24 {
        return false;
    }
    // SAFETY: `runtime` is an object of at least three words in a loaded image, statically
    // initialised, and aligned for words.
    let [cookie, _, free_threaded] = unsafe { *(runtime.start as *const [u64; 3]) };
    cookie == u64::from_le_bytes(*b"xdebugpy") && free_threaded == 1
}
