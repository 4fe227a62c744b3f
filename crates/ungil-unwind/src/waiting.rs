//! Where a thread is that waits in the kernel. `/proc` tells, so it is not stopped.

use std::fs;
use std::io;

use ungil_attach::process::Process;

use crate::refusal::Refusal;
use crate::registers::Registers;

/// What `/proc/PID/task/TID/syscall` says of a thread, see proc_pid_syscall(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It runs, or wants to.
    Running,
    /// It waits, with these registers.
    Waiting(Registers),
    /// The kernel does not tell.
    Unknown,
}

/// Where a thread is.
pub fn place_of(process: Process, tid: u32) -> Result<Place, Refusal> {
    let file = process.folder().join("task").join(tid.to_string()).join("syscall");
    match fs::read_to_string(file) {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && process.folder().exists() => {
            let folder = process.folder().join("task").join(tid.to_string());
            if folder.exists() { Ok(Place::Unknown) } else { Err(Refusal::Gone) }
        }
        Err(error) => Err(Refusal::of_read(process, &error)),
    }
}

/// The number of the call and its arguments come first, then the stack pointer and the address of
/// the next instruction.
fn parse(text: &str) -> Place {
    if text.starts_with("running") {
        return Place::Running;
    }
    let mut backwards = text.split_whitespace().rev();
    let mut number = || {
        let word = backwards.next()?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    match (number(), number()) {
        (Some(ip), Some(sp)) if sp != 0 => Place::Waiting(Registers::without_others(ip, sp)),
        _ => Place::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_a_place() {
        let at = |ip, sp| Place::Waiting(Registers::without_others(ip, sp));
        assert_eq!(parse("running\n"), Place::Running);
        let call = "202 0x1 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f20\n";
        assert_eq!(parse(call), at(0x7f20, 0x7ffe));
        // In no system call: a page is being read.
        assert_eq!(parse("-1 0x7ffe 0x7f20\n"), at(0x7f20, 0x7ffe));
        for text in ["", "0", "-1 0x0 0x0", "7 8 9"] {
            assert_eq!(parse(text), Place::Unknown, "{text}");
        }
    }

    #[test]
    fn a_thread_that_waits_tells_where() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            // SAFETY: takes nothing.
            tell.send(unsafe { libc::gettid() }.cast_unsigned()).unwrap();
            let _ = receive.recv();
        });
        let (own, tid) = (Process { pid: std::process::id() }, told.recv().unwrap());
        while !matches!(place_of(own, tid), Ok(Place::Waiting(_) | Place::Unknown)) {
            std::thread::yield_now();
        }
        drop(send);
        waits.join().unwrap();
        assert_eq!(place_of(own, u32::MAX), Err(Refusal::Gone));
    }
}
