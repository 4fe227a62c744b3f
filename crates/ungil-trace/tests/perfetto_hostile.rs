//! A trace from anywhere is a sentence at worst: never a panic, never more memory than it holds.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Ending, Overwrite, ReadError, Writer, read};
use ungil_trace::record::{Process, ProcessId, ThreadId};

/// A trace of one thread, in several chunks, and what it says.
fn trace() -> (Vec<u8>, Vec<Record>) {
    static TRACE: LazyLock<(Vec<u8>, Vec<Record>)> = LazyLock::new(write_trace);
    TRACE.clone()
}

fn write_trace() -> (Vec<u8>, Vec<Record>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    let (process, thread) = (ProcessId(0), ThreadId(0));
    let mut records = vec![
        Record::ProcessStarted(Process {
            process,
            pid: 7,
            parent_pid: 1,
            at_ns: 5,
            argv: vec!["python3".into(), "-c".into(), "pass".into()],
            python: "3.13.0".into(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }),
        Record::ThreadStarted { thread, process, tid: 7, at_ns: 6, name: "main".into() },
    ];
    let kinds = [Kind::Wait, Kind::DropRequest, Kind::Acquire, Kind::ReleaseForced];
    for (round, kind) in (0..10).flat_map(|round| kinds.map(|kind| (round, kind))) {
        let seq = 2 * round + [0, 0, 1, 2][kinds.iter().position(|&other| other == kind).unwrap()];
        let at_ns = 100 * u64::from(round) + kind as u64;
        let event = Event { at_ns, kind, gil: 0, seq };
        records.push(Record::Gil { process, thread, event });
    }
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    for (index, record) in records.iter().enumerate() {
        writer.write(record, None).unwrap();
        if index % 10 == 9 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
    (fs::read(path).unwrap(), records)
}

fn read_bytes(bytes: &[u8]) -> (Vec<Record>, Result<Ending, ReadError>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    fs::write(&path, bytes).unwrap();
    let mut records = Vec::new();
    let result = read(&path, |record| records.push(record));
    (records, result)
}

/// A packet with these fields, as the file holds it.
fn packet(fields: &[u8]) -> Vec<u8> {
    [&[0x0a, u8::try_from(fields.len()).unwrap()], fields].concat()
}

/// A chunk with what is `inside`.
fn chunk(inside: &[u8]) -> Vec<u8> {
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(inside).unwrap();
    let deflated = deflate.finish().unwrap();
    let field = [varint(50 << 3 | 2), varint(deflated.len()), deflated].concat();
    [vec![0x0a], varint(field.len()), field].concat()
}

/// Where each packet of a file ends.
fn packet_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = 1 + bytes[at + 1..].iter().take_while(|&&byte| byte >= 0x80).count();
        let length = &bytes[at + 1..=at + digits];
        at +=
            1 + digits + length.iter().rev().fold(0, |it, byte| it << 7 | usize::from(byte & 0x7f));
        ends.push(at);
    }
    ends
}

fn varint(value: usize) -> Vec<u8> {
    let low = u8::try_from(value & 0x7f).unwrap();
    if value < 0x80 { vec![low] } else { [vec![low | 0x80], varint(value >> 7)].concat() }
}

/// The packet that every trace begins with.
fn first_packet() -> Vec<u8> {
    let (trace, _) = trace();
    trace[..2 + usize::from(trace[1])].to_vec()
}

/// The instant `ungil`, as far as the reader looks at it.
fn schema_packet(schema: u8) -> Vec<u8> {
    let annotation = [b"\x22\x0a\x52\x06schema\x18", &[schema][..]].concat();
    let event = [b"\x48\x03\xba\x01\x05ungil\x58\x01", &annotation[..]].concat();
    packet(&[&[0x50, 1, 0x5a, u8::try_from(event.len()).unwrap()], &event[..]].concat())
}

/// Where each packet of the file ends, as the format says: a byte for the field, a length, and so
/// many bytes.
fn ends_of_packets(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(bytes[at] & 0x7f) << shift;
            shift += 7;
            if bytes[at] < 0x80 {
                break;
            }
        }
        at += 1 + length;
        ends.push(at);
    }
    ends
}

#[test]
fn a_trace_cut_at_any_byte_says_what_its_whole_packets_say() {
    let (bytes, records) = trace();
    let ends = ends_of_packets(&bytes);
    // Of the packets that come first, the schema is the last one; each other one has ten records.
    let (schema, chunks) = (ends[2], &ends[3..]);
    assert_eq!(chunks.len(), records.len().div_ceil(10));
    for length in 0..bytes.len() {
        let (before, result) = read_bytes(&bytes[..length]);
        if length < schema {
            let Err(ReadError::Truncated { offset }) = result else {
                panic!("at {length}: {result:?}");
            };
            assert_eq!((offset, before.len()), (length as u64, 0));
            continue;
        }
        assert_eq!(result.unwrap(), Ending::Cut, "at {length}");
        let whole = chunks.iter().filter(|&&end| end <= length).count();
        assert_eq!(before, records[..10 * whole], "at {length}");
    }
    let (all, result) = read_bytes(&bytes);
    assert_eq!((all, result.unwrap()), (records, Ending::Whole));
}

#[test]
fn what_follows_the_end_of_a_trace_is_not_read() {
    let (mut bytes, records) = trace();
    bytes.extend(b"\x0a\x02\x08\x00 and more");
    let (all, result) = read_bytes(&bytes);
    assert_eq!(all, records);
    result.unwrap();
}

