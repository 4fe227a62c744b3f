//! Packets back into records; the reverse of `encode`.
//!
//! Nothing here trusts the trace: what is missing, misplaced or of the wrong type is damage.

use std::collections::{HashMap, HashSet};

use ungil_core::park::{Cause, Ending};
use ungil_core::{Event, Kind};

use super::frame;
use super::native_frame;
use super::schema::{
    BLOCKED, CLOCK_ERROR, COMMON_SEQUENCE, CPU_LIMIT, DEBUG_ANNOTATIONS, DROP_REQUEST, FORCED, GIL,
    GIL_SWITCHED_ON, HOLD, NATIVE, PARK_STACK, PARKED, PROCESSORS, RAN, RELEASE, RELEASE_KIND,
    SCHEMA, STACK, Track, VOLUNTARY, WAIT, WAKER_STACK, annotation, free_threaded_totals, packet,
    process_totals, thread_totals, track_event,
};
use super::wire::{Fields, Malformed, Value};
use crate::record::{
    Doing, Frame, KernelCount, NativeFrame, Park, Process, ProcessId, ProcessTotals, Processors,
    Record, ThreadId, ThreadTotals,
};

/// [`PARKED`], as names are read.
const PARKED_BYTES: &[u8] = PARKED.as_bytes();
/// The same of the others that only a free-threaded interpreter has.
const PARK_STACK_BYTES: &[u8] = PARK_STACK.as_bytes();
const GIL_SWITCHED_ON_BYTES: &[u8] = GIL_SWITCHED_ON.as_bytes();

/// Why a packet is no part of a trace that this version can read.
pub enum Problem {
    /// The trace has this schema.
    Schema(u64),
    /// What is wrong, as a clause.
    Damage(&'static str),
}

use Problem::Damage;

impl From<Malformed> for Problem {
    fn from(_: Malformed) -> Self {
        Damage("a packet is not a protobuf message")
    }
}

/// What earlier packets said.
#[derive(Default)]
pub struct Decoder {
    schema_known: bool,
    ended: bool,
    processes: HashSet<ProcessId>,
    threads: HashMap<ThreadId, Thread>,
    /// The number of the last acquire or release of each GIL.
    numbers: HashMap<(ProcessId, u8), u32>,
}

struct Thread {
    process: ProcessId,
    /// The GIL of the slice that began last.
    gil: u8,
}

/// A packet, as far as it matters here.
#[derive(Default)]
struct Packet<'a> {
    at_ns: u64,
    sequence: u64,
    event: Option<&'a [u8]>,
}

/// A `TrackEvent`.
struct TrackEvent<'a> {
    kind: u64,
    name: Name<'a>,
    track_uuid: u64,
    annotated: bool,
    bytes: &'a [u8],
}

/// The name of an event or of an annotation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name<'a> {
    None,
    Interned(u64),
    Spelled(&'a [u8]),
}

/// The deflated packets in `packet`, which is a chunk of them and nothing else.
pub fn chunk(packet: &[u8]) -> Result<&[u8], Problem> {
    let mut fields = Fields(packet);
    match (fields.next().transpose()?, fields.next()) {
        (Some((packet::COMPRESSED_PACKETS, Value::Bytes(deflated))), None) => Ok(deflated),
        _ => Err(Damage("a packet should be a chunk, but is not")),
    }
}

impl Decoder {
    /// Whether the schema of the trace has been read, and is ours.
    pub fn schema_known(&self) -> bool {
        self.schema_known
    }

    /// Whether the end of the trace has been read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Hands the record that `packet` holds, if it holds one, to `take`.
    pub fn packet(&mut self, packet: &[u8], take: &mut impl FnMut(Record)) -> Result<(), Problem> {
        let packet = Packet::parse(packet)?;
        let Some(event) = packet.event else { return Ok(()) };
        let event = TrackEvent::parse(event)?;
        let record = if packet.sequence == u64::from(COMMON_SEQUENCE) {
            self.common(packet.at_ns, &event)?
        } else {
            self.gil(packet.sequence, packet.at_ns, &event)?
        };
        if let Some(record) = record {
            take(record);
        }
        Ok(())
    }

