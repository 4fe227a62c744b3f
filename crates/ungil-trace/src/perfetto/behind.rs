//! Writing behind: one thread deflates and writes chunks while another one makes the next. A disk
//! that stalls for a moment then holds up nobody who has rings to read.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use flate2::{Compress, Compression, FlushCompress, Status};

use super::schema::{TRACE_PACKET, packet};
use super::wire::Message;
use crate::signals::block_all;

/// Against level 1, a trace is 40 % smaller and takes 20 % more time to write; level 3 takes another
/// 20 % and gains 7 % (`examples/write_speed.rs`).
const DEFLATE_LEVEL: Compression = Compression::new(2);

/// How many chunks may wait to be written: 64 MiB, or a minute of flushes. Whoever has another one
/// then waits.
const BEHIND: usize = 256;

/// Where chunks go.
pub enum Chunks {
    /// To the file at once.
    Here(Box<ChunkFile>),
    /// To the thread that writes them.
    Behind(Behind),
    /// Nowhere: one could not be written, and nothing after it would make sense.
    Failed,
}

/// The thread that writes, as the one sees it that has chunks. Dropped, it waits until all is written.
pub struct Behind {
    /// There until the thread is to end.
    chunks: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Behind {
    /// Gives the file back if there can be no thread.
    fn begin(thread: Builder, file: Box<ChunkFile>) -> Result<Self, Box<ChunkFile>> {
        let (hand_over, handed_over) = channel::<Box<ChunkFile>>();
        let (chunks, to_write) = sync_channel::<Vec<u8>>(BEHIND);
        let thread = thread.name("ungil-writer".to_owned()).spawn(move || {
            block_all();
            let Ok(mut file) = handed_over.recv() else { return Ok(()) };
            to_write.into_iter().try_for_each(|packets| file.put(&packets))
        });
        let Ok(thread) = thread else { return Err(file) };
        // It fails only if the thread has ended.
        hand_over.send(file).map_err(|unsent| unsent.0)?;
        Ok(Self { chunks: Some(chunks), thread: Some(thread) })
    }

    /// Hands over the packets of a chunk; whether the thread still takes any.
    fn put(&self, packets: Vec<u8>) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.send(packets).is_ok())
    }

    /// Waits until all is written.
    fn end(&mut self) -> io::Result<()> {
        self.chunks = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let panicked = |_| Err(io::Error::other("the thread that writes the trace panicked"));
        thread.join().unwrap_or_else(panicked)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // Whoever wants to know how it went has asked.
        let _ = self.end();
    }
}

impl Chunks {
    /// Into this file, after the `written` bytes that it has.
    pub fn new(file: File, written: u64) -> Self {
        Self::Here(Box::new(ChunkFile {
            file,
            written,
            deflate: Compress::new(DEFLATE_LEVEL, true),
            deflated: Vec::new(),
            chunk: Vec::new(),
        }))
    }

    /// Takes the packets of a chunk. An error is that of an earlier chunk as a rule.
    pub fn put(&mut self, packets: &mut Vec<u8>) -> io::Result<()> {
        let mut behind = match mem::replace(self, Self::Failed) {
            Self::Here(file) => match Behind::begin(Builder::new(), file) {
                Ok(behind) => behind,
                Err(mut file) => {
                    file.put(&mem::take(packets))?;
                    *self = Self::Here(file);
                    return Ok(());
                }
            },
            Self::Behind(behind) => behind,
            Self::Failed => return Err(failed_before()),
        };
        if !behind.put(mem::take(packets)) {
            return behind.end();
        }
        *self = Self::Behind(behind);
        Ok(())
    }

    /// Writes the last chunk, and waits until all are written.
    pub fn finish(self, packets: &[u8]) -> io::Result<()> {
        match self {
            Self::Here(mut file) => file.put(packets),
            Self::Behind(mut behind) => {
                // If it has failed, it says so itself.
                behind.put(packets.to_vec());
                behind.end()
            }
            Self::Failed => Err(failed_before()),
        }
    }
}

