//! The calling thread: its slot in the table, and what it writes there.

use crate::clock;
use crate::gil::{self, Gil};
use crate::ran::{self, Usage};
use crate::system::keeping_errno;
use crate::table;
use libc::{c_void, pthread_key_t};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use ungil_core::table::{Recording, Slot, Table, store_text};
use ungil_core::tick::Tick;
use ungil_core::{Entry, Kind, ParkEntry};

/// Where a thread writes.
#[derive(Clone, Copy)]
struct Place {
    /// [`table::generation`] of the table, 0 for none.
    generation: u32,
    /// Index of the thread's slot, or [`NO_SLOT`].
    slot: u32,
}

unsafe extern "C" {
    /// In musl it returns an address, in glibc a number: the same register.
    fn pthread_self() -> u64;
}

/// There was none left for this thread.
const NO_SLOT: u32 = u32::MAX;
const NOWHERE: Place = Place { generation: 0, slot: NO_SLOT };

thread_local! {
    /// Constant and without a destructor, so that access neither allocates nor registers.
    static PLACE: Cell<Place> = const { Cell::new(NOWHERE) };
    static TOKEN: Cell<u32> = const { Cell::new(0) };
}

static NEXT_TOKEN: AtomicU32 = AtomicU32::new(1);
/// Plus one; 0 before it is created.
static END_KEY: AtomicU32 = AtomicU32::new(0);

/// The calling thread with its slot.
pub struct Thread {
    /// Index of the slot.
    pub index: usize,
    slot: &'static Slot,
    table: Table<'static>,
}

/// The calling thread, which gets a slot if it has none yet. `None` if nothing is recorded here.
#[inline]
pub fn current() -> Option<Thread> {
    if PLACE.get().generation != table::generation() {
        return if table::is_recorded() { keeping_errno(claim) } else { None };
    }
    known()
}

/// The calling thread, if it has a slot.
#[inline]
fn known() -> Option<Thread> {
    let place = PLACE.get();
    let index = place.slot as usize;
    let table = table::own().filter(|_| place.generation == table::generation())?;
    Some(Thread { index, slot: table.slots().get(index)?, table })
}

#[cold]
fn claim() -> Option<Thread> {
    let table = table::own_or_register()?;
    let generation = table::generation();
    let Some(index) = table.claim(table::commit) else {
        PLACE.set(Place { generation, slot: NO_SLOT });
        table.header().unrecorded_threads.fetch_add(1, Relaxed);
        return None;
    };
    let slot = &table.slots()[index];
    // SAFETY: gettid has no preconditions.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: it has no preconditions.
    let ident = unsafe { pthread_self() };
    slot.tid.store(u32::try_from(tid).unwrap_or(0), Relaxed);
    slot.ident.store(ident, Relaxed);
    slot.started_ticks.store(clock::now_ticks(), Relaxed);
    store_comm(slot);
    PLACE.set(Place { generation, slot: u32::try_from(index).unwrap_or(NO_SLOT) });
    ran::forget();
    let key = END_KEY.load(Relaxed);
    if key != 0 {
        // Any value but null: only then is this library told of the thread's end.
        // SAFETY: the key was created in `prepare`; the value is never dereferenced.
        unsafe { libc::pthread_setspecific(key - 1, (index + 1) as *const c_void) };
    }
    slot.publish();
    Some(Thread { index, slot, table })
}

/// Asks to be told when a thread ends. Called once, before anything is recorded.
pub fn prepare() {
    let mut key: pthread_key_t = 0;
    // SAFETY: `key` is valid for writing, `on_end` has the required signature.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_end)) } == 0 {
        END_KEY.store(key + 1, Relaxed);
    }
}

/// Runs in a thread that ends. Later destructors of the same thread may still use the GIL; they
/// are given a new slot.
unsafe extern "C" fn on_end(_: *mut c_void) {
    if let Some(thread) = known() {
        thread.count(ran::usage());
        store_comm(thread.slot);
        thread.slot.ended_ticks.store(clock::now_ticks(), Relaxed);
        table::slot_ended(thread.slot);
    }
    PLACE.set(NOWHERE);
}

/// The only thread that a fork leaves in the child has no slot there yet.
pub fn after_fork() {
    PLACE.set(NOWHERE);
}

fn store_comm(slot: &Slot) {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes to the address.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    store_text(&slot.comm, &name[..length]);
}

/// A number of the calling thread that no other thread of the process has had, never 0.
pub fn token() -> u32 {
    let token = TOKEN.get();
    if token != 0 {
        return token;
    }
    let token = NEXT_TOKEN.fetch_add(1, Relaxed);
    TOKEN.set(token);
    token
}

/// Adds to a counter of which the calling thread is the only writer.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// All moments are in ticks of the table's clock.
impl Thread {
    /// Its kernel thread id.
    pub fn tid(&self) -> u32 {
        self.slot.tid.load(Relaxed)
    }

    /// The thread begins or ends a park. One that is lost is counted, as any other event.
    pub fn parks(&self, entry: ParkEntry) {
        if self.is_recorded() {
            self.table.push_park(self.index, entry, table::commit);
        }
    }

    /// Whether it is known to hold a GIL.
    pub fn is_holding(&self) -> bool {
        self.slot.holding_since_ticks.load(Relaxed) != 0
    }

