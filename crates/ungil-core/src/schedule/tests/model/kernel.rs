//! What the kernel knows of the threads: who can run, who sleeps on what, and when a timer fires.

use super::{Condvar, Mutex, MutexGuard};
use crate::atomic::AtomicU32;

/// What a thread waits for without being able to run.
#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    Word(*const AtomicU32),
    /// The condition variable `cond` of the GIL.
    Cond,
    /// It computes with the GIL until it is asked to let go, or until it is the only one left.
    Request,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Woken {
    Name,
    Timer,
    Signal,
}

#[derive(Clone, Copy)]
struct Sleeper {
    place: Place,
    deadline_ns: u64,
    woken: Option<Woken>,
}

pub struct Kernel {
    threads: Mutex<Threads>,
    wakes: Vec<Condvar>,
}

pub struct Threads {
    /// How many could run.
    pub runnable: usize,
    sleepers: Vec<Option<Sleeper>>,
}

impl Threads {
    /// `number` sleeps from now on.
    pub fn sleeps(&mut self, number: usize, place: Place, deadline_ns: u64) {
        self.sleepers[number] = Some(Sleeper { place, deadline_ns, woken: None });
    }

    /// What those sleep on who have not run again.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.sleepers.iter().flatten().map(|sleeper| sleeper.place)
    }
}

impl Kernel {
    /// For `threads`, of which all are started.
    pub fn new(threads: usize) -> Self {
        Self {
            threads: Mutex::new(Threads { runnable: threads, sleepers: vec![None; threads] }),
            wakes: (0..threads).map(|_| Condvar::new()).collect(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap()
    }

    /// Time passes: the timer that is due first fires, if there is one.
    pub fn fire(&self, threads: &mut Threads) -> bool {
        let timed = |(number, sleeper): (usize, &Option<Sleeper>)| {
            let sleeper = sleeper.filter(|sleeper| sleeper.woken.is_none())?;
            (sleeper.deadline_ns != u64::MAX).then_some((sleeper.deadline_ns, number))
        };
        let first = threads.sleepers.iter().enumerate().filter_map(timed).min();
        if let Some((_, number)) = first {
            self.rouse(threads, number, Woken::Timer);
        }
        first.is_some()
    }

    pub fn rouse(&self, threads: &mut Threads, number: usize, woken: Woken) {
        if let Some(sleeper) = &mut threads.sleepers[number]
            && sleeper.woken.is_none()
        {
            sleeper.woken = Some(woken);
            threads.runnable += 1;
            self.wakes[number].notify_one();
        }
    }

    /// Wakes one that sleeps there, if there is one.
    pub fn wake_one(&self, threads: &mut Threads, place: Place) {
        let sleeps_here = |sleeper: &Option<Sleeper>| {
            sleeper.is_some_and(|sleeper| sleeper.place == place && sleeper.woken.is_none())
        };
        if let Some(number) = threads.sleepers.iter().position(sleeps_here) {
            self.rouse(threads, number, Woken::Name);
        }
    }

    /// Returns once `number`, which sleeps, has been woken.
    pub fn wait(&self, mut threads: MutexGuard<'_, Threads>, number: usize) -> Woken {
        loop {
            if let Some(woken) = threads.sleepers[number].and_then(|sleeper| sleeper.woken) {
                threads.sleepers[number] = None;
                return woken;
            }
            threads = self.wakes[number].wait(threads).unwrap();
        }
    }
}
