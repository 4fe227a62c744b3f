//! Who slept only for a moment is woken sooner: its processor has not halted yet, nor has the one
//! that a virtual machine runs on.
//!
//! In recorded convoys, a thread that had slept for less than 0.2 ms had the GIL 8 us after it was let
//! go of, and one that had slept for 5 ms, after 27 us. Under other rules threads sleep for other
//! times: docs/decisions/0075-who-sleeps-for-a-moment-is-woken-sooner.md.

use crate::lengths::scaled;

/// By how much the kernel lets a timer be late, unless it is told otherwise (`timerslack_ns`).
pub(crate) const SLACK_NS: u64 = 50_000;
/// A shorter sleep is a nap.
const NAP_NS: u64 = 150_000;
/// The least part of the time that a wake-up is believed to take after a nap.
const LEAST: f64 = 0.2;
/// So many wake-ups of a kind tell how long they take.
const ENOUGH: usize = 40;

/// How much sooner a thread is awake after a nap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Naps {
    part: f64,
}

/// Whether such a sleep is a nap.
pub(crate) fn is_nap(slept_ns: u64) -> bool {
    slept_ns < NAP_NS
}

impl Naps {
    /// Of a machine that wakes all threads alike.
    pub(crate) const NO_MATTER: Self = Self { part: 1.0 };

    /// By wake-ups that were recorded, after naps and after longer sleeps, ns. Few of a kind tell
    /// nothing.
    pub(crate) fn of(mut after_naps: Vec<u32>, mut after_sleeps: Vec<u32>) -> Self {
        if after_naps.len().min(after_sleeps.len()) < ENOUGH {
            return Self::NO_MATTER;
        }
        let [naps_ns, sleeps_ns] = [&mut after_naps, &mut after_sleeps].map(|all| {
            let middle = all.len() / 2;
            f64::from(*all.select_nth_unstable(middle).1)
        });
        Self { part: (naps_ns / sleeps_ns.max(1.0)).clamp(LEAST, 1.0) }
    }

    /// How long a wake-up takes that takes `ns` after a long sleep, if the thread slept for `slept_ns`.
    pub(crate) fn woken_ns(self, ns: u64, slept_ns: u64) -> u64 {
        if is_nap(slept_ns) { scaled(ns, self.part) } else { ns }
    }

    /// How late a timer of `timer_ns` is, if a long one is `late_ns` late: the kernel waits as long with
    /// both, then the thread has to wake up.
    pub(crate) fn timer_late_ns(self, late_ns: u64, timer_ns: u64) -> u64 {
        let slack_ns = late_ns.min(SLACK_NS);
        slack_ns + self.woken_ns(late_ns - slack_ns, timer_ns)
    }

    /// How long a wake-up takes after a longer sleep that took `ns` after a nap.
    pub(crate) fn after_sleep(self, ns: u64) -> u64 {
        scaled(ns, 1.0 / self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_says_how_much_sooner_a_thread_is_awake_after_a_nap() {
        let naps = Naps::of(vec![9_000; ENOUGH], vec![30_000; ENOUGH]);
        assert_eq!([NAP_NS - 1, NAP_NS].map(|it| naps.woken_ns(40_000, it)), [12_000, 40_000]);
        assert_eq!(naps.after_sleep(12_000), 40_000);
        assert_eq!([30_000, 90_000].map(|it| naps.timer_late_ns(it, 50_000)), [30_000, 62_000]);
        assert_eq!(naps.timer_late_ns(90_000, 5_000_000), 90_000);
    }

    #[test]
    fn few_wake_ups_tell_nothing_and_none_is_believed_to_be_later_after_a_nap() {
        let few = Naps::of(vec![1_000; ENOUGH - 1], vec![30_000; ENOUGH]);
        assert_eq!(few, Naps::NO_MATTER);
        let later = Naps::of(vec![90_000; ENOUGH], vec![30_000; ENOUGH]);
        assert_eq!(later.woken_ns(30_000, 0), 30_000);
        let at_once = Naps::of(vec![1; ENOUGH], vec![30_000; ENOUGH]);
        assert_eq!(at_once.woken_ns(30_000, 0), 6_000);
    }
}
