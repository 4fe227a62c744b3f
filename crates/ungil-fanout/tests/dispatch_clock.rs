//! No wake-up is lost, however far the clock goes on between any two calls: fan-outs that are driven
//! in each of the ways in which modes drive them come to their end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ungil_fanout::bucket::Bucket;
use ungil_fanout::dispatch::{Dispatch, Membership, Next};

const MILLISECOND: u64 = 1_000_000;

/// How a mode asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Asks until nothing may start, and then when to come back: `lean`, `green`, calls in threads
    /// and processes.
    Calls,
    /// Also asks for one item in the place of each that ends, and keeps the timer that it has:
    /// `asyncio`.
    KeepsTimer,
    /// Is given its items one by one by somebody who asks for himself whether there is room:
    /// streams of an asynchronous input.
    IsFed,
}

#[derive(Clone, Debug)]
struct World {
    way: Way,
    /// For each item its group, how often it fails, and for how many milliseconds it runs.
    items: Vec<(Option<u64>, u32, u64)>,
    limit: usize,
    per_second: Option<f64>,
    most_jitter: u64,
    backoff: u64,
    /// How far the clock goes on between calls, again and again, ns.
    steps: Vec<u64>,
    /// By how much timers fire too early, ns.
    early: u64,
}

fn worlds() -> impl Strategy<Value = World> {
    let item = (proptest::option::of(0u64..3), 0u32..3, 0u64..20);
    // Most steps are short, and some longer than what is waited for.
    let step = prop_oneof![3 => 1_000..10_000u64, 1 => 1_000..5 * MILLISECOND];
    (
        prop_oneof![Just(Way::Calls), Just(Way::KeepsTimer), Just(Way::IsFed)],
        proptest::collection::vec(item, 1..40),
        1usize..8,
        proptest::option::of(50.0f64..3000.0),
        prop_oneof![Just(0), 1..10 * MILLISECOND],
        1..5 * MILLISECOND,
        proptest::collection::vec(step, 1..30),
        0..20_000u64,
    )
        .prop_map(|(way, items, limit, per_second, most_jitter, backoff, steps, early)| {
            World { way, items, limit, per_second, most_jitter, backoff, steps, early }
        })
}

/// A fan-out, and the world in which it runs.
struct Run<'w> {
    world: &'w World,
    dispatch: Dispatch<u64>,
    now: u64,
    looks: usize,
    /// When which items end, with how often each has begun.
    running: Vec<(u64, u64)>,
    attempts: BTreeMap<u64, u32>,
    timer: Option<u64>,
    /// When the one who feeds looks again.
    feeder: Option<u64>,
}

impl Run<'_> {
    /// The clock, which has gone on since it was last looked at.
    fn clock(&mut self) -> u64 {
        self.now += self.world.steps[self.looks % self.world.steps.len()];
        self.looks += 1;
        self.now
    }

    fn item(&self, index: u64) -> (Option<u64>, u32, u64) {
        self.world.items[usize::try_from(index).expect("few")]
    }

    fn membership(&self, index: u64) -> Membership {
        self.item(index).0.map(|group| (group, 2))
    }

    fn has_more(&self) -> bool {
        self.dispatch.pulled() < self.world.items.len() as u64
    }

    fn begin(&mut self, index: u64) {
        *self.attempts.entry(index).or_default() += 1;
        self.running.push((self.now + self.item(index).2 * MILLISECOND, index));
    }

    /// The next item of the input comes in.
    fn enter(&mut self, now: u64) -> bool {
        let index = self.dispatch.pulled();
        let entered = self.dispatch.entered(index, self.membership(index), now);
        entered.inspect(|&index| self.begin(index)).is_some()
    }

    /// Starts one, if one may start now.
    fn start(&mut self) -> bool {
        let now = self.clock();
        loop {
            match self.dispatch.next(now) {
                Next::Run(index) => {
                    self.begin(index);
                    return true;
                }
                Next::Wait(_) | Next::Blocked => return false,
                Next::Pull if self.world.way == Way::IsFed => return false,
                Next::Pull if !self.has_more() => self.dispatch.exhausted(),
                Next::Pull => {
                    if self.enter(now) {
                        return true;
                    }
                }
            }
        }
    }

    /// Asks when to come back, after having been told that nothing may start.
    fn rest(&mut self) {
        if self.dispatch.has_ended() {
            self.timer = None;
            return;
        }
        let now = self.clock();
        let pause = self.dispatch.pauses_until(now, None);
        if self.world.way != Way::KeepsTimer || self.timer.is_none() {
            self.timer = pause;
        }
    }

    fn open(&mut self) {
        while self.start() {}
        self.rest();
    }

    /// Gives items as long as there is room for them, and then says when to look again.
    fn feed(&mut self) {
        while self.has_more() {
            let now = self.clock();
            let pause = self.dispatch.pauses_until(now, None);
            let now = self.clock();
            if self.dispatch.look(now) != Next::Pull {
                self.feeder = pause;
                return;
            }
            let now = self.clock();
            self.enter(now);
            // Whoever waits for outcomes is told, and opens what was put off.
            self.open();
        }
        self.feeder = None;
        self.dispatch.exhausted();
        self.open();
    }

    /// Ends what is over by now.
    fn end(&mut self) {
        let (over, left): (Vec<_>, Vec<_>) =
            self.running.iter().partition(|(ends, _)| *ends <= self.now);
        self.running = left;
        for (_, index) in over {
            let now = self.clock();
            self.dispatch.ended(self.membership(index));
            if self.attempts[&index] <= self.item(index).1 {
                let due = now + self.world.backoff;
                self.dispatch.retry(index, index, self.membership(index), due);
            } else {
                self.dispatch.finished(index, index);
            }
            if self.world.way == Way::KeepsTimer && !self.start() {
                self.rest();
            }
        }
    }

    fn live(mut self) -> usize {
        let (mut taken, mut opens) = (0, true);
        for _ in 0..20_000 {
            if self.world.way == Way::IsFed {
                self.feed();
            }
            if opens || self.world.way != Way::KeepsTimer {
                self.open();
            }
            let before = taken;
            while self.dispatch.take().is_some() {
                taken += 1;
            }
            if self.dispatch.is_over() {
                return taken;
            }
            // What was taken has made room: whoever took it comes back for more.
            opens = taken > before;
            if opens {
                continue;
            }
            let early = self.world.early;
            let fires = |timer: &u64| timer.saturating_sub(early);
            let ends = self.running.iter().map(|(ends, _)| *ends).min();
            let timers = [self.timer, self.feeder].into_iter().flatten();
            let next = ends.into_iter().chain(timers.map(|timer| fires(&timer))).min();
            self.now = self.now.max(next.expect("nothing runs, and nobody comes back"));
            if self.timer.as_ref().is_some_and(|timer| fires(timer) <= self.now) {
                self.timer = None;
                opens = true;
            }
            self.end();
        }
        panic!("it does not come to an end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_fan_out_comes_to_its_end_however_the_clock_goes_on_between_two_calls(world in worlds()) {
        let bucket = world.per_second.map(|rate| Bucket::new(rate, 1.0, 0));
        let mut dispatch = Dispatch::new(world.limit, 10, false, bucket);
        dispatch.most_jitter = world.most_jitter;
        dispatch.reads_ahead = world.way != Way::IsFed;
        let run = Run {
            world: &world,
            dispatch,
            now: 0,
            looks: 0,
            running: Vec::new(),
            attempts: BTreeMap::new(),
            timer: None,
            feeder: None,
        };
        prop_assert_eq!(run.live(), world.items.len());
    }
}
