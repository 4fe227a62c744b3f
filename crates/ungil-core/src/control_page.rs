//! One page of shared memory through which a running process is told its policy, and asked for more.
//!
//! The hook creates it as a file. `ungil` finds the file among the mappings of the process and
//! writes to it.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::request::{Answer, Request};
use crate::schedule::{Policy, Settings};
use std::cell::UnsafeCell;

/// Size of the file.
pub const CONTROL_BYTES: usize = 4096;
/// First bytes of the page: "ungilctl", little-endian.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"ungilctl");
/// Version of this layout.
pub const CONTROL_ABI: u32 = 2;
/// Where the pages of all processes lie: in memory, and emptied when the machine starts.
pub const CONTROL_FOLDER: &str = "/dev/shm/";
/// The file's name begins with this; user, PID namespace and process id follow, with dashes between.
pub const CONTROL_PREFIX: &str = "ungil-policy-";
/// The *mark* of an `ungil run` lies in the same folder; its name begins with this, and goes on like
/// that of a page. Whoever is scheduled under that `ungil run` writes a byte into it.
pub const MARK_PREFIX: &str = "ungil-run-";
/// Longer quanta cannot be written down.
pub const LONGEST_QUANTUM_NS: u64 = (1 << 56) - 1;

/// Nothing is asked.
const IDLE: u32 = 0;
/// There is a request.
const ASKED: u32 = 1;
/// The process serves it.
const TAKEN: u32 = 2;
/// There is an answer.
const ANSWERED: u32 = 3;

/// The page.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// [`CONTROL_MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`CONTROL_ABI`].
    pub abi: AtomicU32,
    /// The process that obeys.
    pub pid: AtomicU32,
    settings: AtomicU64,
    /// How far the request is: one of the numbers above.
    stage: AtomicU32,
    /// What became of it: an [`Answer`] as a number.
    answer: AtomicU32,
    /// 1 if calls are redirected only when somebody asks for something.
    pub standby: AtomicU32,
    request: UnsafeCell<Request>,
}

// SAFETY: `request` is written by one process outside, which holds the lock of the page's file, while
// nothing is asked, and read by the process of the page while it serves it. It is all integers, and a
// process that breaks this harms nobody: the request is copied, then checked.
unsafe impl Sync for Control {}

impl Control {
    /// Policy stock, no magic.
    pub const fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            abi: AtomicU32::new(CONTROL_ABI),
            pid: AtomicU32::new(0),
            settings: AtomicU64::new(0),
            stage: AtomicU32::new(IDLE),
            answer: AtomicU32::new(0),
            standby: AtomicU32::new(0),
            request: UnsafeCell::new(Request::leave()),
        }
    }

    /// Asks the process for something. For one process at a time, which holds the lock of the page's
    /// file. What the one before it has left is given up.
    pub fn ask(&self, request: Request) {
        while !self.withdraw() && self.stage.load(Ordering::Acquire) == TAKEN {
            std::hint::spin_loop();
        }
        // SAFETY: nobody else writes (see above), and nobody reads while nothing is asked.
        unsafe { self.request.get().write_volatile(request) };
        self.stage.store(ASKED, Ordering::Release);
    }

    /// What became of the request, if it was answered.
    pub fn answer(&self) -> Option<Answer> {
        (self.stage.load(Ordering::Acquire) == ANSWERED)
            .then(|| self.answer.load(Ordering::Relaxed).cast_signed())
            .and_then(Answer::from_number)
    }

    /// Takes the request back, and says whether that was possible: nobody had begun to serve it.
    pub fn withdraw(&self) -> bool {
        self.stage.compare_exchange(ASKED, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether there is a request that nobody serves yet.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == ASKED
    }

    /// The request that nobody serves yet, if there is one: the caller does now.
    pub fn take(&self) -> Option<Request> {
        self.stage.compare_exchange(ASKED, TAKEN, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        // SAFETY: it is not written while it is served (see above), and any content is valid.
        Some(unsafe { self.request.get().read_volatile() })
    }

    /// Answers the request that was taken.
    pub fn reply(&self, answer: Answer) {
        self.answer.store((answer as i32).cast_unsigned(), Ordering::Relaxed);
        self.stage.store(ANSWERED, Ordering::Release);
    }

    /// What the process is to do. A number that no policy has is `stock`.
    #[inline]
    pub fn settings(&self) -> Settings {
        let word = self.settings.load(Ordering::Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the low byte is the policy")]
        let policy = Policy::from_number(u32::from(word as u8)).unwrap_or_default();
        Settings { policy, quantum_ns: word >> 8 }
    }

    /// Tells the process what to do from now on.
    pub fn set_settings(&self, settings: Settings) {
        let quantum = settings.quantum_ns.min(LONGEST_QUANTUM_NS);
        self.settings.store(quantum << 8 | u64::from(settings.policy as u32), Ordering::Relaxed);
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_answered() {
        let control = Control::new();
        assert!(!control.is_asked() && control.take().is_none());
        control.ask(Request::unschedule());
        assert!(control.is_asked() && control.answer().is_none());
        assert_eq!(control.take(), Some(Request::unschedule()));
        assert!(control.take().is_none() && !control.withdraw() && control.answer().is_none());
        control.reply(Answer::NoTable);
        assert_eq!(control.answer(), Some(Answer::NoTable));
        assert!(!control.is_asked());
    }

    #[test]
    fn a_request_that_nobody_serves_is_taken_back() {
        let control = Control::new();
        control.ask(Request::leave());
        assert!(control.withdraw() && control.take().is_none());
        // Also one that somebody who was killed has left.
        control.ask(Request::leave());
        control.ask(Request::unschedule());
        assert_eq!(control.take(), Some(Request::unschedule()));
    }

    #[test]
    fn settings_come_back_as_they_were_told() {
        let control = Control::new();
        assert_eq!(control.settings().policy, Policy::Stock);
        for policy in Policy::ALL {
            for quantum_ns in [1, 5_000_000, LONGEST_QUANTUM_NS] {
                control.set_settings(Settings { policy, quantum_ns });
                assert_eq!(control.settings(), Settings { policy, quantum_ns });
            }
        }
    }
}
