//! The table of this process: made, filled in, given up in the child of a fork, and left when a
//! running process is recorded no longer.

use crate::interval::Shorter;
use crate::session::Session;
use crate::system::{current_pid, keeping_errno, last_errno, may_grow_to, pid_namespace};
use crate::{clock, free_threaded, gil, park, stacks};
use libc::{c_int, c_void};
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32};
use ungil_core::schedule::{Policy, Settings};
use ungil_core::table::{
    ABI, Header, MAGIC, Recording, SLOTS_OFFSET, Slot, SlotState, Status, TABLE_BYTES, Table,
    store_bytes, store_text,
};

/// Start of the table, or null.
static TABLE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Whether this process, a child after fork, has still to create its table.
static STATE: AtomicU8 = AtomicU8::new(NOTHING);
const NOTHING: u8 = 0;
const FORKED: u8 = 1;
const REGISTERING: u8 = 2;

/// How many tables this process has had: what a thread knows of one says nothing of the next.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// What this process has joined, for its children to join too, or null.
static JOINED: AtomicPtr<Joined> = AtomicPtr::new(null_mut());
/// Where that is kept, in turn: a thread may still read the one before.
static PLACES: [Place; 2] = [const { Place(UnsafeCell::new(None)) }; 2];
/// The table that was left last. Its addresses stay ours until the next one is left.
static LEFT: AtomicPtr<u8> = AtomicPtr::new(null_mut());

struct Place(UnsafeCell<Option<Joined>>);

// SAFETY: a place is written while `JOINED` does not point to it, and by one thread: whoever joins
// is alone ([`crate::requests`]).
unsafe impl Sync for Place {}

struct Joined {
    session: Session,
    /// A copy: the interpreter's own text may be unloaded with it.
    python: [u8; 128],
    status: Status,
}

/// Joins `session`: creates the table of this process, and of every child it forks, and says whether
/// it has one. The one that it had is left. For one thread at a time.
pub fn join(session: &Session, python: &CStr, status: Status) -> bool {
    static TURN: AtomicU32 = AtomicU32::new(0);
    leave();
    let mut text = [0; 128];
    let python = python.to_bytes();
    let length = python.len().min(text.len());
    text[..length].copy_from_slice(&python[..length]);
    let place = PLACES[TURN.fetch_add(1, Relaxed) as usize % PLACES.len()].0.get();
    let joined = Joined { session: *session, python: text, status };
    // SAFETY: `JOINED` does not point here, and no other thread joins meanwhile.
    let kept = unsafe { (*place).insert(joined) };
    JOINED.store(kept, Release);
    clock::choose(session.tick);
    register()
}

/// The session that this process has joined, if it has.
fn joined() -> Option<&'static Joined> {
    // SAFETY: null, or a place that is not written while `JOINED` points to it, nor before the next
    // two joins, which are further apart than anybody looks at it here.
    unsafe { JOINED.load(Acquire).as_ref() }
}

/// Leaves the recording, if there is one. Children after fork join none, and nothing is counted.
pub fn leave() {
    STATE.store(NOTHING, Release);
    JOINED.store(null_mut(), Release);
    let start = TABLE.swap(null_mut(), AcqRel);
    if start.is_null() {
        return;
    }
    // SAFETY: it was published, so it is mapped.
    let header = unsafe { Table::at(start) }.header();
    header.ended_ticks.store(clock::now_ticks(), Relaxed);
    header.recording.store(Recording::No as u32, Release);
    let before = LEFT.swap(start, AcqRel);
    if !before.is_null() {
        // SAFETY: it was left before another one was even made. Whoever wrote to it then, in a call
        // that takes or releases a GIL, has let others take it many times since.
        unsafe { libc::munmap(before.cast(), TABLE_BYTES) };
    }
    // A thread may be writing to it just now: it keeps its addresses, and loses its memory.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: it replaces a mapping of ours, of which every content is valid, zeroes as well.
    unsafe { libc::mmap(start.cast(), TABLE_BYTES, access, flags, -1, 0) };
}

/// Keeps the same table in anonymous memory, for this process's own counters. `false` without
/// memory. A child after fork has to ask again.
pub fn count_only(python: &CStr) -> bool {
    let Some(start) = map(-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) else { return false };
    publish(start, python.to_bytes(), Status::Hooked, Recording::No);
    true
}

/// The table, if there is one.
#[inline]
pub fn own() -> Option<Table<'static>> {
    let start = TABLE.load(Acquire);
    // SAFETY: the addresses of a published table stay mapped until a fork's child drops it, when no
    // thread but the calling one exists there, and that one forgets it; or until it and the one
    // after it have been left.
    (!start.is_null()).then(|| unsafe { Table::at(start) })
}

