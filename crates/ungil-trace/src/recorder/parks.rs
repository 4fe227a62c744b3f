//! The parks of one process, put together from what lies in the rings of its threads.
//!
//! A park is told once it has ended. Who ended it is known by a kernel thread id, whose thread may
//! have been seen for the first time in the same round; so what ended in a round is told when all rings
//! were read, and before what threads did with a GIL in that round: a thread goes on because of it. For
//! the same reason a thread that has ended is remembered: whom it woke may wait for a processor.
//!
//! What a stack consists of is read from the memory of the process as soon as a park names it: while
//! somebody sleeps in it its code is there.

use crate::free_threaded::FreeThreaded;
use crate::record::{COLLECTED, Frame, Park, ThreadId};
use std::collections::{BTreeMap, HashMap, VecDeque};
use ungil_core::ParkEntry;
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::park::{COLLECTION, Cause, Ending};
use ungil_core::table::{Header, TYPES, Table, load_text};

/// As many threads that have ended are remembered.
const GONE: usize = 4_096;

/// Parks that have begun, and those that have ended in this round.
#[derive(Debug, Default)]
pub struct Parks {
    /// The thread that had a kernel thread id last.
    by_tid: HashMap<u32, ThreadId>,
    /// The threads that have ended last, oldest first.
    gone: VecDeque<(ThreadId, u32)>,
    begun: BTreeMap<ThreadId, Began>,
    ended: Vec<(ThreadId, Began, Ended)>,
    /// Names of types that are known, by their numbers less one.
    names: Vec<String>,
    /// Stacks that parks have named: whether they were told.
    stacks: BTreeMap<u16, bool>,
    reader: Reader,
}

/// What reads the interpreter of the process.
#[derive(Debug, Default)]
enum Reader {
    /// There was nothing to read yet.
    #[default]
    Unused,
    Open(Box<FreeThreaded>),
    /// It cannot be read, or is of a version that is not known.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Began {
    at_ticks: u64,
    cause: Cause,
    of: u8,
    stack: u16,
    lock: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    at_ticks: u64,
    ending: Ending,
    waker: u32,
    stack: u16,
}

impl Parks {
    /// The thread with this kernel thread id may wake others.
    pub fn introduce(&mut self, thread: ThreadId, tid: u32) {
        self.by_tid.insert(tid, thread);
    }

    /// The thread with this kernel thread id has ended. Whom it woke may tell so later.
    pub fn dismiss(&mut self, thread: ThreadId, tid: u32) {
        self.begun.remove(&thread);
        self.gone.push_back((thread, tid));
        if self.gone.len() > GONE
            && let Some((thread, tid)) = self.gone.pop_front()
            && self.by_tid.get(&tid) == Some(&thread)
        {
            // Otherwise it is the id of another thread by now.
            self.by_tid.remove(&tid);
        }
    }

    /// Takes in what lay in the ring of a thread. A park of which one half was lost is not told.
    pub fn add(&mut self, thread: ThreadId, entry: ParkEntry) {
        let (ParkEntry::Began { stack, .. } | ParkEntry::Ended { stack, .. }) = entry;
        if stack != 0 {
            self.stacks.entry(stack).or_insert(false);
        }
        match entry {
            ParkEntry::Began { at_ticks, cause, of, stack, lock } => {
                self.begun.insert(thread, Began { at_ticks, cause, of, stack, lock });
            }
            ParkEntry::Ended { at_ticks, ending, waker, stack } => {
                if let Some(began) = self.begun.remove(&thread) {
                    self.ended.push((thread, began, Ended { at_ticks, ending, waker, stack }));
                }
            }
        }
    }

    /// Gives out the stacks that parks have named for the first time.
    pub fn tell_stacks(&mut self, pid: u32, table: Table, mut give: impl FnMut(u16, Vec<Frame>)) {
        let Self { stacks, reader, .. } = self;
        for (&number, is_told) in stacks.iter_mut().filter(|(_, is_told)| !**is_told) {
            *is_told = true;
            let frames = frames_of(reader, pid, table, number);
            if !frames.is_empty() {
                give(number, frames);
            }
        }
    }

