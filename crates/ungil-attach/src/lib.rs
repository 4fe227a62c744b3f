//! A way into a process that already runs, without a debugger, and without a change of it: a thread
//! of it is borrowed for some milliseconds (ptrace), loads the hook, and hands it a request.
//!
//! The process is never harmed. A thread is borrowed only where it may call any function: in a
//! blocking system call, or in the evaluation loop itself, and in no signal handler ([`place`]). All
//! others run on. It gets a signal frame to come back by ([`frame`]), so that it does so by itself
//! if the tracer is killed meanwhile; else it goes on exactly where it was, its system call included.

pub mod process;
pub mod memory;
pub mod image;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only an attempt has its causes")
)]
mod refusal;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod place;
#[cfg(target_arch = "x86_64")]
mod frame;
#[cfg(target_arch = "x86_64")]
mod borrowed;
#[cfg(target_arch = "x86_64")]
mod attach;

pub use refusal::Refusal;

use std::path::Path;
use std::time::Duration;
use ungil_core::request::{Answer, Request};

/// The number of what `ptrace` is to do, as glibc declares it.
#[cfg(not(target_env = "musl"))]
pub type PtraceRequest = libc::c_uint;
/// The number of what `ptrace` is to do, as musl declares it.
#[cfg(target_env = "musl")]
pub type PtraceRequest = libc::c_int;

/// A process was asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What it answered.
    pub answer: Answer,
    /// The longest time for which a thread of it did not do its own work.
    pub stopped: Duration,
}

/// Has process `pid` do what `request` says, and loads `hook` into it if it has none. The process is
/// one of this machine's, maybe in a container.
///
/// # Errors
/// Why it could not be asked; it goes on as if nothing had been tried.
#[cfg(target_arch = "x86_64")]
pub fn ask(pid: u32, hook: &Path, request: &Request) -> Result<Asked, Refusal> {
    attach::ask(pid, hook, request)
}

/// The same where nobody has written it yet.
///
/// # Errors
/// [`Refusal::Architecture`].
#[cfg(not(target_arch = "x86_64"))]
pub fn ask(_pid: u32, _hook: &Path, _request: &Request) -> Result<Asked, Refusal> {
    Err(Refusal::Architecture)
}
