//! What an adaptive limit has found and why it is what it is.

use std::fmt;

use super::{Adaptive, whole};

/// A level from this share of a bound on is held by it: the limit stays a little below.
const NEAR: f32 = 0.9;

/// Why the limit was lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Latencies rose with the limit and fell with it: more would only have queued.
    Latency,
    /// Items were turned away or timed out, more than usual.
    Failures,
    /// The event loop or the GIL came late by this many nanoseconds: this process is the bottleneck.
    Lag(u64),
}

/// One time that the limit was lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// When, ns of the clock that the limit is told the time of.
    pub at: u64,
    /// The limit until then.
    pub from: usize,
    /// The limit from then on.
    pub to: usize,
    /// Why.
    pub reason: Reason,
}

/// What was measured with so many items in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Items in flight.
    pub in_flight: f64,
    /// Items a second.
    pub throughput: f64,
    /// Mean latency, ns.
    pub latency_ns: f64,
}

/// What holds the limit where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing yet: it is still growing.
    Growing,
    /// The knee: beyond it throughput does not grow, but latency does.
    Knee,
    /// The ceiling that it was given.
    Ceiling,
    /// Little's law: more items than the processor can keep up with.
    Processor,
    /// Failures at a higher limit.
    Failures,
}

/// What an adaptive limit has found. Its [`Display`](fmt::Display) is a few plain sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The limit now.
    pub limit: usize,
    /// What holds it there.
    pub hold: Hold,
    /// The highest that it has been.
    pub highest: usize,
    /// The highest that it was allowed to be.
    pub ceiling: usize,
    /// Items that have ended.
    pub finished: u64,
    /// Processor time of an item, ns, if it was told.
    pub cpu_per_item_ns: Option<f64>,
    /// Mean latency of an item while the processor was not the bottleneck, ns.
    pub wait_ns: Option<f64>,
    /// Little's law: twice the wait divided by the processor time of an item.
    pub little: Option<usize>,
    /// The level beyond which throughput does not grow, if it was seen.
    pub knee: Option<usize>,
    /// Items that hang now, which the limit has been raised by.
    pub hanging: usize,
    /// The share of items that fail whatever the limit is.
    pub usual_failures: f64,
    /// What was measured at which level, lowest first.
    pub levels: Vec<Level>,
    /// The latest times that the limit was lowered, at most [`Report::KEPT`].
    pub back_offs: Vec<BackOff>,
    /// How often it was lowered in all.
    pub back_offs_in_all: u64,
}

impl Report {
    /// Of how many back-offs there are details.
    pub const KEPT: usize = 16;
}

impl Adaptive {
    /// What it has found so far.
    pub fn report(&self) -> Report {
        let level = self.search.doubted_level().unwrap_or(self.slots.wanted as f32);
        let limit = whole(level + self.overtaken.hanging() as f32, self.ceiling);
        let (back_offs, back_offs_in_all) = self.story.back_offs();
        let count = |value: f32| whole(value, usize::MAX);
        let hold = if limit >= self.ceiling {
            Hold::Ceiling
        } else if level >= self.trouble.fence() * NEAR {
            Hold::Failures
        } else if level >= self.processor_cap() * NEAR {
            Hold::Processor
        } else if self.search.knee().is_some() {
            Hold::Knee
        } else {
            Hold::Growing
        };
        Report {
            limit,
            hold,
            highest: self.story.highest,
            ceiling: self.ceiling,
            finished: self.story.finished,
            cpu_per_item_ns: self.processor.per_item_ns.map(f64::from),
            wait_ns: self.processor.wait_ns.map(f64::from),
            little: self.little().map(count),
            knee: self.search.knee().map(count),
            hanging: self.overtaken.hanging(),
            usual_failures: f64::from(self.trouble.usual()),
            levels: self.story.levels(),
            back_offs,
            back_offs_in_all,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}: ", self.limit)?;
        match (self.hold, self.knee) {
            (Hold::Knee, Some(knee)) => {
                write!(f, "with more than about {knee} in flight, items only wait longer")?;
            }
            (Hold::Ceiling, _) => write!(f, "the ceiling, and no measurement called for less")?,
            (Hold::Processor, _) => write!(f, "as many as one processor can serve")?,
            (Hold::Failures, _) => write!(f, "with more, items failed")?,
            (Hold::Growing | Hold::Knee, _) => {
                write!(f, "it was still growing, the ceiling was {}", self.ceiling)?;
            }
        }
        if self.hanging > 0 {
            let hang = if self.hanging == 1 { "hangs" } else { "hang" };
            write!(f, ", not counting {} that {hang}", self.hanging)?;
        }
        if self.highest > self.limit {
            write!(f, "; it has been {}", self.highest)?;
        }
        if let (Some(cpu), Some(wait), Some(little)) =
            (self.cpu_per_item_ns, self.wait_ns, self.little)
        {
            let (cpu, wait) = (Duration(cpu), Duration(wait));
            write!(f, ". An item takes {cpu} of processor time and waits {wait}")?;
            if little >= self.limit {
                write!(f, ", so more than {little} would gain nothing")?;
            }
        } else if let Some(wait) = self.wait_ns {
            write!(f, ". An item takes {}", Duration(wait))?;
        }
        if let Some(last) = self.back_offs.last() {
            let times = self.back_offs_in_all;
            write!(f, ". Lowered {times} {}", if times == 1 { "time" } else { "times" })?;
            write!(f, ", the last from {} to {} because ", last.from, last.to)?;
            match last.reason {
                Reason::Latency => write!(f, "latency rose with it")?,
                Reason::Failures => write!(f, "items were rejected or timed out")?,
                Reason::Lag(ns) => write!(f, "the event loop came {} late", Duration(ns as f64))?,
            }
        }
        if self.usual_failures >= 0.005 {
            let percent = self.usual_failures * 100.0;
            write!(f, ". {percent:.0} % of the items fail whatever the limit is")?;
        }
        Ok(())
    }
}

/// Nanoseconds as a person writes them.
struct Duration(f64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1e3 => write!(f, "{ns:.0} ns"),
            ns if ns < 1e5 => write!(f, "{:.1} \u{b5}s", ns / 1e3),
            ns if ns < 1e6 => write!(f, "{:.0} \u{b5}s", ns / 1e3),
            ns if ns < 1e8 => write!(f, "{:.1} ms", ns / 1e6),
            ns if ns < 1e9 => write!(f, "{:.0} ms", ns / 1e6),
            ns => write!(f, "{:.1} s", ns / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::release::Release;
    use super::super::{Opening, Outcome, Sample, Settings};
    use super::*;

    #[test]
    fn failures_hold_a_limit_that_is_a_tenth_below_the_level_at_which_they_were() {
        let mut limit =
            Adaptive::new(Settings { first: 100, ..Settings::new(1_000, Opening::Service) }, 0);
        let mut sample = Sample {
            ticket: limit.started(1, None),
            started: 1,
            finished: 2,
            cpu_so_far: 0,
            outcome: Outcome::Overloaded,
            asked: 0,
            group: None,
        };
        for _ in 0..100 {
            sample.ticket = limit.started(1, None);
            limit.finished(sample);
        }
        let fence = limit.trouble.fence();
        assert!(fence.is_finite());
        let mut hold = |share: f32| {
            limit.slots = Release::at(whole(share * fence, 1_000));
            limit.report().hold
        };
        assert_eq!(hold(0.93), Hold::Failures);
        assert_eq!(hold(0.87), Hold::Growing);
    }
}
