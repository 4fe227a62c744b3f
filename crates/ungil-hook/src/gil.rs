//! The GILs of this process, known by the addresses of their condition variables.
//!
//! `struct _gil_runtime_state` (`Include/internal/pycore_gil.h`) has been the same since 3.2:
//! `cond; mutex; switch_cond; switch_mutex`. `create_gil` initialises `cond` and right after it
//! `switch_cond`, which is how every GIL is recognised, the main one and those of
//! sub-interpreters. When the hook is installed in a running process the main GIL already
//! exists; then the first call on a condition variable inside `_PyRuntime` names it.
//!
//! Other code may call through the same slots: libraries that are linked into the interpreter, and
//! a program that is linked with one. Theirs may lie and be made just so, but has no part in
//! `_PyRuntime`. The main GIL is inside of it, and `create_gil` makes every other one with the
//! attributes that are (`_PyRuntime.threads._condattr_monotonic`; `Python/thread_pthread.h`).
//!
//! All fields but the addresses are guarded by the GIL's own mutex, which every caller of the
//! hooked functions holds, or by the GIL itself; they are atomics only for the compiler's sake.

use crate::{any_libc, clock, free_threaded, table, thread};
use std::cell::Cell;
use std::ops::Range;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use ungil_core::schedule::Line;
use ungil_core::table::{GILS, Header};

/// Distance from `cond` to `switch_cond`.
#[inline]
fn cond_to_switch_cond() -> usize {
    size_of::<libc::pthread_cond_t>() + any_libc::mutex_bytes()
}

/// Of the address of a GIL whose interpreter has ended: others may get its memory. Addresses of
/// condition variables are even.
const ENDED: usize = 1;

/// When the hook came in.
#[derive(Clone, Copy, PartialEq)]
pub enum Seen {
    /// Before the interpreter was initialised.
    FromTheStart,
    /// In a running process, while the calling thread holds the GIL.
    WhileHeldHere,
    /// In a running process, of which nobody knows who holds the GIL.
    Running,
}

/// One GIL.
pub struct Gil {
    /// Number of this GIL in events.
    pub number: u8,
    /// Address of `cond` (or of 2.7's semaphore), and [`ENDED`] if it is no GIL any more; 0 while
    /// this entry is unused.
    address: AtomicUsize,
    /// Number of the last acquire or release that was recorded.
    pub seq: AtomicU32,
    /// [`table::generation`] of the table that it was recorded in.
    generation: AtomicU32,
    /// Whether a thread holds it.
    pub locked: AtomicBool,
    /// Whether a waiter has asked the holder to let go since the last acquire.
    pub drop_requested: AtomicBool,
    /// The thread that acquired it last (a token of [`crate::thread`]).
    pub last_holder: AtomicU32,
    /// How often it went to another thread than the last one, as CPython's `switch_number`.
    pub switches: AtomicU32,
    /// How many threads sleep on `cond` itself, as CPython would have it.
    pub stock_waiters: AtomicU32,
    /// The word of the thread to wake when its mutex is let go, or null.
    pub to_wake: Cell<*const AtomicU32>,
    /// The threads that wait for it under a policy of ours.
    pub line: Line,
}

// SAFETY: `line` and `to_wake` are used only with the GIL's mutex held, or by the only thread after a fork.
unsafe impl Sync for Gil {}

