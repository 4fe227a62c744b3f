//! The shared memory of one traced process: a header, one slot a thread, one ring a slot.
//!
//! ```text
//! offset 0                header          Header
//! SLOTS_OFFSET            thread slots    [Slot; SLOTS]
//! RINGS_OFFSET            rings           [[Cell; RING_EVENTS]; SLOTS]   (sparse)
//! ```
//! A process creates one such file in the session directory, or, when nobody records, keeps the
//! same layout in anonymous memory for its own counters. Every field is an atomic with one
//! writer; the reader treats all of it as untrusted. Times are in ticks of the table's own clock,
//! lengths in nanoseconds.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::event::Entry;
use crate::ring::{Cell, Consumer, Positions, Producer};
use crate::tick::Tick;
use std::marker::PhantomData;

/// Version of this layout and of the event encoding.
pub const ABI: u64 = 3;
/// First word of a table that is ready to be read ("ungiltab" in ASCII), stored last.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ungiltab");
/// How many threads can be recorded at the same time; further ones are counted as unrecorded.
pub const SLOTS: usize = 2048;
/// How many GILs of one process are told apart; further ones are not seen.
pub const GILS: usize = 64;
/// Events that fit in the ring of one thread.
pub const RING_EVENTS: usize = 32768;
/// Memory of a ring is committed in steps of this many events (16 KiB).
pub const COMMIT_EVENTS: usize = 1024;

/// Bytes of one ring.
pub const RING_BYTES: usize = RING_EVENTS * size_of::<Cell>();
/// Where the slots begin.
pub const SLOTS_OFFSET: usize = 4096;
/// Where the rings begin.
pub const RINGS_OFFSET: usize = SLOTS_OFFSET + SLOTS * size_of::<Slot>();
/// Length of the whole file.
pub const TABLE_BYTES: usize = RINGS_OFFSET + SLOTS * RING_BYTES;

const _: () = assert!(size_of::<Header>() <= SLOTS_OFFSET && RINGS_OFFSET.is_multiple_of(4096));

/// What became of the hook in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The interpreter is hooked; its GIL is recorded.
    Hooked = 1,
    /// A free-threaded build, whose GIL is hooked all the same: see [`GilState`].
    FreeThreaded = 2,
    /// PyPy: its GIL is not made of calls to libc.
    PyPy = 3,
    /// An interpreter image without the calls that the hook rewrites (an unknown build).
    UnknownInterpreter = 4,
    /// An interpreter that was loaded later, and of whose start the hook saw nothing.
    NotSeen = 5,
}

/// Whether the main interpreter has a GIL, which in a free-threaded build is known at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum GilState {
    /// It always has: the build is not free-threaded.
    #[default]
    Always = 0,
    /// Not known: it was not made yet, or is made in a way that the hook does not know.
    Unknown = 1,
    /// Off, or on only while extension modules are being imported.
    Off = 2,
    /// On from the start.
    On = 3,
    /// Off at first, then switched on for good.
    SwitchedOn = 4,
}

impl GilState {
    /// The state with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Always,
            1 => Self::Unknown,
            2 => Self::Off,
            3 => Self::On,
            4 => Self::SwitchedOn,
            _ => return None,
        })
    }
}

impl Status {
    /// The status with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Hooked,
            2 => Self::FreeThreaded,
            3 => Self::PyPy,
            4 => Self::UnknownInterpreter,
            5 => Self::NotSeen,
            _ => return None,
        })
    }
}

