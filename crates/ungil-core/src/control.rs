//! One page of shared memory through which a running process is told its policy.
//!
//! The hook creates it as a file, `ungil policy PID` finds the file among the mappings of the
//! process and writes to it.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::schedule::{Policy, Settings};

/// Size of the file.
pub const CONTROL_BYTES: usize = 4096;
/// First bytes of the page: "ungilctl", little-endian.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"ungilctl");
/// Version of this layout.
pub const CONTROL_ABI: u32 = 1;
/// Where the pages of all processes lie: in memory, and emptied when the machine starts.
pub const CONTROL_FOLDER: &str = "/dev/shm/";
/// The file's name begins with this; user, PID namespace and process id follow, with dashes between.
pub const CONTROL_PREFIX: &str = "ungil-policy-";
/// The *mark* of an `ungil run` lies in the same folder; its name begins with this, and goes on like
/// that of a page. Whoever is scheduled under that `ungil run` writes a byte into it.
pub const MARK_PREFIX: &str = "ungil-run-";
/// Longer quanta cannot be written down.
pub const LONGEST_QUANTUM_NS: u64 = (1 << 56) - 1;

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
}

impl Control {
    /// Policy stock, no magic.
    pub const fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            abi: AtomicU32::new(CONTROL_ABI),
            pid: AtomicU32::new(0),
            settings: AtomicU64::new(0),
        }
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
