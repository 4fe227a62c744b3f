//! GIL events as slices on the track of their thread.
//!
//! The track shows one slice at a time, `wait` or `hold`. An event that does not fit the open
//! slice means that events before it were lost: the slice is closed as `unfinished`, which is no
//! event, and the new event stands as it came. So slices nest for any input, and the reader finds
//! exactly the events that were written.
//!
//! The events come by the hundred thousand a second and allocate nothing: the defaults of their
//! sequence say track and clock, and their names are interned.

use ungil_core::{Event, Kind};

use super::packet::{annotate_interned, follow_sequence, open_sequence, put_packet};
use super::schema::{
    ANNOTATION_NAMES, BLOCKED, CPU_NS, DROP_REQUEST, EVENT_NAMES, FORCED, GIL, HOLD, RAN, RELEASE,
    RELEASE_KIND, Track, UNFINISHED, VOLUNTARY, WAIT, annotation, interned, packet, track_event,
};
use super::wire::Message;
use crate::record::ThreadId;

/// The track of a thread.
pub struct ThreadTrack {
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

impl ThreadTrack {
    /// Opens the sequence of `thread`, with its names and defaults.
    pub fn open(bytes: &mut Vec<u8>, thread: ThreadId, sequence: u32) -> Self {
        put_packet(bytes, |packet| {
            open_sequence(packet, sequence, Track::Thread(thread));
            packet.message(packet::INTERNED_DATA, |data| {
                intern(data, interned::EVENT_NAMES, &EVENT_NAMES);
                intern(data, interned::ANNOTATION_NAMES, &ANNOTATION_NAMES);
            });
        });
        Self { sequence, open: None }
    }

    /// Adds `event`; a wait that it ends gets the annotations `as_culprit`.
    pub fn event(&mut self, bytes: &mut Vec<u8>, event: Event, as_culprit: &[u8]) {
        let Event { at_ns, kind, gil, .. } = event;
        match kind {
            Kind::Wait => {
                self.close(bytes, at_ns);
                self.begin(bytes, WAIT, at_ns, gil);
            }
            Kind::Acquire => {
                if self.take_open(WAIT, gil) {
                    self.end(bytes, at_ns, |event| event.encoded(as_culprit));
                } else {
                    self.close(bytes, at_ns);
                }
                self.begin(bytes, HOLD, at_ns, gil);
            }
            Kind::DropRequest => self.instant(bytes, DROP_REQUEST, at_ns, gil, |_| ()),
            Kind::ReleaseVoluntary => self.release(bytes, at_ns, gil, VOLUNTARY),
            Kind::ReleaseForced => self.release(bytes, at_ns, gil, FORCED),
            Kind::Ran | Kind::RanAndBlocked => {
                let hold = self.open.filter(|open| open.name == HOLD && open.gil == gil);
                let cpu_ns = hold.and_then(|hold| at_ns.checked_sub(hold.since_ns));
                self.instant(bytes, RAN, at_ns, gil, |event| {
                    if let Some(cpu_ns) = cpu_ns {
                        annotate_interned(event, CPU_NS, |it| it.uint(annotation::UINT, cpu_ns));
                    }
                    if kind == Kind::RanAndBlocked {
                        annotate_interned(event, BLOCKED, |it| it.uint(annotation::BOOL, 1));
                    }
                });
            }
        }
    }

    /// Ends the open slice, if there is one, as unfinished.
    pub fn close(&mut self, bytes: &mut Vec<u8>, at_ns: u64) {
        if let Some(open) = self.open.take() {
            self.end(bytes, at_ns.max(open.since_ns), |event| {
                annotate_interned(event, UNFINISHED, |value| value.uint(annotation::BOOL, 1));
            });
        }
    }

    fn release(&mut self, bytes: &mut Vec<u8>, at_ns: u64, gil: u8, kind: &str) {
        let annotate = |event: &mut Message| {
            annotate_interned(event, RELEASE_KIND, |value| value.bytes(annotation::STRING, kind));
        };
        if self.take_open(HOLD, gil) {
            self.end(bytes, at_ns, annotate);
        } else {
            self.close(bytes, at_ns);
            self.instant(bytes, RELEASE, at_ns, gil, annotate);
        }
    }