/// What is known of the process as a whole.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`], stored last (`Release`) by the traced process.
    pub magic: AtomicU64,
    /// [`ABI`] of the writer.
    pub abi: AtomicU64,
    /// Process id as the process itself sees it.
    pub pid: AtomicU32,
    /// Process id of its parent.
    pub parent_pid: AtomicU32,
    /// A [`Status`] as a number.
    pub status: AtomicU32,
    /// 1 while a recorder reads the rings; the recorder clears it when it stops, and the hook
    /// then only counts. Starts as 0 when nobody records.
    pub recording: AtomicU32,
    /// When the table was created.
    pub started_ticks: AtomicU64,
    /// When the process left `main`, or 0 (it still runs, was killed, or called `_exit`).
    pub ended_ticks: AtomicU64,
    /// Length of a tick ([`Tick::fraction`]). The recorder, which measures it, stores it anew now
    /// and then.
    tick: AtomicU64,
    /// The switch interval last seen in a waiter's deadline, or the quantum of the policy that it
    /// waited under, in ns; 0 before the first wait.
    pub switch_interval_ns: AtomicU64,
    /// Threads that found no free slot, and so were not recorded.
    pub unrecorded_threads: AtomicU64,
    /// Slots at and above this index were never used, and have no memory yet.
    pub used_slots: AtomicU32,
    /// The [`crate::schedule::Policy`] that the last waiter waited under, as a number.
    pub policy: AtomicU32,
    /// The [`crate::tick::Clock`] of all times here and in the rings, as a number.
    pub clock: AtomicU32,
    padding_of_clock: AtomicU32,
    /// Counters of the threads that ended while nobody recorded.
    pub ended: Counters,
    /// `Py_GetVersion()`, NUL-padded, cut to fit.
    pub python: [AtomicU64; 16],
    /// Length of `command` in bytes.
    pub command_bytes: AtomicU32,
    /// A [`GilState`] as a number.
    pub gil_state: AtomicU32,
    /// Beginning of the command line, each word ended by a NUL as in `/proc/self/cmdline`: a
    /// process may be gone before the recorder sees its table.
    pub command: [AtomicU64; 256],
    /// The addresses of the GILs, by their number in events: of the condition variable that waiters
    /// sleep on, or of 2.7's semaphore. 0 for a number that was never used.
    pub gils: [AtomicU64; GILS],
    /// When the GIL of a free-threaded build was first seen to be on for good, or 0.
    pub gil_on_ticks: AtomicU64,
}

/// Exact totals of one thread; they count on when the ring is full.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    /// Waits that ended in an acquire.
    pub waits: AtomicU64,
    /// Their total length in ns.
    pub waited_ns: AtomicU64,
    /// Holds that ended in a release.
    pub holds: AtomicU64,
    /// Their total length in ns.
    pub held_ns: AtomicU64,
    /// Releases that nobody had asked for.
    pub voluntary: AtomicU64,
    /// Releases while a drop request was pending.
    pub forced: AtomicU64,
    /// Drop requests this thread made.
    pub drop_requests: AtomicU64,
    /// CPU time of the thread in ns when last sampled.
    pub cpu_ns: AtomicU64,
    /// Voluntary context switches when last sampled.
    pub voluntary_switches: AtomicU64,
    /// Involuntary context switches when last sampled.
    pub involuntary_switches: AtomicU64,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SlotState {
    /// Nobody's. A thread may claim it.
    Free = 0,
    /// Being claimed: its fields are not valid yet.
    Claimed = 1,
    /// A running thread's.
    Live = 2,
    /// The thread has ended; the recorder frees the slot once it has drained it.
    Ended = 3,
}

/// One thread: who it is, its counters, its ring's positions.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// A [`SlotState`] as a number. The thread moves it Free -> Claimed -> Live -> Ended,
    /// whoever drains moves it Ended -> Free.
    pub state: AtomicU32,
    /// Kernel thread id.
    pub tid: AtomicU32,
    /// How many threads have had this slot, this one included.
    pub generation: AtomicU32,
    /// How many events of the ring have memory behind them. Only grows.
    pub committed: AtomicU32,
    /// `pthread_self()`, which is `threading.get_ident()`.
    pub ident: AtomicU64,
    /// When the thread was first seen.
    pub started_ticks: AtomicU64,
    /// When it ended, or 0.
    pub ended_ticks: AtomicU64,
    /// Events that found the ring full.
    pub lost: AtomicU64,
    /// The name the kernel knows at the thread's start and end (`PR_GET_NAME`), NUL-padded.
    pub comm: [AtomicU64; 2],
    /// When the thread got the GIL it holds now, or 0.
    pub holding_since_ticks: AtomicU64,
    /// When the thread began to wait for the GIL, or 0 if it does not wait.
    pub waiting_since_ticks: AtomicU64,
    /// Exact totals.
    pub counters: Counters,
    /// Where the ring stands.
    pub positions: Positions,
}

impl Header {
    /// How long a tick of the table's clock is.
    #[inline]
    pub fn tick(&self) -> Tick {
        Tick::from_fraction(self.tick.load(Ordering::Relaxed))
    }

    /// Says how long a tick is from now on.
    pub fn set_tick(&self, tick: Tick) {
        self.tick.store(tick.fraction(), Ordering::Relaxed);
    }
}

