//! One fan-out: what may start now, what becomes of an attempt that has ended, and what was counted.
//!
//! [`Dispatch`] decides what starts; here it is joined with the limit, the backoff and the counters.
//! What belongs to an attempt is kept by the caller, as an [`Attempt`] that it gives back.

use crate::attempt::{After, Attempt, Failure};
use crate::auto_limit::AutoLimit;
use crate::backoff::Backoff;
use crate::bucket::Bucket;
use crate::dispatch::{Dispatch, Membership, Next};
use crate::limit::{MOST_JITTER_NS, Outcome, Sample, Ticket};

/// Timers are not finer than that, ns.
const MOMENT: u64 = 500_000;

/// How many may run at once.
#[derive(Debug)]
pub enum Limit {
    /// So many.
    Fixed(usize),
    /// As many as is found out.
    Auto(Box<AutoLimit>),
}

/// How far a fan-out has come, all at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many items have come in.
    pub came_in: u64,
    /// How many of them have come to their end.
    pub done: u64,
    /// How many of these an earlier run has done.
    pub resumed: u64,
    /// How many of these have failed.
    pub failed: u64,
    /// How many attempts were repeated.
    pub retried: u64,
    /// How many run.
    pub running: usize,
    /// How many may run.
    pub limit: usize,
    /// How many ran at once at most.
    pub most_running: usize,
}

/// Which items run when, of a fan-out over items of which the caller keeps a `T` each.
#[derive(Debug)]
pub struct Dispatcher<T> {
    dispatch: Dispatch<T>,
    auto: Option<Box<AutoLimit>>,
    backoff: Backoff,
    failed: u64,
    /// How many have failed in which way, by its name.
    failures: Vec<(String, u64)>,
    retried: u64,
    resumed: u64,
    most_running: usize,
    /// When whoever has asked for the pause comes back, if nothing calls them before.
    expected: Option<u64>,
}

impl<T> Dispatcher<T> {
    /// Nothing started yet; the rest is [`Dispatch::new`]'s.
    pub fn new(
        limit: Limit,
        window: usize,
        in_order: bool,
        bucket: Option<Bucket>,
        backoff: Backoff,
    ) -> Self {
        let (most, auto) = match limit {
            Limit::Fixed(most) => (most, None),
            Limit::Auto(auto) => (auto.limit(), Some(auto)),
        };
        Self {
            dispatch: Dispatch::new(most, window, in_order, bucket),
            auto,
            backoff,
            failed: 0,
            failures: Vec::new(),
            retried: 0,
            resumed: 0,
            most_running: 0,
            expected: None,
        }
    }

    /// From now on the next of the input comes in before the rate lets it start. Whoever asks for this
    /// comes back for it.
    pub fn read_ahead(&mut self) {
        self.dispatch.reads_ahead = true;
    }

    /// From now on items of one group do not start in the same instant, where the limit is found out.
    /// Whoever asks for this comes back for what was put off.
    pub fn put_off_starts(&mut self, seed: u64) {
        if self.auto.is_some() {
            (self.dispatch.most_jitter, self.dispatch.seed) = (MOST_JITTER_NS, seed);
        }
    }

    /// What may start now, where time may have raised the limit. What does is told to
    /// [`Self::begin`].
    pub fn next(&mut self, now: u64) -> Next<T> {
        if let Some(auto) = &mut self.auto {
            auto.tick(now);
            self.dispatch.limit = auto.limit();
        }
        self.dispatch.next(now)
    }

    /// Whether an item may come in now.
    pub fn wants(&mut self, now: u64) -> bool {
        self.dispatch.look(now) == Next::Pull
    }

    /// The number of the item that comes in next.
    pub fn next_index(&self) -> u64 {
        self.dispatch.pulled()
    }

    /// An item has come in; see [`Dispatch::entered`]. What is given back is to begin now.
    pub fn entered(&mut self, item: T, membership: Membership, now: u64) -> Option<T> {
        self.dispatch.entered(item, membership, now)
    }

    /// An item has come in that an earlier run has done.
    pub fn entered_resumed(&mut self, item: T) {
        self.resumed += 1;
        self.dispatch.entered_finished(item);
    }

    /// An item has come in that does not run: it has failed in the way of this name.
    pub fn entered_failed(&mut self, item: T, name: String) {
        self.count_failure(name);
        self.dispatch.entered_finished(item);
    }

    /// The input has come to its end.
    pub fn exhausted(&mut self) {
        self.dispatch.exhausted();
    }

