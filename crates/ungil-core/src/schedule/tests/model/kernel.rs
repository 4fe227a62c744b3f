//! The kernel of the model: who sleeps on what, and what wakes them.

use super::{AtomicU32, Gil, MutexGuard};

/// What a thread waits for without being able to run.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Word(*const AtomicU32),
    /// The condition variable `cond` of the GIL.
    Cond,
    /// It computes with the GIL until it is asked to let go, or until it is the only one left.
    Request,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Woken {
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

/// The kernel's side.
pub(super) struct Kernel {
    /// How many threads could run.
    pub(super) runnable: usize,
    sleepers: Vec<Option<Sleeper>>,
}

impl Kernel {
    /// All of so many threads can run.
    pub(super) fn new(threads: usize) -> Self {
        Self { runnable: threads, sleepers: vec![None; threads] }
    }
}

impl Gil {
    /// Time passes: the timer that is due first fires.
    pub fn alarm(&self) {
        self.fire(&mut self.kernel.lock().unwrap());
    }

    fn fire(&self, kernel: &mut Kernel) -> bool {
        let timed = |(number, sleeper): (usize, &Option<Sleeper>)| {
            let sleeper = sleeper.filter(|sleeper| sleeper.woken.is_none())?;
            (sleeper.deadline_ns != u64::MAX).then_some((sleeper.deadline_ns, number))
        };
        let first = kernel.sleepers.iter().enumerate().filter_map(timed).min();
        if let Some((_, number)) = first {
            self.rouse(kernel, number, Woken::Timer);
        }
        first.is_some()
    }

    fn rouse(&self, kernel: &mut Kernel, number: usize, woken: Woken) {
        if let Some(sleeper) = &mut kernel.sleepers[number]
            && sleeper.woken.is_none()
        {
            sleeper.woken = Some(woken);
            kernel.runnable += 1;
            self.wakes[number].notify_one();
        }
    }

    pub(super) fn wake_one(&self, place: Place) {
        self.wake_in(&mut self.kernel.lock().unwrap(), place);
    }

    fn wake_in(&self, kernel: &mut Kernel, place: Place) {
        let sleeps_here = |sleeper: &Option<Sleeper>| {
            sleeper.is_some_and(|sleeper| sleeper.place == place && sleeper.woken.is_none())
        };
        if let Some(number) = kernel.sleepers.iter().position(sleeps_here) {
            self.rouse(kernel, number, Woken::Name);
        }
    }

    /// The thread `number` cannot run until it is woken.
    pub(super) fn rest<'a>(
        &'a self,
        mut kernel: MutexGuard<'a, Kernel>,
        number: usize,
        place: Place,
        deadline_ns: u64,
    ) -> Woken {
        kernel.sleepers[number] = Some(Sleeper { place, deadline_ns, woken: None });
        self.rests(&mut kernel);
        loop {
            if let Some(woken) = kernel.sleepers[number].and_then(|sleeper| sleeper.woken) {
                kernel.sleepers[number] = None;
                return woken;
            }
            kernel = self.wakes[number].wait(kernel).unwrap();
        }
    }

    /// A signal that thread 0 has a handler for.
    pub fn interrupt(&self) {
        self.rouse(&mut self.kernel.lock().unwrap(), 0, Woken::Signal);
    }

    /// The calling thread has ended.
    pub fn ended(&self) {
        self.rests(&mut self.kernel.lock().unwrap());
    }

    /// One thread fewer can run.
    pub(super) fn rests(&self, kernel: &mut Kernel) {
        kernel.runnable -= 1;
        if kernel.runnable > 0 || self.fire(kernel) {
            return;
        }
        let mut left = kernel.sleepers.iter().flatten().map(|sleeper| sleeper.place);
        let first = left.next();
        let is_alone = left.next().is_none();
        let somebody_switches = self.switch_mutex.try_lock().is_ok_and(|it| it.is_awaited);
        assert!(!somebody_switches, "nobody takes the GIL that a thread was asked for");
        assert!(matches!(first, None | Some(Place::Request)) && is_alone, "a wake-up was lost");
        if let Some(place) = first {
            self.wake_in(kernel, place);
        }
    }
}
