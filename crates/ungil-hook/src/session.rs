//! The recording that this process is asked to join.

use crate::{settings, slice, standby};
use libc::c_int;
use std::ffi::{CStr, CString};
use ungil_core::brings_hook;
use ungil_core::request::{LONGEST_SESSION, Request};
use ungil_core::tick::Tick;

/// Environment variable that names the session directory.
const SESSION: &CStr = c"UNGIL_SESSION";
/// Environment variable that is "0" if child processes are to be left alone.
const CHILDREN: &CStr = c"UNGIL_CHILDREN";
/// Environment variable that names the mark of an `ungil run` (see `unscheduled.rs`).
pub const RUN: &CStr = c"UNGIL_RUN";
/// Environment variable that holds how long a tick of the processor's counter is, in 2^-32 ns, if
/// times are to be taken from it.
const TICK: &CStr = c"UNGIL_TICK";

/// A session directory, and who is to use it. In one piece: it may be kept in a signal handler.
#[derive(Clone, Copy)]
pub struct Session {
    directory: [u8; LONGEST_SESSION],
    directory_bytes: usize,
    /// Whether child processes are recorded too.
    pub follow_children: bool,
    /// How long a tick of the processor's counter is, if times are to be taken from it.
    pub tick: Option<Tick>,
}

impl Session {
    /// The session named in the environment, if any. Only for the constructor.
    pub fn from_environment() -> Option<Self> {
        let tick = variable(TICK).and_then(|text| text.to_str().ok()?.parse().ok());
        let tick = tick.map(Tick::from_fraction);
        Self::new(variable(SESSION)?.to_bytes(), !leaves_children_alone(), tick)
    }

    /// The session that a running process is asked to join.
    pub fn requested(request: &Request) -> Option<Self> {
        Self::new(request.session()?, request.follows_children(), request.tick())
    }

    /// `None` if the path is too long.
    fn new(path: &[u8], follow_children: bool, tick: Option<Tick>) -> Option<Self> {
        let mut directory = [0; LONGEST_SESSION];
        directory.get_mut(..path.len())?.copy_from_slice(path);
        Some(Self { directory, directory_bytes: path.len(), follow_children, tick })
    }

    /// Opens `<session>/<pid>-<number>` without allocating: this runs in children after fork.
    pub fn open_table(&self, pid: u32, number: u32, flags: c_int) -> Option<c_int> {
        let mut path = [0u8; LONGEST_SESSION + 32];
        let directory = &self.directory[..self.directory_bytes];
        path[..directory.len()].copy_from_slice(directory);
        let mut length = directory.len();
        for (separator, value) in [(b'/', pid), (b'-', number)] {
            path[length] = separator;
            length += 1;
            let mut digits = [0u8; 10];
            let digits = decimal(value, &mut digits);
            path[length..length + digits.len()].copy_from_slice(digits);
            length += digits.len();
        }
        // SAFETY: `path` is NUL-terminated, because it began as zeroes and is not full.
        let file = unsafe {
            libc::open(path.as_ptr().cast(), flags | libc::O_CLOEXEC | libc::O_NOFOLLOW, 0o600)
        };
        (file >= 0).then_some(file)
    }
}

/// Whether child processes are to be left alone.
pub fn leaves_children_alone() -> bool {
    variable(CHILDREN).is_some_and(|value| value == c"0")
}

/// Takes ungil's variables, and what brings this library out of `LD_PRELOAD`, so that programs started by
/// this one are left alone. It allocates; `Py_Initialize` sets variables at the same moment.
pub fn leave_environment() {
    let preload = variable(c"LD_PRELOAD").unwrap_or_default().to_bytes();
    let is_ours = |path: &&[u8]| path.rsplit(|&it| it == b'/').next().is_some_and(brings_hook);
    let others = preload
        .split(|&byte| byte == b':' || byte == b' ')
        .filter(|path| !path.is_empty() && !is_ours(path))
        .collect::<Vec<_>>()
        .join(&b':');
    // No other thread reads the environment: constructors run before there are any, and an
    // interpreter that is initialised later changes it, too.
    let unset = |name: &CStr| {
        // SAFETY: the name is NUL-terminated, and no other thread reads the environment.
        unsafe { libc::unsetenv(name.as_ptr()) };
    };
    let policy = [settings::POLICY, settings::QUANTUM, slice::SLICE, standby::STANDBY];
    for name in [SESSION, CHILDREN, RUN, TICK].into_iter().chain(policy) {
        unset(name);
    }
    match CString::new(others) {
        Ok(others) if !others.is_empty() => {
            // SAFETY: both are NUL-terminated, and no other thread reads the environment.
            unsafe { libc::setenv(c"LD_PRELOAD".as_ptr(), others.as_ptr(), 1) };
        }
        _ => unset(c"LD_PRELOAD"),
    }
}

pub fn variable(name: &CStr) -> Option<&CStr> {
    // SAFETY: the name is NUL-terminated; no other thread runs in a constructor.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: getenv returns null or a NUL-terminated string, which stays as long as nobody
    // changes the environment; every user copies it first.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The decimal digits of `value`, in the end of `digits`.
pub fn decimal(value: u32, digits: &mut [u8; 10]) -> &[u8] {
    let (mut first, mut rest) = (digits.len(), value);
    loop {
        first -= 1;
        digits[first] = b"0123456789"[(rest % 10) as usize];
        rest /= 10;
        if rest == 0 {
            return &digits[first..];
        }
    }
}
