//! What each record becomes in a trace.
//!
//! A thread's track shows one slice at a time, `wait` or `hold`. An event that does not fit the
//! open slice means that events before it were lost: the slice is closed as `unfinished`, which
//! is no event, and the new event stands as it came. So slices nest for any input, and the
//! reader finds exactly the events that were written.
//!
//! GIL events of a thread have a sequence of their own, whose defaults say track and clock and
//! whose names are interned; they come by the hundred thousand a second and allocate nothing.
//! All else is on one common sequence and spells out its names.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::io;

use ungil_core::{Event, Kind};

use super::frame;
use super::schema::{
    ANNOTATION_NAMES, COMMON_SEQUENCE, CULPRIT, CULPRIT_TID, DEBUG_ANNOTATIONS, DROP_REQUEST,
    EVENT_NAMES, FORCED, GIL, HOLD, RELEASE, RELEASE_KIND, SCHEMA, TRACE_PACKET, Track, UNFINISHED,
    VOLUNTARY, WAIT, annotation, clock, interned, packet, process_totals, sequence_of,
    thread_totals, track, track_event,
};
use super::wire::Message;
use crate::record::{Process, ProcessId, Record, ThreadId};

/// The most text that one record may bring. The largest thing that occurs is a command line, which
/// Linux limits to 6 MiB.
pub const TEXT_BYTES: usize = 8 << 20;

/// Encodes records as packets, one after the other, into a buffer.
pub struct Encoder {
    bytes: Vec<u8>,
    /// Kernel process ids.
    processes: HashMap<ProcessId, u32>,
    threads: HashMap<ThreadId, Thread>,
    /// The encoded annotations of a wait whose culprit is this thread.
    as_culprit: HashMap<ThreadId, Vec<u8>>,
    /// The latest moment that was written.
    latest_ns: u64,
}

struct Thread {
    process: ProcessId,
    tid: u32,
    sequence: u32,
    open: Option<Slice>,
}

/// A slice that has begun and not ended.
#[derive(Clone, Copy)]
struct Slice {
    /// [`WAIT`] or [`HOLD`].
    name: u64,
    gil: u8,
    since_ns: u64,
}

