//! What may start now: the state of one fan-out.
//!
//! Items come in order, one at a time, and only when one may start; so an endless input takes no
//! memory. Each runs, perhaps waits and runs again, and is handed out once. What runs is at most
//! the limit, of each group at most the group's, and no more often than the rate. Items of one group
//! that get slots which nobody had before do not start in the same instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bucket::Bucket;
pub use crate::groups::Group;
use crate::groups::Groups;
use crate::limit::jitter;
use crate::order::Order;

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// Run this item, which was there before.
    Run(T),
    /// Take the next of the input, and say so: [`Dispatch::entered`], or [`Dispatch::exhausted`].
    Pull,
    /// Nothing may start before this time, unless something ends.
    Wait(u64),
    /// Nothing may start before something ends, or is handed out.
    Blocked,
}

/// A group of an item, and how many of it may run at once.
pub type Membership = Option<(Group, usize)>;

/// An item that is to start later.
#[derive(Debug)]
struct Later<T> {
    due: u64,
    index: u64,
    item: T,
    membership: Membership,
}

impl<T> PartialEq for Later<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.index) == (other.due, other.index)
    }
}

impl<T> Eq for Later<T> {}

impl<T> PartialOrd for Later<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Later<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.index).cmp(&(other.due, other.index))
    }
}

/// When the first of them is due.
fn first_due<T>(heap: &BinaryHeap<Reverse<Later<T>>>) -> Option<u64> {
    heap.peek().map(|Reverse(later)| later.due)
}

/// The state of one fan-out over items of which the caller keeps a `T` each.
#[derive(Debug)]
pub struct Dispatch<T> {
    /// How many may run at once.
    pub limit: usize,
    /// The longest that the start of an item of a group is put off by [`jitter`], ns.
    pub most_jitter: u64,
    /// What the jitter depends on.
    pub seed: u64,
    /// Whether the next of the input comes in before the rate lets it start. Only then is the end of
    /// the input known when what runs has ended, and not when another could start.
    pub reads_ahead: bool,
    window: usize,
    running: usize,
    pulled: u64,
    taken: u64,
    input_is_over: bool,
    stopped: bool,
    /// Until when `next` told its last caller to wait.
    told: Option<u64>,
    bucket: Option<Bucket>,
    groups: Groups<T>,
    retries: BinaryHeap<Reverse<Later<T>>>,
    /// Items whose start is put off. Each has a slot, and a place in its group.
    put_off: BinaryHeap<Reverse<Later<T>>>,
    /// How many slots were left by items that have ended: who takes one is in step with nobody.
    left: usize,
    finished: Order<T>,
}

impl<T> Dispatch<T> {
    /// Nothing started yet. At most `window` items more than may run are between their coming in
    /// and their being handed out, `in_order` as they came or else as they finish.
    pub fn new(limit: usize, window: usize, in_order: bool, bucket: Option<Bucket>) -> Self {
        Self {
            limit,
            most_jitter: 0,
            seed: 0,
            reads_ahead: false,
            window,
            running: 0,
            pulled: 0,
            taken: 0,
            input_is_over: false,
            stopped: false,
            told: None,
            bucket,
            groups: Groups::new(),
            retries: BinaryHeap::new(),
            put_off: BinaryHeap::new(),
            left: 0,
            finished: if in_order { Order::of_input() } else { Order::of_completion() },
        }
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many have come in.
    pub fn pulled(&self) -> u64 {
        self.pulled
    }

    /// How many have come in and were not handed out.
    pub fn outstanding(&self) -> u64 {
        self.pulled - self.taken
    }

    /// Whether starts are counted by time.
    pub fn has_rate(&self) -> bool {
        self.bucket.is_some()
    }

    /// How many have come in and have finished.
    pub fn done(&self) -> u64 {
        let later = self.retries.len() + self.put_off.len();
        self.pulled - (self.running + later + self.groups.waiting()) as u64
    }

    /// Whether an item is finished and may be taken.
    pub fn is_ready(&self) -> bool {
        self.finished.is_ready()
    }

    /// Whether nothing runs, nothing will, and everything was taken.
    pub fn is_over(&self) -> bool {
        self.input_is_over && self.outstanding() == 0
    }

    /// Whether everything that will ever run has ended.
    pub fn has_ended(&self) -> bool {
        self.input_is_over
            && self.running == 0
            && self.retries.is_empty()
            && self.put_off.is_empty()
            && self.groups.waiting() == 0
    }

    /// Whoever is asked says that it is too much: see [`Bucket::slow_down`].
    pub fn slow_down(&mut self, asked: u64, now: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.slow_down(asked, now);
        }
    }

    /// What [`Self::next`] would answer, without doing it: `Run` stands for an item.
    pub fn look(&mut self, now: u64) -> Next<()> {
        if self.running >= self.limit {
            return Next::Blocked;
        }
        let put_off = first_due(&self.put_off);
        let is_full = self.running + self.put_off.len() >= self.limit;
        let retry = first_due(&self.retries).filter(|_| !is_full);
        let due = [put_off, retry].into_iter().flatten().min();
        let runs = due.is_some_and(|due| due <= now) || !is_full && self.groups.has_startable();
        let pulls = !is_full
            && !self.input_is_over
            && self.outstanding() < (self.window + self.limit) as u64
            && self.groups.waiting() < self.window;
        if !runs && !pulls {
            return due.map_or(Next::Blocked, Next::Wait);
        }
        if let Some(bucket) = &mut self.bucket
            && let Err(filled) = bucket.ready(now)
        {
            let is_ahead = runs || !self.reads_ahead;
            return if is_ahead { Next::Wait(filled) } else { Next::Pull };
        }
        if runs { Next::Run(()) } else { Next::Pull }
    }

