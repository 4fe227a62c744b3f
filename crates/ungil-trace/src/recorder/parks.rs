//! The parks of one process, put together from what lies in the rings of its threads.
//!
//! A park is told once it has ended. Who ended it is known by a kernel thread id, whose thread may
//! have been seen for the first time in the same round; so what ended in a round is told after it.

use crate::record::{COLLECTED, Park, ThreadId};
use std::collections::{BTreeMap, HashMap};
use ungil_core::ParkEntry;
use ungil_core::park::{COLLECTION, Cause, Ending};
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
            let of = self.name(header, began);
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
            let (of, ending) = (told_name(header, cause, of), Ending::Unfinished);
            give(thread, Park { since_ns, until_ns: at_ns, cause, of, lock, ending, waker: None });
        }
    }

    /// What the type of the object calls itself, or why the world was stopped.
    fn name(&mut self, header: &Header, Began { cause, of, .. }: Began) -> String {
        let index = usize::from(of).checked_sub(1).filter(|&index| index < TYPES);
        let Some(index) = index.filter(|_| cause != Cause::Pause) else {
            return told_name(header, cause, of);
        };
        if self.names.len() <= index {
            self.names.resize(index + 1, String::new());
        }
        let name = &mut self.names[index];
        if name.is_empty() {
            *name = told_name(header, cause, of);
        }
        name.clone()
    }
}

fn told_name(header: &Header, cause: Cause, number: u8) -> String {
    let place = usize::from(number).checked_sub(1).and_then(|index| header.types.get(index));
    match (cause, number) {
        (Cause::Pause, COLLECTION) => COLLECTED.to_owned(),
        (Cause::Pause, _) => String::new(),
        _ => place.map_or_else(String::new, |place| load_text(&place.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ungil_core::table::{RINGS_OFFSET, Table, store_text};

    const ONE: ThreadId = ThreadId(1);

    /// Calls `test` with the header of an empty table that names one type.
    fn with_header(test: impl FnOnce(&Header)) {
        #[repr(align(4096))]
        #[derive(Clone)]
        struct Page(#[allow(dead_code, reason = "only its size matters")] [u8; 4096]);
        let memory = vec![Page([0; 4096]); RINGS_OFFSET / 4096];
        // SAFETY: only the header is used, which lies inside `memory`.
        let table = unsafe { Table::at(memory.as_ptr().cast()) };
        store_text(&table.header().types[0].name, b"dict");
        test(table.header());
    }

    fn began(at_ticks: u64, of: u8) -> ParkEntry {
        ParkEntry::Began { at_ticks, cause: Cause::Object, of, lock: 5 }
    }

    fn ended(at_ticks: u64, waker: u32) -> ParkEntry {
        ParkEntry::Ended { at_ticks, ending: Ending::Woken, waker }
    }

    fn given(parks: &mut Parks, header: &Header) -> Vec<(ThreadId, Park)> {
        let mut given = Vec::new();
        parks.end_round(header, |ticks| ticks * 10, |thread, park| given.push((thread, park)));
        given
    }

    #[test]
    fn a_park_is_told_with_its_waker_even_if_that_was_seen_after_it() {
        with_header(|header| {
            let mut parks = Parks::default();
            parks.introduce(ONE, 71);
            parks.add(ONE, began(10, 1));
            assert_eq!(given(&mut parks, header), []);
            parks.add(ONE, ended(30, 72));
            parks.introduce(ThreadId(2), 72);
            let [(thread, park)] = &given(&mut parks, header)[..] else { panic!() };
            assert_eq!((*thread, park.since_ns, park.until_ns), (ONE, 100, 300));
            assert_eq!((park.of.as_str(), park.waker), ("dict", Some(ThreadId(2))));
        });
    }

    #[test]
    fn half_a_park_is_not_told_and_numbers_that_are_none_are_not_followed() {
        with_header(|header| {
            let mut parks = Parks::default();
            parks.add(ONE, ended(10, 0));
            parks.add(ONE, began(20, 255));
            parks.add(ONE, began(40, 255));
            parks.add(ONE, ended(30, 9));
            let [(_, park)] = &given(&mut parks, header)[..] else { panic!() };
            assert_eq!((park.since_ns, park.until_ns, park.waker), (400, 400, None));
            assert_eq!(park.of, "");
        });
    }

    #[test]
    fn what_goes_on_ends_with_the_recording() {
        with_header(|header| {
            let mut parks = Parks::default();
            parks.add(ONE, began(10, 1));
            let mut told = Vec::new();
            parks.running(header, 250, |ticks| ticks * 10, |_, park| told.push(park));
            let [park] = &told[..] else { panic!() };
            assert_eq!((park.since_ns, park.until_ns, park.ending), (100, 250, Ending::Unfinished));
        });
    }
}
