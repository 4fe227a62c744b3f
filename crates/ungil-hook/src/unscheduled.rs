//! One line on stderr from a program that `ungil run` has become, if no GIL was scheduled.
//!
//! Whether a program that is no Python loads one, or starts one, is known only at its end. So the
//! hook in the program itself looks back then. Until then there is a file, the *mark*, into which
//! every process that is scheduled under that `ungil run` writes a byte.

use crate::interpreter::Interpreter;
use crate::session::{RUN, variable};
use crate::system::current_pid;
use crate::{fork_and_exit, image, settings};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use ungil_core::control_page::MARK_PREFIX;
use ungil_core::table::Status;

/// The mark of the `ungil run` that this process descends from.
static MARK: OnceLock<CString> = OnceLock::new();
/// What is known if this is the process that `ungil run` has become.
static PROGRAM: OnceLock<Program> = OnceLock::new();

unsafe extern "C" {
    /// glibc's name of the program, without folders (`<errno.h>`).
    static program_invocation_short_name: *const c_char;
}

struct Program {
    pid: u32,
    name: CString,
    stderr: Option<File>,
    /// Whether nothing has been said yet, and no Python has come.
    is_silent: AtomicBool,
}

/// Which file a descriptor refers to.
#[derive(PartialEq)]
struct File {
    device: libc::dev_t,
    inode: libc::ino_t,
    special: libc::dev_t,
}

/// Keeps what the environment says. Only for the constructor.
pub fn on_load() {
    if let Some(mark) = variable(RUN) {
        let _ = MARK.set(mark.to_owned());
    }
}

/// There is no interpreter yet. Only for the constructor.
pub fn await_python() {
    let Some(mark) = MARK.get().filter(|mark| is_own(mark)) else { return };
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated.
    let file = unsafe { libc::open(mark.as_ptr(), flags, 0o600) };
    if file < 0 {
        return; // Then nobody could tell us.
    }
    // A server that root starts has workers of another user.
    // SAFETY: takes integers.
    unsafe { libc::fchmod(file, 0o622) };
    // SAFETY: `file` was just opened here.
    unsafe { libc::close(file) };
    // Some shells end so.
    image::program()
        .inspect(|it| it.redirect(c"_exit", fork_and_exit::exit_at_once as *const c_void));
    // SAFETY: libc has set this variable to a C string before constructors run.
    let name = unsafe { CStr::from_ptr(program_invocation_short_name) }.to_owned();
    let _ = PROGRAM.set(Program {
        pid: current_pid(),
        name,
        stderr: file_of(libc::STDERR_FILENO),
        is_silent: AtomicBool::new(true),
    });
}

/// A GIL of this process is scheduled.
pub fn scheduled() {
    let Some(mark) = MARK.get() else { return };
    if is_own(mark) {
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::unlink(mark.as_ptr()) };
        return;
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated.
    let file = unsafe { libc::open(mark.as_ptr(), flags) };
    if file >= 0 {
        // SAFETY: one readable byte.
        unsafe { libc::write(file, c"1".as_ptr().cast(), 1) };
        // SAFETY: `file` was just opened here.
        unsafe { libc::close(file) };
    }
}

/// The interpreter that this process has loaded cannot be scheduled.
pub fn came_in_vain(status: Status) {
    let why = match status {
        Status::PyPy => "it is PyPy, whose GIL does not use the C library",
        _ => "it is older than Python 3.7, or of a build that ungil does not know",
    };
    if let Some(program) = still_silent() {
        let name = program.name.to_bytes();
        program.say(&[b"the Python that ", name, b" loaded is not scheduled: ", why.as_bytes()]);
    }
}

/// The process is about to end.
pub fn on_exit() {
    let (Some(program), Some(mark)) = (still_silent(), MARK.get()) else { return };
    // SAFETY: all-zero is a valid stat.
    let mut facts: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, `facts` valid for writing.
    let is_empty = unsafe { libc::lstat(mark.as_ptr(), &raw mut facts) } == 0 && facts.st_size == 0;
    // SAFETY: the path is NUL-terminated.
    unsafe { libc::unlink(mark.as_ptr()) };
    if !is_empty {
        return;
    }
    let name = program.name.to_bytes();
    if Interpreter::find().is_some() {
        program.say(&[
            b"no GIL was scheduled: ",
            name,
            b" loaded a Python, but did not start it, or loaded it in a way that hides it from \
              ungil (RTLD_DEEPBIND)",
        ]);
    } else {
        program.say(&[
            b"no GIL was scheduled: neither ",
            name,
            b" nor a program that it started has loaded a Python that ungil can schedule",
        ]);
    }
}

/// The program that `ungil run` has become, if this is its process and a word is due.
fn still_silent() -> Option<&'static Program> {
    PROGRAM.get().filter(|it| it.pid == current_pid() && it.is_silent.load(Relaxed))
}

impl Program {
    /// Writes a line to stderr, unless that is another file by now.
    fn say(&self, parts: &[&[u8]]) {
        self.is_silent.store(false, Relaxed);
        if self.stderr.is_none() || file_of(libc::STDERR_FILENO) != self.stderr {
            return;
        }
        let mut line = [0u8; 512];
        let mut length = 0;
        for part in [b"ungil: ".as_slice()].iter().chain(parts).chain([&b"\n".as_slice()]) {
            let fits = part.len().min(line.len() - length);
            line[length..length + fits].copy_from_slice(&part[..fits]);
            length += fits;
        }
        // SAFETY: `line` is readable. Nothing can be done where it cannot be written.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
    }
}

/// Whether `mark` is that of this process.
fn is_own(mark: &CStr) -> bool {
    CStr::from_bytes_until_nul(&settings::path(MARK_PREFIX)).is_ok_and(|own| own == mark)
}

fn file_of(descriptor: c_int) -> Option<File> {
    // SAFETY: all-zero is a valid stat.
    let mut facts: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `facts` is valid for writing.
    let is_open = unsafe { libc::fstat(descriptor, &raw mut facts) } == 0;
    is_open.then_some(File { device: facts.st_dev, inode: facts.st_ino, special: facts.st_rdev })
}
