//! What has arrived and was not asked for.

/// Bytes that come in at the end and are taken from the start.
#[derive(Default)]
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
