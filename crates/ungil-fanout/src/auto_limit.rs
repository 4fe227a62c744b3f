//! The limit of `limit="auto"`: [`Adaptive`], with what it has to be told and when.

use crate::limit::{Adaptive, Driver, FEW, Opening, Report, Sample, Settings, Ticket};

/// Of how many ends one reads the processor's time: it is a system call.
const EACH: u64 = 32;

/// How many threads are started before any item has come back: who uses threads is used to
/// `ThreadPoolExecutor`'s 32; and how many be there a host for each, as the first come back before
/// more are started.
const FEW_THREADS: usize = 32;
const MOST_THREADS: usize = 200;

/// An adaptive limit that reads the processor's time itself, and is not looked at for nothing.
#[derive(Debug)]
pub struct AutoLimit {
    adaptive: Adaptive,
    /// Nanoseconds of processor that this process has used.
    processor: fn() -> u64,
    ends: u64,
    cpu_so_far: u64,
    /// When it changes although nothing starts or ends.
    due: Option<u64>,
}

impl AutoLimit {
    /// At most `ceiling`, for a run that begins now. `processor` tells how many nanoseconds of
    /// processor this process has used.
    pub fn new(
        ceiling: usize,
        opening: Opening,
        driver: Driver,
        processor: fn() -> u64,
        now: u64,
    ) -> Self {
        let (first, at_once) = match driver {
            Driver::Loop => (FEW, ceiling),
            Driver::Threads => (FEW_THREADS, MOST_THREADS),
        };
        let settings =
            Settings { ceiling, opening, first, at_once, driver, cpu_so_far: processor() };
        let adaptive = Adaptive::new(settings, now);
        Self { adaptive, processor, ends: 0, cpu_so_far: 0, due: None }
    }

    /// How many may run now.
    pub fn limit(&self) -> usize {
        self.adaptive.limit()
    }

    /// The longest that the start of an item should be put off, ns, at least one.
    pub fn most_jitter(&self) -> u64 {
        self.adaptive.most_jitter().max(1)
    }

    /// An attempt begins.
    pub fn started(&mut self, now: u64, group: Option<u64>) -> Ticket {
        self.adaptive.started(now, group)
    }

    /// An attempt has ended, as the sample says but for the processor's time.
    pub fn ended(&mut self, sample: Sample) {
        // The first are what the limit opens with.
        if self.ends < EACH || self.ends.is_multiple_of(EACH) {
            self.cpu_so_far = (self.processor)();
        }
        self.ends += 1;
        self.adaptive.finished(Sample { cpu_so_far: self.cpu_so_far, ..sample });
    }

    /// Whether somebody should look if those that run do nothing but sleep.
    pub fn is_in_the_dark(&self) -> bool {
        self.adaptive.is_in_the_dark()
    }

    /// Those that run do nothing but sleep.
    pub fn asleep(&mut self, now: u64) {
        self.adaptive.asleep(now);
    }

    /// Nothing may start: when that changes by itself.
    pub fn due(&mut self) -> Option<u64> {
        self.due = self.adaptive.due();
        self.due
    }

    /// What has changed since [`Self::due`] was asked.
    pub fn tick(&mut self, now: u64) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.adaptive.tick(now);
        }
    }

    /// The event loop has come `lag` nanoseconds late.
    pub fn lagged(&mut self, now: u64, lag: u64) {
        self.adaptive.lagged(now, lag);
    }

    /// What it has found.
    pub fn report(&self) -> Report {
        self.adaptive.report()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::limit::Outcome;

    thread_local! {
        static READ: Cell<u64> = const { Cell::new(0) };
    }

    fn processor() -> u64 {
        READ.set(READ.get() + 1);
        READ.get()
    }

    fn limit(driver: Driver, opening: Opening) -> AutoLimit {
        READ.set(0);
        AutoLimit::new(10_000, opening, driver, processor, 0)
    }

    fn one_item(limit: &mut AutoLimit, started: u64) {
        let ticket = limit.started(started, None);
        limit.ended(Sample {
            ticket,
            started,
            finished: started + 1_000_000,
            cpu_so_far: 0,
            outcome: Outcome::Completed,
            asked: 0,
            group: None,
        });
    }

    #[test]
    fn processor_time_is_read_at_each_of_the_first_ends_and_at_few_later() {
        let mut limit = limit(Driver::Loop, Opening::Service);
        for item in 0..EACH {
            one_item(&mut limit, item * 2_000_000);
        }
        assert_eq!(READ.get(), 1 + EACH, "once for the start, and for each of the first");
        for item in EACH..5 * EACH {
            one_item(&mut limit, item * 2_000_000);
        }
        assert_eq!(READ.get(), 1 + EACH + 4);
    }

    #[test]
    fn a_loop_opens_with_fewer_of_a_service_and_with_more_hosts_than_threads_do() {
        assert_eq!(limit(Driver::Loop, Opening::Service).limit(), FEW);
        assert_eq!(limit(Driver::Threads, Opening::Service).limit(), FEW_THREADS);
        assert_eq!(limit(Driver::Loop, Opening::Hosts).limit(), 10_000);
        assert_eq!(limit(Driver::Threads, Opening::Hosts).limit(), MOST_THREADS);
    }

    #[test]
    fn time_changes_a_limit_only_after_somebody_has_asked_when() {
        let mut limit = limit(Driver::Loop, Opening::Service);
        let first = limit.limit();
        for _ in 0..first {
            limit.started(0, None);
        }
        let much_later = 3_600_000_000_000;
        limit.tick(much_later);
        assert_eq!(limit.limit(), first);
        assert!(limit.due().expect("a full limit rises in the end") < much_later);
        limit.tick(much_later);
        assert!(limit.limit() > first);
    }
}
