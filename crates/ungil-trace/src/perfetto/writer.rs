//! The file being written: a temporary name, chunks, and the rename at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::behind::Chunks;
use super::encode::Encoder;
use super::schema::clock;
use super::unfinished::temporary_name;
use crate::clock::read_ns;
use crate::flock::try_lock;
use crate::record::{Record, ThreadId};
use crate::wall_clock::WallClock;

/// A chunk is deflated and written when it has grown this large.
pub const CHUNK_BYTES: usize = 256 << 10;

/// What to do about a file that already has the name of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Fail and leave it alone.
    Refuse,
    /// Replace it, once the trace is finished.
    Replace,
}

/// Writes a trace.
///
/// One that is dropped before [`finish`](Self::finish) leaves nothing behind.
pub struct Writer {
    path: PathBuf,
    overwrite: Overwrite,
    temporary: Temporary,
    wall_clock: WallClock,
    encoder: Encoder,
    chunks: Chunks,
}

impl Writer {
    /// Begins a trace under a temporary name in the directory of `path`; a file `path` appears
    /// only at [`finish`](Self::finish).
    ///
    /// Fails if `path` exists and shall not be replaced, or is not a regular file, or if its
    /// directory cannot be written to.
    pub fn create(path: &Path, overwrite: Overwrite) -> io::Result<Self> {
        let (kind, why) = match (fs::symlink_metadata(path), overwrite) {
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
                return Self::begin(path, overwrite);
            }
            (Err(error), _) => return Err(error),
            (Ok(found), Overwrite::Replace) if found.is_file() || found.is_symlink() => {
                return Self::begin(path, overwrite);
            }
            (Ok(_), Overwrite::Replace) => (io::ErrorKind::InvalidInput, "is not a regular file"),
            (Ok(_), Overwrite::Refuse) => (io::ErrorKind::AlreadyExists, "already exists"),
        };
        Err(io::Error::new(kind, format!("{} {why}", path.display())))
    }

    fn begin(path: &Path, overwrite: Overwrite) -> io::Result<Self> {
        let (temporary, mut file) = Temporary::beside(path)?;
        let clocks = [
            (clock::MONOTONIC, libc::CLOCK_MONOTONIC),
            (clock::BOOTTIME, libc::CLOCK_BOOTTIME),
            (clock::REALTIME, libc::CLOCK_REALTIME),
        ];
        let clocks = clocks.map(|(id, clock)| (id, read_ns(clock)));
        let wall_clock = WallClock::new(clocks[0].1, clocks[2].1);
        let mut encoder = Encoder::new(&clocks);
        file.write_all(encoder.bytes())?;
        let written = encoder.bytes().len() as u64;
        encoder.bytes_mut().clear();
        Ok(Self {
            path: path.to_owned(),
            overwrite,
            temporary,
            wall_clock,
            encoder,
            chunks: Chunks::new(file, written),
        })
    }

    /// The name that it is to have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The clocks that it was begun with, as a reader of the file finds them.
    pub const fn wall_clock(&self) -> WallClock {
        self.wall_clock
    }

    /// Adds `record`. `culprit` is, for an acquire that ended a wait, the thread that held
    /// longest meanwhile.
    ///
    /// Fails without consequences ([`io::ErrorKind::InvalidInput`]) on a record that names a
    /// process or thread before it is introduced, introduces one again, or has more than 8 MiB of
    /// text. After any other error, which may be that of an earlier record, only `finish` makes sense;
    /// it saves what was written before.
    pub fn write(&mut self, record: &Record, culprit: Option<ThreadId>) -> io::Result<()> {
        self.encoder.record(record, culprit)?;
        if self.encoder.bytes().len() < CHUNK_BYTES { Ok(()) } else { self.flush() }
    }

    /// Hands everything so far to the thread that writes the file, where it outlives this process.
    pub fn flush(&mut self) -> io::Result<()> {
        let packets = self.encoder.bytes_mut();
        if packets.is_empty() { Ok(()) } else { self.chunks.put(packets) }
    }

    /// Ends the trace, with slices that are still open, and gives it its name.
    ///
    /// If the last of it cannot be written, the file appears all the same and reads as cut off.
    /// If it cannot get its name, because another file has taken it meanwhile, it stays under the
    /// temporary one.
    pub fn finish(mut self) -> Result<(), Incomplete> {
        self.encoder.end();
        let flushed = self.chunks.finish(self.encoder.bytes());
        match (self.temporary.rename(&self.path, self.overwrite), flushed) {
            (Ok(()), Ok(())) => Ok(()),
            (Ok(()), Err(error)) => Err(Incomplete { error, place: self.path }),
            (Err((error, place)), _) => Err(Incomplete { error, place }),
        }
    }
}

/// A trace that lacks its end, or its name.
#[derive(Debug)]
pub struct Incomplete {
    /// Why.
    pub error: io::Error,
    /// Where there is what could be written.
    pub place: PathBuf,
}

impl From<Incomplete> for io::Error {
    fn from(Incomplete { error, place }: Incomplete) -> Self {
        Self::new(
            error.kind(),
            format!("{error}; ungil saved what it could in {}", place.display()),
        )
    }
}

/// A file that is removed when it is dropped, until it gets its final name.
struct Temporary(Option<PathBuf>);

impl Temporary {
    /// A new file in the directory of `path`, locked for as long as it is open.
    fn beside(path: &Path) -> io::Result<(Self, File)> {
        /// Tells apart the traces that one process writes into one directory.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let path = temporary_name(path, COUNT.fetch_add(1, Ordering::Relaxed))?;
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                // Left by an earlier process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
                Ok(file) => {
                    // Without locks it only looks as if the recorder had been killed.
                    let _ = try_lock(&file);
                    return Ok((Self(Some(path)), file));
                }
            }
        }
    }

    /// Gives it its name; if that is not possible, why, and where it stays.
    fn rename(&mut self, to: &Path, overwrite: Overwrite) -> Result<(), (io::Error, PathBuf)> {
        let Some(from) = self.0.take() else { return Ok(()) };
        let linked = match overwrite {
            // Unlike a rename, a link does not replace what appeared since the trace was begun.
            Overwrite::Refuse => fs::hard_link(&from, to),
            Overwrite::Replace => Err(io::ErrorKind::Unsupported.into()),
        };
        let renamed = match linked {
            Ok(()) => fs::remove_file(&from),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no links.
            Err(_) => fs::rename(&from, to),
        };
        renamed.map_err(|error| (error, from))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If it cannot be removed, nobody is left to tell.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ending, read};
    use super::*;
    use std::mem;

    #[test]
    fn when_the_disk_is_full_what_was_written_before_is_saved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.pftrace");
        let note = |text: &str| Record::Note { text: text.into() };
        let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
        writer.write(&note("one"), None).unwrap();
        writer.flush().unwrap();
        // A file that cannot be written to fails as a full disk does.
        let file = File::open(writer.temporary.0.as_ref().unwrap()).unwrap();
        let written = file.metadata().unwrap().len();
        mem::replace(&mut writer.chunks, Chunks::new(file, written)).finish(&[]).unwrap();
        writer.write(&note("two"), None).unwrap();
        let incomplete = writer.finish().unwrap_err();
        assert_eq!(incomplete.place, path);
        let mut records = Vec::new();
        let ending = read(&path, |record| records.push(record)).unwrap();
        assert_eq!(ending, Ending::Cut);
        assert_eq!(records, [note("one")]);
    }
}