/// The packet that begins every trace, as it lies in the file: what a trace is recognised by.
pub fn first_packet() -> Vec<u8> {
    let mut bytes = Vec::new();
    put_packet(&mut bytes, |packet| {
        open_sequence(packet, COMMON_SEQUENCE, Track::Root);
        packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(track::UUID, Track::Root.uuid());
            descriptor.bytes(track::NAME, "ungil");
        });
    });
    bytes
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
            threads: HashMap::new(),
            as_culprit: HashMap::new(),
            latest_ns: now_ns,
        };
        encoder.instant(Track::Root, now_ns, "ungil", |event| {
            uint(event, "schema", SCHEMA);
            text(event, "version", env!("CARGO_PKG_VERSION"));
        });
        encoder
    }

    /// The packets since the last [`clear`](Self::clear).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties the buffer, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
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
                        uint(event, name, *value);
                    }
                });
            }
            Record::ThreadStarted { thread, process, tid, at_ns, name } => {
                self.thread_started(*thread, *process, *tid, *at_ns, name)?;
            }
            Record::ThreadNamed { thread, name } => self.thread_named(*thread, name)?,
            &Record::ThreadEnded { thread, at_ns, mut totals } => {
                known(&mut self.threads, thread)?.close(&mut self.bytes, at_ns);
                self.instant(Track::Thread(thread), at_ns, "thread totals", |event| {
                    for (name, value) in thread_totals(&mut totals) {
                        uint(event, name, *value);
                    }
                });
            }
            Record::Stack { thread, at_ns, frames } => {
                known(&mut self.threads, *thread)?;
                self.instant(Track::Thread(*thread), *at_ns, "stack", |event| {
                    texts(event, "stack", frames.iter().map(frame::to_text));
                });
            }
            Record::Note { text: note } => {
                self.instant(Track::Root, self.latest_ns, "note", |event| {
                    text(event, "text", note);
                });
            }
        }
        Ok(())
    }

    /// Encodes the end of the trace, at the latest moment seen.
    pub fn end(&mut self) {
        for thread in self.threads.values_mut() {
            thread.close(&mut self.bytes, self.latest_ns);
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
        let as_culprit = match culprit {
            Some(culprit) => {
                self.as_culprit.get(&culprit).ok_or_else(|| not_introduced(culprit))?
            }
            None => &[][..],
        };
        self.latest_ns = self.latest_ns.max(event.at_ns);
        state.gil(&mut self.bytes, event, as_culprit);
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
            uint(event, "pid", process.pid.into());
            uint(event, "parent_pid", process.parent_pid.into());
            texts(event, "argv", process.argv.iter());
            text(event, "python", &process.python);
            if let Some(reason) = &process.not_recorded {
                text(event, "not_recorded", reason);
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
        let Entry::Vacant(entry) = self.threads.entry(thread) else {
            return Err(misuse(format!("{thread:?} is introduced twice")));
        };
        let sequence = sequence_of(thread)
            .ok_or_else(|| misuse(format!("{thread:?} is more than a trace can hold")))?;
        entry.insert(Thread { process, tid, sequence, open: None });
        put_packet(&mut self.bytes, |packet| {
            open_sequence(packet, sequence, Track::Thread(thread));
            packet.message(packet::INTERNED_DATA, |data| {
                intern(data, interned::EVENT_NAMES, &EVENT_NAMES);
                intern(data, interned::ANNOTATION_NAMES, &ANNOTATION_NAMES);
            });
        });
        self.name_thread(thread, at_ns, name)?;
        self.instant(Track::Thread(thread), at_ns, "thread started", |event| {
            uint(event, "process", process.0.into());
            uint(event, "tid", tid.into());
            text(event, "name", name);
        });
        Ok(())
    }

    fn thread_named(&mut self, thread: ThreadId, name: &str) -> io::Result<()> {
        let now_ns = self.latest_ns;
        self.name_thread(thread, now_ns, name)?;
        self.instant(Track::Thread(thread), now_ns, "thread named", |event| {
            text(event, "name", name);
        });
        Ok(())
    }

    fn name_thread(&mut self, thread: ThreadId, at_ns: u64, name: &str) -> io::Result<()> {
        let &mut Thread { process, tid, .. } = known(&mut self.threads, thread)?;
        let as_culprit = self.as_culprit.entry(thread).or_default();
        as_culprit.clear();
        let mut annotations = Message::at_end_of(as_culprit);
        interned_annotation(&mut annotations, CULPRIT, |value| {
            value.bytes(annotation::STRING, name);
        });
        interned_annotation(&mut annotations, CULPRIT_TID, |value| {
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
        self.common(at_ns, |packet| {
            packet.message(packet::TRACK_EVENT, |event| {
                event.uint(track_event::TYPE, track_event::INSTANT);
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

impl Thread {
    fn gil(&mut self, bytes: &mut Vec<u8>, event: Event, as_culprit: &[u8]) {
        let Event { at_ns, kind, gil, .. } = event;
        let release = match kind {
            Kind::DropRequest => {
                return self.put(bytes, at_ns, |event| {
                    event.uint(track_event::TYPE, track_event::INSTANT);
                    event.uint(track_event::NAME_IID, DROP_REQUEST);
                    annotate_gil(event, gil);
                });
            }
            Kind::ReleaseForced => FORCED,
            Kind::Wait | Kind::Acquire | Kind::ReleaseVoluntary => VOLUNTARY,
        };
        let annotate_release = |event: &mut Message| {
            interned_annotation(event, RELEASE_KIND, |value| {
                value.bytes(annotation::STRING, release);
            });
        };
        let ends = match kind {
            Kind::Acquire => Some(WAIT),
            Kind::ReleaseVoluntary | Kind::ReleaseForced => Some(HOLD),
            Kind::Wait | Kind::DropRequest => None,
        };
        let fits = self.open.is_some_and(|open| Some(open.name) == ends && open.gil == gil);
        if fits {
            self.open = None;
            self.put(bytes, at_ns, |event| {
                event.uint(track_event::TYPE, track_event::SLICE_END);
                if kind == Kind::Acquire {
                    event.encoded(as_culprit);
                } else {
                    annotate_release(event);
                }
            });
        } else {
            self.close(bytes, at_ns);
        }
        match kind {
            Kind::Wait => self.begin(bytes, WAIT, at_ns, gil),
            Kind::Acquire => self.begin(bytes, HOLD, at_ns, gil),
            _ if fits => (),
            _ => self.put(bytes, at_ns, |event| {
                event.uint(track_event::TYPE, track_event::INSTANT);
                event.uint(track_event::NAME_IID, RELEASE);
                annotate_gil(event, gil);
                annotate_release(event);
            }),
        }
    }

    fn begin(&mut self, bytes: &mut Vec<u8>, name: u64, at_ns: u64, gil: u8) {
        self.open = Some(Slice { name, gil, since_ns: at_ns });
        self.put(bytes, at_ns, |event| {
            event.uint(track_event::TYPE, track_event::SLICE_BEGIN);
            event.uint(track_event::NAME_IID, name);
            annotate_gil(event, gil);
        });
    }

    /// Ends the open slice, if there is one, as unfinished.
    fn close(&mut self, bytes: &mut Vec<u8>, at_ns: u64) {
        if let Some(open) = self.open.take() {
            self.put(bytes, at_ns.max(open.since_ns), |event| {
                event.uint(track_event::TYPE, track_event::SLICE_END);
                interned_annotation(event, UNFINISHED, |value| value.uint(annotation::BOOL, 1));
            });
        }
    }

    #[inline]
    fn put(&self, bytes: &mut Vec<u8>, at_ns: u64, build: impl FnOnce(&mut Message)) {
        put_packet(bytes, |packet| {
            follow_sequence(packet, self.sequence, at_ns);
            packet.message(packet::TRACK_EVENT, build);
        });
    }
}

#[inline]
fn put_packet(bytes: &mut Vec<u8>, build: impl FnOnce(&mut Message)) {
    Message::at_end_of(bytes).message(TRACE_PACKET, build);
}

/// What every packet of a sequence but the first begins with.
#[inline]
fn follow_sequence(packet: &mut Message, sequence: u32, at_ns: u64) {
    packet.uint(packet::TIMESTAMP, at_ns);
    packet.uint(packet::SEQUENCE, sequence.into());
    packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
}

/// What the first packet of a sequence begins with: the defaults of the others.
fn open_sequence(packet: &mut Message, sequence: u32, track: Track) {
    packet.uint(packet::SEQUENCE, sequence.into());
    packet.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
    packet.uint(packet::FIRST_ON_SEQUENCE, 1);
    packet.message(packet::DEFAULTS, |defaults| {
        defaults.uint(packet::TIMESTAMP_CLOCK_ID, clock::MONOTONIC);
        defaults.message(packet::TRACK_EVENT, |event| {
            event.uint(track_event::TRACK_UUID, track.uuid());
        });
    });
}

fn intern(data: &mut Message, field: u32, names: &[&str]) {
    for (iid, name) in (1..).zip(names) {
        data.message(field, |entry| {
            entry.uint(interned::IID, iid);
            entry.bytes(interned::NAME, name);
        });
    }
}

#[inline]
fn annotate_gil(event: &mut Message, gil: u8) {
    if gil != 0 {
        interned_annotation(event, GIL, |value| value.uint(annotation::UINT, gil.into()));
    }
}

#[inline]
fn interned_annotation(event: &mut Message, name: u64, build: impl FnOnce(&mut Message)) {
    event.message(DEBUG_ANNOTATIONS, |message| {
        message.uint(annotation::NAME_IID, name);
        build(message);
    });
}

fn named_annotation(event: &mut Message, name: &str, build: impl FnOnce(&mut Message)) {
    event.message(DEBUG_ANNOTATIONS, |message| {
        message.bytes(annotation::NAME, name);
        build(message);
    });
}

fn uint(event: &mut Message, name: &str, value: u64) {
    named_annotation(event, name, |message| message.uint(annotation::UINT, value));
}

fn text(event: &mut Message, name: &str, value: &str) {
    named_annotation(event, name, |message| message.bytes(annotation::STRING, value));
}

fn texts(event: &mut Message, name: &str, values: impl Iterator<Item = impl AsRef<str>>) {
    named_annotation(event, name, |message| {
        for value in values {
            message.message(annotation::ARRAY, |element| {
                element.bytes(annotation::STRING, value.as_ref());
            });
        }
    });
}

/// How much text a record brings, with what it costs to write each piece of it.
fn text_bytes(record: &Record) -> usize {
    let piece = |text: &String| text.len() + 16;
    match record {
        Record::ProcessStarted(process) => {
            let reason = process.not_recorded.iter();
            process.argv.iter().chain(reason).chain([&process.python]).map(piece).sum()
        }
        Record::ThreadStarted { name: text, .. }
        | Record::ThreadNamed { name: text, .. }
        | Record::Note { text } => piece(text),
        Record::Stack { frames, .. } => {
            frames.iter().map(|frame| 2 * piece(&frame.function) + piece(&frame.file)).sum()
        }
        Record::Gil { .. } | Record::ProcessEnded { .. } | Record::ThreadEnded { .. } => 0,
    }
}

/// The program without its directory, then its arguments, cut to what fits beside a track.
fn display_name(argv: &[String]) -> String {
    let line = argv.join(" ");
    let program = argv.first().map_or(0, |program| program.rfind('/').map_or(0, |slash| slash + 1));
    line[program..].chars().take(60).collect()
}

fn known(threads: &mut HashMap<ThreadId, Thread>, thread: ThreadId) -> io::Result<&mut Thread> {
    threads.get_mut(&thread).ok_or_else(|| not_introduced(thread))
}

fn not_introduced(who: impl Debug) -> io::Error {
    misuse(format!("{who:?} was not introduced"))
}

fn misuse(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
