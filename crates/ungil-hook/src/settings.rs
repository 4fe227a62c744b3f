//! The policy of this process: where it comes from, and the page through which it can be changed
//! from outside.

use crate::session::{decimal, variable};
use crate::system::{current_pid, keeping_errno, may_grow_to, pid_namespace};
use libc::{c_int, c_void};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use ungil_core::control_page::{
    CONTROL_ABI, CONTROL_BYTES, CONTROL_FOLDER, CONTROL_MAGIC, CONTROL_PREFIX, Control,
};
use ungil_core::schedule::{Policy, Settings};

/// Environment variable that names the policy.
pub const POLICY: &CStr = c"UNGIL_POLICY";
/// Environment variable that holds the quantum in milliseconds.
pub const QUANTUM: &CStr = c"UNGIL_QUANTUM";

/// Obeyed where there is no shared page, and the start of every page.
static OWN: Control = Control::new();
/// The page in force.
static PAGE: AtomicPtr<Control> = AtomicPtr::new((&raw const OWN).cast_mut());
/// Whether this process, a child after fork, has still to make a page of its own.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Whether children after fork are left to CPython.
static LEAVE_CHILDREN: AtomicBool = AtomicBool::new(false);

/// What the environment asks for. Only for the constructor.
pub fn from_environment() -> Option<Settings> {
    let policy: Policy = variable(POLICY)?.to_str().ok()?.parse().ok()?;
    let quantum_ns = variable(QUANTUM)
        .and_then(|text| text.to_str().ok()?.parse::<f64>().ok())
        .filter(|ms| ms.is_finite() && *ms > 0.0)
        .map_or(policy.quantum_ns(), |ms| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            let ns = (ms * 1e6) as u64;
            ns.max(1)
        });
    Some(Settings { policy, quantum_ns })
}

/// Whether there is a page, or was to be one.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether the page says that nobody looks at it unless a signal comes.
static IS_STANDBY: AtomicBool = AtomicBool::new(false);

/// Obeys `settings`, and a page that others can write to. So do children after fork,
/// unless they are to be left alone.
pub fn start(settings: Settings, leave_children: bool) {
    if STARTED.swap(true, Relaxed) {
        return; // Another interpreter, after the first was unloaded.
    }
    LEAVE_CHILDREN.store(leave_children, Relaxed);
    OWN.set_settings(settings);
    share();
}

/// Makes a page through which this process can be asked for something, and follows no policy.
pub fn stand_by(leave_children: bool) {
    IS_STANDBY.store(true, Relaxed);
    start(Policy::Stock.into(), leave_children);
}

/// Obeys nobody any more: the GIL is CPython's, and there is no page. No thread waits in a line.
pub fn stop() {
    if !STARTED.swap(false, Relaxed) {
        return;
    }
    OWN.set_settings(Policy::Stock.into());
    let page = PAGE.swap((&raw const OWN).cast_mut(), Acquire);
    if std::ptr::eq(page, &raw const OWN) {
        return;
    }
    // SAFETY: `path` is NUL-terminated.
    unsafe { libc::unlink(path(CONTROL_PREFIX).as_ptr().cast()) };
    // A thread may be looking at it just now: it keeps its address, and says what `OWN` says.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: it replaces a mapping of ours, of which every content is valid, zeroes as well.
    unsafe { libc::mmap(page.cast(), CONTROL_BYTES, access, flags, -1, 0) };
}

/// The page in force.
#[inline]
pub fn page() -> &'static Control {
    // SAFETY: `OWN`, or a mapping that is never unmapped but in the child of a fork.
    unsafe { &*PAGE.load(Acquire) }
}

/// Whether others can see the policy, and change it.
pub fn is_reachable() -> bool {
    // A child after fork makes its page when it is asked for it.
    in_force();
    !std::ptr::eq(page(), &raw const OWN)
}

/// What is in force.
#[inline]
pub fn in_force() -> Settings {
    if FORKED.load(Relaxed) {
        keeping_errno(share_after_fork);
    }
    page().settings()
}

/// Changes what is in force.
pub fn change(settings: Settings) {
    page().set_settings(settings);
}

