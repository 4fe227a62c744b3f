//! One traced process, seen from outside: its table, its threads, its life.

use super::limit::{Limits, Throttling};
use super::order::Order;
use super::scheduled::{Follower, Scheduled, switches};
use super::times::Times;
use crate::clock::now_ns;
use crate::record::{Process, ProcessId, ProcessTotals, Record, ThreadId, ThreadTotals};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use ungil_core::atomic::Ordering::{Acquire, Relaxed};
use ungil_core::table::{
    ABI, Header, MAGIC, RING_EVENTS, Slot, SlotState, Status, TABLE_BYTES, Table, load_bytes,
    load_text,
};
use ungil_core::tick::{Clock, Tick};

/// A table file, mapped.
struct Mapping {
    start: *mut libc::c_void,
}

// SAFETY: the mapping is owned, and everything in it is atomics.
unsafe impl Send for Mapping {}

impl Mapping {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != TABLE_BYTES as u64 {
            return Err(io::Error::other("not a table"));
        }
        // SAFETY: a new shared mapping of a file of that length, at the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                TABLE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start }) }
    }

    fn table(&self) -> Table<'_> {
        // SAFETY: TABLE_BYTES are mapped for as long as `self` lives; the file began as zeroes.
        unsafe { Table::at(self.start.cast()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, of that length; no view outlives `self`.
        unsafe { libc::munmap(self.start, TABLE_BYTES) };
    }
}

/// A thread that has a slot.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its id in the trace.
    pub id: ThreadId,
    /// Kernel thread id.
    pub tid: u32,
    /// `threading.get_ident()`.
    pub ident: u64,
    /// Whether Python's own name is known.
    pub named: bool,
    /// The GIL of its last event.
    gil: u8,
    /// When the hold began that was looked at last, by the table's clock and in ns.
    hold: (u64, u64),
    generation: u32,
    /// CPU time and context switches as the kernel told from outside.
    outside: [u64; 3],
    follower: Follower,
}

impl Thread {
    /// When the hold began that goes on, 0 if there is none. It is the same at every look, which what
    /// the calibration says of a moment long past need not be.
    fn holding_since_ns(&mut self, slot: &Slot, times: &mut Times, clock: Clock) -> u64 {
        let ticks = slot.holding_since_ticks.load(Relaxed);
        if self.hold.0 != ticks {
            self.hold = (ticks, if ticks == 0 { 0 } else { times.ns(clock, ticks) });
        }
        self.hold.1
    }
}

/// A traced process.
pub struct Traced {
    /// Its id in the trace.
    pub id: ProcessId,
    /// Kernel process id.
    pub pid: u32,
    /// The table file.
    pub path: PathBuf,
    mapping: Mapping,
    /// Which clock the times in the table are of.
    clock: Clock,
    /// Readable once the process is gone; `None` if it already was.
    life: Option<OwnedFd>,
    /// By slot.
    threads: Vec<Option<Thread>>,
    order: Order,
    /// When the latest event happened that was given out.
    latest_ns: u64,
    /// Threads that have ended, and whose last events may still wait for others.
    ended: Vec<(ThreadId, u64, ThreadTotals)>,
    /// Slot whose kernel counters are asked for next.
    next_outside: usize,
    limits: Option<Limits>,
}

/// Who holds and who waits at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Threads that have a slot.
    pub threads: usize,
    /// The holds that go on, one a GIL.
    pub holds: Vec<Running>,
}

/// A hold that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// The holder.
    pub thread: ThreadId,
    /// Of which GIL.
    pub gil: u8,
    /// When it began.
    pub since_ns: u64,
    /// Whether any thread waits for that GIL.
    pub is_waited_for: bool,
}

/// What one round of reading found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Events read.
    pub events: u64,
    /// Of the fullest ring, how full it was, from 0 to 1.
    pub fullest: f64,
}

impl Traced {
    /// The process whose table is at `path`; `None` while the table is not ready, or foreign.
    pub fn open(path: PathBuf, id: ProcessId, times: &mut Times) -> Option<(Self, Process)> {
        let mapping = Mapping::open(&path).ok()?;
        let header = mapping.table().header();
        if header.magic.load(Acquire) != MAGIC || header.abi.load(Relaxed) != ABI {
            return None;
        }
        let clock = Clock::from_number(header.clock.load(Relaxed)).filter(|it| times.know(*it))?;
        let pid = header.pid.load(Relaxed);
        let at_ns = times.ns(clock, header.started_ticks.load(Relaxed));
        let process = describe(header, id, pid, at_ns);
        let traced = Self {
            id,
            pid,
            path,
            mapping,
            clock,
            life: pidfd(pid),
            threads: Vec::new(),
            order: Order::default(),
            latest_ns: 0,
            ended: Vec::new(),
            next_outside: 0,
            limits: Limits::of(pid),
        };
        Some((traced, process))
    }

