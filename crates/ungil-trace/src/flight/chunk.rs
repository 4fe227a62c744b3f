//! Some records that follow one another, in little memory.
//!
//! An event of a GIL takes a byte for its kind and its thread, and its distance in time from the
//! event before: three or four bytes, if events come by the hundred thousand a second. All else is
//! rare, and kept as it is.

use super::bytes;
use super::ids::ById;
use crate::record::{ProcessId, Record, ThreadId};
use ungil_core::{Event, Kind};

/// The lowest bits of an event's first byte are its kind,
const KIND_BITS: u32 = 3;
/// the next one tells that a GIL follows which is not 0,
const OTHER_GIL: u8 = 1 << KIND_BITS;
/// and the others are the number of its thread, or tell that this follows.
const THREAD_BITS: u32 = KIND_BITS + 1;
const THREAD_FOLLOWS: u8 = 15;

/// Records that follow one another.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When it begins: no event before the first one was as late.
    pub from_ns: u64,
    /// What would have been told then if the recording had ended: totals to count from.
    pub marks: Vec<Record>,
    events: Vec<u8>,
    count: u32,
    latest_ns: u64,
    numbers: ById<ThreadId, u32>,
    threads: Vec<(ProcessId, ThreadId)>,
    /// Other records, each with the number of events before it.
    others: Vec<(u32, Record)>,
    others_bytes: usize,
}

impl Chunk {
    /// Begins with nothing in it.
    pub fn new(from_ns: u64, marks: Vec<Record>) -> Self {
        Self {
            from_ns,
            marks,
            events: Vec::new(),
            count: 0,
            latest_ns: from_ns,
            numbers: ById::default(),
            threads: Vec::new(),
            others: Vec::new(),
            others_bytes: 0,
        }
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Gil { process, thread, event } => self.push_event(*process, *thread, *event),
            other => {
                self.others_bytes += bytes_of(other);
                self.others.push((self.count, other.clone()));
            }
        }
    }

    fn push_event(&mut self, process: ProcessId, thread: ThreadId, event: Event) {
        let number = *self.numbers.entry(thread).or_insert_with(|| {
            self.threads.push((process, thread));
            u32::try_from(self.threads.len() - 1).expect("threads have ids of 32 bits")
        });
        let short = u8::try_from(number).unwrap_or(u8::MAX).min(THREAD_FOLLOWS);
        let other_gil = if event.gil == 0 { 0 } else { OTHER_GIL };
        self.events.push(event.kind as u8 | other_gil | short << THREAD_BITS);
        if event.gil != 0 {
            self.events.push(event.gil);
        }
        if short == THREAD_FOLLOWS {
            bytes::put(&mut self.events, number.into());
        }
        bytes::put_step(&mut self.events, self.latest_ns, event.at_ns);
        self.latest_ns = event.at_ns;
        self.count += 1;
    }

    /// Gives back the memory that it does not need, because nothing will be added.
    pub fn seal(&mut self) {
        self.events.shrink_to_fit();
        self.others.shrink_to_fit();
        self.numbers = ById::default();
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        let lists = self.others.len() + self.marks.len();
        self.events.len()
            + self.others_bytes
            + lists * size_of::<Record>()
            + self.threads.len() * 32
    }

    /// The records, as they were added. Events have no number in their GIL's order.
    pub fn each(&self, mut give: impl FnMut(&Record)) {
        let (mut rest, mut at_ns) = (&self.events[..], self.from_ns);
        let mut others = self.others.iter().peekable();
        for index in 0..=self.count {
            while let Some((_, other)) = others.next_if(|(before, _)| *before == index) {
                give(other);
            }
            let Some((&first, after)) = rest.split_first() else { break };
            rest = after;
            let gil = match first & OTHER_GIL {
                0 => 0,
                _ => take_byte(&mut rest),
            };
            let number = match first >> THREAD_BITS {
                THREAD_FOLLOWS => usize::try_from(bytes::take(&mut rest)).unwrap_or(usize::MAX),
                short => short.into(),
            };
            at_ns = bytes::take_step(&mut rest, at_ns);
            let kind = Kind::from_number(first & (OTHER_GIL - 1));
            if let Some((kind, &(process, thread))) = kind.zip(self.threads.get(number)) {
                give(&Record::Gil { process, thread, event: Event { at_ns, kind, gil, seq: 0 } });
            }
        }
    }
}

fn take_byte(bytes: &mut &[u8]) -> u8 {
    let Some((&byte, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    byte
}

/// What the texts of a record take, with what it costs to keep each.
fn bytes_of(record: &Record) -> usize {
    let text = |text: &String| text.len() + 40;
    match record {
        Record::ProcessStarted(process) => process.argv.iter().map(text).sum::<usize>() + 80,
        Record::ThreadStarted { name, .. } | Record::ThreadNamed { name, .. } => text(name),
        Record::NoStack { why: it, .. } | Record::Note { text: it } => text(it),
        Record::ParkStack { frames, .. } => {
            frames.iter().map(|it| text(&it.function) + text(&it.file)).sum()
        }
        Record::GilSwitchedOn { library, frames, .. } => {
            text(library)
                + frames.iter().map(|it| text(&it.function) + text(&it.file)).sum::<usize>()
        }
        Record::Libraries { files, .. } => files.iter().map(text).sum(),
        Record::Stack { frames, native, .. } => {
            let python = frames.iter().map(|it| text(&it.function) + text(&it.file));
            let native = native.iter().flatten();
            let native = native.map(|it| text(&it.symbol) + text(&it.method) + text(&it.library));
            python.chain(native).sum()
        }
        Record::Look { frames, .. } => {
            frames.iter().map(|frame| text(&frame.function) + text(&frame.file)).sum()
        }
        Record::Parked { park, .. } => text(&park.of),
        _ => 0,
    }
}
