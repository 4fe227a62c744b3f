//! The state of a loop: its tasks, who of them goes on next, and who waits for what.
//!
//! It drives nothing. Whoever does takes a task out, lets it make a step, and puts it back with what
//! it waits for, or ends it.

use std::collections::VecDeque;
use std::io;

use super::reactor::Refused;
use super::tasks::Tasks;
use super::timers::Timers;
use super::waits::{Waiting, Waits};
use super::want::Want;

/// A signal that comes between the look for signals and the wait does not end the wait. So no wait
/// is longer than this, ns, and Ctrl-C later than that once in a blue moon.
const LONGEST: u64 = 1_000_000_000;

/// The tasks of a loop, each of which goes on, waits, or is being driven.
///
/// A task is known by its *birth* all its life, and by a *key* between two of its steps.
pub struct EventLoop<T> {
    tasks: Tasks<Paused<T>>,
    /// Those that go on in the next round.
    ready: VecDeque<u64>,
    waits: Waits,
    /// When tasks have to end, by their births. All have equally long, so this is a queue.
    timeouts: Timers,
    /// When it was last looked which descriptors are ready.
    looked: u64,
}

/// A task between two of its steps.
struct Paused<T> {
    task: T,
    waiting: Waiting,
}

impl<T> Default for EventLoop<T> {
    fn default() -> Self {
        Self {
            tasks: Tasks::default(),
            ready: VecDeque::new(),
            waits: Waits::default(),
            timeouts: Timers::new(),
            looked: 0,
        }
    }
}