    /// What may start now. What is there already goes before the input.
    pub fn next(&mut self, now: u64) -> Next<T> {
        let next = self.choose(now);
        self.told = if let Next::Wait(until) = next { Some(until) } else { None };
        next
    }

    /// When time alone lets something start, be it at `raised`, when the limit may rise; that may be
    /// over by `now`.
    ///
    /// Whoever asks this was told by [`Self::next`] that nothing may start, and the clock has gone
    /// on since. If something may start by now, they have to come back for it: nobody else will.
    pub fn pauses_until(&mut self, now: u64, raised: Option<u64>) -> Option<u64> {
        match self.look(now) {
            Next::Wait(until) => Some(raised.map_or(until, |raised| raised.min(until))),
            Next::Blocked => raised,
            Next::Run(()) | Next::Pull => self.told,
        }
    }

    fn choose(&mut self, now: u64) -> Next<T> {
        loop {
            match self.look(now) {
                Next::Run(()) => {
                    if let Some(item) = self.again(now) {
                        return Next::Run(item);
                    }
                }
                Next::Pull => return Next::Pull,
                Next::Wait(until) => return Next::Wait(until),
                Next::Blocked => return Next::Blocked,
            }
        }
    }

    /// Starts an item that was there before, if the first of them need not wait for its group.
    fn again(&mut self, now: u64) -> Option<T> {
        if first_due(&self.put_off).is_some_and(|due| due <= now) {
            let Reverse(later) = self.put_off.pop()?;
            // The slot was its own, and those that were left are for others.
            self.left += 1;
            self.start();
            return Some(later.item);
        }
        if first_due(&self.retries).is_some_and(|due| due <= now) {
            let Reverse(retry) = self.retries.pop()?;
            let item = self.enter(retry.item, retry.membership)?;
            self.start();
            return Some(item);
        }
        let item = self.groups.start()?;
        self.start();
        Some(item)
    }

    /// The next item of the input has come in, as number [`Self::pulled`]: gives it back if it is
    /// to run now, else it waits for its group or for the rate, or because others of its group have
    /// just started.
    pub fn entered(&mut self, item: T, membership: Membership, now: u64) -> Option<T> {
        let index = self.pulled;
        self.pulled += 1;
        let item = self.enter(item, membership)?;
        let wait = self.jitter(membership);
        if wait > 0 || self.comes_before_the_rate(now) {
            if wait == 0 {
                self.left = self.left.saturating_sub(1);
            }
            let due = now.saturating_add(wait);
            self.put_off.push(Reverse(Later { due, index, item, membership }));
            return None;
        }
        self.start();
        Some(item)
    }

    fn comes_before_the_rate(&mut self, now: u64) -> bool {
        self.reads_ahead && self.bucket.as_mut().is_some_and(|bucket| bucket.ready(now).is_err())
    }

    /// For how long to put off the start of an item of this group, that has a place in it.
    fn jitter(&self, membership: Membership) -> u64 {
        match membership {
            Some((group, _)) if self.most_jitter > 0 && self.left == 0 => {
                let others = self.groups.running(group) - 1;
                jitter(self.seed, group, others, self.most_jitter)
            }
            _ => 0,
        }
    }

    /// The next item of the input has come in, and needs not run.
    pub fn entered_finished(&mut self, item: T) {
        self.finished.put(self.pulled, item);
        self.pulled += 1;
    }

    /// The input has no more items, or none that shall run.
    pub fn exhausted(&mut self) {
        self.input_is_over = true;
    }

    fn enter(&mut self, item: T, membership: Membership) -> Option<T> {
        match membership {
            Some((group, most)) => self.groups.enter(group, most, item),
            None => Some(item),
        }
    }

    fn start(&mut self) {
        self.running += 1;
        self.left = self.left.saturating_sub(1);
        if let Some(bucket) = &mut self.bucket {
            bucket.take();
        }
    }

    /// An item no longer runs. What becomes of it is said next: [`Self::finished`] or
    /// [`Self::retry`].
    pub fn ended(&mut self, membership: Membership) {
        self.running -= 1;
        let free = self.limit.saturating_sub(self.running + self.put_off.len());
        self.left = (self.left + 1).min(free);
        if let Some((group, _)) = membership {
            self.groups.leave(group);
        }
    }

    /// Item `index` is done, and can be taken.
    pub fn finished(&mut self, index: u64, item: T) {
        self.finished.put(index, item);
    }

    /// Whether all was stopped: what fails now is not to be retried.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Item `index` shall run again, not before `due`.
    pub fn retry(&mut self, index: u64, item: T, membership: Membership, due: u64) {
        self.retries.push(Reverse(Later { due, index, item, membership }));
    }

    /// Hands out a finished item.
    pub fn take(&mut self) -> Option<T> {
        let item = self.finished.take()?;
        self.taken += 1;
        Some(item)
    }

    /// Starts nothing any more. Gives back what has come in and would still have run: the caller
    /// finishes each.
    pub fn stop(&mut self) -> Vec<T> {
        self.input_is_over = true;
        self.stopped = true;
        let mut rest = self.groups.drain();
        let later = self.retries.drain().chain(self.put_off.drain());
        rest.extend(later.map(|Reverse(later)| later.item));
        rest
    }
}
