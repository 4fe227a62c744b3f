//! Items of one group, of which only so many run at once: a site, a subnet, a server.

use std::collections::{HashMap, VecDeque};

/// What tells a group from the others.
pub type Group = u64;

#[derive(Debug)]
struct Members<T> {
    running: usize,
    most: usize,
    waiting: VecDeque<T>,
    /// How many of the waiting have room, and an entry in `startable`.
    called: usize,
}

/// The groups that have items running or waiting. A group without either takes no memory.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    groups: HashMap<Group, Members<T>>,
    /// Groups with a waiting item and room for it, one entry for each such item.
    startable: VecDeque<Group>,
    waiting: usize,
}

impl<T> Groups<T> {
    pub(crate) fn new() -> Self {
        Self { groups: HashMap::new(), startable: VecDeque::new(), waiting: 0 }
    }

    /// How many items wait for their group.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether [`Self::start`] has something.
    pub(crate) fn has_startable(&self) -> bool {
        !self.startable.is_empty()
    }

    /// How many items of the group run.
    pub(crate) fn running(&self, group: Group) -> usize {
        self.groups.get(&group).map_or(0, |members| members.running)
    }

    /// Gives the item back if it may run now; else it waits.
    pub(crate) fn enter(&mut self, group: Group, most: usize, item: T) -> Option<T> {
        let members = self.groups.entry(group).or_insert_with(|| Members {
            running: 0,
            most,
            waiting: VecDeque::new(),
            called: 0,
        });
        let free = members.running + members.called < members.most;
        if free && members.waiting.len() == members.called {
            members.running += 1;
            return Some(item);
        }
        members.waiting.push_back(item);
        self.waiting += 1;
        None
    }

    /// The next waiting item whose group has room.
    pub(crate) fn start(&mut self) -> Option<T> {
        let group = self.startable.pop_front()?;
        let members = self.groups.get_mut(&group).expect("a startable group has a waiting item");
        members.running += 1;
        members.called -= 1;
        self.waiting -= 1;
        Some(members.waiting.pop_front().expect("a startable group has a waiting item"))
    }

    /// An item of the group no longer runs.
    pub(crate) fn leave(&mut self, group: Group) {
        let Some(members) = self.groups.get_mut(&group) else { return };
        members.running -= 1;
        if members.called < members.waiting.len() {
            members.called += 1;
            self.startable.push_back(group);
        } else if members.running == 0 && members.waiting.is_empty() {
            self.groups.remove(&group);
        }
    }

    /// Everything that waits, which will not start any more.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.startable.clear();
        self.waiting = 0;
        let mut waited = Vec::new();
        for members in self.groups.values_mut() {
            members.called = 0;
            waited.extend(members.waiting.drain(..));
        }
        waited
    }
}
