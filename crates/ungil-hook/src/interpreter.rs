//! The interpreter in this process: which it is, whether its GIL can be seen, and the redirection
//! of its calls.

use crate::image::{self, Image, Symbol};
use crate::{cond, fork_and_exit, free_threaded, gil, handoff, lock, park, redirection, sem};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use ungil_core::table::Status;
use ungil_core::{CPYTHON_FUNCTION, PYPY_FUNCTIONS};

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
pub struct Replacement(pub *const c_void);

// SAFETY: functions are not changed.
unsafe impl Sync for Replacement {}

static CONDITION_CALLS: [(&CStr, Replacement); 3] = [
    (c"pthread_cond_init", Replacement(cond::init as *const c_void)),
    (c"pthread_cond_timedwait", Replacement(cond::timedwait as *const c_void)),
    (c"pthread_cond_signal", Replacement(cond::signal as *const c_void)),
];
/// What goes with the ones above under a policy.
static HANDOFF_CALLS: [(&CStr, Replacement); 3] = [
    // The first two before what makes work for them.
    (c"pthread_mutex_unlock", Replacement(handoff::unlock as *const c_void)),
    (c"pthread_mutex_lock", Replacement(handoff::lock as *const c_void)),
    (c"pthread_cond_wait", Replacement(handoff::wait as *const c_void)),
];
/// What threads wait for locks with. Those that it does not make are left out.
static PARK_CALLS: [(&CStr, Replacement); 5] = [
    (c"sem_trywait", Replacement(park::try_wait as *const c_void)),
    (c"sem_post", Replacement(park::post as *const c_void)),
    (c"sem_wait", Replacement(park::wait as *const c_void)),
    (c"sem_timedwait", Replacement(park::timed_wait as *const c_void)),
    (c"sem_clockwait", Replacement(park::clock_wait as *const c_void)),
];
static SEMAPHORE_CALLS: [(&CStr, Replacement); 3] = [
    (c"sem_init", Replacement(sem::init as *const c_void)),
    (c"sem_wait", Replacement(sem::wait as *const c_void)),
    (c"sem_post", Replacement(sem::post as *const c_void)),
];

/// An interpreter found in this process. It must not be used once its image may have been unloaded.
pub struct Interpreter {
    make: Make,
    /// The image that makes the calls. Its functions lead there; of its variables the program may
    /// hold a copy.
    image: Image,
}

impl Interpreter {
    /// The first interpreter among the images that are loaded now, if any.
    pub fn find() -> Option<Self> {
        image::find(Self::in_image)
    }