impl Counters {
    /// Every field, in the order of declaration.
    pub fn fields(&self) -> [&AtomicU64; 10] {
        [
            &self.waits,
            &self.waited_ns,
            &self.holds,
            &self.held_ns,
            &self.voluntary,
            &self.forced,
            &self.drop_requests,
            &self.cpu_ns,
            &self.voluntary_switches,
            &self.involuntary_switches,
        ]
    }
}

/// A view of a whole table.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    start: *const u8,
    mapping: PhantomData<&'a [AtomicU64]>,
}

// SAFETY: a `Table` is an address; everything behind it is atomics.
unsafe impl Send for Table<'_> {}
// SAFETY: threads that share it share an address, and atomics behind it.
unsafe impl Sync for Table<'_> {}

#[expect(clippy::cast_ptr_alignment, reason = "every part begins at a multiple of its alignment")]
impl<'a> Table<'a> {
    /// The table that begins at `start`.
    ///
    /// # Safety
    /// [`TABLE_BYTES`] from `start`, page-aligned, are mapped readable and writable for `'a`,
    /// began as zeroes, and are touched by others only through this type.
    pub const unsafe fn at(start: *const u8) -> Self {
        Self { start, mapping: PhantomData }
    }

    /// The header.
    pub fn header(self) -> &'a Header {
        // SAFETY: `at` promised a mapping that is large enough, aligned and made of zeroes or
        // of earlier atomic stores; every bit pattern is a valid `Header`.
        unsafe { &*self.start.cast::<Header>() }
    }

    /// All slots.
    pub fn slots(self) -> &'a [Slot; SLOTS] {
        // SAFETY: the slots begin at a page inside the mapping that `at` promised, and every bit
        // pattern is a valid `Slot`.
        unsafe { &*self.start.wrapping_add(SLOTS_OFFSET).cast::<[Slot; SLOTS]>() }
    }

    /// The cells of the ring of slot `index`.
    ///
    /// Memory behind a cell may be missing in a full file system; only cells below
    /// [`Slot::committed`] may be touched.
    fn cells(self, index: usize) -> &'a [Cell; RING_EVENTS] {
        assert!(index < SLOTS);
        let ring = self.start.wrapping_add(RINGS_OFFSET + index * RING_BYTES);
        // SAFETY: the ring lies inside the mapping that `at` promised, because `index < SLOTS`, and
        // every bit pattern is a valid `Cell`.
        unsafe { &*ring.cast::<[Cell; RING_EVENTS]>() }
    }

    /// Appends `entry` to the ring of slot `index`, or counts it as lost and returns `false`.
    /// `commit(address, bytes)` is asked to put memory behind a further part of the ring and says
    /// whether it could.
    #[inline]
    pub fn push(
        self,
        index: usize,
        entry: Entry,
        commit: impl FnOnce(*const u8, usize) -> bool,
    ) -> bool {
        let slot = &self.slots()[index];
        let usable = |cell: usize| {
            let committed = slot.committed.load(Ordering::Relaxed) as usize;
            if cell < committed {
                return true;
            }
            let granted = committed < RING_EVENTS
                && commit(
                    (&raw const self.cells(index)[committed]).cast(),
                    COMMIT_EVENTS * size_of::<Cell>(),
                );
            if granted {
                #[allow(clippy::cast_possible_truncation, reason = "below RING_EVENTS")]
                slot.committed.store((committed + COMMIT_EVENTS) as u32, Ordering::Release);
            }
            granted
        };
        let pushed = Producer::new(&slot.positions, self.cells(index)).push(entry, usable);
        if !pushed {
            let lost = slot.lost.load(Ordering::Relaxed);
            slot.lost.store(lost + 1, Ordering::Relaxed);
        }
        pushed
    }

    /// Hands the events of slot `index` to `take` and returns how many there were.
    pub fn drain(self, index: usize, take: impl FnMut(Entry)) -> u64 {
        Consumer::new(&self.slots()[index].positions, self.cells(index)).drain(take)
    }

    /// Claims the first free slot for a thread. The caller fills it in and calls
    /// [`Slot::publish`]. `commit(address, bytes)` as for [`Table::push`], for a slot that was
    /// never used before.
    pub fn claim(self, commit: impl Fn(*const u8, usize) -> bool) -> Option<usize> {
        let used = &self.header().used_slots;
        for (index, slot) in self.slots().iter().enumerate() {
            #[allow(clippy::cast_possible_truncation, reason = "SLOTS fits")]
            let past_index = index as u32 + 1;
            if used.load(Ordering::Acquire) < past_index {
                if !commit((&raw const *slot).cast(), size_of::<Slot>()) {
                    return None;
                }
                used.fetch_max(past_index, Ordering::Release);
            }
            if slot.try_claim() {
                return Some(index);
            }
        }
        None
    }

    /// The slots that were ever used.
    pub fn used_slots(self) -> &'a [Slot] {
        let used = self.header().used_slots.load(Ordering::Acquire) as usize;
        &self.slots()[..used.min(SLOTS)]
    }
}

