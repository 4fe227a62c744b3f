//! The tasks that run, by key.

/// Tasks by key. A key is good for one wait: it is old when the task has gone on or has ended.
#[derive(Debug)]
pub struct Tasks<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    turn: u32,
    /// The key that its task began with.
    birth: u64,
    task: Option<T>,
}

impl<T> Slot<T> {
    fn is_of(&self, birth: u64) -> bool {
        self.birth == birth && self.task.is_some()
    }
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

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Tasks<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A place for a task that is about to begin, which the first [`Tasks::put`] or
    /// [`Tasks::release`] is for. What it gives is also the task's *birth*, by which it is known all
    /// its life.
    pub fn place(&mut self) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { turn: 0, birth: 0, task: None });
            u32::try_from(self.slots.len() - 1).expect("as many tasks do not fit in memory")
        });
        let slot = &mut self.slots[at as usize];
        slot.birth = key(at, slot.turn);
        slot.birth
    }

    /// Takes a task out of its place, to let it go on; None if the key is old.
    pub fn take(&mut self, key: u64) -> Option<T> {
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
    pub fn put(&mut self, key: u64, task: T) {
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

    /// The task of this birth, and its key now; None while it is taken out, and when it has ended.
    pub fn born(&mut self, birth: u64) -> Option<(u64, &mut T)> {
        let slot = &mut self.slots[slot_of(birth)];
        if !slot.is_of(birth) {
            return None;
        }
        let current = key(place_of(birth), slot.turn);
        slot.task.as_mut().map(|task| (current, task))
    }

    /// Whether the task of this birth has not ended.
    pub fn is_running(&self, birth: u64) -> bool {
        self.slots[slot_of(birth)].is_of(birth)
    }

    /// The births of all.
    pub fn births(&self) -> Vec<u64> {
        self.slots.iter().filter(|slot| slot.task.is_some()).map(|slot| slot.birth).collect()
    }

    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.task.as_ref())
    }

    /// Takes all out, for good.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        std::mem::take(&mut self.slots).into_iter().filter_map(|slot| slot.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_for_one_wait() {
        let mut tasks = Tasks::default();
        let birth = tasks.place();
        let second = tasks.next_key(birth);
        tasks.put(birth, 'a');
        assert!(tasks.is_current(second) && !tasks.is_current(birth));
        assert_eq!(tasks.take(birth), None);
        assert_eq!(tasks.take(second), Some('a'));
        assert_eq!(tasks.take(second), None);
        let third = tasks.next_key(second);
        tasks.put(second, 'a');
        assert_eq!(tasks.take(second), None);
        assert_eq!(tasks.take(third), Some('a'));
    }

    #[test]
    fn a_task_is_known_by_its_birth_as_long_as_it_lives() {
        let mut tasks = Tasks::default();
        let birth = tasks.place();
        tasks.put(birth, 'a');
        let (key, _) = tasks.born(birth).unwrap();
        assert_eq!(tasks.take(key), Some('a'));
        assert!(tasks.born(birth).is_none() && !tasks.is_running(birth), "it is being driven");
        tasks.put(key, 'a');
        assert!(tasks.is_running(birth));
        let (key, task) = tasks.born(birth).unwrap();
        assert_eq!(*task, 'a');
        assert!(tasks.is_current(key));
    }

    #[test]
    fn the_place_of_a_task_that_has_ended_is_used_again_by_another() {
        let mut tasks = Tasks::default();
        let first = tasks.place();
        tasks.release(first);
        assert_eq!(tasks.len(), 0);
        let second = tasks.place();
        assert_ne!(first, second);
        tasks.put(second, 'b');
        assert!(!tasks.is_running(first) && tasks.is_running(second));
        assert_eq!((tasks.slots.len(), tasks.births()), (1, vec![second]));
    }

    #[test]
    fn all_can_be_looked_at_and_taken_out() {
        let mut tasks = Tasks::default();
        for task in 'a'..='c' {
            let birth = tasks.place();
            tasks.put(birth, task);
        }
        let (key, _) = tasks.born(tasks.births()[1]).unwrap();
        tasks.take(key);
        tasks.release(key);
        assert_eq!(tasks.iter().collect::<String>(), "ac");
        assert_eq!(tasks.drain().collect::<String>(), "ac");
        assert_eq!(tasks.len(), 0);
    }
}
