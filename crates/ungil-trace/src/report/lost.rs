//! Lost events: what a report lacks.

use super::{GilReport, ProcessReport, Report};

impl Report {
    /// The part (of 1) of all events that was lost; 0 if that is not known.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        let all: u64 = self.processes.iter().map(ProcessReport::events).sum();
        // The counts of a thread that has ended contain what was lost; those of others do not.
        self.lost_events as f64 / all.max(self.lost_events).max(1) as f64
    }
}

impl ProcessReport {
    /// How many events its threads told, or would have told: two for each hold, and one or two for
    /// each wait.
    #[must_use]
    pub fn events(&self) -> u64 {
        let of = |gil: &GilReport| {
            let others = gil.others.map_or(0, |it| 2 * it.holds + it.waits + it.drop_requests);
            let threads = gil.threads.iter();
            others
                + threads
                    .map(|it| 2 * it.holds.count + it.waits.count + it.drop_requests)
                    .sum::<u64>()
        };
        self.gils.iter().map(of).sum()
    }
}
