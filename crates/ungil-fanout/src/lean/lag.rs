//! How late the loop comes to what has happened, for `limit="auto"`.

/// How often the limit is told, ns.
const TELLS: u64 = 10_000_000;

/// The longest of the last rounds.
#[derive(Debug, Default)]
pub struct Lag {
    worst: u64,
    told: u64,
}

impl Lag {
    /// A round of the loop has taken so long: what happened at its beginning is seen at its end.
    /// Gives the longest of the rounds since it gave one last, at times.
    pub fn note(&mut self, begun: u64, ended: u64) -> Option<u64> {
        self.worst = self.worst.max(ended - begun);
        if ended < self.told + TELLS {
            return None;
        }
        let worst = self.worst;
        *self = Self { worst: 0, told: ended };
        Some(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_round_is_told_once_and_not_too_often() {
        let mut lag = Lag::default();
        let start = 10 * TELLS;
        assert_eq!(lag.note(start - 5, start), Some(5));
        assert_eq!(lag.note(start, start + 900), None);
        assert_eq!(lag.note(start + 900, start + 1000), None);
        assert_eq!(lag.note(start + TELLS, start + TELLS + 1), Some(900));
        assert_eq!(lag.note(start + 2 * TELLS, start + 2 * TELLS + 2), Some(2));
    }
}