    /// The thread asked for `gil` and did not get it at once; whether that is new, and not the wait
    /// that has begun and not ended.
    pub fn waits_for(&self, gil: &'static Gil) -> bool {
        let is_new = self.slot.waiting_since_ticks.load(Relaxed) == 0;
        if is_new {
            let now = clock::now_ticks_after_others();
            self.slot.waiting_since_ticks.store(now, Relaxed);
            self.emit(Kind::Wait, gil, now);
        }
        is_new
    }

    /// The thread no longer asks for a GIL, and did not get it.
    pub fn stopped_waiting(&self) {
        self.slot.waiting_since_ticks.store(0, Relaxed);
    }

    /// The thread asked the holder of `gil` to let go.
    pub fn asked_to_drop(&self, gil: &'static Gil, now: u64) {
        add(&self.slot.counters.drop_requests, 1);
        self.emit(Kind::DropRequest, gil, now);
    }

    /// The thread got `gil`.
    #[inline]
    pub fn acquired(&self, gil: &'static Gil, now: u64) {
        self.holds_since(gil, now);
        if ran::is_to_begin(now) && self.is_recorded() {
            keeping_errno(|| ran::begin(now, self.tick(), self.count(ran::usage())));
        }
    }

    /// The thread got `gil` a while ago, when nobody knew that it was one.
    pub fn acquired_before(&self, gil: &'static Gil, at_ticks: u64) {
        self.holds_since(gil, at_ticks);
        ran::forget();
    }

    #[inline]
    fn holds_since(&self, gil: &'static Gil, now: u64) {
        let since = self.slot.waiting_since_ticks.load(Relaxed);
        if since != 0 {
            self.slot.waiting_since_ticks.store(0, Relaxed);
            let counters = &self.slot.counters;
            let waited_ns = self.ns_since(since, now);
            add(&counters.waits, 1);
            add(&counters.waited_ns, waited_ns);
            self.slot.waited(waited_ns);
        }
        self.slot.holding_since_ticks.store(now, Relaxed);
        self.emit(Kind::Acquire, gil, now);
    }

    /// The thread let go of `gil`.
    #[inline]
    pub fn released(&self, gil: &'static Gil, now: u64, forced: bool) {
        let counters = &self.slot.counters;
        let mut since = self.slot.holding_since_ticks.load(Relaxed);
        if since == 0 && gil.is_new_in(table::generation()) {
            // The first that is seen of this GIL: the thread has had it since before the table, or
            // took it when nobody knew yet that it was one.
            let before = || self.table.header().started_ticks.load(Relaxed);
            since = gil::taken_unknown_ticks().unwrap_or_else(before);
            self.acquired_before(gil, since);
        }
        if since != 0 {
            self.slot.holding_since_ticks.store(0, Relaxed);
            let length_ns = self.ns_since(since, now);
            add(&counters.holds, 1);
            add(&counters.held_ns, length_ns);
            if length_ns >= ran::LONG_NS && self.is_recorded() {
                keeping_errno(|| self.tell_how_long_it_ran(gil, since, now));
            }
        }
        if forced {
            add(&counters.forced, 1);
            self.emit(Kind::ReleaseForced, gil, now);
        } else {
            add(&counters.voluntary, 1);
            self.emit(Kind::ReleaseVoluntary, gil, now);
        }
    }

    #[cold]
    fn tell_how_long_it_ran(&self, gil: &'static Gil, since: u64, now: u64) {
        if let Some(ran) = ran::end() {
            let kind = if ran.blocked { Kind::RanAndBlocked } else { Kind::Ran };
            let ran_ticks = self.tick().ticks(ran.cpu_ns).min(now.saturating_sub(since));
            self.emit(kind, gil, since + ran_ticks);
        }
    }

    /// Whether a recorder reads the rings.
    #[inline]
    fn is_recorded(&self) -> bool {
        self.table.header().recording.load(Relaxed) == Recording::Yes as u32
    }

    /// How long a tick is.
    #[inline]
    fn tick(&self) -> Tick {
        self.table.header().tick()
    }

    /// How many nanoseconds lie between two moments; none if the later one comes first, which
    /// happens when the counter begins anew after a suspend.
    #[inline]
    fn ns_since(&self, since: u64, now: u64) -> u64 {
        self.tick().ns(now.saturating_sub(since))
    }

    /// A lost event takes no number, so that the recorder never waits for one that cannot come.
    #[inline]
    fn emit(&self, kind: Kind, gil: &'static Gil, at_ticks: u64) {
        if !self.is_recorded() {
            return;
        }
        gil.begin_in(table::generation());
        let last = gil.seq.load(Relaxed);
        let seq = if kind.changes_holder() { last.wrapping_add(1) } else { last };
        let entry = Entry { at_ticks, kind, gil: gil.number, seq };
        if self.table.push(self.index, entry, table::commit) && kind.changes_holder() {
            gil.seq.store(seq, Relaxed);
        }
    }

    /// Notes what the kernel has counted for the calling thread, and returns it.
    fn count(&self, usage: Option<Usage>) -> Option<Usage> {
        let Usage { cpu_ns, voluntary_switches, involuntary_switches } = usage?;
        let counters = &self.slot.counters;
        counters.cpu_ns.store(cpu_ns, Relaxed);
        counters.voluntary_switches.store(voluntary_switches, Relaxed);
        counters.involuntary_switches.store(involuntary_switches, Relaxed);
        usage
    }
}
