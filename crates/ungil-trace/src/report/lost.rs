//! Lost events in proportion to all events: what a report lacks.

use super::{GilReport, OtherThreads, ProcessReport, ThreadReport};

impl ProcessReport {
    /// How many events its threads told, or lost: two for each hold, one or two for each wait.
    fn events(&self) -> f64 {
        let of = |gil: &GilReport| {
            let others = gil.others.as_ref().map_or(0.0, OtherThreads::events);
            others + gil.threads.iter().map(ThreadReport::events).sum::<f64>()
        };
        self.gils.iter().map(of).sum()
    }

    /// How many of them were lost.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        let others = self.gils.iter().filter_map(|gil| gil.others.as_ref());
        let threads = self.gils.iter().flat_map(|gil| &gil.threads);
        let lost = others.map(|it| it.lost_events).chain(threads.map(|it| it.lost_events));
        lost.fold(0, u64::saturating_add)
    }

    /// The part (of 1) of them that was lost; 0 if that is not known.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        lost_share(self.lost_events(), std::slice::from_ref(self))
    }
}

impl ThreadReport {
    fn events(&self) -> f64 {
        // What a thread has counted itself contains the lost ones. That of one that still runs is
        // not known.
        let lost_events = if self.ended_s.is_some() { 0 } else { self.lost_events };
        events(self.holds.count, self.waits.count, self.drop_requests) + lost_events as f64
    }
}

impl OtherThreads {
    fn events(&self) -> f64 {
        events(self.holds, self.waits, self.drop_requests)
    }
}

fn events(holds: u64, waits: u64, drop_requests: u64) -> f64 {
    2.0 * holds as f64 + waits as f64 + drop_requests as f64
}

/// The part (of 1) that so many lost events are of all events of these processes; 0 if that is not
/// known.
pub(crate) fn lost_share(lost_events: u64, processes: &[ProcessReport]) -> f64 {
    let all: f64 = processes.iter().map(ProcessReport::events).sum();
    if all > 0.0 { (lost_events as f64 / all).min(1.0) } else { 0.0 }
}
