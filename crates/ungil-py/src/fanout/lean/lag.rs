//! How late the loop comes to what has happened, for `limit="auto"`.

use std::time::Duration;

use crate::fanout::dispatcher::Dispatcher;

/// How often the limit is told.
const TELLS: u64 = 10_000_000;

/// The longest of the last rounds.
#[derive(Default)]
pub struct Lag {
    worst: u64,
    told: u64,
}

impl Lag {
    /// A round of the loop has taken so long.
    pub fn note(&mut self, dispatcher: &Dispatcher, begun: u64, ended: u64) {
        self.worst = self.worst.max(ended - begun);
        if ended >= self.told + TELLS {
            dispatcher.late(Duration::from_nanos(self.worst));
            *self = Self { worst: 0, told: ended };
        }
    }
}