/// What a condition variable is to a GIL.
#[derive(Clone, Copy)]
pub enum Role {
    /// Waiters of the GIL sleep on it; signalled when the GIL was released.
    Free(&'static Gil),
    /// Signalled when the GIL was acquired.
    Taken(&'static Gil),
}

static ALL: [Gil; GILS] = {
    let mut all = [const { Gil::unused() }; GILS];
    let mut number = 1;
    while number < GILS {
        #[allow(clippy::cast_possible_truncation, reason = "GILS is below 256")]
        {
            all[number].number = number as u8;
            all[number].line = Line::new(number as u32);
        }
        number += 1;
    }
    all
};
static KNOWN: AtomicUsize = AtomicUsize::new(0);
/// Where `_PyRuntime` begins, and its size.
static RUNTIME: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// Whether its GIL is still to be recognised.
static IS_MAIN_UNKNOWN: AtomicBool = AtomicBool::new(false);
/// Whether somebody holds it since the calls on it lead here.
static IS_UNKNOWN_HELD: AtomicBool = AtomicBool::new(false);
/// A condition variable of it, of which it is not known yet which one it is.
static CANDIDATE: AtomicUsize = AtomicUsize::new(0);
/// When it was called.
static CANDIDATE_TICKS: AtomicU64 = AtomicU64::new(0);
/// When its holder took the main GIL, if that call made it known; 0 otherwise.
static TAKEN_UNKNOWN_TICKS: AtomicU64 = AtomicU64::new(0);

/// All mutexes of GILs lie between these two, which only move apart as long as there is a GIL: none
/// is missed while another is added.
static LOWEST_MUTEX: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST_MUTEX: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The condition variable this thread initialised last.
    static LAST_INITIALISED: Cell<usize> = const { Cell::new(0) };
}

impl Gil {
    const fn unused() -> Self {
        Self {
            number: 0,
            address: AtomicUsize::new(0),
            seq: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            locked: AtomicBool::new(false),
            drop_requested: AtomicBool::new(false),
            last_holder: AtomicU32::new(0),
            switches: AtomicU32::new(0),
            stock_waiters: AtomicU32::new(0),
            to_wake: Cell::new(null()),
            line: Line::new(0),
        }
    }

    /// Whether it has been made, or met.
    pub fn is_known(&self) -> bool {
        self.cond() != 0
    }

    /// Address of its `cond` (or of 2.7's semaphore).
    pub fn cond(&self) -> usize {
        self.address.load(Relaxed) & !ENDED
    }

    /// Whether nothing of it was recorded in that table.
    pub fn is_new_in(&self, generation: u32) -> bool {
        self.generation.load(Relaxed) != generation
    }

    /// Something is about to be recorded in that table, whose numbers begin anew.
    #[inline]
    pub fn begin_in(&self, generation: u32) {
        if self.is_new_in(generation) {
            self.generation.store(generation, Relaxed);
            self.seq.store(0, Relaxed);
        }
    }

    /// The interpreter is done with it, and its last holder does not let go of it any more.
    pub fn end(&self) {
        self.abandon();
        self.address.fetch_or(ENDED, Relaxed);
    }

    fn abandon(&self) {
        if self.locked.swap(false, Relaxed)
            && self.last_holder.load(Relaxed) == thread::token()
            && let Some(thread) = thread::current()
            && thread.is_holding()
        {
            thread.released(&ALL[usize::from(self.number)], clock::now_ticks(), false);
        }
    }

    /// The calls on it lead here again. What happened meanwhile was not seen.
    fn meet_again(&self, is_held: bool) {
        self.locked.store(is_held, Relaxed);
        self.drop_requested.store(false, Relaxed);
        self.last_holder.store(0, Relaxed);
        // Threads that sleep on it now are not known, see `role_of_further`.
        self.stock_waiters.fetch_add(1, Relaxed);
        self.to_wake.set(null());
        self.line.clear();
    }

