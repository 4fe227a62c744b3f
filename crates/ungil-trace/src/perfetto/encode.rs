//! What each record becomes in a trace.
//!
//! GIL events of a thread have a sequence of their own (see `slices`). All else is on one common
//! sequence and spells out its names.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::io;

use ungil_core::Event;

use super::frame;
use super::native_frame;
use super::packet::{
    annotate_interned, annotate_text, annotate_texts, annotate_uint, first_packet, follow_sequence,
    put_packet,
};
use super::schema::{
    COMMON_SEQUENCE, CPU_LIMIT, CULPRIT, CULPRIT_TID, GIL_SWITCHED_ON, NATIVE, PARK_STACK, PARKED,
    PROCESSORS, SCHEMA, STACK, Track, WAKER_STACK, annotation, clock, free_threaded_totals, packet,
    process_totals, sequence_of, thread_totals, track, track_event,
};
use super::slices::ThreadTrack;
use super::text_bytes::text_bytes;
use super::wire::Message;
use crate::dense::Dense;
use crate::record::{Doing, KernelCount, Park, Process, ProcessId, Processors, Record, ThreadId};

/// The most text that one record may bring. The largest thing that occurs is a command line, which
/// Linux limits to 6 MiB.
pub const TEXT_BYTES: usize = 8 << 20;

/// How many ended threads are still known as culprits: a wait may end, and its end be told, a
/// little after the thread that caused it.
const ENDED: usize = 1024;

/// Encodes records as packets, one after the other, into a buffer.
pub struct Encoder {
    bytes: Vec<u8>,
    /// Kernel process ids.
    processes: HashMap<ProcessId, u32>,
    threads: Dense<Thread>,
    /// The encoded annotations of a wait whose culprit is the thread with this id.
    as_culprit: Dense<Vec<u8>>,
    /// The threads that ended last, oldest first.
    ended: VecDeque<ThreadId>,
    /// The latest moment that was written.
    latest_ns: u64,
}

struct Thread {
    process: ProcessId,
    tid: u32,
    slices: ThreadTrack,
}

