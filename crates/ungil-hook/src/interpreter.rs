//! The interpreter in this process: which it is, whether its GIL can be seen, and the redirection
//! of its calls.

use crate::image::{self, Image};
use crate::{cond, gil, handoff, lock, process, sem};
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

/// The address of a function.
#[derive(Clone, Copy)]
struct Replacement(*const c_void);

// SAFETY: functions are not changed.
unsafe impl Sync for Replacement {}

static CONDITION_CALLS: [(&CStr, Replacement); 6] = [
    // The first two before what makes work for them.
    (c"pthread_mutex_unlock", Replacement(handoff::unlock as *const c_void)),
    (c"pthread_mutex_lock", Replacement(handoff::lock as *const c_void)),
    (c"pthread_cond_wait", Replacement(handoff::wait as *const c_void)),
    (c"pthread_cond_init", Replacement(cond::init as *const c_void)),
    (c"pthread_cond_timedwait", Replacement(cond::timedwait as *const c_void)),
    (c"pthread_cond_signal", Replacement(cond::signal as *const c_void)),
];
/// What its other locks are made of, as far as it makes these calls.
static LOCK_CALLS: [(&CStr, Replacement); 3] = [
    (c"sem_post", Replacement(lock::post as *const c_void)),
    (c"sem_wait", Replacement(lock::wait as *const c_void)),
    (c"sem_timedwait", Replacement(lock::timed_wait as *const c_void)),
];
static SEMAPHORE_CALLS: [(&CStr, Replacement); 3] = [
    (c"sem_init", Replacement(sem::init as *const c_void)),
    (c"sem_wait", Replacement(sem::wait as *const c_void)),
    (c"sem_post", Replacement(sem::post as *const c_void)),
];

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

    /// Whether it can be hooked, and if not, why. A free-threaded one is hooked all the same,
    /// because its GIL can be switched on (`PYTHON_GIL=1`, or an import that asks for it).
    pub fn status(&self) -> Status {
        match &self.make {
            Make::PyPy => Status::PyPy,
            _ if !self.makes_its_calls() => Status::UnknownInterpreter,
            Make::Conditions { runtime } if is_free_threaded(runtime) => Status::FreeThreaded,
            _ => Status::Hooked,
        }
    }

    /// Whether a policy can be put in place of this interpreter's own.
    pub fn can_be_scheduled(&self) -> bool {
        matches!(self.make, Make::Conditions { .. }) && self.status() == Status::Hooked
    }

    /// Redirects the calls that the GIL is made of, and a few around them.
    pub fn hook(&self, seen: gil::Seen) {
        let Some(image) = image() else { return };
        match &self.make {
            Make::Conditions { runtime } => gil::expect_main(runtime.clone(), seen),
            Make::Semaphore => sem::find_ticker(),
            Make::PyPy | Make::Unknown => return,
        }
        // Not what a GIL is made of, so they need not be there.
        image.redirect(c"_exit", process::exit_at_once as *const c_void);
        image.redirect(c"clock_nanosleep", cond::nanosleep as *const c_void);
        if matches!(self.make, Make::Conditions { .. }) {
            for &(name, replacement) in &LOCK_CALLS {
                image.redirect(name, replacement.0);
            }
            if lock::has_clock_wait() {
                image.redirect(c"sem_clockwait", lock::clock_wait as *const c_void);
            }
        }
        for &(name, replacement) in self.calls() {
            image.redirect(name, replacement.0);
        }
    }

    /// Whether this build makes the calls that its GIL is said to be made of.
    fn makes_its_calls(&self) -> bool {
        let calls = self.calls();
        !calls.is_empty()
            && image().is_some_and(|image| calls.iter().all(|(name, _)| image.calls(name)))
    }

    /// The calls that the GIL is made of, and what stands in for each.
    fn calls(&self) -> &'static [(&'static CStr, Replacement)] {
        match self.make {
            Make::Conditions { .. } => &CONDITION_CALLS,
            Make::Semaphore => &SEMAPHORE_CALLS,
            Make::PyPy | Make::Unknown => &[],
        }
    }
}

/// Redirects only what is called before there is a second thread and cannot be made up for: takes
/// note of where the GILs are, and of an end without `exit`.
pub fn hook_beginnings() {
    let Some(image) = image() else { return };
    image.redirect(c"_exit", process::exit_at_once as *const c_void);
    image.redirect(c"pthread_cond_init", cond::init as *const c_void);
}

/// The image that makes the calls.
fn image() -> Option<Image> {
    // The address of any function leads there; that of data may lie in the executable, if it
    // holds a copy.
    image::symbol(c"Py_GetVersion").and_then(Image::containing)
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