    fn gil(
        &mut self,
        sequence: u64,
        at_ns: u64,
        event: &TrackEvent,
    ) -> Result<Option<Record>, Problem> {
        let thread = sequence.checked_sub(u64::from(COMMON_SEQUENCE) + 1);
        let thread = thread.and_then(|id| u32::try_from(id).ok()).map(ThreadId);
        let thread = thread.ok_or(Damage("an event has no sequence"))?;
        let state = self.threads.get_mut(&thread);
        let state = state.ok_or(Damage("an event names a thread that was not introduced"))?;
        let gil = match event.annotation(Name::Interned(GIL))? {
            Some(gil) => narrow(gil.uint()?)?,
            None => 0,
        };
        let (kind, gil) = match (event.kind, event.name) {
            (track_event::SLICE_BEGIN, Name::Interned(WAIT)) => (Kind::Wait, gil),
            (track_event::SLICE_BEGIN, Name::Interned(HOLD)) => (Kind::Acquire, gil),
            (track_event::INSTANT, Name::Interned(DROP_REQUEST)) => (Kind::DropRequest, gil),
            (track_event::INSTANT, Name::Interned(RELEASE)) => {
                (event.release()?.ok_or(Damage("a release has no kind"))?, gil)
            }
            (track_event::INSTANT, Name::Interned(RAN)) => {
                let blocked = event.annotation(Name::Interned(BLOCKED))?;
                (blocked.map_or(Kind::Ran, |_| Kind::RanAndBlocked), gil)
            }
            (track_event::SLICE_END, _) => match event.release()? {
                Some(kind) => (kind, state.gil),
                None => return Ok(None),
            },
            _ => return Err(Damage("schema 1 has no such event of a thread")),
        };
        if event.kind == track_event::SLICE_BEGIN {
            state.gil = gil;
        }
        let process = state.process;
        let seq = self.numbers.entry((process, gil)).or_default();
        *seq = seq.wrapping_add(u32::from(kind.changes_holder()));
        let event = Event { at_ns, kind, gil, seq: *seq };
        Ok(Some(Record::Gil { process, thread, event }))
    }

    fn common(&mut self, at_ns: u64, event: &TrackEvent) -> Result<Option<Record>, Problem> {
        let Name::Spelled(name) = event.name else { return Err(Damage("an event has no name")) };
        let track = Track::from_uuid(event.track_uuid).ok_or(Damage("an event is on no track"))?;
        if !self.schema_known && name != b"ungil" {
            return Err(Damage("the trace does not begin with its schema"));
        }
        Ok(Some(match (track, name) {
            (Track::Root, b"ungil") => {
                let schema = event.uint("schema")?;
                if schema != SCHEMA {
                    return Err(Problem::Schema(schema));
                }
                self.schema_known = true;
                return Ok(None);
            }
            (Track::Root, b"end") => {
                self.ended = true;
                return Ok(None);
            }
            (Track::Root, b"snapshot") => Record::Snapshot { from_ns: at_ns },
            (Track::Root, b"note") => Record::Note { text: event.text("text")? },
            (Track::Process(process), b"process started") => {
                if !self.processes.insert(process) {
                    return Err(Damage("a process is introduced twice"));
                }
                Record::ProcessStarted(event.process(process, at_ns)?)
            }
            (Track::Process(process), b"throttled") => {
                self.check(process)?;
                let (times, stopped_ns) = (event.uint("times")?, event.uint("stopped_ns")?);
                Record::Throttled { process, at_ns, times, stopped_ns }
            }
            (Track::Process(process), b"process totals") => {
                self.check(process)?;
                let mut totals = ProcessTotals::default();
                for (name, value) in process_totals(&mut totals) {
                    if name != CLOCK_ERROR || event.has(name)? {
                        *value = event.uint(name)?;
                    }
                }
                for (name, value) in free_threaded_totals(&mut totals) {
                    if let Some(told) = event.annotation(Name::Spelled(name.as_bytes()))? {
                        *value = told.uint()?;
                    }
                }
                Record::ProcessEnded { process, at_ns, totals }
            }
            (Track::Process(process), b"libraries") => {
                self.check(process)?;
                let files = event.required("files")?.array(|text| Some(text.to_owned()))?;
                Record::Libraries { process, at_ns, files }
            }
            (Track::Process(process), PARK_STACK_BYTES | GIL_SWITCHED_ON_BYTES) => {
                self.check(process)?;
                free_threaded(process, at_ns, name, event)?
            }
            (Track::Thread(thread), b"thread started") => {
                let process = ProcessId(narrow(event.uint("process")?)?);
                self.check(process)?;
                if self.threads.insert(thread, Thread { process, gil: 0 }).is_some() {
                    return Err(Damage("a thread is introduced twice"));
                }
                let (tid, name) = (narrow(event.uint("tid")?)?, event.text("name")?);
                Record::ThreadStarted { thread, process, tid, at_ns, name }
            }
            (Track::Thread(thread), name) if self.threads.contains_key(&thread) => match name {
                b"thread named" => Record::ThreadNamed { thread, name: event.text("name")? },
                b"thread totals" => {
                    let mut totals = ThreadTotals::default();
                    for (name, value) in thread_totals(&mut totals) {
                        *value = event.uint(name)?;
                    }
                    Record::ThreadEnded { thread, at_ns, totals }
                }
                PARKED_BYTES if event.kind == track_event::SLICE_BEGIN => return Ok(None),
                PARKED_BYTES => Record::Parked { thread, park: self.park(at_ns, event)? },
                b"scheduled" => Record::KernelCount {
                    thread,
                    count: KernelCount {
                        at_ns,
                        ran_ns: event.uint("ran_ns")?,
                        delayed_ns: event.uint("delayed_ns")?,
                        runnable: event.uint("runnable")? != 0,
                    },
                },
                b"stack" => {
                    let (frames, native) = (event.frames()?, event.native_frames()?);
                    Record::Stack { thread, at_ns, frames, native }
                }
                b"stopped" => Record::Stopped { thread, at_ns, stood_ns: event.uint("stood_ns")? },
                b"look" => {
                    let (doing, frames) = (event.doing()?, event.frames()?);
                    Record::Look { thread, at_ns, doing, frames }
                }
                b"no stack" => Record::NoStack { thread, at_ns, why: event.text("why")? },
                _ => return Err(Damage("schema 1 has no such event on a thread's track")),
            },
            _ => return Err(Damage("schema 1 has no such event on its track")),
        }))
    }