/// Whether the recorder that reads it asks this process to leave.
#[inline]
pub fn is_to_be_left() -> bool {
    let to_be_left = Recording::ToBeLeft as u32;
    own().is_some_and(|table| table.header().recording.load(Relaxed) == to_be_left)
}

/// Start of the table, or null.
pub fn address() -> *const u8 {
    TABLE.load(Acquire)
}

/// Which table it is, counted from 1; 0 before the first.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Whether this process has a table, or is about to get one.
#[inline]
pub fn is_recorded() -> bool {
    !TABLE.load(Relaxed).is_null() || STATE.load(Relaxed) != NOTHING
}

/// The table, which a child creates at its first use of the GIL.
pub fn own_or_register() -> Option<Table<'static>> {
    if STATE.compare_exchange(FORKED, REGISTERING, AcqRel, Relaxed).is_ok() {
        register();
        STATE.store(NOTHING, Release);
    }
    own()
}

/// Puts memory behind a part of the table, so that touching it cannot raise SIGBUS when the file
/// system is full.
pub fn commit(address: *const u8, bytes: usize) -> bool {
    let page = 4096;
    let start = address as usize & !(page - 1);
    let end = (address as usize + bytes).next_multiple_of(page);
    let populate = || {
        // SAFETY: the range lies inside the table's mapping, which is writable.
        unsafe { libc::madvise(start as *mut c_void, end - start, libc::MADV_POPULATE_WRITE) }
    };
    keeping_errno(|| populate() == 0 || (last_errno() == libc::EINVAL && allocate(start, end)))
}

/// Before Linux 5.14: allocates the part of the file itself.
#[cold]
fn allocate(start: usize, end: usize) -> bool {
    let Some(joined) = joined() else {
        return true; // Anonymous memory needs no promise.
    };
    let number = FILE_NUMBER.load(Relaxed);
    let Some(file) = joined.session.open_table(current_pid(), number, libc::O_RDWR) else {
        return false;
    };
    let offset = start - address() as usize;
    // SAFETY: takes integers.
    let done = unsafe { libc::fallocate(file, 0, offset_of(offset), offset_of(end - start)) } == 0;
    // SAFETY: `file` was just opened here.
    let closed = unsafe { libc::close(file) } == 0;
    done && closed
}

/// Keeps the policy and the quantum that a thread waits under.
pub fn saw_settings(settings: Settings) {
    if let Some(table) = own() {
        table.header().policy.store(settings.policy as u32, Relaxed);
        table.header().switch_interval_ns.store(settings.quantum_ns, Relaxed);
    }
}

/// Keeps what the time from the beginning of a wait to the deadline that the waiter gave says of the
/// switch interval. Up to 3.7 deadlines are times of day and say nothing here.
pub fn saw_deadline(left_ns: u64) {
    const LONGEST_NS: u64 = 3_600_000_000_000;
    static SHORTER: Shorter = Shorter::new();
    if left_ns < LONGEST_NS
        && let Some(table) = own()
    {
        let Header { policy, switch_interval_ns, .. } = table.header();
        let stock = Policy::Stock as u32;
        // The quantum of a policy is no interval.
        let was_stock = policy.load(Relaxed) == stock;
        let told_ns = if was_stock { switch_interval_ns.load(Relaxed) } else { 0 };
        policy.store(stock, Relaxed);
        switch_interval_ns.store(SHORTER.interval_ns(told_ns, left_ns), Relaxed);
    }
}

/// A thread has ended: its counters go to the sum, and its slot to the recorder if there is one.
pub fn slot_ended(slot: &Slot) {
    let Some(table) = own() else { return };
    let header = table.header();
    let is_recorded = header.recording.load(Relaxed) != Recording::No as u32;
    header.ended.add(slot, if is_recorded { Slot::end } else { Slot::free });
}

/// The table, if it is that of this process: a child of vfork has the memory, and the table, of its
/// parent.
fn of_this_process() -> Option<Table<'static>> {
    own().filter(|table| table.header().pid.load(Relaxed) == current_pid())
}

/// The program that is to take the place of this one could not be executed, so this one goes on.
/// `errno` stays.
pub fn goes_on() {
    if let Some(table) = of_this_process() {
        table.header().ended_ticks.store(0, Release);
    }
}

/// Notes the last CPU times of the threads that are still there, and that the process ends, or that
/// another program takes its place.
pub fn end() {
    let Some(table) = of_this_process() else { return };
    for slot in table.used_slots().iter().filter(|slot| slot.state() == Some(SlotState::Live)) {
        // The clock of another thread of this process, as pthread_getcpuclockid computes it.
        let tid = slot.tid.load(Relaxed).cast_signed();
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writing; a thread that is gone is reported as an error.
        if unsafe { libc::clock_gettime((!tid << 3) | 6, &raw mut time) } == 0 {
            slot.counters.cpu_ns.store(clock::timespec_ns(&time), Relaxed);
        }
    }
    table.header().ended_ticks.store(clock::now_ticks(), Release);
}