    /// An attempt begins. The ticket belongs into its [`Attempt`].
    pub fn begin(&mut self, membership: Membership, now: u64) -> Ticket {
        let mut ticket = Ticket::default();
        if let Some(auto) = &mut self.auto {
            ticket = auto.started(now, membership.map(|(group, _)| group));
            self.dispatch.limit = auto.limit();
        }
        self.most_running = self.most_running.max(self.dispatch.running());
        ticket
    }

    /// The attempt at item `index` has led to a value.
    pub fn succeeded(&mut self, index: u64, item: T, attempt: Attempt, now: u64) {
        self.end(attempt, Outcome::Completed, 0, now);
        self.dispatch.finished(index, item);
    }

    /// The attempt at item `index` has led to nothing.
    pub fn failed(&mut self, index: u64, item: T, attempt: Attempt, failure: Failure, now: u64) {
        let Failure { attempts, may_be_load, too_much, next } = failure;
        let is_load = may_be_load || too_much.is_some();
        let outcome = if is_load { Outcome::Overloaded } else { Outcome::Failed };
        self.end(attempt, outcome, too_much.unwrap_or(0), now);
        if let Some(asked) = too_much {
            self.dispatch.slow_down(asked, now);
        }
        let wait = match next {
            After::Again(asked) => asked,
            After::AgainLater(asked) => asked.saturating_add(self.backoff.wait(attempts)),
            After::Never(name) => {
                self.give_up(index, item, name);
                return;
            }
        };
        self.retried += 1;
        self.dispatch.retry(index, item, attempt.membership, now.saturating_add(wait));
    }

    fn end(&mut self, attempt: Attempt, outcome: Outcome, asked: u64, now: u64) {
        let Attempt { membership, started, ticket } = attempt;
        self.dispatch.ended(membership);
        if let Some(auto) = &mut self.auto {
            let group = membership.map(|(group, _)| group);
            let finished = now;
            auto.ended(Sample { ticket, started, finished, cpu_so_far: 0, outcome, asked, group });
            self.dispatch.limit = auto.limit();
            if self.dispatch.most_jitter > 0 {
                self.dispatch.most_jitter = auto.most_jitter();
            }
        }
    }

    /// Item `index` does not run, or not again: it has failed in the way of this name.
    pub fn give_up(&mut self, index: u64, item: T, name: String) {
        self.count_failure(name);
        self.dispatch.finished(index, item);
    }

