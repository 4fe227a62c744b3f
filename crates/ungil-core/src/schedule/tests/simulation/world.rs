//! All threads of a simulation, the time, and the GIL between them.

use crate::atomic::AtomicU32;
use crate::schedule::tests::queues::{Locks, Queue};
use crate::schedule::tests::workload::{Outcome, Wait, Workload};
use crate::schedule::{Line, Settings};
use std::cell::{Cell, RefCell};
use std::ptr::null;

/// A thread as the kernel sees it.
#[derive(Debug)]
pub struct Task {
    /// When it runs again; `None` while only another thread can wake it.
    pub due_ns: Option<u64>,
    /// Among those that are due at one time, the one that was so earlier goes first.
    pub order: u64,
    /// What it sleeps on.
    pub word: *const AtomicU32,
    /// Whether it looks at requests to let go.
    pub heeds: bool,
    pub cpu_ns: u64,
    /// Since when it waits in `take_gil`.
    pub wait: Option<Wait>,
    pub interrupted: bool,
}

#[derive(Debug)]
pub struct World {
    pub line: Line,
    pub locks: Locks,
    pub mutex: usize,
    pub queues: Vec<Queue>,
    pub settings: Vec<(u64, Settings)>,
    pub signal_ns: Cell<Option<u64>>,
    pub wake_ns: u64,
    pub drop_ns: u64,
    pub now_ns: Cell<u64>,
    pub order: Cell<u64>,
    pub tasks: RefCell<Vec<Task>>,
    pub running: Cell<usize>,
    // CPython's `struct _gil_runtime_state`.
    pub locked: Cell<bool>,
    pub last_holder: Cell<usize>,
    pub switches: Cell<u32>,
    pub drop_requested: Cell<bool>,
    pub freed_ns: Cell<u64>,
    /// How often a thread had to sleep for a mutex.
    pub lined_up: Cell<usize>,
    /// How many wait in `take_gil`.
    pub waiting: Cell<usize>,
    pub outcome: RefCell<Outcome>,
}

impl World {
    pub fn new(workload: &Workload) -> Self {
        let tasks = workload.threads.iter().zip(0..).map(|(thread, order)| Task {
            due_ns: Some(thread.begins_ns),
            order,
            word: null(),
            heeds: false,
            cpu_ns: 0,
            wait: None,
            interrupted: false,
        });
        let locks = Locks::default();
        let mutex = locks.add(true);
        let queues = workload.queues.iter().map(|&room| Queue::new(&locks, room)).collect();
        Self {
            line: Line::new(0),
            locks,
            mutex,
            queues,
            settings: workload.settings.clone(),
            signal_ns: Cell::new(workload.signal_ns),
            wake_ns: workload.wake_ns,
            drop_ns: workload.drop_ns,
            now_ns: Cell::new(0),
            order: Cell::new(workload.threads.len() as u64),
            tasks: RefCell::new(tasks.collect()),
            running: Cell::new(0),
            locked: Cell::new(false),
            last_holder: Cell::new(usize::MAX),
            switches: Cell::new(0),
            drop_requested: Cell::new(false),
            freed_ns: Cell::new(0),
            lined_up: Cell::new(0),
            waiting: Cell::new(0),
            outcome: RefCell::default(),
        }
    }

    /// Who runs next, and when.
    pub fn next(&self) -> Option<(usize, u64)> {
        let tasks = self.tasks.borrow();
        let due = tasks
            .iter()
            .enumerate()
            .filter_map(|(number, task)| task.due_ns.map(|due_ns| (due_ns, task.order, number)));
        due.min().map(|(due_ns, _, number)| (number, due_ns))
    }

    /// `number` runs in `delay_ns` unless it runs before.
    pub fn schedule(&self, number: usize, delay_ns: u64) {
        let at_ns = self.now_ns.get() + delay_ns;
        let task = &mut self.tasks.borrow_mut()[number];
        if task.due_ns.is_none_or(|due_ns| due_ns > at_ns) {
            task.due_ns = Some(at_ns);
            task.order = self.order.replace(self.order.get() + 1);
        }
    }

    /// Thread 0 is woken if it sleeps on a word.
    pub fn interrupt(&self, now_ns: u64) {
        self.signal_ns.set(None);
        self.now_ns.set(now_ns);
        let sleeps = {
            let task = &mut self.tasks.borrow_mut()[0];
            task.interrupted = !task.word.is_null();
            task.interrupted
        };
        if sleeps {
            self.schedule(0, self.wake_ns);
        }
    }

    pub fn settings(&self) -> Settings {
        let begun = self.settings.iter().rev().find(|(from_ns, _)| *from_ns <= self.now_ns.get());
        begun.expect("the first are in force from the beginning").1
    }

    /// Those who still wait and hold do so until the end.
    pub fn end(&self, lasts_ns: u64) -> Outcome {
        let mut outcome = self.outcome.take();
        outcome.lined_up = self.lined_up.get();
        for task in self.tasks.borrow().iter() {
            outcome.waits.extend(task.wait.map(|wait| Wait { to_ns: lasts_ns, ..wait }));
        }
        if let Some(hold) = outcome.holds.last_mut()
            && self.locked.get()
        {
            hold.to_ns = lasts_ns;
        }
        outcome
    }
}