    /// Reads every ring once and gives out the records that are complete.
    pub fn round(
        &mut self,
        times: &mut Times,
        next: &mut ThreadId,
        mut give: impl FnMut(Record),
    ) -> Round {
        let mut round = Round::default();
        let clock = self.clock;
        let table = self.mapping.table();
        for (index, slot) in table.used_slots().iter().enumerate() {
            // An end seen before reading means that this reading is complete.
            let state = slot.state();
            if !matches!(state, Some(SlotState::Live | SlotState::Ended)) {
                continue;
            }
            if self.threads.len() <= index {
                self.threads.resize(index + 1, None);
            }
            let generation = slot.generation.load(Relaxed);
            if self.threads[index].as_ref().is_none_or(|known| known.generation != generation) {
                let at_ns = times.ns(clock, slot.started_ticks.load(Relaxed));
                let thread = introduce(self.id, self.pid, slot, at_ns, next, &mut give);
                self.threads[index] = Some(thread);
            }
            let Some(thread) = &mut self.threads[index] else { continue };
            let (id, gil, order) = (thread.id, &mut thread.gil, &mut self.order);
            let count = table.drain(index, |entry| {
                *gil = entry.gil;
                order.add(id, entry);
            });
            round.events += count;
            round.fullest = round.fullest.max(count as f64 / RING_EVENTS as f64);
            if state == Some(SlotState::Ended) {
                if !thread.named {
                    name_by_kernel(self.pid, table, thread, slot, &mut give);
                }
                let at_ns = times.ns(clock, slot.ended_ticks.load(Relaxed));
                self.ended.push((id, at_ns, totals(slot, thread.outside)));
                self.threads[index] = None;
                slot.free();
            }
        }
        let (process, latest_ns) = (self.id, &mut self.latest_ns);
        self.order.end_round(|thread, entry| {
            let event = entry.at(times.ns(clock, entry.at_ticks));
            *latest_ns = event.at_ns.max(*latest_ns);
            give(Record::Gil { process, thread, event });
        });
        let order = &self.order;
        for (thread, at_ns, totals) in self.ended.extract_if(.., |ended| !order.has(ended.0)) {
            give(Record::ThreadEnded { thread, at_ns, totals });
        }
        round
    }

