//! How long to wait before an item is tried again.

/// Waits that grow from one attempt to the next, and differ between items.
///
/// Without the difference, items that failed together would be tried again together, and fail
/// again (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>).
#[derive(Clone, Debug)]
pub struct Backoff {
    /// The wait after the first failure, in nanoseconds.
    pub first: f64,
    /// By what each further wait is longer, at least 1.
    pub factor: f64,
    /// The longest wait, in nanoseconds.
    pub most: f64,
    /// What share of a wait is left to chance: 0 none, 1 all of it.
    pub jitter: f64,
    random: u64,
}

impl Backoff {
    /// Waits drawn by `seed`: the same seed, the same waits.
    pub fn new(first: f64, factor: f64, most: f64, jitter: f64, seed: u64) -> Self {
        Self { first, factor, most, jitter, random: seed | 1 }
    }

    /// Nanoseconds to wait after `failures` of one item, at least 1 of them.
    pub fn wait(&mut self, failures: u32) -> u64 {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let whole = (self.first * self.factor.powi(exponent)).min(self.most);
        let wait = whole * (1.0 - self.jitter * self.chance());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let wait = wait as u64;
        wait
    }

    /// From 0 to 1 (xorshift64*, Vigna 2016).
    fn chance(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(100.0, 2.0, 1000.0, 0.0, 7);
        let waits: Vec<u64> = (1..=6).map(|failures| backoff.wait(failures)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(backoff.wait(u32::MAX), 1000);
    }

    #[test]
    fn a_jittered_wait_lies_between_its_share_and_the_whole() {
        let mut backoff = Backoff::new(1000.0, 1.0, 1000.0, 0.5, 7);
        let waits: Vec<u64> = (0..1000).map(|_| backoff.wait(1)).collect();
        assert!(waits.iter().all(|wait| (500..=1000).contains(wait)));
        assert!(waits.iter().any(|&wait| wait < 550) && waits.iter().any(|&wait| wait > 950));
    }
}