    fn park(&self, until_ns: u64, event: &TrackEvent) -> Result<Park, Problem> {
        let (cause, ending) = (event.text("cause")?, event.text("ending")?);
        let waker = event.annotation(Name::Spelled(b"waker"))?;
        let waker = waker.map(|waker| Ok::<_, Problem>(ThreadId(narrow(waker.uint()?)?)));
        let of = event.annotation(Name::Spelled(b"of"))?;
        let stack = |name: &str| -> Result<u16, Problem> {
            let told = event.annotation(Name::Spelled(name.as_bytes()))?;
            let number = told.map_or(Ok(0), Annotation::uint)?;
            u16::try_from(number).map_err(|_| Damage("a stack has an impossible number"))
        };
        Ok(Park {
            // It ends no earlier than it begins, whatever the trace says.
            since_ns: event.uint("since_ns")?.min(until_ns),
            until_ns,
            cause: Cause::from_name(&cause).ok_or(Damage("a park has an unknown cause"))?,
            of: of.map_or(Ok(""), Annotation::text)?.to_owned(),
            lock: narrow(event.uint("lock")?)?,
            ending: Ending::from_name(&ending).ok_or(Damage("a park ends in no known way"))?,
            // A thread that was forgotten when it was written is not known.
            waker: waker.transpose()?.filter(|waker| self.threads.contains_key(waker)),
            stack: stack(STACK)?,
            waker_stack: stack(WAKER_STACK)?,
        })
    }

    fn check(&self, process: ProcessId) -> Result<(), Problem> {
        if self.processes.contains(&process) {
            Ok(())
        } else {
            Err(Damage("an event names a process that was not introduced"))
        }
    }
}

/// What only a process with a free-threaded interpreter has, on its track.
fn free_threaded(
    process: ProcessId,
    at_ns: u64,
    name: &[u8],
    event: &TrackEvent,
) -> Result<Record, Problem> {
    let frames = event.frames()?;
    if name == GIL_SWITCHED_ON_BYTES {
        let library = event.text("library")?;
        return Ok(Record::GilSwitchedOn { process, at_ns, library, frames });
    }
    let number = u16::try_from(event.uint("number")?);
    let number = number.map_err(|_| Damage("a stack has an impossible number"))?;
    Ok(Record::ParkStack { process, number, frames })
}

impl<'a> Packet<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut packet = Self::default();
        for field in Fields(bytes) {
            match field? {
                (packet::TIMESTAMP, Value::Uint(at_ns)) => packet.at_ns = at_ns,
                (packet::SEQUENCE, Value::Uint(sequence)) => packet.sequence = sequence,
                (packet::TRACK_EVENT, Value::Bytes(event)) => packet.event = Some(event),
                _ => (),
            }
        }
        Ok(packet)
    }
}

