//! The parks of one process, put together from what lies in the rings of its threads.
//!
//! A park is told once it has ended. Who ended it is known by a kernel thread id, whose thread may
//! have been seen for the first time in the same round; so what ended in a round is told after it.

use crate::record::{Park, ThreadId};
use std::collections::{BTreeMap, HashMap};
use ungil_core::ParkEntry;
use ungil_core::park::{Cause, Ending};
use ungil_core::table::{Header, TYPES, load_text};

/// Parks that have begun, and those that have ended in this round.
#[derive(Debug, Default)]
pub struct Parks {
    /// The thread that had a kernel thread id last.
    by_tid: HashMap<u32, ThreadId>,
    begun: BTreeMap<ThreadId, Began>,
    ended: Vec<(ThreadId, Began, Ended)>,
    /// Names of types that are known, by their numbers less one.
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Began {
    at_ticks: u64,
    cause: Cause,
    of: u8,
    lock: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    at_ticks: u64,
    ending: Ending,
    waker: u32,
}

impl Parks {
    /// The thread with this kernel thread id may wake others.
    pub fn introduce(&mut self, thread: ThreadId, tid: u32) {
        self.by_tid.insert(tid, thread);
    }

    /// Takes in what lay in the ring of a thread. A park of which one half was lost is not told.
    pub fn add(&mut self, thread: ThreadId, entry: ParkEntry) {
        match entry {
            ParkEntry::Began { at_ticks, cause, of, lock } => {
                self.begun.insert(thread, Began { at_ticks, cause, of, lock });
            }
            ParkEntry::Ended { at_ticks, ending, waker } => {
                if let Some(began) = self.begun.remove(&thread) {
                    self.ended.push((thread, began, Ended { at_ticks, ending, waker }));
                }
            }
        }
    }

    /// Gives out, once every ring was read, the parks that have ended, in the order in which they did.
    pub fn end_round(
        &mut self,
        header: &Header,
        mut ns: impl FnMut(u64) -> u64,
        mut give: impl FnMut(ThreadId, Park),
    ) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|(_, _, ended)| ended.at_ticks);
        for (thread, began, Ended { at_ticks, ending, waker }) in ended.drain(..) {
            let since_ns = ns(began.at_ticks);
            // Times of two moments may be off by a little, each in its own way.
            let until_ns = ns(at_ticks).max(since_ns);
            let of = self.name(header, began.of);
            let waker = self.by_tid.get(&waker).copied().filter(|_| waker != 0);
            let Began { cause, lock, .. } = began;
            give(thread, Park { since_ns, until_ns, cause, of, lock, ending, waker });
        }
        self.ended = ended;
    }

    /// Gives out the parks that go on, as if they ended at `at_ns`.
    pub fn running(
        &self,
        header: &Header,
        at_ns: u64,
        mut ns: impl FnMut(u64) -> u64,
        mut give: impl FnMut(ThreadId, Park),
    ) {
        for (&thread, &Began { at_ticks, cause, of, lock }) in &self.begun {
            let since_ns = ns(at_ticks).min(at_ns);
            let (of, ending) = (told_name(header, of).unwrap_or_default(), Ending::Unfinished);
            give(thread, Park { since_ns, until_ns: at_ns, cause, of, lock, ending, waker: None });
        }
    }

    /// What the type with this number calls itself.
    fn name(&mut self, header: &Header, number: u8) -> String {
        let Some(index) = usize::from(number).checked_sub(1).filter(|&index| index < TYPES) else {
            return String::new();
        };
        if self.names.len() <= index {
            self.names.resize(index + 1, String::new());
        }
        let name = &mut self.names[index];
        if name.is_empty() {
            *name = told_name(header, number).unwrap_or_default();
        }
        name.clone()
    }
}

fn told_name(header: &Header, number: u8) -> Option<String> {
    let place = header.types.get(usize::from(number).checked_sub(1)?)?;
    Some(load_text(&place.name))
}