    fn in_image(image: Image) -> Option<Self> {
        let is_pypy = PYPY_FUNCTIONS.into_iter().any(|name| image.symbol(name).is_some());
        if !is_pypy && image.symbol(CPYTHON_FUNCTION).is_none() {
            return None;
        }
        let mut interpreter = Self { make: Make::PyPy, image };
        if let Some(Symbol { address, size }) = interpreter.variable(c"_PyRuntime") {
            interpreter.make = Make::Conditions { runtime: address..address + size };
        } else if !is_pypy {
            let is_old = interpreter.version().to_bytes().starts_with(b"2.");
            interpreter.make = if is_old { Make::Semaphore } else { Make::Unknown };
        }
        Some(interpreter)
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

    /// Whether a policy can be put in place of this interpreter's own. In a free-threaded one it
    /// is in force whenever the GIL is on.
    pub fn can_be_scheduled(&self) -> bool {
        matches!(self.make, Make::Conditions { .. })
            && matches!(self.status(), Status::Hooked | Status::FreeThreaded)
    }

    /// Whether its calls, or those of its beginning, have been redirected.
    pub fn is_hooked(&self) -> bool {
        [(c"pthread_cond_init", cond::init as *const c_void), (c"sem_init", sem::init as _)]
            .into_iter()
            .any(|(name, replacement)| self.image.leads(name, replacement))
    }

    /// Whether it calls `pthread_condattr_setclock`.
    pub fn sets_clocks(&self) -> bool {
        self.image.calls(c"pthread_condattr_setclock")
    }

    /// Redirects the calls that the GIL is made of, and a few around them.
    pub fn hook(&self, seen: gil::Seen) {
        match &self.make {
            Make::Conditions { runtime } => {
                free_threaded::expect(is_free_threaded(runtime));
                gil::expect_in(runtime);
                gil::expect_main(seen);
                lock::find_clock_wait();
                if free_threaded::is_build() {
                    park::prepare(self, runtime);
                }
            }
            Make::Semaphore => sem::find_ticker(self),
            Make::PyPy | Make::Unknown => return,
        }
        // Not what a GIL is made of, so they need not be there.
        self.redirect_exit();
        self.image.redirect(c"pthread_cond_destroy", cond::destroy as *const c_void);
        self.image.redirect(c"clock_nanosleep", cond::nanosleep as *const c_void);
        if free_threaded::is_build() {
            // A thread looks whether a lock is free, before it parks.
            self.image.redirect(c"sched_yield", park::yields as *const c_void);
        }
        for &(name, replacement) in self.handoff_calls() {
            self.image.redirect_later(name, replacement.0, &handoff::CALLS);
        }
        for &(name, replacement) in self.calls().iter().chain(self.park_calls()) {
            self.image.redirect(name, replacement.0);
        }
    }

    /// Makes all calls lead to libc again. Threads that are in one of ours come back from there.
    pub fn unhook() {
        handoff::leave();
        redirection::MADE.undo();
        redirection::MADE.forget();
    }

    /// Redirects only what is called before there is a second thread and cannot be made up for:
    /// takes note of where the GILs are, and of an end without `exit`.
    pub fn hook_beginnings(&self) {
        if let Make::Conditions { runtime } = &self.make {
            free_threaded::expect(is_free_threaded(runtime));
            gil::expect_in(runtime);
        }
        self.redirect_exit();
        self.image.redirect(c"pthread_cond_init", cond::init as *const c_void);
    }

    /// Both the interpreter and the program that loaded it may end the process so.
    fn redirect_exit(&self) {
        for image in [Some(self.image.clone()), image::program()].into_iter().flatten() {
            image.redirect(c"_exit", fork_and_exit::exit_at_once as *const c_void);
        }
    }

    /// Where its variable `name` is: in the program, if that was linked with a copy of it.
    pub fn variable(&self, name: &CStr) -> Option<Symbol> {
        let copy = image::program().and_then(|program| program.symbol(name));
        copy.or_else(|| self.image.symbol(name))
    }

    /// `Py_GetVersion()`, which may be called before the interpreter is initialised. The text is
    /// in the interpreter's image.
    pub fn version(&self) -> &CStr {
        let Some(function) = self.image.symbol(CPYTHON_FUNCTION) else { return c"" };
        // SAFETY: the function of this name takes nothing and returns a string in every CPython
        // since 1.5; it only formats constants.
        let get_version: extern "C" fn() -> *const c_char =
            unsafe { std::mem::transmute(function.address) };
        // SAFETY: the string is static, and NUL-terminated.
        unsafe { CStr::from_ptr(get_version()) }
    }

    /// Whether it has made its GIL, and lets go of it from time to time.
    pub fn is_running(&self) -> bool {
        // Up to 3.6 an interpreter is initialised before it has a GIL, which comes with the first
        // thread; later ones say so before they know whether they have one.
        let question = match self.make {
            Make::Conditions { .. } => c"Py_IsInitialized",
            _ => c"PyEval_ThreadsInitialized",
        };
        self.image.symbol(question).is_some_and(|function| {
            // SAFETY: both functions take nothing and return an int in every CPython; they only
            // read static variables, and may be called before the initialisation.
            let answer: extern "C" fn() -> c_int = unsafe { std::mem::transmute(function.address) };
            answer() != 0
        })
    }

    /// Whether this build makes the calls that its GIL is said to be made of.
    fn makes_its_calls(&self) -> bool {
        let calls = self.calls();
        let mut all = calls.iter().chain(self.handoff_calls());
        !calls.is_empty() && all.all(|(name, _)| self.image.calls(name))
    }

    /// The calls that the GIL is made of, and what stands in for each.
    fn calls(&self) -> &'static [(&'static CStr, Replacement)] {
        match self.make {
            Make::Conditions { .. } => &CONDITION_CALLS,
            Make::Semaphore => &SEMAPHORE_CALLS,
            Make::PyPy | Make::Unknown => &[],
        }
    }

    /// What has to lead to the hook as well once a policy is in force.
    fn handoff_calls(&self) -> &'static [(&'static CStr, Replacement)] {
        match self.make {
            Make::Conditions { .. } => &HANDOFF_CALLS,
            Make::Semaphore | Make::PyPy | Make::Unknown => &[],
        }
    }

    /// What shows threads that wait for locks, with a policy or without.
    fn park_calls(&self) -> &'static [(&'static CStr, Replacement)] {
        match self.make {
            Make::Conditions { .. } => &PARK_CALLS,
            Make::Semaphore | Make::PyPy | Make::Unknown => &[],
        }
    }
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
