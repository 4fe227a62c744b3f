//! What this process itself can do: processor time per item, and Little's law.

use super::round::LOOP_DELAY_NS;

/// Coroutines, as a multiple of those that keep a processor busy: their waits differ, and the loop
/// does not look all the time for those that can go on.
const OF_LOOP: f32 = 2.0;

/// Threads, as a multiple of those that keep a processor busy: their waits differ. Fewer, because the
/// kernel lets the next one go on at once, and each more wants the GIL.
const OF_THREADS: f32 = 1.6;

/// Threads that wait for the processor at least, lest it be idle by chance.
const AT_HAND: f32 = 4.0;

/// The factor by which what is needed may grow in a round.
const MORE: f32 = 1.5;

/// The share of the way that the processor time of an item goes to that of the latest round.
const LATEST: f32 = 0.3;

/// How many items go on together, about, where they do not come one by one.
const BURST: f32 = 8.0;

/// While a smaller share of the processor is in use nobody waits for it.
const IDLE: f32 = 0.7;

/// Nor is its limit in sight below this share of the level that it allows.
const IN_SIGHT: f32 = 0.5;

/// Who lets items go on that have got what they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// A loop, one after the other.
    #[default]
    Loop,
    /// The kernel: each has a thread.
    Threads,
}

/// What has been counted until some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    time: u64,
    /// Processor time of the process, ns.
    cpu: u64,
    started: u64,
    finished: u64,
    /// The sum over all items of how long they have been running, ns. Those that hang do not count.
    running_ns: f64,
}

/// What was measured of the processor, and what follows for the limit.
#[derive(Debug)]
pub(super) struct Processor {
    now: Count,
    running: usize,
    /// When the round began.
    then: Count,
    driver: Driver,
    /// Whether items do nothing but sleep, so that their waits do not differ.
    pub sleep: bool,
    /// Processor time of an item, ns: of late, and in the latest round.
    pub per_item_ns: Option<f32>,
    latest_ns: Option<f32>,
    /// How many have to run to keep it busy.
    needed: Option<f32>,
    /// How long an item runs on average while the processor has time for it, ns.
    pub wait_ns: Option<f32>,
    /// The share of a processor that was in use.
    pub busy: f32,
}

impl Processor {
    pub fn new(now: u64, cpu: u64, driver: Driver) -> Self {
        let now = Count { time: now, cpu, ..Count::default() };
        Self {
            now,
            running: 0,
            then: now,
            driver,
            sleep: false,
            per_item_ns: None,
            latest_ns: None,
            needed: None,
            wait_ns: None,
            busy: 0.0,
        }
    }

    /// From now on so many run.
    pub fn runs(&mut self, running: usize, now: u64) {
        self.now.running_ns += self.running as f64 * now.saturating_sub(self.now.time) as f64;
        self.now.time = now.max(self.now.time);
        self.running = running;
    }

    pub fn started(&mut self) {
        self.now.started += 1;
    }

    pub fn finished(&mut self, cpu_so_far: u64) {
        self.now.finished += 1;
        self.now.cpu = self.now.cpu.max(cpu_so_far);
    }

    /// A round is over. While the run opens, `opening`, everything so far counts as one round.
    /// Says how long an item ran on average, ns.
    #[allow(clippy::cast_possible_truncation, reason = "nothing here needs 24 bits")]
    pub fn round(&mut self, opening: bool) -> Option<f32> {
        let then = self.then;
        if !opening {
            self.then = self.now;
        }
        let took = self.now.time.saturating_sub(then.time) as f32;
        let finished = (self.now.finished - then.finished) as f32;
        // An item is a start and an end.
        let items = ((self.now.started - then.started) as f32).midpoint(finished);
        let used = (self.now.cpu - then.cpu) as f32;
        if used > 0.0 && took > 0.0 && items > 0.0 {
            self.busy = used / took;
            let latest = used / items;
            self.latest_ns = Some(latest);
            let usual = self.per_item_ns.filter(|_| !opening).unwrap_or(latest);
            self.per_item_ns = Some(usual + LATEST * (latest - usual));
        }
        // Little's law, which does not mind that those who are slow have not ended.
        let wait = (self.now.running_ns - then.running_ns) as f32 / finished;
        if finished == 0.0 {
            return None;
        }
        let unknown = opening || self.busy < IDLE;
        // Where several processors are at work, more are needed.
        let needed = self.latest_ns.map(|each| wait / each * self.busy.max(1.0));
        // What is more while the processor is busy only waits for it; and that it was idle for once
        // may be somebody else's work.
        let most = self.needed.filter(|_| !opening).map(|it| if unknown { MORE * it } else { it });
        self.needed = needed.map(|needed| most.map_or(needed, |most| most.min(needed)));
        self.wait_ns = Some(self.wait_ns.filter(|_| !unknown).map_or(wait, |it| it.min(wait)));
        Some(wait)
    }

