//! A token bucket: at most so many starts a second, and a few at once; fewer while whoever is asked
//! says that it is too much.

/// By how much the rate is lowered each time, and down to which share of what was wanted.
const LOWERED: f64 = 0.7;
const LEAST: f64 = 1.0 / 64.0;

/// By how much it comes back in a second.
const COMES_BACK: f64 = 1.1;

/// What is refused within this time belongs to the same occasion, ns.
const OCCASION_NS: u64 = 1_000_000_000;

/// Tokens that come back with time.
#[derive(Clone, Debug)]
pub struct Bucket {
    nanoseconds_a_token: f64,
    burst: f64,
    tokens: f64,
    filled: u64,
    /// The share of the rate that is used at present.
    share: f64,
    /// Until when the share stays as it is.
    kept_until: u64,
}

impl Bucket {
    /// A full bucket: `burst` starts at once (at least one), then `per_second`, which is above 0.
    pub fn new(per_second: f64, burst: f64, now: u64) -> Self {
        let burst = burst.max(1.0);
        let nanoseconds_a_token = 1e9 / per_second;
        let (share, kept_until) = (1.0, 0);
        Self { nanoseconds_a_token, burst, tokens: burst, filled: now, share, kept_until }
    }

    /// Whether a token is there, else when there will be one.
    pub fn ready(&mut self, now: u64) -> Result<(), u64> {
        let passed = now.saturating_sub(self.filled) as f64;
        if self.share < 1.0 && now > self.kept_until {
            let quiet = now - self.filled.max(self.kept_until).min(now);
            self.share = (self.share * COMES_BACK.powf(quiet as f64 / 1e9)).min(1.0);
        }
        let each = self.nanoseconds_a_token / self.share;
        self.tokens = (self.tokens + passed / each).min(self.burst);
        self.filled = now.max(self.filled);
        // A millionth of a token is what the rounding of floats takes from a wait.
        if self.tokens >= 1.0 - 1e-6 {
            return Ok(());
        }
        let missing = (1.0 - self.tokens) * each;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let wait = missing.ceil() as u64;
        Err(self.filled.saturating_add(wait))
    }

    /// Whoever is asked says that it is too much, and wants to be asked again after so many
    /// nanoseconds: from now on 30 % fewer start, until nobody has said so for a while.
    pub fn slow_down(&mut self, asked: u64, now: u64) {
        if now < self.kept_until {
            return;
        }
        // What was saved up until now came at the rate that was too much.
        let _ = self.ready(now);
        self.tokens = self.tokens.min(1.0);
        self.share = (self.share * LOWERED).max(LEAST);
        self.kept_until = now.saturating_add(asked.max(OCCASION_NS));
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
    fn a_rate_that_is_too_much_is_lowered_once_for_each_occasion_and_comes_back() {
        let mut bucket = Bucket::new(100.0, 1.0, 0);
        for now in 0..50 {
            bucket.slow_down(2 * SECOND, now);
        }
        let first = started_within(&mut bucket, 2);
        assert!((139..143).contains(&first), "{first}");
        let mut bucket = Bucket::new(100.0, 1.0, 0);
        bucket.slow_down(0, 0);
        let all = started_within(&mut bucket, 20);
        assert!((1_850..1_960).contains(&all), "{all}");
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