    /// Whether the process is gone.
    pub fn is_gone(&self) -> bool {
        let Some(life) = &self.life else { return true };
        let mut poll = libc::pollfd { fd: life.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd; a timeout of 0 does not block.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    /// Reads the last events and ends every thread, and the process, now, or earlier if the
    /// process said so, but after the last event. Its hook only counts from then on.
    pub fn finish(mut self, times: &mut Times, next: &mut ThreadId, mut give: impl FnMut(Record)) {
        self.mapping.table().header().recording.store(0, Relaxed);
        self.round(times, next, &mut give);
        self.round(times, next, &mut give);
        let clock = self.clock;
        let (process, mut latest_ns) = (self.id, self.latest_ns);
        self.order.finish(|thread, entry| {
            let event = entry.at(times.ns(clock, entry.at_ticks));
            latest_ns = event.at_ns.max(latest_ns);
            give(Record::Gil { process, thread, event });
        });
        let table = self.mapping.table();
        let header = table.header();
        let at_ns = match header.ended_ticks.load(Acquire) {
            0 => now_ns(),
            // Threads that are daemons go on until the process is gone.
            said => times.ns(clock, said).min(now_ns()),
        };
        let at_ns = at_ns.max(latest_ns);
        for (thread, at_ns, totals) in self.ended.drain(..) {
            give(Record::ThreadEnded { thread, at_ns, totals });
        }
        for (thread, slot) in self.threads.iter_mut().zip(table.slots()) {
            if let Some(thread) = thread {
                for answer in thread.follower.last_of_a_hold() {
                    give(answer.record(thread.id));
                }
                let totals = totals(slot, thread.outside);
                give(Record::ThreadEnded { thread: thread.id, at_ns, totals });
            }
        }
        if let Some(done) = self.limits.as_ref().and_then(Limits::since) {
            let Throttling { times, stopped_ns } = done;
            give(Record::Throttled { process, at_ns, times, stopped_ns });
        }
        let totals = ProcessTotals {
            switch_interval_ns: header.switch_interval_ns.load(Relaxed),
            policy: header.policy.load(Relaxed).into(),
            unrecorded_threads: header.unrecorded_threads.load(Relaxed),
            gil_state: header.gil_state.load(Acquire).into(),
            gil_on_ns: match header.gil_on_ticks.load(Relaxed) {
                0 => 0,
                on => times.ns(clock, on),
            },
            clock_error_ns: times.error_ns(clock),
        };
        give(Record::ProcessEnded { process, at_ns, totals });
        let _ = fs::remove_file(&self.path);
    }

    /// Asks the kernel for the CPU time and context switches of at most `count` threads, in turn:
    /// a thread that holds the GIL for long does not tell its own.
    pub fn sample_outside(&mut self, count: usize) {
        let slots = self.threads.len();
        for _ in 0..count.min(slots) {
            let index = self.next_outside % slots;
            self.next_outside = index + 1;
            if let Some(thread) = &mut self.threads[index] {
                let scheduled = Scheduled::of(self.pid, thread.tid);
                if let Some(answer) = scheduled {
                    thread.follower.keep(answer);
                }
                let [voluntary, involuntary] = switches(self.pid, thread.tid);
                let now = [scheduled.map_or(0, |answer| answer.ran_ns), voluntary, involuntary];
                for (known, now) in thread.outside.iter_mut().zip(now) {
                    *known = now.max(*known);
                }
            }
        }
    }

    /// Asks the kernel what it does with the threads that have held a GIL for `after_ns` or longer.
    pub fn follow_holders(
        &mut self,
        times: &mut Times,
        now: u64,
        after_ns: u64,
        mut give: impl FnMut(Record),
    ) {
        let (pid, slots) = (self.pid, self.mapping.table().slots());
        for (thread, slot) in self.threads.iter_mut().zip(slots) {
            let Some(thread) = thread else { continue };
            let since_ns = thread.holding_since_ns(slot, times, self.clock);
            let Thread { id, tid, follower, .. } = thread;
            let ask = || Scheduled::of(pid, *tid);
            follower.look(since_ns, now, after_ns, ask, |answer| give(answer.record(*id)));
        }
    }

    /// Tells the process how long a tick of the counter is, if it counts by it.
    pub fn tell_tick(&self, tick: Tick) {
        if self.clock == Clock::Counter {
            self.mapping.table().header().set_tick(tick);
        }
    }

    /// The threads that have a slot.
    pub fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.threads.iter_mut().flatten()
    }

    /// The number of the GIL whose condition variable lies in this range of its memory.
    pub fn gil_in(&self, range: Range<u64>) -> Option<u8> {
        let gils = self.mapping.table().header().gils.iter();
        let place = gils.map(|gil| gil.load(Relaxed)).position(|gil| range.contains(&gil));
        place.and_then(|place| u8::try_from(place).ok())
    }

    /// What the slots say about this moment. Which GIL a thread holds or waits for is known from
    /// its events, so a hold that has just begun may be shown at the GIL of the one before.
    pub fn now(&mut self, times: &mut Times) -> Moment {
        let mut moment = Moment::default();
        let mut waited_for = Vec::new();
        for (index, slot) in self.mapping.table().used_slots().iter().enumerate() {
            if slot.state() != Some(SlotState::Live) {
                continue;
            }
            moment.threads += 1;
            let Some(Some(thread)) = self.threads.get_mut(index) else { continue };
            let gil = thread.gil;
            if slot.waiting_since_ticks.load(Relaxed) != 0 && !waited_for.contains(&gil) {
                waited_for.push(gil);
            }
            let since_ns = thread.holding_since_ns(slot, times, self.clock);
            if since_ns != 0 {
                let thread = thread.id;
                moment.add(Running { thread, gil, since_ns, is_waited_for: false });
            }
        }
        for hold in &mut moment.holds {
            hold.is_waited_for = waited_for.contains(&hold.gil);
        }
        moment
    }
}

impl Moment {
    /// Adds a hold, unless an older one of the same GIL is there: the slots are read one after the
    /// other, while the GIL changes hands.
    fn add(&mut self, hold: Running) {
        match self.holds.iter_mut().find(|known| known.gil == hold.gil) {
            Some(known) if known.since_ns <= hold.since_ns => {}
            Some(known) => *known = hold,
            None => self.holds.push(hold),
        }
    }
}

/// The first record of a thread.
fn introduce(
    process: ProcessId,
    pid: u32,
    slot: &Slot,
    at_ns: u64,
    next: &mut ThreadId,
    give: &mut impl FnMut(Record),
) -> Thread {
    let id = *next;
    next.0 += 1;
    let tid = slot.tid.load(Relaxed);
    let is_main = tid == pid;
    let name = if is_main { "MainThread".to_owned() } else { format!("thread-{tid}") };
    give(Record::ThreadStarted { thread: id, process, tid, at_ns, name });
    Thread {
        id,
        tid,
        ident: slot.ident.load(Relaxed),
        named: is_main,
        gil: 0,
        hold: (0, 0),
        generation: slot.generation.load(Relaxed),
        outside: [0; 3],
        follower: Follower::default(),
    }
}

/// A thread that ended before Python's name for it could be read keeps the kernel's, if it has
/// one of its own (Python 3.14 sets it, and so do many native libraries).
fn name_by_kernel(
    pid: u32,
    table: Table,
    thread: &Thread,
    slot: &Slot,
    give: &mut impl FnMut(Record),
) {
    let name = load_text(&slot.comm);
    // The main thread's name as it was, because the process may be gone, and as it is, because it
    // may have been changed.
    let mains = table.used_slots().iter().filter(|main| main.tid.load(Relaxed) == pid);
    let before = mains.map(|main| load_text(&main.comm));
    let now = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut inherited = before.chain([now.trim_end().to_owned()]);
    if !name.is_empty() && inherited.all(|inherited| inherited != name) {
        give(Record::ThreadNamed { thread: thread.id, name });
    }
}

fn describe(header: &Header, process: ProcessId, pid: u32, at_ns: u64) -> Process {
    // Whole while the process lives, its beginning for ever.
    let mut command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if command.is_empty() {
        command = load_bytes(&header.command);
        command.truncate(header.command_bytes.load(Relaxed) as usize);
    }
    let argv = command
        .strip_suffix(b"\0")
        .unwrap_or(&command)
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .filter(|_| !command.is_empty())
        .collect();
    let version = load_text(&header.python);
    let not_recorded = match Status::from_number(header.status.load(Relaxed)) {
        // Whether a free-threaded build has a GIL is known in the end.
        Some(Status::Hooked | Status::FreeThreaded) => None,
        Some(Status::NotSeen) => Some(
            "a Python was loaded, but the hook saw nothing of its start: it was not started, or \
             it was loaded in a way that hides it (RTLD_DEEPBIND)",
        ),
        Some(Status::PyPy) => Some("PyPy's GIL is not made of calls to libc, so it cannot be seen"),
        Some(Status::UnknownInterpreter) | None => Some(
            "this Python does not make the calls to libc that a GIL is known by; \
             CPython 2.7 and 3.7 to 3.14 do",
        ),
    };
    Process {
        process,
        pid,
        parent_pid: header.parent_pid.load(Relaxed),
        at_ns,
        argv,
        python: version.split_whitespace().next().unwrap_or_default().to_owned(),
        not_recorded: not_recorded.map(str::to_owned),
    }
}

/// A descriptor that becomes readable when the process ends.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes a process id and flags.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a new descriptor, owned by nobody else.
    i32::try_from(fd).ok().filter(|&fd| fd >= 0).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The totals of a thread as it counted them itself; a hold or wait that still runs is not in
/// them, and is known by its events.
fn totals(slot: &Slot, outside: [u64; 3]) -> ThreadTotals {
    let [
        waits,
        waited_ns,
        holds,
        held_ns,
        voluntary,
        forced,
        drop_requests,
        cpu_ns,
        voluntary_switches,
        involuntary_switches,
    ] = slot.counters.fields().map(|field| field.load(Relaxed));
    ThreadTotals {
        waits,
        waited_ns,
        holds,
        held_ns,
        voluntary,
        forced,
        drop_requests,
        cpu_ns: cpu_ns.max(outside[0]),
        voluntary_switches: voluntary_switches.max(outside[1]),
        involuntary_switches: involuntary_switches.max(outside[2]),
        lost_events: slot.lost.load(Relaxed),
    }
}
