//! Why a process cannot be asked for anything.

use std::fmt;
use std::fs;
use std::io;

use ungil_core::request::Answer;

use crate::filter::{Call, kills};
use crate::process::Process;

/// Each is a sentence about the process, without a final dot.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such process.
    Gone,
    /// It may not be traced by this one; why not, and what to do.
    Forbidden(String),
    /// Another process traces it.
    Traced(Process),
    /// It has not loaded a C library that can load more.
    NoLoader,
    /// None of its images is a Python.
    NoPython,
    /// It is no 64-bit program of this kind of processor.
    Foreign,
    /// No thread was at a safe place for so long, in seconds.
    NoPlace(u64),
    /// No thread is at a safe place, and none gets to one before it is let go on; its id.
    Stopped(u32),
    /// The loader of the process did not take the hook.
    NotLoaded(String),
    /// It did not answer in time; it was left to finish by itself.
    Silent,
    /// Nobody has written this for this kind of processor.
    Architecture,
    /// The system refused.
    System(&'static str, io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("there is no such process"),
            Self::Forbidden(why) => write!(formatter, "it may not be traced: {why}"),
            Self::Traced(by) => {
                write!(formatter, "{by} traces it already, and only one process can at a time")
            }
            Self::NoLoader => formatter
                .write_str("it is statically linked, so no loader can load the hook into it"),
            Self::NoPython => write!(formatter, "{}", Answer::NoInterpreter),
            Self::Foreign => formatter.write_str("it is not a 64-bit program for this machine"),
            Self::NoPlace(seconds) => write!(
                formatter,
                "within {seconds} s, none of its threads reached a place where ungil can \
                 interrupt it safely; \
                 try again"
            ),
            Self::Stopped(pid) => write!(
                formatter,
                "it is stopped where ungil cannot interrupt it safely; let it go on (kill -CONT \
                 {pid}) and try again"
            ),
            Self::NotLoaded(why) => write!(formatter, "it could not load the hook: {why}"),
            Self::Silent => {
                formatter.write_str("it did not answer in time, and runs on; another try may work")
            }
            Self::Architecture => formatter.write_str(
                "ungil can attach to a running process on x86-64 only; start it under ungil run",
            ),
            Self::System(what, error) => {
                let error = error.to_string();
                let error = error.split(" (os error").next().unwrap_or_default();
                write!(formatter, "{what}: {}", error.to_lowercase())
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// What can be told before anything is tried.
pub fn refuse_early(process: Process) -> Result<(), Refusal> {
    if !process.folder().exists() {
        return Err(Refusal::Gone);
    }
    match process.tracer() {
        Some(by) => Err(Refusal::Traced(by)),
        None if kills(Call::Trace) => Err(Refusal::Forbidden(
            "a seccomp filter kills processes that call ptrace here; start it with standby (ungil \
             run --env \
             --standby)"
                .to_owned(),
        )),
        None => Ok(()),
    }
}

/// The process could not be looked into, or a thread of it not be traced.
pub fn forbidden(process: Process, error: io::Error) -> Refusal {
    let refused = [libc::EPERM, libc::EACCES].map(Some);
    if !refused.contains(&error.raw_os_error()) {
        return lost(process)(error);
    }
    if let Some(by) = process.tracer() {
        return Refusal::Traced(by);
    }
    let owner = process.number("Uid");
    // SAFETY: geteuid has no preconditions.
    let own = u64::from(unsafe { libc::geteuid() });
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let why = match (owner, scope.trim()) {
        (Some(owner), _) if owner != own && own != 0 => {
            format!("it belongs to user {owner}; run this as that user or as root")
        }
        (_, "3") => "this kernel lets no process trace another (kernel.yama.ptrace_scope is 3); \
                     start it with \
                     standby (ungil run --env --standby)"
            .to_owned(),
        (_, "1" | "2") if !may_trace() => {
            "this kernel lets only root trace a process that is not its child \
             (kernel.yama.ptrace_scope); \
             use sudo, or sysctl kernel.yama.ptrace_scope=0, or start it with standby (ungil run \
             --env --standby)"
                .to_owned()
        }
        _ if !may_trace() => {
            "the capability CAP_SYS_PTRACE is missing; give it to this container (docker run \
             --cap-add SYS_PTRACE), or start it with standby (ungil run --env --standby)"
                .to_owned()
        }
        _ => "a security module or a seccomp filter forbids ptrace here; start it with standby \
              (ungil run --env --standby)"
            .to_owned(),
    };
    Refusal::Forbidden(why)
}

/// A step failed: mostly because the process has ended meanwhile.
pub fn lost(process: Process) -> impl Fn(io::Error) -> Refusal {
    move |error| {
        let is_gone = error.raw_os_error() == Some(libc::ESRCH) || !process.folder().exists();
        if is_gone { Refusal::Gone } else { Refusal::System("it cannot be inspected", error) }
    }
}

/// Whether this process has the capability to trace others.
fn may_trace() -> bool {
    /// `CAP_SYS_PTRACE` of `<linux/capability.h>`.
    const PTRACE: u32 = 19;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    effective >> PTRACE & 1 == 1
}