#[test]
fn a_foreign_file_is_not_a_trace() {
    let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0";
    let (_, result) = read_bytes(elf);
    assert_eq!(
        result.unwrap_err().to_string(),
        "the file is not a trace of ungil: it begins with \"\\x7fELF\\x02\\x01\\x01\\x00\"; \
         pass a .pftrace file that ungil trace wrote"
    );
    // A Perfetto trace of another tool, and a text that begins like one.
    for foreign in [&packet(b"\x40\x01\x50\x02")[..], b"\n\nHello\n", &[0; 100]] {
        let (_, result) = read_bytes(foreign);
        assert!(matches!(result, Err(ReadError::NotATrace { .. })), "{foreign:?}: {result:?}");
    }
}

#[test]
fn a_missing_file_and_a_directory_are_input_errors() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), &directory.path().join("missing"), Path::new("")] {
        let result = read(path, |_| panic!("there is nothing to read"));
        assert!(matches!(result, Err(ReadError::Io(_))), "{}: {result:?}", path.display());
    }
}

#[test]
fn a_trace_of_another_schema_is_named() {
    let (_, result) = read_bytes(&[first_packet(), schema_packet(9)].concat());
    assert_eq!(
        result.unwrap_err().to_string(),
        "the trace has schema 9 and this ungil reads schema 1; read it with the version of ungil \
         that wrote it"
    );
}

#[test]
fn a_length_that_is_a_lie_takes_no_memory() {
    let start = [first_packet(), schema_packet(1)].concat();
    let end = start.len() as u64;
    let (_, result) = read_bytes(&[&start[..], b"\x0a\xff\xff\xff\x07 "].concat());
    assert_eq!(result.unwrap(), Ending::Cut);
    for too_long in [&b"\x0a\xff\xff\xff\x7f"[..], b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
    {
        let (_, result) = read_bytes(&[&start[..], too_long].concat());
        assert!(matches!(result, Err(ReadError::Damaged { offset, .. }) if offset == end));
    }
}

#[test]
fn a_chunk_that_inflates_without_end_is_damage() {
    let bomb = chunk(&vec![0; 20 << 20]);
    assert!(bomb.len() < 1 << 20);
    let (_, result) = read_bytes(&[first_packet(), schema_packet(1), bomb].concat());
    let Err(ReadError::Damaged { what, .. }) = result else { panic!("{result:?}") };
    assert_eq!(what, "a chunk is larger than any that ungil writes");
}

#[test]
fn an_event_of_nobody_is_damage() {
    let start = [first_packet(), schema_packet(1)].concat();
    let (_, result) =
        read_bytes(&[&start[..], &chunk(&packet(b"\x50\x02\x5a\x02\x48\x01"))].concat());
    let Err(ReadError::Damaged { offset, what }) = result else { panic!("{result:?}") };
    assert_eq!(offset, start.len() as u64);
    assert_eq!(what, "an event names a thread that was not introduced");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_flipped_bit_changes_no_record_in_silence(position: prop::sample::Index, bit in 0..8u8) {
        let (mut bytes, records) = trace();
        *position.get_mut(&mut bytes) ^= 1 << bit;
        let (before, result) = read_bytes(&bytes);
        prop_assert_eq!(&before[..], &records[..before.len()]);
        // What looks like a longer packet than there is looks like a cut.
        prop_assert!(!matches!(result, Ok(Ending::Whole)) || before.len() == records.len());
    }

    #[test]
    fn any_trace_cut_at_any_byte_says_what_was_flushed_before(
        flushed in prop::collection::vec(1..30u32, 1..12), position: prop::sample::Index
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.pftrace");
        let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
        let (mut written, mut flushes) = (0, Vec::new());
        for count in flushed {
            for _ in 0..count {
                written += 1;
                writer.write(&Record::Note { text: written.to_string() }, None).unwrap();
            }
            writer.flush().unwrap();
            flushes.push(written);
        }
        writer.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        // Each flush is a packet, and so is the end.
        let ends = packet_ends(&bytes);
        let sizes: Vec<_> = ends[ends.len() - 1 - flushes.len()..].iter().zip(flushes).collect();
        let length = position.index(bytes.len());
        let (records, result) = read_bytes(&bytes[..length]);
        let expected =
            sizes.iter().rev().find(|(size, _)| **size <= length).map_or(0, |it| it.1);
        let expected: Vec<_> =
            (1..=expected).map(|number| Record::Note { text: number.to_string() }).collect();
        prop_assert_eq!(&records, &expected);
        prop_assert!(matches!(result, Ok(Ending::Cut)) || expected.is_empty());
    }

    #[test]
    fn random_bytes_after_a_good_start_are_an_error(
        fields in prop::collection::vec(any::<u8>(), 0..120), on_common: bool
    ) {
        // Fields of a track event are the most likely to be taken for something.
        let sequence = if on_common { 1 } else { 2 };
        let event = [&[0x50, sequence, 0x5a, u8::try_from(fields.len()).unwrap()], &fields[..]];
        let (start, event) = ([first_packet(), schema_packet(1)].concat(), event.concat());
        for end in [chunk(&packet(&event)), chunk(&packet(&fields)), chunk(&fields), fields] {
            let (records, result) = read_bytes(&[&start[..], &end].concat());
            prop_assert_eq!(records, vec![]);
            prop_assert!(!matches!(result, Ok(Ending::Whole)));
        }
    }
}