    fn count_failure(&mut self, name: String) {
        self.failed += 1;
        match self.failures.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((name, 1)),
        }
    }

    /// Starts nothing any more. What is given back is to be given up.
    pub fn stop(&mut self) -> Vec<T> {
        self.dispatch.stop()
    }

    /// Whether nothing starts any more: what fails now is not to be tried again.
    pub fn is_stopped(&self) -> bool {
        self.dispatch.is_stopped()
    }

    /// Hands out an item that has finished.
    pub fn take(&mut self) -> Option<T> {
        self.dispatch.take()
    }

    /// Whether [`Self::take`] has something.
    pub fn is_ready(&self) -> bool {
        self.dispatch.is_ready()
    }

    /// Whether nothing runs, nothing will, and everything was taken.
    pub fn is_over(&self) -> bool {
        self.dispatch.is_over()
    }

    /// Whether everything that will ever run has ended.
    pub fn has_ended(&self) -> bool {
        self.dispatch.has_ended()
    }

    /// When time alone lets something start; see [`Dispatch::pauses_until`].
    pub fn pauses_until(&mut self, now: u64) -> Option<u64> {
        self.expected = self.starts_at(now);
        self.expected
    }

    /// Whether something may start earlier by now than when somebody comes back for it.
    pub fn is_due_earlier(&mut self, now: u64) -> bool {
        let expected = self.expected;
        self.starts_at(now).is_some_and(|until| {
            expected.is_none_or(|expected| until.saturating_add(MOMENT) < expected)
        })
    }

    fn starts_at(&mut self, now: u64) -> Option<u64> {
        let raised = self.auto.as_mut().and_then(|auto| auto.due());
        self.dispatch.pauses_until(now, raised)
    }

    /// Whether time may ever let something start, retries aside.
    pub fn goes_by_time(&self) -> bool {
        self.dispatch.has_rate() || self.auto.is_some()
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.dispatch.running()
    }

    /// How many may run at once.
    pub fn limit(&self) -> usize {
        self.dispatch.limit
    }

    /// How many more may run now.
    pub fn room(&self) -> usize {
        self.dispatch.limit.saturating_sub(self.dispatch.running())
    }

    /// No more than so many can run at once, from now on: the system gives no more.
    pub fn lower_limit(&mut self, limit: usize) {
        self.auto = None;
        self.dispatch.limit = self.dispatch.limit.min(limit.max(1));
    }

    /// Whoever lets items go on has come so many nanoseconds late.
    pub fn lagged(&mut self, now: u64, lag: u64) {
        if let Some(auto) = &mut self.auto {
            auto.lagged(now, lag);
            self.dispatch.limit = auto.limit();
        }
    }

    /// Whether somebody should look if those that run do nothing but sleep: see
    /// [`Adaptive::is_in_the_dark`](crate::limit::Adaptive::is_in_the_dark).
    pub fn is_in_the_dark(&self) -> bool {
        self.auto.as_ref().is_some_and(|auto| auto.is_in_the_dark())
    }

    /// Those that run do nothing but sleep.
    pub fn asleep(&mut self, now: u64) {
        if let Some(auto) = &mut self.auto {
            auto.asleep(now);
            self.dispatch.limit = auto.limit();
        }
    }

    /// What was found out about the limit, in sentences; `None` where it is a number.
    pub fn found(&self) -> Option<String> {
        self.auto.as_ref().map(|auto| auto.report().to_string())
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        Progress {
            came_in: self.dispatch.pulled(),
            done: self.dispatch.done(),
            resumed: self.resumed,
            failed: self.failed,
            retried: self.retried,
            running: self.dispatch.running(),
            limit: self.dispatch.limit,
            most_running: self.most_running,
        }
    }

    /// How many items have failed in which way, by its name, the first one first.
    pub fn failures(&self) -> &[(String, u64)] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Driver, Opening};

    const MILLISECOND: u64 = 1_000_000;

    fn fixed(limit: usize) -> Dispatcher<u64> {
        // 10 ms, then twice as long each time.
        let backoff = Backoff::new(10e6, 2.0, 1e9, 0.0, 1);
        Dispatcher::new(Limit::Fixed(limit), 10, false, None, backoff)
    }

    fn auto(opening: Opening) -> Dispatcher<u64> {
        let limit = AutoLimit::new(1000, opening, Driver::Loop, || 0, 0);
        let backoff = Backoff::new(0.0, 1.0, 0.0, 0.0, 1);
        Dispatcher::new(Limit::Auto(Box::new(limit)), 10, false, None, backoff)
    }

    /// Lets the next item of the input come in and begin.
    fn start(dispatcher: &mut Dispatcher<u64>, now: u64) -> Attempt {
        assert_eq!(dispatcher.next(now), Next::Pull);
        let index = dispatcher.next_index();
        dispatcher.entered(index, None, now).expect("it has no group that it could wait for");
        Attempt { membership: None, started: now, ticket: dispatcher.begin(None, now) }
    }

    fn failure(attempts: u32, next: After) -> Failure {
        Failure { attempts, may_be_load: false, too_much: None, next }
    }

    #[test]
    fn an_item_is_tried_again_after_the_backoff_or_exactly_when_it_was_asked_for() {
        let mut dispatcher = fixed(1);
        let attempt = start(&mut dispatcher, 0);
        dispatcher.failed(0, 0, attempt, failure(1, After::AgainLater(5)), 0);
        dispatcher.exhausted();
        assert_eq!(dispatcher.next(0), Next::Wait(10 * MILLISECOND + 5));
        assert_eq!(dispatcher.next(10 * MILLISECOND + 5), Next::Run(0));
        dispatcher.failed(0, 0, attempt, failure(2, After::Again(7)), 11 * MILLISECOND);
        assert_eq!(dispatcher.pauses_until(11 * MILLISECOND), Some(11 * MILLISECOND + 7));
        assert_eq!(dispatcher.next(12 * MILLISECOND), Next::Run(0));
        dispatcher.succeeded(0, 0, attempt, 12 * MILLISECOND);
        let progress = dispatcher.progress();
        assert_eq!((progress.retried, progress.failed, progress.done), (2, 0, 1));
        assert_eq!(dispatcher.take(), Some(0));
        assert!(dispatcher.is_over());
    }

    #[test]
    fn failures_are_counted_by_name_the_first_one_first() {
        let mut dispatcher = fixed(3);
        for (index, name) in ["TimeoutError", "OSError", "TimeoutError"].into_iter().enumerate() {
            let attempt = start(&mut dispatcher, 0);
            let never = failure(1, After::Never(name.into()));
            dispatcher.failed(index as u64, index as u64, attempt, never, 0);
        }
        let expected = [("TimeoutError".to_owned(), 2), ("OSError".to_owned(), 1)];
        assert_eq!(dispatcher.failures(), expected);
        assert_eq!(dispatcher.progress().failed, 3);
    }

    #[test]
    fn what_was_stopped_is_given_back_and_counts_when_it_is_given_up() {
        let mut dispatcher = fixed(1);
        let attempt = start(&mut dispatcher, 0);
        dispatcher.failed(0, 0, attempt, failure(1, After::Again(MILLISECOND)), 0);
        assert_eq!(dispatcher.stop(), [0]);
        assert!(dispatcher.is_stopped() && !dispatcher.is_over());
        dispatcher.give_up(0, 0, "Cancelled".into());
        assert_eq!(dispatcher.take(), Some(0));
        assert!(dispatcher.is_over());
        assert_eq!(dispatcher.failures(), [("Cancelled".to_owned(), 1)]);
    }

    #[test]
    fn most_running_is_what_ran_at_once_and_not_what_came_in() {
        let mut dispatcher = fixed(2);
        let first = start(&mut dispatcher, 0);
        let second = start(&mut dispatcher, 0);
        assert_eq!((dispatcher.room(), dispatcher.next(0)), (0, Next::Blocked));
        dispatcher.succeeded(0, 0, first, 1);
        dispatcher.succeeded(1, 1, second, 1);
        start(&mut dispatcher, 1);
        let progress = dispatcher.progress();
        assert_eq!((progress.came_in, progress.most_running, progress.running), (3, 2, 1));
    }

    #[test]
    fn an_item_of_an_earlier_run_is_done_without_having_run() {
        let mut dispatcher = fixed(1);
        dispatcher.entered_resumed(0);
        assert_eq!(dispatcher.take(), Some(0));
        let progress = dispatcher.progress();
        assert_eq!((progress.resumed, progress.done, progress.most_running), (1, 1, 0));
    }

    #[test]
    fn an_item_that_comes_in_failed_is_done_and_counts_as_one_that_failed() {
        let mut dispatcher = fixed(1);
        dispatcher.entered_failed(0, "not done".into());
        assert_eq!(dispatcher.take(), Some(0));
        let progress = dispatcher.progress();
        assert_eq!((progress.failed, progress.done, progress.most_running), (1, 1, 0));
        assert_eq!(dispatcher.failures(), [("not done".to_owned(), 1)]);
    }

    #[test]
    fn a_lowered_limit_is_a_number_from_then_on() {
        let mut dispatcher = auto(Opening::Hosts);
        assert!(dispatcher.found().is_some() && dispatcher.goes_by_time());
        dispatcher.lower_limit(0);
        assert_eq!((dispatcher.limit(), dispatcher.found()), (1, None));
        dispatcher.lower_limit(5);
        assert_eq!(dispatcher.limit(), 1);
        assert!(!dispatcher.goes_by_time());
    }

    #[test]
    fn items_that_only_sleep_lift_the_limit_of_one_in_the_dark() {
        let mut dispatcher = auto(Opening::Unknown);
        while dispatcher.next(0) == Next::Pull {
            let index = dispatcher.next_index();
            dispatcher.entered(index, None, 0).expect("it has no group");
            dispatcher.begin(None, 0);
        }
        assert!(dispatcher.is_in_the_dark());
        let before = dispatcher.limit();
        dispatcher.asleep(0);
        assert!(!dispatcher.is_in_the_dark() && dispatcher.limit() > before);
    }

    #[test]
    fn whoever_waits_is_told_when_something_may_start_earlier() {
        let mut dispatcher = fixed(2);
        let first = start(&mut dispatcher, 0);
        let second = start(&mut dispatcher, 0);
        dispatcher.exhausted();
        dispatcher.failed(0, 0, first, failure(1, After::Again(50 * MILLISECOND)), 0);
        assert_eq!(dispatcher.pauses_until(0), Some(50 * MILLISECOND));
        assert!(!dispatcher.is_due_earlier(0));
        dispatcher.failed(1, 1, second, failure(1, After::Again(20 * MILLISECOND)), 0);
        assert!(dispatcher.is_due_earlier(0));
        // It is their answer that counts, not the question.
        assert!(dispatcher.is_due_earlier(0));
        assert_eq!(dispatcher.pauses_until(0), Some(20 * MILLISECOND));
        assert!(!dispatcher.is_due_earlier(0));
    }

    #[test]
    fn whoever_says_that_it_is_too_much_lowers_the_rate() {
        let mut dispatcher = fixed(100);
        let bucket = Bucket::new(1000.0, 1.0, 0);
        dispatcher.dispatch = Dispatch::new(100, 100, false, Some(bucket));
        let attempt = start(&mut dispatcher, 0);
        assert_eq!(dispatcher.next(0), Next::Wait(MILLISECOND));
        let too_much = Failure { too_much: Some(1), ..failure(1, After::Never(String::new())) };
        dispatcher.failed(0, 0, attempt, too_much, 0);
        let Next::Wait(until) = dispatcher.next(0) else { panic!("there is no token") };
        assert!(until > MILLISECOND, "{until}");
    }
}