    fn reset(&self) {
        self.abandon();
        self.locked.store(false, Relaxed);
        self.drop_requested.store(false, Relaxed);
        self.last_holder.store(0, Relaxed);
        self.stock_waiters.store(0, Relaxed);
        self.to_wake.set(null());
        self.line.clear();
    }
}

/// Says where the interpreter keeps what tells its GILs from all else.
pub fn expect_in(runtime: &Range<usize>) {
    RUNTIME[1].store(runtime.len(), Relaxed);
    RUNTIME[0].store(runtime.start, Relaxed);
}

fn is_in_runtime(address: usize) -> bool {
    address.wrapping_sub(RUNTIME[0].load(Relaxed)) < RUNTIME[1].load(Relaxed)
}

/// Says what is known of the main GIL.
pub fn expect_main(seen: Seen) {
    if seen == Seen::FromTheStart {
        return;
    }
    let is_held = seen == Seen::WhileHeldHere;
    if known().is_empty() {
        IS_UNKNOWN_HELD.store(is_held, Relaxed);
        CANDIDATE.store(0, Relaxed);
        TAKEN_UNKNOWN_TICKS.store(0, Relaxed);
        IS_MAIN_UNKNOWN.store(true, Relaxed);
    }
    for gil in known() {
        gil.meet_again(is_held);
    }
}

/// Whether no thread waits in a line of ours, for any GIL.
pub fn are_lines_empty() -> bool {
    known().iter().all(|gil| gil.line.is_empty())
}

/// When the calling thread, which lets go of the main GIL, took it, if the GIL was not known then
/// but has been since.
pub fn taken_unknown_ticks() -> Option<u64> {
    let ticks = TAKEN_UNKNOWN_TICKS.swap(0, Relaxed);
    (ticks != 0).then_some(ticks)
}

/// Notes the initialisation of the condition variable at `address` with these attributes.
pub fn initialised(address: usize, attributes: usize) {
    let before = LAST_INITIALISED.replace(address);
    if before != 0
        && address == before.wrapping_add(cond_to_switch_cond())
        && (is_in_runtime(before) || is_in_runtime(attributes))
    {
        match known().iter().find(|gil| gil.cond() == before) {
            // Made anew at the same place: in a child after fork, or a later sub-interpreter.
            Some(gil) => {
                gil.reset();
                gil.address.store(before, Relaxed);
            }
            None => add(before),
        }
        if ALL[0].cond() == before {
            free_threaded::created(&ALL[0]);
        }
    }
}

/// What the condition variable at `address` is, if it belongs to a GIL. The call is a wait with a
/// timeout if the caller `is_timed`.
#[inline]
pub fn role(address: usize, is_timed: bool) -> Option<Role> {
    let main = ALL[0].address.load(Relaxed);
    if main == address {
        return Some(Role::Free(&ALL[0]));
    }
    if main != 0 && main + cond_to_switch_cond() == address {
        return Some(Role::Taken(&ALL[0]));
    }
    if KNOWN.load(Relaxed) == 1 { None } else { role_of_further(address, is_timed) }
}

/// Whether the mutex at `address` is certainly that of no GIL: one comparison for what lies on the
/// heap, where most do, since the main GIL's lies below it.
#[inline]
pub fn is_mutex_of_others(address: usize) -> bool {
    address > HIGHEST_MUTEX.load(Relaxed) || address < LOWEST_MUTEX.load(Relaxed)
}

/// The GIL whose own mutex is at `address`.
#[inline]
pub fn of_mutex(address: usize) -> Option<&'static Gil> {
    let cond = address.wrapping_sub(size_of::<libc::pthread_cond_t>());
    if ALL[0].address.load(Relaxed) == cond {
        return Some(&ALL[0]);
    }
    if KNOWN.load(Relaxed) > 1 { find(cond) } else { None }
}

#[cold]
fn role_of_further(address: usize, is_timed: bool) -> Option<Role> {
    if IS_MAIN_UNKNOWN.load(Relaxed) && is_in_runtime(address) {
        recognise(address, is_timed);
    }
    find(address)
        .map(Role::Free)
        .or_else(|| find(address.wrapping_sub(cond_to_switch_cond())).map(Role::Taken))
}

/// Recognises the main GIL by a call on one of its condition variables.
fn recognise(address: usize, is_timed: bool) {
    // Only waiters sleep with a timeout, and on `cond`. And if somebody holds the GIL since the
    // calls lead here, the first one is that of a waiter or of the release: on `cond` in both cases.
    let mut cond = address;
    if !is_timed && !IS_UNKNOWN_HELD.load(Relaxed) {
        // It is signalled after a release, `switch_cond` after an acquire, and these take turns.
        let before = CANDIDATE.swap(address, Relaxed);
        let before_ticks = CANDIDATE_TICKS.swap(clock::now_ticks(), Relaxed);
        if address == before.wrapping_add(cond_to_switch_cond()) {
            cond = before;
        } else if before == address.wrapping_add(cond_to_switch_cond()) {
            TAKEN_UNKNOWN_TICKS.store(before_ticks, Relaxed);
        } else {
            return;
        }
    }
    IS_MAIN_UNKNOWN.store(false, Relaxed);
    add(cond);
    ALL[0].locked.store(true, Relaxed);
    // Threads that went to sleep before the calls led here are not known and may sleep for a long
    // switch interval: `cond` is signalled for ever, which costs little if nobody does.
    ALL[0].stock_waiters.store(1, Relaxed);
}

fn find(address: usize) -> Option<&'static Gil> {
    known().iter().find(|gil| gil.address.load(Relaxed) == address)
}

fn known() -> &'static [Gil] {
    &ALL[..KNOWN.load(Relaxed).min(GILS)]
}

