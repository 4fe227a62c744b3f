//! How soon the holder lets go that a waiting thread asks.
//!
//! Under CPython's own rules, a thread asks after it has slept for a switch interval: its caches are
//! cold, and often it wakes up on the holder's processor, so that the holder looks at the request
//! only when it sleeps again. Such answers take 2 to 5 us, and a quarter of them 12 to 40. A thread
//! that has just run is answered in less than 1 us, also where an interval of 50 us makes it ask:
//! docs/decisions/0056-a-thread-that-has-just-run-is-answered-sooner.md.

use fastrand::Rng;

/// What took longer than this was late because the thread that asked was cold or had the holder's
/// processor, or because the holder was in a call.
const LATE_NS: u64 = 12_000;
/// What took longer than this was in a call.
const IN_CALL_NS: u64 = 100_000;
/// A thread that has just run is answered in such a part of the time,
const PART: u64 = 6;
/// and in so long what was late because of the one that asked: so often,
const AT_ONCE_NS: u64 = 800;
const AT_ONCE: f64 = 0.6;
/// and in such a part of the time otherwise.
const LATE_PART: u64 = 2;

/// How long an answer takes that took `recorded_ns`; the thread that asks has just run if it is
/// warm.
pub(super) fn answered_after_ns(recorded_ns: u64, is_warm: bool, random: &mut Rng) -> u64 {
    match recorded_ns {
        _ if !is_warm => recorded_ns,
        ..LATE_NS => recorded_ns / PART,
        LATE_NS..IN_CALL_NS if random.f64() < AT_ONCE => AT_ONCE_NS,
        LATE_NS..IN_CALL_NS => recorded_ns / LATE_PART,
        IN_CALL_NS.. => recorded_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_slept_for_long_is_answered_as_in_the_recording() {
        let random = &mut Rng::with_seed(0);
        for ns in [500, 30_000, 3_000_000] {
            assert_eq!(answered_after_ns(ns, false, random), ns);
        }
    }

    #[test]
    fn one_that_has_just_run_is_answered_sooner_unless_the_holder_is_in_a_call() {
        let random = &mut Rng::with_seed(0);
        assert_eq!(answered_after_ns(4_800, true, random), 800);
        assert_eq!(answered_after_ns(3_000_000, true, random), 3_000_000);
        let late: Vec<_> = (0..1_000).map(|_| answered_after_ns(30_000, true, random)).collect();
        let at_once = late.iter().filter(|ns| **ns == AT_ONCE_NS).count();
        assert!((550..650).contains(&at_once), "{at_once}");
        assert_eq!(late.iter().filter(|ns| **ns == 15_000).count(), 1_000 - at_once);
    }
}
