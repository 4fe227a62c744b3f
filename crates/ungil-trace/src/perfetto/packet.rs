//! What the packets of a trace have in common.

use super::schema::{
    COMMON_SEQUENCE, DEBUG_ANNOTATIONS, TRACE_PACKET, Track, annotation, clock, packet, track,
    track_event,
};
use super::wire::Message;

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

/// Adds a packet.
#[inline]
pub fn put_packet(bytes: &mut Vec<u8>, build: impl FnOnce(&mut Message)) {
    Message::at_end_of(bytes).message(TRACE_PACKET, build);
}

/// What the first packet of a sequence begins with: the defaults of the others.
pub fn open_sequence(packet: &mut Message, sequence: u32, track: Track) {
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

/// What every later packet of a sequence begins with.
#[inline]
pub fn follow_sequence(packet: &mut Message, sequence: u32, at_ns: u64) {
    packet.uint(packet::TIMESTAMP, at_ns);
    packet.uint(packet::SEQUENCE, sequence.into());
    packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
}

/// Adds an annotation whose name is interned in its sequence.
#[inline]
pub fn annotate_interned(event: &mut Message, name: u64, build: impl FnOnce(&mut Message)) {
    event.message(DEBUG_ANNOTATIONS, |message| {
        message.uint(annotation::NAME_IID, name);
        build(message);
    });
}

/// Adds a number.
pub fn annotate_uint(event: &mut Message, name: &str, value: u64) {
    annotate(event, name, |message| message.uint(annotation::UINT, value));
}

/// Adds a text.
pub fn annotate_text(event: &mut Message, name: &str, value: &str) {
    annotate(event, name, |message| message.bytes(annotation::STRING, value));
}

/// Adds an array of texts.
pub fn annotate_texts(
    event: &mut Message,
    name: &str,
    values: impl Iterator<Item = impl AsRef<str>>,
) {
    annotate(event, name, |message| {
        for value in values {
            message.message(annotation::ARRAY, |element| {
                element.bytes(annotation::STRING, value.as_ref());
            });
        }
    });
}

fn annotate(event: &mut Message, name: &str, build: impl FnOnce(&mut Message)) {
    event.message(DEBUG_ANNOTATIONS, |message| {
        message.bytes(annotation::NAME, name);
        build(message);
    });
}
