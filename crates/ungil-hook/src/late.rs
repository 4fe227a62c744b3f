//! Waiting for an interpreter that is loaded later: by a plugin, by an embedding program, by the
//! loader of a frozen application.
//!
//! `dlopen` itself cannot be stood in for: it searches where its caller's file says, and would
//! take this library for its caller. But an interpreter, before it makes its GIL, calls functions
//! that few others call, and a preloaded library is searched before libc also by libraries that
//! are opened with `RTLD_LOCAL`. So these functions are defined here, look whether there is a new
//! interpreter, and call libc's:
//! * `pthread_condattr_setclock`, from 3.8 on (`init_condattr` in `Python/thread_pthread.h`);
//! * `sem_init`, with which 2.7 and 3.7 make the locks that they need before their GIL.
//!
//! What is opened with `RTLD_DEEPBIND`, or by `dlmopen`, calls libc's at once and is not noticed.

use crate::interpreter::{Interpreter, Replacement};
use crate::next::Next;
use crate::{asked, gil, handoff, image, redirection, sem, system};
use libc::{c_int, c_uint, c_void, clockid_t, pthread_condattr_t, sem_t};
use std::ffi::CStr;
use std::mem::transmute;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// Nothing is asked of this process, or its interpreter is there from its start to its end.
const NOT_AWAITED: u8 = 0;
/// No interpreter is there.
const AWAITED: u8 = 1;
/// One has come, and may be unloaded.
const HERE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NOT_AWAITED);
/// Whether calls of `sem_init` matter: no interpreter is here, or one that makes no others.
static BY_SEMAPHORE: AtomicBool = AtomicBool::new(true);
/// How often images had been added and removed when the last look was over.
static LOOKED_AT: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// The process of which a thread is looking, or 0. A child that was forked meanwhile finds its
/// parent's number.
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// Awaits an interpreter. Only for the constructor.
pub fn watch() {
    looked_at(image::changes());
    STATE.store(AWAITED, Release);
}

/// Looks whether an interpreter has come since the last look. Others that come here meanwhile wait:
/// one of them may be the interpreter, and must not make its GIL before its calls are redirected.
#[cold]
fn look() {
    let changes = image::changes();
    if LOOKED_AT.each_ref().map(|it| it.load(Acquire)) == [changes.added, changes.removed] {
        return;
    }
    let pid = system::current_pid();
    while let Err(other) = LOOKING.compare_exchange(0, pid, AcqRel, Acquire) {
        if other != pid && LOOKING.compare_exchange(other, pid, AcqRel, Acquire).is_ok() {
            break;
        }
        // SAFETY: sched_yield has no preconditions.
        unsafe { libc::sched_yield() };
    }
    system::keeping_errno(meet_newcomers);
    looked_at(changes);
    LOOKING.store(0, Release);
}

fn looked_at(changes: image::Changes) {
    LOOKED_AT[0].store(changes.added, Release);
    LOOKED_AT[1].store(changes.removed, Release);
}

fn meet_newcomers() {
    let found = Interpreter::find();
    if found.as_ref().is_some_and(Interpreter::is_hooked) {
        return;
    }
    if STATE.swap(AWAITED, AcqRel) == HERE {
        // It was unloaded; the next one may lie where it lay.
        gil::forget();
        handoff::forget();
        redirection::MADE.forget();
        BY_SEMAPHORE.store(true, Relaxed);
    }
    // One that runs already has a GIL that nobody knows.
    if let Some(interpreter) = found.filter(|found| !found.is_running()) {
        BY_SEMAPHORE.store(!interpreter.sets_clocks(), Relaxed);
        asked::join(interpreter);
        STATE.store(HERE, Release);
    }
}

/// What is defined here.
pub static STAND_INS: [(&CStr, Replacement); 2] = [
    (c"pthread_condattr_setclock", Replacement(pthread_condattr_setclock as *const c_void)),
    (c"sem_init", Replacement(sem_init as *const c_void)),
];

type SetClock = unsafe extern "C" fn(*mut pthread_condattr_t, clockid_t) -> c_int;
type SemInit = unsafe extern "C" fn(*mut sem_t, c_int, c_uint) -> c_int;

/// Stands in for the function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_condattr_setclock(
    attributes: *mut pthread_condattr_t,
    clock: clockid_t,
) -> c_int {
    static NEXT: Next = Next::new(c"pthread_condattr_setclock");
    if STATE.load(Relaxed) != NOT_AWAITED {
        look();
    }
    let Some(next) = NEXT.address() else {
        return libc::ENOSYS;
    };
    // SAFETY: the next function of this name has its type.
    let next = unsafe { transmute::<*mut c_void, SetClock>(next) };
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { next(attributes, clock) }
}

/// Stands in for the function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_init(sem: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    if STATE.load(Relaxed) != NOT_AWAITED && BY_SEMAPHORE.load(Relaxed) {
        look();
        // This may be 2.7 making its GIL.
        // SAFETY: the caller's own arguments, unchanged.
        return unsafe { sem::init(sem, shared, value) };
    }
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { libc_sem_init(sem, shared, value) }
}

/// The function that `sem_init` above stands in for.
///
/// # Safety
/// As for the function itself.
pub unsafe fn libc_sem_init(sem: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    static NEXT: Next = Next::new(c"sem_init");
    let Some(next) = NEXT.address() else {
        system::set_errno(libc::ENOSYS);
        return -1;
    };
    // SAFETY: the next function of this name has its type.
    let next = unsafe { transmute::<*mut c_void, SemInit>(next) };
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { next(sem, shared, value) }
}