impl Encoder {
    /// An encoder whose buffer holds the beginning of a trace. `clocks` are clock ids with what
    /// the clocks showed at the same moment.
    pub fn new(clocks: &[(u64, u64)]) -> Self {
        let mut bytes = first_packet();
        put_packet(&mut bytes, |packet| {
            packet.uint(packet::SEQUENCE, u64::from(COMMON_SEQUENCE));
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for &(id, now_ns) in clocks {
                    snapshot.message(clock::CLOCKS, |clock| {
                        clock.uint(clock::ID, id);
                        clock.uint(clock::TIMESTAMP, now_ns);
                    });
                }
                // Times in the UI and in SQL are then the ones that ungil itself prints.
                snapshot.uint(clock::PRIMARY, clock::MONOTONIC);
            });
        });
        let now_ns =
            clocks.iter().find(|clock| clock.0 == clock::MONOTONIC).map_or(0, |clock| clock.1);
        let mut encoder = Self {
            bytes,
            processes: HashMap::new(),
            threads: Dense::new(),
            as_culprit: Dense::new(),
            ended: VecDeque::new(),
            latest_ns: now_ns,
        };
        encoder.instant(Track::Root, now_ns, "ungil", |event| {
            annotate_uint(event, "schema", SCHEMA);
            annotate_text(event, "version", env!("CARGO_PKG_VERSION"));
        });
        encoder
    }

    /// The packets since somebody took the ones before.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, for who takes them.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Encodes `record`; `culprit` as for [`super::Writer::write`].
    ///
    /// An error ([`io::ErrorKind::InvalidInput`]) leaves the encoder as it was.
    pub fn record(&mut self, record: &Record, culprit: Option<ThreadId>) -> io::Result<()> {
        let text_bytes = text_bytes(record);
        if text_bytes > TEXT_BYTES {
            return Err(misuse(format!("a record has {text_bytes} bytes of text")));
        }
        match record {
            Record::Gil { process, thread, event } => {
                self.gil(*process, *thread, *event, culprit)?;
            }
            Record::ProcessStarted(process) => self.process_started(process)?,
            &Record::ProcessEnded { process, at_ns, mut totals } => {
                self.pid(process)?;
                self.instant(Track::Process(process), at_ns, "process totals", |event| {
                    for (name, value) in process_totals(&mut totals) {
                        annotate_uint(event, name, *value);
                    }
                    for (name, value) in free_threaded_totals(&mut totals) {
                        if *value != 0 {
                            annotate_uint(event, name, *value);
                        }
                    }
                });
            }
            Record::ThreadStarted { thread, process, tid, at_ns, name } => {
                self.thread_started(*thread, *process, *tid, *at_ns, name)?;
            }
            Record::ThreadNamed { thread, name } => self.thread_named(*thread, name)?,
            &Record::ThreadEnded { thread, at_ns, mut totals } => {
                known(&mut self.threads, thread)?.slices.close(&mut self.bytes, at_ns);
                self.instant(Track::Thread(thread), at_ns, "thread totals", |event| {
                    for (name, value) in thread_totals(&mut totals) {
                        annotate_uint(event, name, *value);
                    }
                });
                self.forget_later(thread);
            }
            Record::Stack { thread, at_ns, frames, native } => {
                known(&mut self.threads, *thread)?;
                self.instant(Track::Thread(*thread), *at_ns, "stack", |event| {
                    annotate_texts(event, "stack", frames.iter().map(frame::to_text));
                    if let Some(native) = native {
                        annotate_texts(event, NATIVE, native.iter().map(native_frame::to_text));
                    }
                });
            }
            &Record::Stopped { thread, at_ns, stood_ns } => {
                known(&mut self.threads, thread)?;
                self.instant(Track::Thread(thread), at_ns, "stopped", |event| {
                    annotate_uint(event, "stood_ns", stood_ns);
                });
            }
            Record::Parked { thread, park } => self.parked(*thread, park)?,
            Record::ParkStack { process, .. } | Record::GilSwitchedOn { process, .. } => {
                self.pid(*process)?;
                self.free_threaded(record);
            }
            &Record::KernelCount { thread, count } => {
                known(&mut self.threads, thread)?;
                let KernelCount { at_ns, ran_ns, delayed_ns, runnable } = count;
                self.instant(Track::Thread(thread), at_ns, "scheduled", |event| {
                    annotate_uint(event, "ran_ns", ran_ns);
                    annotate_uint(event, "delayed_ns", delayed_ns);
                    annotate_uint(event, "runnable", runnable.into());
                });
            }
            &Record::Throttled { process, at_ns, times, stopped_ns } => {
                self.pid(process)?;
                self.instant(Track::Process(process), at_ns, "throttled", |event| {
                    annotate_uint(event, "times", times);
                    annotate_uint(event, "stopped_ns", stopped_ns);
                });
            }
            Record::NoStack { thread, at_ns, why } => {
                known(&mut self.threads, *thread)?;
                self.instant(Track::Thread(*thread), *at_ns, "no stack", |event| {
                    annotate_text(event, "why", why);
                });
            }
            Record::Look { thread, at_ns, doing, frames } => {
                known(&mut self.threads, *thread)?;
                self.instant(Track::Thread(*thread), *at_ns, "look", |event| {
                    annotate_doing(event, doing);
                    annotate_texts(event, "stack", frames.iter().map(frame::to_text));
                });
            }
            Record::Libraries { process, at_ns, files } => {
                self.pid(*process)?;
                self.instant(Track::Process(*process), *at_ns, "libraries", |event| {
                    annotate_texts(event, "files", files.iter());
                });
            }
            &Record::Snapshot { from_ns } => {
                self.instant(Track::Root, from_ns, "snapshot", |_| ());
            }
            Record::Note { text: note } => {
                self.instant(Track::Root, self.latest_ns, "note", |event| {
                    annotate_text(event, "text", note);
                });
            }
        }
        Ok(())
    }

    /// Encodes the end of the trace, at the latest moment seen.
    pub fn end(&mut self) {
        for thread in self.threads.iter_mut() {
            thread.slices.close(&mut self.bytes, self.latest_ns);
        }
        self.instant(Track::Root, self.latest_ns, "end", |_| ());
    }

    fn gil(
        &mut self,
        process: ProcessId,
        thread: ThreadId,
        event: Event,
        culprit: Option<ThreadId>,
    ) -> io::Result<()> {
        let state = known(&mut self.threads, thread)?;
        if state.process != process {
            return Err(misuse(format!(
                "{thread:?} is of {:?}, not of {process:?}",
                state.process
            )));
        }
        let as_culprit = culprit.and_then(|culprit| self.as_culprit.get(culprit.0));
        let as_culprit = as_culprit.map_or(&[][..], Vec::as_slice);
        self.latest_ns = self.latest_ns.max(event.at_ns);
        state.slices.event(&mut self.bytes, event, as_culprit);
        Ok(())
    }

    /// What only a process with a free-threaded interpreter has, on its track.
    fn free_threaded(&mut self, record: &Record) {
        match record {
            Record::ParkStack { process, number, frames } => {
                self.instant(Track::Process(*process), self.latest_ns, PARK_STACK, |event| {
                    annotate_uint(event, "number", (*number).into());
                    annotate_texts(event, "stack", frames.iter().map(frame::to_text));
                });
            }
            Record::GilSwitchedOn { process, at_ns, library, frames } => {
                self.instant(Track::Process(*process), *at_ns, GIL_SWITCHED_ON, |event| {
                    annotate_text(event, "library", library);
                    annotate_texts(event, "stack", frames.iter().map(frame::to_text));
                });
            }
            _ => {}
        }
    }

    /// A slice, all of which is told at its end.
    fn parked(&mut self, thread: ThreadId, park: &Park) -> io::Result<()> {
        known(&mut self.threads, thread)?;
        let waker_tid = park.waker.and_then(|waker| Some(self.threads.get(waker.0)?.tid));
        let track = Track::Thread(thread);
        self.slice(track, park.since_ns, track_event::SLICE_BEGIN, PARKED, |_| ());
        self.slice(track, park.until_ns, track_event::SLICE_END, PARKED, |event| {
            annotate_uint(event, "since_ns", park.since_ns);
            annotate_text(event, "cause", park.cause.name());
            if !park.of.is_empty() {
                annotate_text(event, "of", &park.of);
            }
            annotate_uint(event, "lock", park.lock.into());
            annotate_text(event, "ending", park.ending.name());
            if let Some((waker, tid)) = park.waker.zip(waker_tid) {
                annotate_uint(event, "waker", waker.0.into());
                annotate_uint(event, "waker_tid", tid.into());
            }
            for (name, number) in [(STACK, park.stack), (WAKER_STACK, park.waker_stack)] {
                if number != 0 {
                    annotate_uint(event, name, number.into());
                }
            }
        });
        Ok(())
    }

    fn process_started(&mut self, process: &Process) -> io::Result<()> {
        let Entry::Vacant(entry) = self.processes.entry(process.process) else {
            return Err(misuse(format!("{:?} is introduced twice", process.process)));
        };
        entry.insert(process.pid);
        let track = Track::Process(process.process);
        self.descriptor(track, process.at_ns, |descriptor| {
            descriptor.message(track::PROCESS, |message| {
                message.uint(track::PROCESS_PID, u64::from(process.pid));
                for argument in &process.argv {
                    message.bytes(track::PROCESS_CMDLINE, argument);
                }
                if !process.argv.is_empty() {
                    message.bytes(track::PROCESS_NAME, display_name(&process.argv));
                }
            });
        });
        self.instant(track, process.at_ns, "process started", |event| {
            annotate_uint(event, "pid", process.pid.into());
            annotate_uint(event, "parent_pid", process.parent_pid.into());
            annotate_texts(event, "argv", process.argv.iter());
            annotate_text(event, "python", &process.python);
            if let Some(reason) = &process.not_recorded {
                annotate_text(event, "not_recorded", reason);
            }
            if process.ran_before {
                annotate_uint(event, "ran_before", 1);
            }
            if let Some(Processors { allowed, limit_thousandths }) = process.processors {
                annotate_uint(event, PROCESSORS, allowed.into());
                if let Some(limit) = limit_thousandths {
                    annotate_uint(event, CPU_LIMIT, limit.into());
                }
            }
        });
        Ok(())
    }

    fn thread_started(
        &mut self,
        thread: ThreadId,
        process: ProcessId,
        tid: u32,
        at_ns: u64,
        name: &str,
    ) -> io::Result<()> {
        self.pid(process)?;
        if self.threads.get(thread.0).is_some() {
            return Err(misuse(format!("{thread:?} is introduced twice")));
        }
        let sequence = sequence_of(thread)
            .filter(|_| self.as_culprit.insert(thread.0, Vec::new()))
            .ok_or_else(|| misuse(format!("{thread:?} does not count up from 0")))?;
        let slices = ThreadTrack::open(&mut self.bytes, thread, sequence);
        self.threads.insert(thread.0, Thread { process, tid, slices });
        self.name_thread(thread, at_ns, name)?;
        self.instant(Track::Thread(thread), at_ns, "thread started", |event| {
            annotate_uint(event, "process", process.0.into());
            annotate_uint(event, "tid", tid.into());
            annotate_text(event, "name", name);
        });
        Ok(())
    }

    fn thread_named(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        let now_ns = self.latest_ns;
        self.name_thread(thread, now_ns, name)?;
        self.instant(Track::Thread(thread), now_ns, "thread named", |event| {
            annotate_text(event, "name", name);
        });
        Ok(())
    }

    fn name_thread(&mut self, thread: ThreadId, at_ns: u64, name: &str) -> io::Result<()> {
        let &mut Thread { process, tid, .. } = known(&mut self.threads, thread)?;
        let as_culprit = self.as_culprit.get_mut(thread.0).ok_or_else(|| not_introduced(thread))?;
        as_culprit.clear();
        let mut annotations = Message::at_end_of(as_culprit);
        annotate_interned(&mut annotations, CULPRIT, |value| {
            value.bytes(annotation::STRING, name);
        });
        annotate_interned(&mut annotations, CULPRIT_TID, |value| {
            value.uint(annotation::UINT, tid.into());
        });
        let pid = self.pid(process)?;
        self.descriptor(Track::Thread(thread), at_ns, |descriptor| {
            descriptor.uint(track::PARENT_UUID, Track::Process(process).uuid());
            descriptor.message(track::THREAD, |message| {
                message.uint(track::THREAD_PID, pid.into());
                message.uint(track::THREAD_TID, tid.into());
                message.bytes(track::THREAD_NAME, name);
            });
        });
        Ok(())
    }

    /// Keeps what is known of an ended thread for a while, not for ever.
    fn forget_later(&mut self, thread: ThreadId) {
        self.ended.push_back(thread);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.threads.remove(oldest.0);
            self.as_culprit.remove(oldest.0);
        }
    }

    fn pid(&self, process: ProcessId) -> io::Result<u32> {
        self.processes.get(&process).copied().ok_or_else(|| not_introduced(process))
    }

    fn descriptor(&mut self, track: Track, at_ns: u64, build: impl FnOnce(&mut Message)) {
        self.common(at_ns, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, track.uuid());
                build(descriptor);
            });
        });
    }

    fn instant(&mut self, track: Track, at_ns: u64, name: &str, build: impl FnOnce(&mut Message)) {
        self.slice(track, at_ns, track_event::INSTANT, name, build);
    }

    fn slice(
        &mut self,
        track: Track,
        at_ns: u64,
        kind: u64,
        name: &str,
        build: impl FnOnce(&mut Message),
    ) {
        self.common(at_ns, |packet| {
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(track_event::TYPE, kind);
                event.bytes(track_event::NAME, name);
                event.uint(track_event::TRACK_UUID, track.uuid());
                build(event);
            });
        });
    }

    fn common(&mut self, at_ns: u64, build: impl FnOnce(&mut Message)) {
        self.latest_ns = self.latest_ns.max(at_ns);
        put_packet(&mut self.bytes, |packet| {
            follow_sequence(packet, COMMON_SEQUENCE, at_ns);
            build(packet);
        });
    }
}

fn annotate_doing(event: &mut Message, doing: &Doing) {
    match doing {
        Doing::Held { waiters } => annotate_uint(event, "waiters", (*waiters).into()),
        Doing::Off { stands_for_ns, call, on } => {
            annotate_uint(event, "stands_for_ns", *stands_for_ns);
            annotate_text(event, "call", call);
            annotate_text(event, "on", on);
        }
    }
}

/// The program without its directory, then its arguments, cut to what fits beside a track.
fn display_name(argv: &[String]) -> String {
    let line = argv.join(" ");
    let program = argv.first().map_or(0, |program| program.rfind('/').map_or(0, |slash| slash + 1));
    line[program..].chars().take(60).collect()
}

fn known(threads: &mut Dense<Thread>, thread: ThreadId) -> io::Result<&mut Thread> {
    threads.get_mut(thread.0).ok_or_else(|| not_introduced(thread))
}

fn not_introduced(who: impl Debug) -> io::Error {
    misuse(format!("{who:?} was not introduced"))
}

fn misuse(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