/// Gives up the parent's table, in the child of a fork, which has one thread. That one forgets its
/// slot next.
pub fn leave_to_parent() {
    let parents = TABLE.swap(null_mut(), AcqRel);
    if !parents.is_null() {
        // SAFETY: the mapping is TABLE_BYTES long, and nothing in the child refers to it any
        // more: the only thread forgets its slot next.
        unsafe { libc::munmap(parents.cast(), TABLE_BYTES) };
    }
}

/// From now on the child of a fork makes a table of its own, if children are recorded.
pub fn begin_anew() {
    let follow = joined().is_some_and(|joined| joined.session.follow_children);
    STATE.store(if follow { FORKED } else { NOTHING }, Release);
}

/// How many images this process id has had, this one included, less one.
static FILE_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Creates this process's table in the session directory, and says whether it could. Without one
/// nothing is recorded.
fn register() -> bool {
    let Some(Joined { session, python, status }) = joined() else { return false };
    let pid = current_pid();
    let create =
        |number| session.open_table(pid, number, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL);
    // exec keeps the process id, so a number tells the images apart.
    let mut number = 0;
    let file = loop {
        match create(number) {
            Some(file) => break file,
            None if last_errno() == libc::EEXIST => number += 1,
            None => return false,
        }
    };
    FILE_NUMBER.store(number, Relaxed);
    if may_grow_to(TABLE_BYTES)
        // SAFETY: `file` was just created here.
        && unsafe { libc::ftruncate(file, offset_of(TABLE_BYTES)) } == 0
        // SAFETY: as above.
        && unsafe { libc::fallocate(file, 0, 0, offset_of(SLOTS_OFFSET)) } == 0
        && let Some(start) = map(file, libc::MAP_SHARED)
    {
        publish(start, python, *status, Recording::Yes);
    }
    // SAFETY: the mapping keeps the file; the program must not find a descriptor it never opened.
    unsafe { libc::close(file) };
    !address().is_null()
}

/// An offset in a table, as the system calls want it.
fn offset_of(bytes: usize) -> libc::off_t {
    bytes.cast_signed() as libc::off_t
}

fn map(file: c_int, kind: c_int) -> Option<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe {
        libc::mmap(
            null_mut(),
            TABLE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            kind | libc::MAP_NORESERVE,
            file,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping that was just made. A core dump of the program need not hold it.
    unsafe { libc::madvise(start, TABLE_BYTES, libc::MADV_DONTDUMP) };
    Some(start.cast())
}

/// Fills in the header of a fresh table and makes it this process's.
fn publish(start: *mut u8, python: &[u8], status: Status, recording: Recording) {
    // SAFETY: `map` made the mapping, page-aligned, of TABLE_BYTES, full of zeroes.
    let table = unsafe { Table::at(start) };
    let header = table.header();
    header.abi.store(ABI, Relaxed);
    header.pid.store(current_pid(), Relaxed);
    header.pid_namespace.store(pid_namespace(), Relaxed);
    // SAFETY: getppid has no preconditions.
    header.parent_pid.store(unsafe { libc::getppid() }.cast_unsigned(), Relaxed);
    header.status.store(status as u32, Relaxed);
    header.recording.store(recording as u32, Relaxed);
    header.clock.store(clock::clock() as u32, Relaxed);
    header.set_tick(clock::tick());
    header.started_ticks.store(clock::now_ticks(), Relaxed);
    store_text(&header.python, python);
    store_command(header);
    gil::tell(header);
    free_threaded::tell(header);
    header.runtime.store(park::runtime() as u64, Relaxed);
    stacks::forget();
    header.magic.store(MAGIC, Release);
    GENERATION.fetch_add(1, Relaxed);
    TABLE.store(start, Release);
}

/// Notes the beginning of this process's command line.
fn store_command(header: &Header) {
    let mut command = [0u8; 2048];
    // SAFETY: the name is NUL-terminated.
    let file =
        unsafe { libc::open(c"/proc/self/cmdline".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    let mut length = 0;
    // A read may end before the command line does, where that goes on in another page.
    while let Some(rest @ [_, ..]) = command.get_mut(length..) {
        // SAFETY: `rest` is valid for writing that many bytes.
        let count = unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(count) {
            Ok(count @ 1..) => length += count,
            _ => break,
        }
    }
    // SAFETY: `file` was just opened here.
    unsafe { libc::close(file) };
    store_bytes(&header.command, &command[..length]);
    header.command_bytes.store(u32::try_from(length).unwrap_or(0), Relaxed);
}
