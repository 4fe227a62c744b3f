//! What a thread counts of itself.

use crate::atomic::AtomicU64;

/// Exact totals of one thread; they count on when the ring is full.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    /// Waits that ended in an acquire.
    pub waits: AtomicU64,
    /// Their total length in ns.
    pub waited_ns: AtomicU64,
    /// Holds that ended in a release.
    pub holds: AtomicU64,
    /// Their total length in ns.
    pub held_ns: AtomicU64,
    /// Releases that nobody had asked for.
    pub voluntary: AtomicU64,
    /// Releases while a drop request was pending.
    pub forced: AtomicU64,
    /// Drop requests this thread made.
    pub drop_requests: AtomicU64,
    /// CPU time of the thread in ns when last sampled.
    pub cpu_ns: AtomicU64,
    /// Voluntary context switches when last sampled.
    pub voluntary_switches: AtomicU64,
    /// Involuntary context switches when last sampled.
    pub involuntary_switches: AtomicU64,
}

impl Counters {
    /// Every field, in the order of declaration.
    pub fn fields(&self) -> [&AtomicU64; 10] {
        [
            &self.waits,
            &self.waited_ns,
            &self.holds,
            &self.held_ns,
            &self.voluntary,
            &self.forced,
            &self.drop_requests,
            &self.cpu_ns,
            &self.voluntary_switches,
            &self.involuntary_switches,
        ]
    }
}
