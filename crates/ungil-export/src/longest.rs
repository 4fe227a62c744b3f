//! The longest of very many, in memory for twice as many as are kept.

/// Keeps the `most` largest items.
#[derive(Debug)]
pub struct Longest<T> {
    items: Vec<(u64, T)>,
    most: usize,
    /// How many were dropped, and what they add up to.
    dropped: u64,
    dropped_ns: u64,
}

impl<T> Longest<T> {
    /// Of which so many are kept.
    pub fn new(most: usize) -> Self {
        Self { items: Vec::new(), most, dropped: 0, dropped_ns: 0 }
    }

    /// Takes one of that length.
    pub fn push(&mut self, ns: u64, item: T) {
        self.items.push((ns, item));
        if self.items.len() >= self.most.saturating_mul(2).max(1_024) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        if self.items.len() <= self.most {
            return;
        }
        if self.most > 0 {
            self.items.select_nth_unstable_by_key(self.most - 1, |(ns, _)| std::cmp::Reverse(*ns));
        }
        for (ns, _) in self.items.drain(self.most..) {
            self.dropped += 1;
            self.dropped_ns = self.dropped_ns.saturating_add(ns);
        }
    }

    /// The kept ones in no order, how many were dropped, and what these add up to.
    pub fn into_parts(mut self) -> (Vec<T>, u64, u64) {
        self.trim();
        (self.items.into_iter().map(|(_, item)| item).collect(), self.dropped, self.dropped_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_longest_are_kept_and_the_others_counted(
            lengths in prop::collection::vec(0u64..100, 0..3_000),
            most in 0usize..50,
        ) {
            let mut longest = Longest::new(most);
            for &ns in &lengths {
                longest.push(ns, ns);
            }
            let (mut kept, dropped, dropped_ns) = longest.into_parts();
            kept.sort_unstable_by(|a, b| b.cmp(a));
            let mut sorted = lengths.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let rest = sorted.split_off(most.min(sorted.len()));
            prop_assert_eq!(kept, sorted);
            prop_assert_eq!((dropped, dropped_ns), (rest.len() as u64, rest.iter().sum()));
        }
    }
}