/// In a child after fork: until it needs it, it has no page of its own.
pub fn after_fork() {
    let parents = PAGE.swap((&raw const OWN).cast_mut(), Acquire);
    if !std::ptr::eq(parents, &raw const OWN) {
        // SAFETY: a mapping made by `share`, which begins with a `Control`.
        OWN.set_settings(unsafe { &*parents }.settings());
        // SAFETY: it is so long, and nothing in the child refers to it any more.
        unsafe { libc::munmap(parents.cast(), CONTROL_BYTES) };
        FORKED.store(true, Relaxed);
    }
    if LEAVE_CHILDREN.load(Relaxed) {
        FORKED.store(false, Relaxed);
        OWN.set_settings(Policy::Stock.into());
    }
}

#[cold]
fn share_after_fork() {
    if FORKED.swap(false, Relaxed) {
        share();
    }
}

/// Makes the page of this process. Without one, nobody can change its policy from outside.
fn share() {
    let path = path(CONTROL_PREFIX);
    let name = path.as_ptr().cast();
    // SAFETY: `path` is NUL-terminated. A page of this name was left by a process that was killed
    // and had our number.
    unsafe { libc::unlink(name) };
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `path` is NUL-terminated.
    let file = unsafe { libc::open(name, flags, 0o600) };
    if file < 0 {
        return;
    }
    let start = map(file);
    // SAFETY: `file` was opened here; a mapping needs it no longer.
    unsafe { libc::close(file) };
    if start == libc::MAP_FAILED {
        // SAFETY: `path` is NUL-terminated.
        unsafe { libc::unlink(name) };
        return;
    }
    // SAFETY: a new mapping of a new file of that length.
    unsafe { publish(start) };
}

/// Gives a new file its length, and maps it.
fn map(file: c_int) -> *mut c_void {
    let bytes = CONTROL_BYTES.cast_signed() as libc::off_t;
    if !may_grow_to(CONTROL_BYTES) {
        return libc::MAP_FAILED;
    }
    // Allocated, not only made long: touching it must not raise SIGBUS when memory is full.
    // SAFETY: takes integers.
    if unsafe { libc::fallocate(file, 0, 0, bytes) } != 0 {
        return libc::MAP_FAILED;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe { libc::mmap(null_mut(), CONTROL_BYTES, access, libc::MAP_SHARED, file, 0) }
}

/// # Safety
/// `start` is a new mapping of [`CONTROL_BYTES`] zeroes.
unsafe fn publish(start: *mut c_void) {
    let page: *mut Control = start.cast();
    // SAFETY: the caller's promise; a mapping is aligned for everything, and zeroes are valid.
    let control = unsafe { &*page };
    control.abi.store(CONTROL_ABI, Relaxed);
    control.pid.store(current_pid(), Relaxed);
    control.standby.store(u32::from(IS_STANDBY.load(Relaxed)), Relaxed);
    control.set_settings(OWN.settings());
    control.magic.store(CONTROL_MAGIC, Release);
    PAGE.store(page, Release);
}

/// Runs at `exit`: takes the page's name away. What a killed process leaves, the next `ungil run`
/// clears away.
pub fn on_exit() {
    if !std::ptr::eq(PAGE.load(Acquire), &raw const OWN) {
        // SAFETY: `path` is NUL-terminated.
        unsafe { libc::unlink(path(CONTROL_PREFIX).as_ptr().cast()) };
    }
}

/// `/dev/shm/<prefix><user>-<namespace>-<process>`, NUL-terminated, without allocating. The
/// containers of a pod share that folder, and each has a process 1.
pub fn path(prefix: &str) -> [u8; 64] {
    let mut path = [0u8; 64];
    let mut length = 0;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let (mut first, mut second, mut third) = ([0u8; 10], [0u8; 10], [0u8; 10]);
    let parts: [&[u8]; 7] = [
        CONTROL_FOLDER.as_bytes(),
        prefix.as_bytes(),
        decimal(user, &mut first),
        b"-",
        decimal(pid_namespace(), &mut second),
        b"-",
        decimal(current_pid(), &mut third),
    ];
    for part in parts {
        path[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    path
}
