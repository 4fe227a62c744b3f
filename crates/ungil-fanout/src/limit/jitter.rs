//! Start jitter.

/// By how much each item that runs widens the range.
const EACH_NS: u64 = 1_000_000;

/// The share of what an item takes that its start is put off by at most.
pub(super) const OF_LATENCY: f32 = 0.25;

/// The longest that a start is put off, ns: a person does not notice it.
pub const MOST_JITTER_NS: u64 = 50_000_000;

/// For how long to put off the start of an item of `group` when `running` of its group run already,
/// so that many sessions with one site do not begin in the same instant: up to a millisecond for
/// each of them, `most` nanoseconds in all, and nothing for the first.
///
/// The same for the same arguments. For items that get a slot which was free; an item that takes the
/// place of one that has ended is not in step with others.
pub fn jitter(seed: u64, group: u64, running: usize, most: u64) -> u64 {
    let running = u64::try_from(running).unwrap_or(u64::MAX);
    let width = running.saturating_mul(EACH_NS).min(most);
    // SplitMix64, Steele, Lea and Flood 2014.
    let mut mixed = seed ^ group.rotate_left(32) ^ running.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    mixed.checked_rem(width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_spread_over_a_millisecond_for_each_that_runs() {
        let longest = (0..1_000).map(|seed| jitter(seed, 7, 10, u64::MAX)).max();
        assert!(longest.is_some_and(|longest| 9_900_000 < longest && longest < 10_000_000));
    }
}
