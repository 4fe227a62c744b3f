//! A trace file, packet by packet.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::bufread::ZlibDecoder;

use super::decode::{Decoder, Problem, chunk};
use super::encode::TEXT_BYTES;
use super::packet::first_packet;
use super::schema::{SCHEMA, TRACE_PACKET};
use super::wire::{Fields, Value};
use super::writer::CHUNK_BYTES;
use crate::record::Record;

/// Why a trace could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("the trace cannot be read: {0}; check its path and permissions")]
    Io(#[from] io::Error),
    /// The file is something else. `ungil` recognises its own traces only; a Perfetto trace from
    /// another tool has no GIL events to report.
    #[error(
        "the file is not a trace of ungil: it begins with \"{}\"; pass a .pftrace file that ungil \
         trace wrote", start.escape_ascii()
    )]
    NotATrace {
        /// Its first bytes, eight at most.
        start: Vec<u8>,
    },
    /// It ends before it says that it is a trace of this version, or anything else.
    #[error("the trace is cut off after byte {offset}, before anything was recorded")]
    Truncated {
        /// Up to where the file could be read.
        offset: u64,
    },
    /// Another version of `ungil` wrote it.
    #[error(
        "the trace has schema {found} and this ungil reads schema {supported}; read it with the \
         version of ungil that wrote it"
    )]
    Schema {
        /// The schema of the file.
        found: u64,
        /// [`SCHEMA`].
        supported: u64,
    },
    /// The bytes contradict themselves or their checksum.
    #[error("the trace is damaged at byte {offset}: {what}; record it again, or copy it again")]
    Damaged {
        /// Where the packet begins that makes no sense.
        offset: u64,
        /// What is wrong with it, as a clause.
        what: &'static str,
    },
}

/// Where a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its last word.
    Whole,
    /// After one of its chunks, or in the middle of one, of which nothing is known then: the
    /// recorder was killed or still writes, its disk was full, or the file was copied in part.
    Cut,
}

/// No chunk is larger, inflated or not: a command line comes twice in one record, and deflation
/// adds less than another `CHUNK_BYTES` to what it cannot shrink.
const PACKET_BYTES: usize = 2 * TEXT_BYTES + 2 * CHUNK_BYTES;

/// Reads the trace at `path` and hands its records to `take`, in the order in which they were
/// written; numbers of events ([`ungil_core::Event::seq`]) count from 1 for each GIL.
///
/// On an error, what came before it has been handed over. A trace whose recorder was killed is read
/// up to its last whole chunk. What follows the end of a trace is not read, so a trace to which
/// other Perfetto traces were appended is still one.
pub fn read(path: &Path, mut take: impl FnMut(Record)) -> Result<Ending, ReadError> {
    let mut file = Input { file: BufReader::new(File::open(path)?), offset: 0 };
    file.check_first_packet()?;
    let mut decoder = Decoder::default();
    let (mut bytes, mut inflated) = (Vec::new(), Vec::new());
    while !decoder.ended() {
        let offset = file.offset;
        match file.packet(&mut bytes) {
            Err(ReadError::Truncated { .. }) if decoder.schema_known() => return Ok(Ending::Cut),
            read => read?,
        }
        let located = |problem| match problem {
            Problem::Schema(found) => ReadError::Schema { found, supported: SCHEMA },
            Problem::Damage(what) => ReadError::Damaged { offset, what },
        };
        if decoder.schema_known() {
            let deflated = chunk(&bytes).map_err(located)?;
            inflate(deflated, &mut inflated).map_err(located)?;
            packets(&inflated, &mut decoder, &mut take).map_err(located)?;
        } else {
            decoder.packet(&bytes, &mut take).map_err(located)?;
        }
    }
    Ok(Ending::Whole)
}

fn packets(
    bytes: &[u8],
    decoder: &mut Decoder,
    take: &mut impl FnMut(Record),
) -> Result<(), Problem> {
    for field in Fields(bytes) {
        let (TRACE_PACKET, Value::Bytes(packet)) = field? else {
            return Err(Problem::Damage("a chunk contains something that is not a packet"));
        };
        decoder.packet(packet, take)?;
    }
    Ok(())
}

/// Replaces what is in `bytes` by what was deflated.
fn inflate(deflated: &[u8], bytes: &mut Vec<u8>) -> Result<(), Problem> {
    bytes.clear();
    let read = ZlibDecoder::new(deflated).take(PACKET_BYTES as u64 + 1).read_to_end(bytes);
    read.map_err(|_| Problem::Damage("a chunk cannot be inflated"))?;
    if bytes.len() > PACKET_BYTES {
        return Err(Problem::Damage("a chunk is larger than any that ungil writes"));
    }
    Ok(())
}

struct Input {
    file: BufReader<File>,
    /// How many bytes have been read.
    offset: u64,
}

impl Input {
    /// Reads the packet that every trace begins with.
    fn check_first_packet(&mut self) -> Result<(), ReadError> {
        let expected = first_packet();
        let mut start = Vec::new();
        self.exactly(expected.len(), &mut start).or_else(|error| match error {
            ReadError::Truncated { .. } if !expected.starts_with(&start) => Ok(()),
            error => Err(error),
        })?;
        if start == expected {
            return Ok(());
        }
        start.truncate(8);
        Err(ReadError::NotATrace { start })
    }

    /// Replaces what is in `bytes` by the next packet.
    fn packet(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let offset = self.offset;
        let damaged = |what| ReadError::Damaged { offset, what };
        self.exactly(1, bytes)?;
        if u32::from(bytes[0]) != TRACE_PACKET << 3 | 2 {
            return Err(damaged("no packet begins here"));
        }
        let mut length = 0;
        for shift in (0..28).step_by(7) {
            self.exactly(1, bytes)?;
            length |= usize::from(bytes[0] & 0x7f) << shift;
            if bytes[0] < 0x80 {
                return match length {
                    ..=PACKET_BYTES => self.exactly(length, bytes),
                    _ => Err(damaged("a packet is larger than any that ungil writes")),
                };
            }
        }
        Err(damaged("a packet is larger than any that ungil writes"))
    }

    /// Replaces what is in `bytes` by the next `length` bytes. Memory is taken as they arrive, so
    /// a length that is a lie costs nothing.
    fn exactly(&mut self, length: usize, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        bytes.clear();
        self.offset += self.file.by_ref().take(length as u64).read_to_end(bytes)? as u64;
        if bytes.len() < length {
            return Err(ReadError::Truncated { offset: self.offset });
        }
        Ok(())
    }
}