impl Slot {
    /// Takes the slot if it is free, with all counters at zero.
    fn try_claim(&self) -> bool {
        let (free, claimed) = (SlotState::Free as u32, SlotState::Claimed as u32);
        if self.state.load(Ordering::Relaxed) != free
            || self
                .state
                .compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        self.generation.fetch_add(1, Ordering::Relaxed);
        let others =
            [&self.ended_ticks, &self.lost, &self.holding_since_ticks, &self.waiting_since_ticks];
        for field in self.counters.fields().into_iter().chain(others) {
            field.store(0, Ordering::Relaxed);
        }
        true
    }

    /// Makes a claimed slot visible to the recorder.
    pub fn publish(&self) {
        self.state.store(SlotState::Live as u32, Ordering::Release);
    }

    /// What the slot holds, if the number is a known one.
    pub fn state(&self) -> Option<SlotState> {
        Some(match self.state.load(Ordering::Acquire) {
            0 => SlotState::Free,
            1 => SlotState::Claimed,
            2 => SlotState::Live,
            3 => SlotState::Ended,
            _ => return None,
        })
    }

    /// Says that the thread has ended: the slot waits to be drained.
    pub fn end(&self) {
        self.state.store(SlotState::Ended as u32, Ordering::Release);
    }

    /// Gives an ended slot back.
    pub fn free(&self) {
        self.state.store(SlotState::Free as u32, Ordering::Release);
    }
}

/// Stores `text` into NUL-padded words, cut to fit with one NUL at least.
pub fn store_text(words: &[AtomicU64], text: &[u8]) {
    store_bytes(words, &text[..text.len().min(words.len() * 8 - 1)]);
}

/// Stores `bytes` into NUL-padded words, cut to fit.
pub fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let mut parts = bytes.chunks(8);
    for word in words {
        let part = parts.next().unwrap_or_default();
        let mut padded = [0; 8];
        padded[..part.len()].copy_from_slice(part);
        word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
    }
}

/// The bytes in words, padding included.
pub fn load_bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
}

/// The text in NUL-padded words.
pub fn load_text(words: &[AtomicU64]) -> String {
    let bytes = load_bytes(words);
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_fit_and_comes_back() {
        let words = [const { AtomicU64::new(u64::MAX) }; 2];
        store_text(&words, b"worker-1");
        assert_eq!(load_text(&words), "worker-1");
        store_text(&words, b"a name that is far too long");
        assert_eq!(load_text(&words), "a name that is ");
        store_text(&words, b"");
        assert_eq!(load_text(&words), "");
    }

    #[test]
    fn a_slot_is_claimed_once_until_it_is_freed() {
        #[repr(align(4096))]
        #[derive(Clone)]
        struct Page(#[allow(dead_code, reason = "only its size matters")] [u8; 4096]);
        let memory = vec![Page([0; 4096]); RINGS_OFFSET / 4096];
        // SAFETY: only header and slots are used, which lie inside `memory`.
        let table = unsafe { Table::at(memory.as_ptr().cast()) };
        let granted = |_: *const u8, _| true;
        assert_eq!((table.claim(granted), table.claim(granted)), (Some(0), Some(1)));
        assert_eq!(table.used_slots().len(), 2);
        assert_eq!(table.claim(|_, _| false), None, "there is no memory for a third slot");
        let slot = &table.slots()[0];
        slot.publish();
        slot.counters.waits.store(3, Ordering::Relaxed);
        slot.end();
        assert_eq!(table.claim(granted), Some(2));
        slot.free();
        assert_eq!(table.claim(granted), Some(0));
        assert_eq!(slot.counters.waits.load(Ordering::Relaxed), 0);
        assert_eq!(slot.generation.load(Ordering::Relaxed), 2);
    }
}
