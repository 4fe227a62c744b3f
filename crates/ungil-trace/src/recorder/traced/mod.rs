//! One traced process, seen from outside: its table, its threads, its life.

mod description;
mod life;
mod image;
mod looks;

use super::moment::Moment;
use super::now::{self, ProcessNow};
use super::order::{End, Order};
use super::parks::Parks;
use super::processors::{own as own_processors, processors as processors_of};
use super::table_file::TableFile;
use super::thread::Thread;
use super::throttling::{CpuLimits, Throttling};
use super::times::Times;
use super::used_before::UsedBefore;
use crate::clock::now_ns;
use crate::numbers::Numbers;
use crate::record::{Process, ProcessId, ProcessTotals, Record, ThreadId};
use description::describe;
use image::Image;
use life::Life;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use ungil_core::atomic::Ordering::{Acquire, Relaxed};
use ungil_core::table::{ABI, GilState, MAGIC, RING_EVENTS, Recording, Slot, SlotState, load_text};
use ungil_core::tick::{Clock, Tick};

/// A traced process.
pub struct Traced {
    /// Its id in the trace.
    pub id: ProcessId,
    /// Kernel process id; 0 if it is of another namespace, and had ended before it was found.
    pub pid: u32,
    numbers: Numbers,
    /// The table file.
    pub path: PathBuf,
    file: TableFile,
    /// Which clock the times in the table are of.
    clock: Clock,
    life: Life,
    image: Image,
    started_ns: u64,
    /// By slot.
    threads: Vec<Option<Thread>>,
    order: Order,
    parks: Parks,
    /// Whether was told how its GIL was switched on.
    is_on_told: bool,
    /// When the latest event happened that was given out, or the latest thread ended.
    latest_ns: u64,
    used_before: UsedBefore,
    /// Slot whose kernel counters are asked for next.
    next_outside: usize,
    limits: Option<CpuLimits>,
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
        let file = TableFile::open(&path).ok()?;
        let header = file.table().header();
        if header.magic.load(Acquire) != MAGIC || header.abi.load(Relaxed) != ABI {
            return None;
        }
        let clock = Clock::from_number(header.clock.load(Relaxed)).filter(|it| times.know(*it))?;
        let numbers = Numbers::of(header);
        let pid = numbers.pid();
        let at_ns = times.ns(clock, header.started_ticks.load(Relaxed));
        let used_before = UsedBefore::of(pid, now_ns().saturating_sub(at_ns));
        let life = Life::of(pid);
        let limits = CpuLimits::of(pid);
        let processors = processors_of(pid, limits.as_ref());
        // One that has ended is in no control group any more, even if nobody has waited for it yet.
        let lives = !life.is_over();
        let limits = limits.filter(|_| lives);
        let processors = processors.filter(|_| lives).or_else(own_processors);
        let process =
            Process { processors, ..describe(header, id, &numbers, at_ns, used_before.is_known()) };
        let traced = Self {
            id,
            pid,
            numbers,
            started_ns: at_ns,
            path,
            file,
            clock,
            life,
            image: Image::default(),
            threads: Vec::new(),
            order: Order::default(),
            parks: Parks::default(),
            is_on_told: false,
            latest_ns: 0,
            used_before,
            next_outside: 0,
            limits,
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
        let table = self.file.table();
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
                let (numbers, before) = (&mut self.numbers, &self.used_before);
                let thread =
                    Thread::introduce(self.id, numbers, slot, at_ns, before, next, &mut give);
                self.parks.introduce(thread.id, thread.own_tid);
                self.threads[index] = Some(thread);
            }
            let Some(thread) = &mut self.threads[index] else { continue };
            let (id, gil, order) = (thread.id, &mut thread.gil, &mut self.order);
            let parks = &mut self.parks;
            let count = table.drain(
                index,
                |entry| {
                    *gil = entry.gil;
                    order.add(id, entry);
                },
                |entry| parks.add(id, entry),
            );
            thread.was_active = count > 0;
            round.events += count;
            round.fullest = round.fullest.max(count as f64 / RING_EVENTS as f64);
            if state == Some(SlotState::Ended) {
                if !thread.named {
                    thread.name_by_kernel(&self.numbers, table, slot, &mut give);
                }
                order.end(id, slot.ended_ticks.load(Relaxed), thread.totals(slot));
                parks.dismiss(id, thread.own_tid);
                self.threads[index] = None;
                slot.free();
            }
        }
        let process = self.id;
        self.parks.tell_stacks(self.pid, table, |number, frames| {
            give(Record::ParkStack { process, number, frames });
        });
        let on_ticks = table.header().gil_on_ticks.load(Relaxed);
        let is_on = table.header().gil_state.load(Acquire) == GilState::SwitchedOn as u32;
        if is_on && !std::mem::replace(&mut self.is_on_told, true) {
            let (at_ns, library) = (times.ns(clock, on_ticks), &table.header().gil_on_library);
            let number = u16::try_from(table.header().gil_on_stack.load(Relaxed)).unwrap_or(0);
            let (library, frames) =
                (load_text(library), self.parks.frames(self.pid, table, number));
            give(Record::GilSwitchedOn { process, at_ns, library, frames });
        }
        let latest_ns = &mut self.latest_ns;
        self.parks.end_round(
            table.header(),
            |ticks| times.ns(clock, ticks),
            |thread, park| {
                *latest_ns = park.until_ns.max(*latest_ns);
                give(Record::Parked { thread, park });
            },
        );
        self.order.end_round(|thread, entry| {
            let event = entry.at(times.ns(clock, entry.at_ticks));
            *latest_ns = event.at_ns.max(*latest_ns);
            give(Record::Gil { process, thread, event });
        });
        self.order.give_ends(|end| {
            let at_ns = times.ns(clock, end.at_ticks);
            *latest_ns = at_ns.max(*latest_ns);
            give(ended(end, at_ns));
        });
        round
    }

    /// Whether the process is gone, or another program has taken its place.
    pub fn is_gone(&self) -> bool {
        // One that has left the recording has no table either, and lives on.
        let said_end = if self.has_left() { 0 } else { self.said_end() };
        self.life.is_over() || self.image.is_replaced(self.pid, &self.path, said_end)
    }

    /// Of two images of one process the first one is over. They may be found in any order. Where nothing
    /// is known of PID namespaces, processes of two may have the same id; the first one of each has no
    /// parent there.
    pub fn meets(&mut self, other: &mut Self) {
        let parent = |it: &Self| it.file.table().header().parent_pid.load(Relaxed);
        let is_same = self.pid == other.pid
            && self.pid != 0
            && parent(self) == parent(other)
            && (parent(self) != 0 || !self.numbers.are_ours());
        if !is_same {
            return;
        }
        let (first, next) =
            if self.started_ns <= other.started_ns { (self, other) } else { (other, self) };
        first.image.is_followed(next.started_ns);
    }

    /// When the process said that it ends, or is about to execute another program; 0 if it has not.
    fn said_end(&self) -> u64 {
        self.file.table().header().ended_ticks.load(Acquire)
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tT"))
    }

    /// Asks the process to leave the recording, and the hook, if nothing else needs it.
    pub fn ask_to_leave(&self) {
        self.file.table().header().recording.store(Recording::ToBeLeft as u32, Relaxed);
    }

    /// Whether there was no memory for some of its events.
    pub fn lacks_memory(&self) -> bool {
        self.file.table().header().lacks_memory.load(Relaxed) != 0
    }

    /// Whether it has left.
    pub fn has_left(&self) -> bool {
        self.file.table().header().recording.load(Acquire) == Recording::No as u32
    }

    /// Reads the last events and ends every thread, and the process, now, or earlier if the
    /// process said so, but not before its last event or the end of another thread: what that one
    /// waited for was held until then. The hook only counts from then on.
    pub fn finish(mut self, times: &mut Times, next: &mut ThreadId, mut give: impl FnMut(Record)) {
        let recording = &self.file.table().header().recording;
        // One that was asked to leave, and has had no occasion yet, still does.
        let (yes, no) = (Recording::Yes as u32, Recording::No as u32);
        let _ = recording.compare_exchange(yes, no, Relaxed, Relaxed);
        self.round(times, next, &mut give);
        self.round(times, next, &mut give);
        let clock = self.clock;
        let (process, mut latest_ns) = (self.id, self.latest_ns);
        self.order.finish(|thread, entry| {
            let event = entry.at(times.ns(clock, entry.at_ticks));
            latest_ns = event.at_ns.max(latest_ns);
            give(Record::Gil { process, thread, event });
        });
        let at_ns = match self.said_end() {
            0 => self.image.followed_ns().unwrap_or_else(now_ns),
            // Threads that are daemons go on until the process is gone.
            said => times.ns(clock, said).min(now_ns()),
        };
        for thread in self.threads.iter_mut().flatten() {
            let id = thread.id;
            for count in thread.follower.last_of_a_hold() {
                give(Record::KernelCount { thread: id, count });
            }
        }
        self.last_words(at_ns.max(latest_ns), times, give);
        let _ = fs::remove_file(&self.path);
    }

    /// Tells how threads and process end, or would if the recording ended at `at_ns`; the process no
    /// earlier than a thread of which the end is known.
    pub fn last_words(&self, at_ns: u64, times: &mut Times, mut give: impl FnMut(Record)) {
        let (process, clock, table) = (self.id, self.clock, self.file.table());
        let header = table.header();
        let ends = self.order.ends().iter().map(|end| (*end, times.ns(clock, end.at_ticks)));
        let ends: Vec<_> = ends.collect();
        let at_ns = ends.iter().fold(at_ns, |latest_ns, (_, ended_ns)| latest_ns.max(*ended_ns));
        self.parks.running(
            header,
            at_ns,
            |ticks| times.ns(clock, ticks),
            |thread, park| {
                give(Record::Parked { thread, park });
            },
        );
        for (end, ended_ns) in ends {
            give(ended(end, ended_ns));
        }
        for (thread, slot) in self.threads.iter().zip(table.slots()) {
            if let Some(thread) = thread {
                let totals = thread.totals(slot);
                give(Record::ThreadEnded { thread: thread.id, at_ns, totals });
            }
        }
        if let Some(done) = self.limits.as_ref().and_then(CpuLimits::since) {
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
    }

    /// Where `_PyRuntime` of a free-threaded build is in its memory.
    pub fn runtime(&self) -> Option<u64> {
        Some(self.file.table().header().runtime.load(Relaxed)).filter(|&runtime| runtime != 0)
    }

    /// Where its GILs are in its memory.
    pub fn gils(&self) -> Vec<u64> {
        let gils = self.file.table().header().gils.iter().map(|gil| gil.load(Relaxed));
        gils.filter(|&gil| gil != 0).collect()
    }

    /// Tells the process how long a tick of the counter is, if it counts by it.
    pub fn tell_tick(&self, tick: Tick) {
        if self.clock == Clock::Counter {
            self.file.table().header().set_tick(tick);
        }
    }

    /// The threads that have a slot.
    pub fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.threads.iter_mut().flatten()
    }

    /// Those of them that lived from `begun_ns` until `at_ns`.
    pub fn lived(
        &mut self,
        times: &mut Times,
        begun_ns: u64,
        at_ns: u64,
    ) -> impl Iterator<Item = &mut Thread> {
        let (clock, slots) = (self.clock, self.file.table().slots());
        self.threads.iter_mut().zip(slots).filter_map(move |(thread, slot)| {
            // Only a round frees a slot: this one is still that thread's.
            let has_ended = slot.state() == Some(SlotState::Ended);
            let lived = times.ns(clock, slot.started_ticks.load(Relaxed)) <= begun_ns
                && (!has_ended || times.ns(clock, slot.ended_ticks.load(Relaxed)) >= at_ns);
            thread.as_mut().filter(|_| lived)
        })
    }

    /// The number of the GIL whose condition variable lies in this range of its memory.
    pub fn gil_in(&self, range: Range<u64>) -> Option<u8> {
        let gils = self.file.table().header().gils.iter();
        let place = gils.map(|gil| gil.load(Relaxed)).position(|gil| range.contains(&gil));
        place.and_then(|place| u8::try_from(place).ok())
    }

    /// Who holds and who waits at this moment, for somebody who looks.
    pub fn process_now(&self, times: &mut Times) -> ProcessNow {
        let (threads, clock) = (&self.threads, self.clock);
        let known = |index: usize, slot: &Slot| {
            let own = || (slot.tid.load(Relaxed), 0);
            let thread = threads.get(index).and_then(Option::as_ref);
            thread.map_or_else(own, |it| (it.told_tid(), it.gil))
        };
        let pid = self.numbers.told_pid();
        now::now(self.file.table(), pid, known, |ticks| times.ns(clock, ticks))
    }

    /// Who holds and who waits at this moment.
    pub fn now(&mut self, times: &mut Times) -> Moment {
        Moment::of(self.file.table(), &mut self.threads, times, self.clock)
    }
}

const fn ended(End { thread, totals, .. }: End, at_ns: u64) -> Record {
    Record::ThreadEnded { thread, at_ns, totals }
}
