//! A token bucket: at most so many starts a second, and a few at once.

/// Tokens that come back with time.
#[derive(Clone, Debug)]
pub struct Bucket {
    nanoseconds_a_token: f64,
    burst: f64,
    tokens: f64,
    filled: u64,
}

impl Bucket {
    /// A full bucket: `burst` starts at once (at least one), then `per_second`, which is above 0.
    pub fn new(per_second: f64, burst: f64, now: u64) -> Self {
        let burst = burst.max(1.0);
        Self { nanoseconds_a_token: 1e9 / per_second, burst, tokens: burst, filled: now }
    }

    /// Whether a token is there, else when there will be one.
    pub fn ready(&mut self, now: u64) -> Result<(), u64> {
        let passed = now.saturating_sub(self.filled) as f64;
        self.tokens = (self.tokens + passed / self.nanoseconds_a_token).min(self.burst);
        self.filled = now.max(self.filled);
        // A millionth of a token is what the rounding of floats takes from a wait.
        if self.tokens >= 1.0 - 1e-6 {
            return Ok(());
        }
        let missing = (1.0 - self.tokens) * self.nanoseconds_a_token;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let wait = missing.ceil() as u64;
        Err(self.filled.saturating_add(wait))
    }

    /// Takes the token that [`Self::ready`] has found.
    pub fn take(&mut self) {
        self.tokens = (self.tokens - 1.0).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn started_within(bucket: &mut Bucket, seconds: u64) -> u64 {
        let (mut now, mut started) = (0, 0);
        while now < seconds * SECOND {
            match bucket.ready(now) {
                Ok(()) => {
                    bucket.take();
                    started += 1;
                }
                Err(when) => {
                    assert!(when > now, "a wait that has no length is a busy loop");
                    now = when;
                }
            }
        }
        started
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_its_rate_from_then_on() {
        let mut bucket = Bucket::new(10.0, 5.0, 0);
        assert_eq!(started_within(&mut bucket, 3), 5 + 29);
    }

    #[test]
    fn a_rate_below_one_a_second_is_kept() {
        let mut bucket = Bucket::new(0.25, 0.0, 0);
        assert_eq!(started_within(&mut bucket, 20), 5);
    }

    #[test]
    fn time_without_starts_saves_no_more_than_the_burst() {
        let mut bucket = Bucket::new(100.0, 3.0, 0);
        let later = 60 * SECOND;
        for _ in 0..3 {
            assert_eq!(bucket.ready(later), Ok(()));
            bucket.take();
        }
        assert!(bucket.ready(later).is_err());
    }
}