impl<T> EventLoop<T> {
    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.len() == 0
    }

    /// All tasks but the one that is being driven.
    pub fn tasks(&self) -> impl Iterator<Item = &T> {
        self.tasks.iter().map(|paused| &paused.task)
    }

    /// The births of the same.
    pub fn births(&self) -> Vec<u64> {
        self.tasks.births()
    }

    /// The task of this birth, unless it has ended or is being driven.
    pub fn born(&mut self, birth: u64) -> Option<&mut T> {
        self.tasks.born(birth).map(|(_, paused)| &mut paused.task)
    }

    /// Whether all of them do nothing but sleep.
    pub fn all_sleep(&self) -> bool {
        self.tasks.iter().all(|paused| matches!(paused.waiting, Waiting::Timer))
    }

    /// A place for a task that begins: its birth, and its first key. What becomes of its first step
    /// is told to [`Self::pause`] or [`Self::end`].
    pub fn place(&mut self) -> u64 {
        self.tasks.place()
    }

    /// The task of this birth is to be told by [`Self::over_time`] if it has not ended by then.
    pub fn limit_time(&mut self, birth: u64, deadline: u64) {
        self.timeouts.add(deadline, birth);
    }

    /// Takes a task out, to let it make a step; None if the key is old.
    pub fn take(&mut self, key: u64) -> Option<T> {
        self.tasks.take(key).map(|paused| paused.task)
    }

    /// For what a task that was taken out is to wait. It is put back by [`Self::pause`] in any case.
    ///
    /// # Errors
    /// What it shall be told in the place of what it wanted.
    pub fn wait_for(&mut self, want: Want, key: u64, now: u64) -> Result<Waiting, Refused> {
        self.waits.begin(want, self.tasks.next_key(key), now)
    }

    /// Puts a task back that was taken out with `key`. If it waits for nothing it goes on in the
    /// next round.
    pub fn pause(&mut self, key: u64, task: T, waiting: Waiting) {
        if waiting == Waiting::Nothing {
            self.ready.push_back(self.tasks.next_key(key));
        }
        self.tasks.put(key, Paused { task, waiting });
    }

    /// A task that was taken out does not come back.
    pub fn end(&mut self, key: u64) {
        self.tasks.release(key);
        if !self.timeouts.is_empty() {
            let tasks = &self.tasks;
            self.timeouts.forget(|birth| tasks.is_running(birth));
        }
    }

    /// A task waits no more, and goes on in the next round. Gives the task, to be told why.
    pub fn interrupt(&mut self, birth: u64) -> Option<&mut T> {
        let (key, paused) = self.tasks.born(birth)?;
        let waiting = std::mem::replace(&mut paused.waiting, Waiting::Nothing);
        let tasks = &self.tasks;
        self.waits.end(waiting, key, |key| tasks.is_current(key));
        self.ready.push_back(key);
        self.born(birth)
    }

    /// The key of a task whose sleep is over.
    pub fn due(&mut self, now: u64) -> Option<u64> {
        self.waits.due(now)
    }

    /// How many go on in the next round.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The key of the one that has been ready for longest.
    pub fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop_front()
    }

    /// The birth of a task whose time is over, counted no later than descriptors were looked at: a
    /// loop that comes late ends nobody who has only waited for it.
    pub fn over_time(&mut self) -> Option<u64> {
        self.timeouts.pop(self.looked)
    }

    /// Looks who has become ready.
    pub fn look(&mut self) -> io::Result<()> {
        self.waits.look(&mut self.ready)
    }

    /// What was ready by this time is known.
    pub fn looked(&mut self, now: u64) {
        self.looked = now;
    }

    /// Until when [`Self::wait`] may wait, if others have something to do at `until`.
    pub fn rest(&self, until: Option<u64>, now: u64) -> u64 {
        let times = [until, self.waits.next(), self.timeouts.next()];
        times.into_iter().flatten().fold(now + LONGEST, u64::min)
    }

    /// Waits until somebody is ready, or from `now` on until this time, which is later; at times for
    /// nothing. Times are of `CLOCK_MONOTONIC`.
    pub fn wait(&mut self, until: u64, now: u64) -> io::Result<()> {
        self.waits.wait(until, now, &mut self.ready)
    }

    /// Lets go of descriptors and threads, and gives all tasks, for good.
    pub fn close(&mut self) -> Vec<T> {
        let left = self.tasks.drain().map(|paused| paused.task).collect();
        *self = Self::default();
        left
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::lean::reactor::Direction;
    use crate::lean::want::Belongs;

    /// What a task does next: it wants something, or it ends.
    type Script = VecDeque<Option<Want>>;

    #[derive(Debug)]
    struct Task {
        name: char,
        script: Script,
    }

    /// A loop whose tasks follow scripts, with a clock of its own, and what has happened.
    #[derive(Default)]
    struct World {
        tasks: EventLoop<Task>,
        now: u64,
        log: String,
    }

    impl World {
        fn begin(&mut self, name: char, script: impl IntoIterator<Item = Want>) -> u64 {
            let script = script.into_iter().map(Some).collect();
            let birth = self.tasks.place();
            self.step(birth, Task { name, script });
            birth
        }

        /// As a driver does it. Each step is logged by the task's name, and its end by the same in
        /// upper case.
        fn step(&mut self, key: u64, mut task: Task) {
            let Some(want) = task.script.pop_front().flatten() else {
                self.log.push(task.name.to_ascii_uppercase());
                self.tasks.end(key);
                return;
            };
            self.log.push(task.name);
            let waiting = self.tasks.wait_for(want, key, self.now).unwrap_or_else(|refused| {
                self.log.extend(["(", &refused.to_string(), ")"]);
                Waiting::Nothing
            });
            self.tasks.pause(key, task, waiting);
        }

        fn resume(&mut self, key: u64) {
            if let Some(task) = self.tasks.take(key) {
                self.step(key, task);
            }
        }

        fn round(&mut self) {
            while let Some(key) = self.tasks.due(self.now) {
                self.resume(key);
            }
            for _ in 0..self.tasks.ready() {
                let key = self.tasks.next_ready().expect("it is one of those that were ready");
                self.resume(key);
            }
        }

        fn look(&mut self) {
            self.tasks.look().unwrap();
            self.tasks.looked(self.now);
        }

        /// Lets time pass until all have ended.
        fn run(&mut self) {
            loop {
                self.round();
                if self.tasks.is_empty() {
                    return;
                }
                if self.tasks.ready() == 0 {
                    self.now = self.tasks.rest(None, self.now);
                }
            }
        }
    }

    fn readable(stream: &UnixStream) -> Want {
        let fd = stream.as_raw_fd();
        Want::Ready { fd, direction: Direction::Read, belongs: Belongs::User }
    }

    #[test]
    fn tasks_go_on_in_the_order_of_what_they_wait_for() {
        let mut world = World::default();
        world.begin('a', [Want::Sleep(30)]);
        world.begin('b', [Want::Sleep(10), Want::Sleep(10)]);
        world.begin('c', [Want::Sleep(0)]);
        assert!(!world.tasks.all_sleep());
        world.round();
        assert!(world.tasks.all_sleep());
        world.run();
        assert_eq!((world.log.as_str(), world.now), ("abcCbBA", 30));
    }

    #[test]
    fn who_gets_ready_within_a_round_has_its_turn_in_the_next() {
        let mut world = World::default();
        world.begin('a', [Want::Sleep(0), Want::Sleep(0)]);
        world.begin('b', [Want::Sleep(0)]);
        world.round();
        assert_eq!(world.log, "abaB");
        world.round();
        assert_eq!(world.log, "abaBA");
    }

    #[test]
    fn an_interrupted_task_goes_on_once_and_what_it_waited_for_is_free() {
        let mut world = World::default();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let birth = world.begin('a', [readable(&ours), Want::Sleep(50)]);
        world.begin('b', [readable(&ours)]);
        let fd = ours.as_raw_fd();
        assert_eq!(world.log, format!("ab(another item already waits for descriptor {fd})"));
        world.log.clear();
        assert_eq!(world.tasks.interrupt(birth).unwrap().name, 'a');
        world.round();
        assert_eq!(world.log, "Ba");
        world.begin('c', [readable(&ours)]);
        theirs.write_all(b"x").unwrap();
        world.look();
        world.round();
        assert_eq!(world.log, "BacC");
        world.run();
        assert_eq!(world.log, "BacCA");
    }

    #[test]
    fn a_task_is_over_time_only_if_descriptors_were_looked_at_since() {
        let mut world = World::default();
        let birth = world.begin('a', [Want::Sleep(1000)]);
        let quick = world.begin('b', [Want::Sleep(5)]);
        world.tasks.limit_time(quick, 100);
        world.tasks.limit_time(birth, 100);
        world.now = 200;
        assert_eq!(world.tasks.over_time(), None);
        world.round();
        world.look();
        // That of a task that has ended comes all the same: nobody is born of it any more.
        let over: Vec<u64> = std::iter::from_fn(|| world.tasks.over_time()).collect();
        assert_eq!(over, [quick, birth]);
        assert!(world.tasks.born(quick).is_none());
        assert_eq!(world.tasks.born(birth).unwrap().name, 'a');
    }

    #[test]
    fn no_wait_is_longer_than_the_next_time_nor_than_a_second() {
        let mut world = World::default();
        assert_eq!(world.tasks.rest(None, 7), 7 + LONGEST);
        let birth = world.begin('a', [Want::Sleep(500)]);
        assert_eq!(world.tasks.rest(None, 7), 500);
        world.tasks.limit_time(birth, 400);
        assert_eq!(world.tasks.rest(None, 7), 400);
        assert_eq!(world.tasks.rest(Some(300), 7), 300);
        assert_eq!(world.tasks.rest(Some(u64::MAX), 7), 400);
    }

    #[test]
    fn a_closed_loop_gives_its_tasks_and_can_begin_again() {
        let mut world = World::default();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        world.begin('a', [readable(&ours)]);
        world.begin('b', [Want::Sleep(0), Want::Sleep(0)]);
        let left: String = world.tasks.close().into_iter().map(|task| task.name).collect();
        assert_eq!((left.as_str(), world.tasks.len(), world.tasks.ready()), ("ab", 0, 0));
        world.begin('c', []);
        assert_eq!(world.log, "abC");
    }
}