    /// Whether the open slice is this one; then it is open no more.
    fn take_open(&mut self, name: u64, gil: u8) -> bool {
        self.open.take_if(|open| open.name == name && open.gil == gil).is_some()
    }

    fn begin(&mut self, bytes: &mut Vec<u8>, name: u64, at_ns: u64, gil: u8) {
        self.open = Some(Slice { name, gil, since_ns: at_ns });
        self.put(bytes, at_ns, |event| {
            event.uint(track_event::TYPE, track_event::SLICE_BEGIN);
            event.uint(track_event::NAME_IID, name);
            annotate_gil(event, gil);
        });
    }

    fn end(&self, bytes: &mut Vec<u8>, at_ns: u64, annotate: impl FnOnce(&mut Message)) {
        self.put(bytes, at_ns, |event| {
            event.uint(track_event::TYPE, track_event::SLICE_END);
            annotate(event);
        });
    }

    fn instant(
        &self,
        bytes: &mut Vec<u8>,
        name: u64,
        at_ns: u64,
        gil: u8,
        annotate: impl FnOnce(&mut Message),
    ) {
        self.put(bytes, at_ns, |event| {
            event.uint(track_event::TYPE, track_event::INSTANT);
            event.uint(track_event::NAME_IID, name);
            annotate_gil(event, gil);
            annotate(event);
        });
    }

    #[inline]
    fn put(&self, bytes: &mut Vec<u8>, at_ns: u64, build: impl FnOnce(&mut Message)) {
        put_packet(bytes, |packet| {
            follow_sequence(packet, self.sequence, at_ns);
            packet.message(packet::TRACK_EVENT, build);
        });
    }
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
        annotate_interned(event, GIL, |value| value.uint(annotation::UINT, gil.into()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::schema::{TRACE_PACKET, packet};
    use super::super::wire::{Fields, Value};
    use super::*;

    fn field(message: &[u8], wanted: u32) -> Option<Value<'_>> {
        let mut fields = Fields(message).map(|field| field.unwrap());
        fields.find(|&(number, _)| number == wanted).map(|(_, value)| value)
    }

    /// The types of the track events in `bytes`.
    fn types(bytes: &[u8]) -> Vec<u64> {
        let mut types = Vec::new();
        for packet in Fields(bytes) {
            let (TRACE_PACKET, Value::Bytes(packet)) = packet.unwrap() else { panic!() };
            if let Some(Value::Bytes(event)) = field(packet, packet::TRACK_EVENT) {
                let Some(Value::Uint(kind)) = field(event, track_event::TYPE) else { panic!() };
                types.push(kind);
            }
        }
        types
    }

    proptest! {
        #[test]
        fn at_most_one_slice_is_open_and_none_at_the_end(
            events in prop::collection::vec((1..=7u8, 0..2u8), 0..50)
        ) {
            let mut bytes = Vec::new();
            let mut track = ThreadTrack::open(&mut bytes, ThreadId(0), 2);
            for (at_ns, (number, gil)) in (0..).zip(events) {
                let kind = Kind::from_number(number).unwrap();
                track.event(&mut bytes, Event { at_ns, kind, gil, seq: 0 }, &[]);
            }
            track.close(&mut bytes, 50);
            let slices = types(&bytes).into_iter().filter(|&kind| kind != track_event::INSTANT);
            for pair in slices.collect::<Vec<_>>().chunks(2) {
                prop_assert_eq!(pair, [track_event::SLICE_BEGIN, track_event::SLICE_END]);
            }
        }
    }

    #[test]
    fn a_wait_and_a_hold_take_no_more_packets_than_they_need() {
        let mut bytes = Vec::new();
        let mut track = ThreadTrack::open(&mut bytes, ThreadId(0), 2);
        let kinds = [Kind::Wait, Kind::DropRequest, Kind::Acquire, Kind::ReleaseForced];
        for (at_ns, kind) in (0..).zip(kinds) {
            track.event(&mut bytes, Event { at_ns, kind, gil: 0, seq: 0 }, &[]);
        }
        assert_eq!(types(&bytes), [1, 3, 2, 1, 2]);
    }
}