/// Adds the GIL at `address`, if there is room.
pub fn add(address: usize) {
    let index = KNOWN.fetch_add(1, Relaxed);
    match ALL.get(index) {
        Some(gil) => {
            gil.address.store(address, Relaxed);
            let mutex = address.wrapping_add(size_of::<libc::pthread_cond_t>());
            LOWEST_MUTEX.fetch_min(mutex, Relaxed);
            HIGHEST_MUTEX.fetch_max(mutex, Relaxed);
            if let Some(table) = table::own() {
                table.header().gils[index].store(address as u64, Relaxed);
            }
        }
        None => KNOWN.store(GILS, Relaxed),
    }
}

/// Tells a new table of the GILs that are known already.
pub fn tell(header: &Header) {
    for (told, gil) in header.gils.iter().zip(&ALL) {
        told.store(gil.cond() as u64, Relaxed);
    }
}

/// The main GIL, or in 2.7 the only one.
pub fn main() -> &'static Gil {
    &ALL[0]
}

/// Forgets every GIL: their interpreter was unloaded, and nobody holds or awaits one. Numbers of
/// acquires and releases go on.
pub fn forget() {
    IS_MAIN_UNKNOWN.store(false, Relaxed);
    KNOWN.store(0, Relaxed);
    LOWEST_MUTEX.store(usize::MAX, Relaxed);
    HIGHEST_MUTEX.store(0, Relaxed);
    for gil in &ALL {
        gil.address.store(0, Relaxed);
        gil.reset();
    }
}

/// Starts every order anew, in the child after a fork: its events go to a table of its own, and
/// its parent's waiting threads are not there.
pub fn after_fork() {
    for gil in &ALL {
        gil.seq.store(0, Relaxed);
        gil.stock_waiters.store(0, Relaxed);
        gil.to_wake.set(null());
        gil.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNTIME_AT: usize = 0x10_0000;
    const ATTRIBUTES: usize = RUNTIME_AT + 0x100;
    const OWN_GIL: usize = 0x20_0000;
    const OTHERS: usize = 0x30_0000;

    fn make(cond: usize, attributes: usize) {
        initialised(cond, attributes);
        initialised(cond + cond_to_switch_cond(), attributes);
    }

    fn is_gil(cond: usize) -> bool {
        let ends = [(cond, true), (cond + cond_to_switch_cond(), false)];
        let roles = ends.map(|(address, is_timed)| role(address, is_timed).is_some());
        assert_eq!(roles[0], roles[1]);
        let mutex = cond + size_of::<libc::pthread_cond_t>();
        assert_eq!(of_mutex(mutex).is_some(), roles[0]);
        assert!(!roles[0] || !is_mutex_of_others(mutex));
        roles[0]
    }

    /// One test, because the GILs of a process are static.
    #[test]
    fn what_has_no_part_in_the_runtime_is_no_gil() {
        expect_in(&(RUNTIME_AT..RUNTIME_AT + 0x1000));
        make(OTHERS, 0);
        make(OTHERS + 0x1000, OTHERS + 0x2000);
        assert!(!is_gil(OTHERS) && !is_gil(OTHERS + 0x1000));
        assert!(known().is_empty());

        make(RUNTIME_AT + 0x200, 0);
        assert!(is_gil(RUNTIME_AT + 0x200));
        assert_eq!(main().cond(), RUNTIME_AT + 0x200);
        make(OWN_GIL, ATTRIBUTES);
        assert!(is_gil(OWN_GIL));
        make(OTHERS, 0);
        assert!(!is_gil(OTHERS));
        assert_eq!(known().len(), 2);
        assert!(is_mutex_of_others(OTHERS));

        // Its memory goes to others, and then to a GIL again.
        known()[1].end();
        assert!(!is_gil(OWN_GIL));
        make(OWN_GIL, 0);
        assert!(!is_gil(OWN_GIL));
        make(OWN_GIL, ATTRIBUTES);
        assert!(is_gil(OWN_GIL));
        assert_eq!(known().len(), 2);

        // One that was there before this library is looked for in the runtime alone.
        forget();
        expect_main(Seen::Running);
        assert!(role(OTHERS, true).is_none());
        assert!(matches!(role(RUNTIME_AT + 0x300, true), Some(Role::Free(_))));
        assert_eq!(main().cond(), RUNTIME_AT + 0x300);
        forget();
    }
}
