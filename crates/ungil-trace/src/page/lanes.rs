//! The threads of a GIL, numbered in the order in which they appear.

use crate::record::ThreadId;
use std::collections::HashMap;

/// The lane of all threads that have none of their own.
pub(super) const OTHERS: u32 = 0;
/// Lanes of a GIL, with that of the others.
const MOST: usize = 16_384;

/// The lanes of one GIL.
#[derive(Debug)]
pub(super) struct Lanes {
    by_thread: HashMap<ThreadId, u32>,
    /// The thread of each; [`OTHERS`] has none.
    pub(super) threads: Vec<Option<ThreadId>>,
    last: Option<(ThreadId, u32)>,
    /// Whether a thread found no room.
    pub(super) is_full: bool,
}

impl Default for Lanes {
    fn default() -> Self {
        let threads = vec![None];
        Self { by_thread: HashMap::new(), threads, last: None, is_full: false }
    }
}

impl Lanes {
    /// The lane of `thread`.
    #[inline]
    pub(super) fn of(&mut self, thread: ThreadId) -> u32 {
        if let Some((last, lane)) = self.last
            && last == thread
        {
            return lane;
        }
        let lane = self.by_thread.get(&thread).copied().unwrap_or_else(|| self.new_lane(thread));
        self.last = Some((thread, lane));
        lane
    }

    fn new_lane(&mut self, thread: ThreadId) -> u32 {
        if self.threads.len() >= MOST {
            self.is_full = true;
            return OTHERS;
        }
        let lane = u32::try_from(self.threads.len()).expect("there are at most a few thousand");
        self.by_thread.insert(thread, lane);
        self.threads.push(Some(thread));
        lane
    }

    /// Whether this thread has a lane of its own.
    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.by_thread.contains_key(&thread)
    }

    /// The lane of its own that this thread has.
    pub(super) fn known(&self, thread: ThreadId) -> Option<u32> {
        self.by_thread.get(&thread).copied()
    }

    /// How many there are, with that of the others.
    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }
}
