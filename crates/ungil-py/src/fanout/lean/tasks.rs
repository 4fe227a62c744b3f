//! The coroutines that run, by number.

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::ending::Why;
use super::waits::Waiting;
use crate::fanout::outcome::Outcome;

/// A coroutine that has begun and not ended.
pub struct Task {
    pub iterator: Py<PyAny>,
    pub context: Py<PyAny>,
    /// The item that it runs for. None if nobody is interested in its end.
    pub outcome: Option<Py<Outcome>>,
    pub waiting: Waiting,
    /// What is raised in it when it goes on.
    pub pending: Option<Py<PyBaseException>>,
    /// Why it was cancelled, if it was.
    pub cancelled: Option<Why>,
    /// It closes an asynchronous generator.
    pub is_closing: bool,
    /// The key that it had when it began, for its time-out.
    pub birth: u64,
}

/// Tasks by key. A key is good for one wait: it is old when the task has gone on or has ended.
#[derive(Default)]
pub struct Tasks {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    turn: u32,
    task: Option<Task>,
}

fn key(slot: u32, turn: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(turn)
}

fn place_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn slot_of(key: u64) -> usize {
    place_of(key) as usize
}

fn turn_of(key: u64) -> u32 {
    (key & 0xffff_ffff) as u32
}

impl Tasks {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A place for a task that is about to begin, which the first [`Tasks::put`] or
    /// [`Tasks::release`] is for.
    pub fn place(&mut self) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { turn: 0, task: None });
            u32::try_from(self.slots.len() - 1).expect("as many coroutines do not fit in memory")
        });
        key(slot, self.slots[slot as usize].turn)
    }

    /// Takes a task out of its place, to let it go on; None if the key is old.
    pub fn take(&mut self, key: u64) -> Option<Task> {
        let slot = &mut self.slots[slot_of(key)];
        if slot.turn != turn_of(key) {
            return None;
        }
        slot.task.take()
    }

    /// The key that [`Tasks::put`] will give to the task that was taken with this one.
    pub fn next_key(&self, old: u64) -> u64 {
        key(place_of(old), self.slots[slot_of(old)].turn.wrapping_add(1))
    }

    /// Puts a task back into the place that it was taken from.
    pub fn put(&mut self, key: u64, task: Task) {
        let slot = &mut self.slots[slot_of(key)];
        slot.turn = slot.turn.wrapping_add(1);
        slot.task = Some(task);
    }

    /// Nothing comes back into the place that was taken from.
    pub fn release(&mut self, key: u64) {
        let slot = &mut self.slots[slot_of(key)];
        slot.turn = slot.turn.wrapping_add(1);
        self.free.push(place_of(key));
    }

    /// Whether a task waits with this key.
    pub fn is_current(&self, key: u64) -> bool {
        let slot = &self.slots[slot_of(key)];
        slot.turn == turn_of(key) && slot.task.is_some()
    }

    /// The task that began with this key, and its key now.
    pub fn born(&mut self, birth: u64) -> Option<(u64, &mut Task)> {
        let slot = &mut self.slots[slot_of(birth)];
        let current = key(place_of(birth), slot.turn);
        slot.task.as_mut().filter(|task| task.birth == birth).map(|task| (current, task))
    }

    /// Whether the task that began with this key has not ended.
    pub fn is_running(&self, birth: u64) -> bool {
        self.slots[slot_of(birth)].task.as_ref().is_some_and(|task| task.birth == birth)
    }

    /// When each of them began.
    pub fn births(&self) -> Vec<u64> {
        self.slots.iter().filter_map(|slot| slot.task.as_ref()).map(|task| task.birth).collect()
    }

    /// Whether all of them do nothing but sleep.
    pub fn all_sleep(&self) -> bool {
        let mut tasks = self.slots.iter().filter_map(|slot| slot.task.as_ref());
        tasks.all(|task| matches!(task.waiting, Waiting::Timer))
    }

    /// Takes all out, for good.
    pub fn drain(&mut self) -> Vec<Task> {
        self.free.clear();
        std::mem::take(&mut self.slots).into_iter().filter_map(|slot| slot.task).collect()
    }

    /// For the collector of cycles.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for task in self.slots.iter().filter_map(|slot| slot.task.as_ref()) {
            visit.call(&task.iterator)?;
            visit.call(&task.context)?;
            visit.call(&task.outcome)?;
            visit.call(&task.pending)?;
        }
        Ok(())
    }
}