    /// The frames of a stack that something else than a park has named.
    pub fn frames(&mut self, pid: u32, table: Table, number: u16) -> Vec<Frame> {
        frames_of(&mut self.reader, pid, table, number)
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
        for (thread, began, Ended { at_ticks, ending, waker, stack: waker_stack }) in
            ended.drain(..)
        {
            let since_ns = ns(began.at_ticks);
            // Times of two moments may be off by a little, each in its own way.
            let until_ns = ns(at_ticks).max(since_ns);
            let of = self.name(header, began);
            let waker = self.by_tid.get(&waker).copied().filter(|_| waker != 0);
            let Began { cause, lock, stack, .. } = began;
            let park =
                Park { since_ns, until_ns, cause, of, lock, ending, waker, stack, waker_stack };
            give(thread, park);
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
        for (&thread, &Began { at_ticks, cause, of, stack, lock }) in &self.begun {
            let since_ns = ns(at_ticks).min(at_ns);
            let (of, ending) = (told_name(header, cause, of), Ending::Unfinished);
            let (waker, waker_stack, until_ns) = (None, 0, at_ns);
            let park =
                Park { since_ns, until_ns, cause, of, lock, ending, waker, stack, waker_stack };
            give(thread, park);
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

/// What a stack consists of, as far as it can be read.
fn frames_of(reader: &mut Reader, pid: u32, table: Table, number: u16) -> Vec<Frame> {
    if matches!(reader, Reader::Unused) {
        let opened = FreeThreaded::open(pid, table.header().runtime.load(Relaxed));
        *reader = opened.map_or(Reader::Refused, |it| Reader::Open(Box::new(it)));
    }
    let (Reader::Open(reader), Some(stack)) = (reader, table.stack(number)) else {
        return Vec::new();
    };
    // Frames after one that cannot be read are not its callers.
    stack.load().map_while(|place| reader.frame(place).ok()).collect()
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
        ParkEntry::Began { at_ticks, cause: Cause::Object, of, stack: 0, lock: 5 }
    }

    fn ended(at_ticks: u64, waker: u32) -> ParkEntry {
        ParkEntry::Ended { at_ticks, ending: Ending::Woken, waker, stack: 0 }
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
    fn who_has_ended_is_known_as_a_waker_until_many_others_have() {
        with_header(|header| {
            let mut parks = Parks::default();
            parks.introduce(ThreadId(2), 72);
            parks.dismiss(ThreadId(2), 72);
            for (others, is_known) in [(0, true), (GONE - 1, true), (1, false)] {
                for tid in (1_000..).take(others) {
                    parks.introduce(ThreadId(tid), tid);
                    parks.dismiss(ThreadId(tid), tid);
                }
                parks.add(ONE, began(10, 1));
                parks.add(ONE, ended(15, 72));
                let [(_, park)] = &given(&mut parks, header)[..] else { panic!() };
                assert_eq!(park.waker.is_some(), is_known, "{others} others");
            }
        });
    }

    #[test]
    fn the_kernel_may_give_the_id_of_a_thread_that_has_ended_to_another() {
        with_header(|header| {
            let mut parks = Parks::default();
            parks.introduce(ThreadId(2), 72);
            parks.dismiss(ThreadId(2), 72);
            parks.introduce(ThreadId(3), 72);
            for tid in (1_000..).take(GONE) {
                parks.dismiss(ThreadId(tid), tid);
            }
            parks.add(ONE, began(10, 1));
            parks.add(ONE, ended(15, 72));
            let [(_, park)] = &given(&mut parks, header)[..] else { panic!() };
            assert_eq!(park.waker, Some(ThreadId(3)));
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
