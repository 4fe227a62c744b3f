//! A part of what was seen that stays small, however much there is.

/// `MOST` at most of all that is added, evenly of the whole run.
#[derive(Clone, Debug)]
pub(crate) struct Sample<T, const MOST: usize> {
    all: Vec<T>,
    /// Of so many one is kept.
    of: usize,
    /// So many until the next one that is kept.
    until: usize,
}

impl<T, const MOST: usize> Default for Sample<T, MOST> {
    fn default() -> Self {
        Self { all: Vec::new(), of: 1, until: 0 }
    }
}

impl<T, const MOST: usize> Sample<T, MOST> {
    /// One more.
    pub(crate) fn add(&mut self, one: T) {
        if self.until > 0 {
            self.until -= 1;
            return;
        }
        if self.all.len() == MOST {
            let mut stays = false;
            self.all.retain(|_| {
                stays = !stays;
                stays
            });
            self.of *= 2;
        }
        self.all.push(one);
        self.until = self.of - 1;
    }

    /// Those that are kept, in the order in which they were added.
    pub(crate) fn kept(&self) -> &[T] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_enough_are_kept_and_evenly_of_the_whole_run() {
        let mut sample = Sample::<_, 64>::default();
        (0..10_000).for_each(|number| sample.add(number));
        let kept = sample.kept();
        assert!((32..=64).contains(&kept.len()), "{kept:?}");
        let first_half = kept.iter().filter(|number| **number < 5_000).count();
        assert!(first_half.abs_diff(kept.len() / 2) <= 1, "{kept:?}");
    }

    #[test]
    fn all_are_kept_of_few() {
        let mut sample = Sample::<_, 4>::default();
        (0..4).for_each(|number| sample.add(number));
        assert_eq!(sample.kept(), [0, 1, 2, 3]);
    }
}