/// A file to which chunks are appended.
pub struct ChunkFile {
    file: File,
    /// Its length up to the last whole chunk.
    written: u64,
    deflate: Compress,
    deflated: Vec<u8>,
    chunk: Vec<u8>,
}

impl ChunkFile {
    /// Appends the chunk of these packets, if there are any.
    fn put(&mut self, packets: &[u8]) -> io::Result<()> {
        if packets.is_empty() {
            return Ok(());
        }
        deflate(&mut self.deflate, packets, &mut self.deflated)?;
        self.chunk.clear();
        Message::at_end_of(&mut self.chunk).message(TRACE_PACKET, |packet| {
            packet.bytes(packet::COMPRESSED_PACKETS, &self.deflated);
        });
        if let Err(error) = self.file.write_all(&self.chunk) {
            // A full disk may have taken half a chunk. If it cannot be cut off either, the reader
            // finds it cut off all the same.
            let _ = self.file.set_len(self.written);
            return Err(error);
        }
        self.written += self.chunk.len() as u64;
        Ok(())
    }
}

/// Replaces what is in `out` by the zlib stream of `bytes`.
fn deflate(deflate: &mut Compress, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    deflate.reset();
    out.clear();
    loop {
        let done = usize::try_from(deflate.total_in()).map_err(io::Error::other)?;
        out.reserve(bytes.len() / 2 + 1024);
        let status = deflate.compress_vec(&bytes[done..], out, FlushCompress::Finish)?;
        if status == Status::StreamEnd {
            return Ok(());
        }
    }
}

fn failed_before() -> io::Error {
    io::Error::other("an earlier part of the trace could not be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    #[test]
    fn whoever_has_chunks_goes_on_while_nothing_can_be_written() {
        // A pipe that nobody reads is full long before these chunks are through.
        let (mut reader, writer) = io::pipe().unwrap();
        let mut chunks = Chunks::new(File::from(OwnedFd::from(writer)), 0);
        let mut all = Vec::new();
        let noise = |seed: u64| {
            let mut state = seed * 2 + 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            };
            (0..10_000).map(|_| next()).collect::<Vec<u8>>()
        };
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let Chunks::Here(mut at_once) = Chunks::new(File::create(&whole).unwrap(), 0) else {
            panic!("nothing was put")
        };
        for seed in 0..50 {
            let mut packets = noise(seed);
            at_once.put(&packets).unwrap();
            chunks.put(&mut packets).unwrap();
            assert!(packets.is_empty());
        }
        let reading = std::thread::spawn(move || reader.read_to_end(&mut all).map(|_| all));
        chunks.finish(&[]).unwrap();
        assert!(reading.join().unwrap().unwrap() == fs::read(&whole).unwrap());
    }

    #[test]
    fn where_there_can_be_no_thread_the_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole");
        let Chunks::Here(file) = Chunks::new(File::create(&path).unwrap(), 0) else { panic!() };
        let no_room = Builder::new().stack_size(1 << 60);
        let Err(mut file) = Behind::begin(no_room, file) else { panic!("there is no such memory") };
        file.put(b"packets").unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 0);
    }

    #[test]
    fn what_one_chunk_failed_of_is_told_once_and_nothing_is_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole");
        fs::write(&path, "before").unwrap();
        // A file that cannot be written to fails as a full disk does.
        let mut chunks = Chunks::new(File::open(&path).unwrap(), 6);
        let first = loop {
            if let Err(error) = chunks.put(&mut b"packets".to_vec()) {
                break error;
            }
        };
        assert_eq!(first.raw_os_error(), Some(libc::EBADF));
        let failed = "an earlier part of the trace could not be written";
        assert_eq!(chunks.put(&mut b"packets".to_vec()).unwrap_err().to_string(), failed);
        assert_eq!(chunks.finish(b"packets").unwrap_err().to_string(), failed);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    }
}