    /// Little's law: how many items keep one processor busy. Some more, as their waits differ.
    pub fn little(&self) -> Option<f32> {
        let needed = self.needed?;
        Some(match self.driver {
            Driver::Threads if self.sleep => needed + AT_HAND,
            Driver::Threads => OF_THREADS * needed + AT_HAND,
            Driver::Loop => OF_LOOP * (needed + LOOP_DELAY_NS / self.per_item_ns?),
        })
    }

    /// For how long an item may have waited for this process while `level` ran, ns: not at all
    /// while the processor is idle, for a short line of others when it is used, and for all others
    /// when it is busy.
    pub fn own_ns(&self, level: f32) -> f32 {
        let busy = self.busy.min(1.0);
        let line = BURST * busy / (1.0 - busy);
        self.per_item_ns.unwrap_or(0.0) * line.min(level)
    }

    /// The level that the processor allows, if `level` brings that in sight.
    pub fn cap(&self, level: f32) -> f32 {
        match self.little() {
            Some(little) if self.busy > IDLE || level > IN_SIGHT * little => little,
            _ => f32::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f32 = 1e6;

    fn of(driver: Driver) -> Processor {
        let (per_item_ns, needed) = (Some(MS), Some(100.0));
        Processor { per_item_ns, needed, ..Processor::new(0, 0, driver) }
    }

    /// A round of ten milliseconds in which `running` run, and ten end after `cpu` of processor each.
    fn round(processor: &mut Processor, running: usize, cpu: u64) {
        let begun = processor.now;
        processor.runs(running, begun.time);
        for number in 1..=10 {
            processor.started();
            processor.finished(begun.cpu + number * cpu);
        }
        processor.runs(running, begun.time + 10_000_000);
        processor.round(false);
    }

    #[test]
    fn twice_as_many_coroutines_as_keep_it_busy_are_enough_and_those_of_two_milliseconds() {
        assert_eq!(of(Driver::Loop).little(), Some(204.0));
    }

    #[test]
    fn of_threads_a_little_more_than_those_that_keep_it_busy_are_enough() {
        assert_eq!(of(Driver::Threads).little(), Some(164.0));
        let asleep = Processor { sleep: true, ..of(Driver::Threads) };
        assert_eq!(asleep.little(), Some(104.0));
    }

    #[test]
    fn an_item_waits_for_a_line_that_is_the_longer_the_busier_the_processor_is() {
        let processor = |busy| Processor { busy, ..of(Driver::Loop) };
        assert!((processor(0.5).own_ns(100.0) - 8.0 * MS).abs() < 1.0);
        assert!((processor(0.5).own_ns(3.0) - 3.0 * MS).abs() < 1.0);
        assert!((processor(1.0).own_ns(100.0) - 100.0 * MS).abs() < 1.0);
        assert!(processor(0.0).own_ns(100.0).abs() < 1.0);
    }

    #[test]
    fn its_limit_is_in_sight_while_it_is_busy_and_from_half_of_it_on() {
        let cap = |busy: f32, share: f32| Processor { busy, ..of(Driver::Loop) }.cap(share * 204.0);
        assert!(cap(0.65, 0.4).is_infinite());
        assert!(cap(0.65, 0.6).is_finite());
        assert!(cap(0.75, 0.4).is_finite());
    }

    #[test]
    fn what_an_item_takes_of_it_follows_the_latest_round() {
        let mut processor = of(Driver::Loop);
        round(&mut processor, 10, 2_000_000);
        assert!((processor.per_item_ns.expect("it was told") - 1.3 * MS).abs() < 1.0);
    }

    #[test]
    fn how_many_are_needed_grows_by_half_a_round_while_it_is_idle_and_not_while_it_is_busy() {
        // A thousand that run for as long as the round, and a hundredth of whom end.
        let mut processor = of(Driver::Loop);
        round(&mut processor, 1_000, 650_000);
        assert_eq!(processor.needed, Some(150.0));
        round(&mut processor, 1_000, 750_000);
        assert_eq!(processor.needed, Some(150.0));
    }
}