impl<'a> TrackEvent<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut event = Self { kind: 0, name: Name::None, track_uuid: 0, annotated: false, bytes };
        for field in Fields(bytes) {
            match field? {
                (track_event::TYPE, Value::Uint(kind)) => event.kind = kind,
                (track_event::NAME_IID, Value::Uint(iid)) => event.name = Name::Interned(iid),
                (track_event::NAME, Value::Bytes(name)) => event.name = Name::Spelled(name),
                (track_event::TRACK_UUID, Value::Uint(uuid)) => event.track_uuid = uuid,
                (DEBUG_ANNOTATIONS, _) => event.annotated = true,
                _ => (),
            }
        }
        Ok(event)
    }

    fn annotation(&self, name: Name) -> Result<Option<Annotation<'a>>, Problem> {
        // Most events of a GIL have none.
        if !self.annotated {
            return Ok(None);
        }
        for field in Fields(self.bytes) {
            if let (DEBUG_ANNOTATIONS, Value::Bytes(bytes)) = field? {
                let annotation = Annotation(bytes);
                if annotation.name()? == name {
                    return Ok(Some(annotation));
                }
            }
        }
        Ok(None)
    }

    fn required(&self, name: &str) -> Result<Annotation<'a>, Problem> {
        self.annotation(Name::Spelled(name.as_bytes()))?
            .ok_or(Damage("an event lacks an annotation"))
    }

    fn has(&self, name: &str) -> Result<bool, Problem> {
        Ok(self.annotation(Name::Spelled(name.as_bytes()))?.is_some())
    }

    fn uint(&self, name: &str) -> Result<u64, Problem> {
        self.required(name)?.uint()
    }

    fn text(&self, name: &str) -> Result<String, Problem> {
        Ok(self.required(name)?.text()?.to_owned())
    }

    fn release(&self) -> Result<Option<Kind>, Problem> {
        let Some(release) = self.annotation(Name::Interned(RELEASE_KIND))? else {
            return Ok(None);
        };
        match release.text()? {
            VOLUNTARY => Ok(Some(Kind::ReleaseVoluntary)),
            FORCED => Ok(Some(Kind::ReleaseForced)),
            _ => Err(Damage("a release is neither voluntary nor forced")),
        }
    }

    fn process(&self, process: ProcessId, at_ns: u64) -> Result<Process, Problem> {
        let not_recorded = self.annotation(Name::Spelled(b"not_recorded"))?;
        Ok(Process {
            process,
            pid: narrow(self.uint("pid")?)?,
            parent_pid: narrow(self.uint("parent_pid")?)?,
            at_ns,
            argv: self.required("argv")?.array(|text| Some(text.to_owned()))?,
            python: self.text("python")?,
            not_recorded: match not_recorded {
                Some(reason) => Some(reason.text()?.to_owned()),
                None => None,
            },
            ran_before: self.annotation(Name::Spelled(b"ran_before"))?.is_some(),
            processors: self.processors()?,
        })
    }

    fn processors(&self) -> Result<Option<Processors>, Problem> {
        let number = |name: &str| -> Result<Option<u32>, Problem> {
            let told = self.annotation(Name::Spelled(name.as_bytes()))?;
            told.map(|number| narrow(number.uint()?)).transpose()
        };
        let Some(allowed) = number(PROCESSORS)? else { return Ok(None) };
        Ok(Some(Processors { allowed, limit_thousandths: number(CPU_LIMIT)? }))
    }

    fn doing(&self) -> Result<Doing, Problem> {
        if let Some(waiters) = self.annotation(Name::Spelled(b"waiters"))? {
            return Ok(Doing::Held { waiters: narrow(waiters.uint()?)? });
        }
        let stands_for_ns = self.uint("stands_for_ns")?;
        Ok(Doing::Off { stands_for_ns, call: self.text("call")?, on: self.text("on")? })
    }

    fn frames(&self) -> Result<Vec<Frame>, Problem> {
        self.required("stack")?.array(frame::from_text)
    }

    fn native_frames(&self) -> Result<Option<Vec<NativeFrame>>, Problem> {
        let native = self.annotation(Name::Spelled(NATIVE.as_bytes()))?;
        native.map(|frames| frames.array(native_frame::from_text)).transpose()
    }
}

/// A `DebugAnnotation`.
#[derive(Clone, Copy)]
struct Annotation<'a>(&'a [u8]);

impl<'a> Annotation<'a> {
    fn name(self) -> Result<Name<'a>, Malformed> {
        for field in Fields(self.0) {
            match field? {
                (annotation::NAME_IID, Value::Uint(iid)) => return Ok(Name::Interned(iid)),
                (annotation::NAME, Value::Bytes(name)) => return Ok(Name::Spelled(name)),
                _ => (),
            }
        }
        Ok(Name::None)
    }

    fn uint(self) -> Result<u64, Problem> {
        for field in Fields(self.0) {
            if let (annotation::UINT, Value::Uint(value)) = field? {
                return Ok(value);
            }
        }
        Err(Damage("an annotation is not a number"))
    }

    fn text(self) -> Result<&'a str, Problem> {
        for field in Fields(self.0) {
            if let (annotation::STRING, Value::Bytes(value)) = field? {
                return str::from_utf8(value).map_err(|_| Damage("a text is not UTF-8"));
            }
        }
        Err(Damage("an annotation is not a text"))
    }

    fn array<T>(self, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Problem> {
        let mut values = Vec::new();
        for field in Fields(self.0) {
            if let (annotation::ARRAY, Value::Bytes(element)) = field? {
                let text = Annotation(element).text()?;
                values.push(parse(text).ok_or(Damage("a stack has a frame without a place"))?);
            }
        }
        Ok(values)
    }
}

fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T, Problem> {
    value.try_into().map_err(|_| Damage("a number is too large for what it means"))
}
