//! What has arrived and was not asked for.

/// Bytes that come in at the end and are taken from the start.
#[derive(Debug, Default)]
pub struct Unread {
    bytes: Vec<u8>,
    taken: usize,
}

impl Unread {
    /// All of it.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// How much there is.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// More has arrived.
    pub fn add(&mut self, arrived: &[u8]) {
        // What was taken is moved over when it is most of all.
        if self.taken > self.len() {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(arrived);
    }

    /// So much was taken.
    pub fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_out_as_they_came_in_and_leave_no_memory_behind(
            steps in prop::collection::vec((0..50_usize, 0..60_usize), 0..60),
        ) {
            let (mut unread, mut model) = (Unread::default(), Vec::new());
            let mut next = 0_u8;
            for (arrived, taken) in steps {
                let bytes: Vec<u8> = (0..arrived).map(|_| { next = next.wrapping_add(1); next }).collect();
                unread.add(&bytes);
                model.extend_from_slice(&bytes);
                prop_assert_eq!(unread.as_slice(), model.as_slice());
                let taken = taken.min(model.len());
                unread.take(taken);
                model.drain(..taken);
                prop_assert_eq!(unread.len(), model.len());
                prop_assert!(!model.is_empty() || unread.bytes.capacity() == 0);
            }
        }
    }

    #[test]
    fn what_was_taken_is_moved_over_when_it_is_most_of_all() {
        let mut unread = Unread::default();
        unread.add(&[7; 100]);
        unread.take(99);
        unread.add(&[8; 2]);
        assert_eq!((unread.as_slice(), unread.taken), (&[7, 8, 8][..], 0));
    }
}
