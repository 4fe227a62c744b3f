//! How a process asks the flight recorder of another one for a snapshot: by a socket in the
//! session's directory, which only the user of the session may use.
//!
//! Who asks writes the path that it wants, or nothing, and a zero byte; the answer is JSON.

use super::session::{PREFIX, Session, places};
use super::snapshots::Exchange;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// The name of the socket in a session.
const NAME: &str = "snapshots";
/// How long who asks may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest path that anybody may ask for.
const PATH_BYTES: u64 = 4_096;

/// Why there was no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No session records that process, and none of its recorders is it.
    #[error(
        "process {0} is neither a flight recorder nor recorded by one: start the program with \
         `ungil trace --last 30s PROGRAM`"
    )]
    NotRecorded(u32),
    /// It is recorded as a whole.
    #[error(
        "process {0} is recorded as a whole, and `ungil report` reads the trace so far; only a \
         recorder started with --last writes snapshots"
    )]
    Whole(u32),
    /// The recorder did not answer.
    #[error("the recorder of process {pid} did not answer: {error}")]
    Silent {
        /// Whose.
        pid: u32,
        /// What happened.
        error: io::Error,
    },
}

/// Answers those who ask.
#[derive(Debug)]
pub struct Answering {
    listener: UnixListener,
    exchange: Arc<Exchange>,
}

impl Answering {
    /// Listens in a session.
    pub fn at(session: &Session, exchange: Arc<Exchange>) -> io::Result<Self> {
        let path = session.directory().join(NAME);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, exchange })
    }

    /// Hands on what was asked since it was called last. Who asks is answered by a thread of its
    /// own: it may be slow.
    pub fn look(&self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let exchange = self.exchange.clone();
            let thread = Builder::new().name("ungil-asked".into());
            // Where there can be no thread, who asks sees the connection end.
            let _ = thread.spawn(move || {
                crate::signals::block_all();
                answer(&stream, &exchange)
            });
        }
    }
}

fn answer(stream: &UnixStream, exchange: &Exchange) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut path = Vec::new();
    BufReader::new(stream.take(PATH_BYTES)).read_until(0, &mut path)?;
    if path.pop() != Some(0) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let path = Some(PathBuf::from(OsString::from_vec(path))).filter(|it| it != Path::new(""));
    let written = exchange.ask_and_wait(path).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut stream = stream;
    stream.write_all(serde_json::to_string(&written)?.as_bytes())
}

/// Asks the recorder `pid`, or the one that records process `pid`, for a snapshot, and returns what
/// it answers, as JSON. `path` is absolute; `None` leaves the name to the recorder.
pub fn ask_for_snapshot(pid: u32, path: Option<&Path>) -> Result<String, AskError> {
    let mut is_recorded = false;
    for directory in sessions() {
        let records = has_table_of(&directory, pid);
        is_recorded |= records;
        let Ok(stream) = connect(&directory) else { continue };
        if records || peer_pid(&stream) == Some(pid) {
            return exchange(stream, path).map_err(|error| AskError::Silent { pid, error });
        }
    }
    Err(if is_recorded { AskError::Whole(pid) } else { AskError::NotRecorded(pid) })
}

fn exchange(mut stream: UnixStream, path: Option<&Path>) -> io::Result<String> {
    let mut bytes = path.map_or(Vec::new(), |path| path.as_os_str().as_bytes().to_vec());
    bytes.push(0);
    stream.write_all(&bytes)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended meanwhile"));
    }
    Ok(answer)
}

/// A path of any length works: it is shortened by way of its open directory.
fn connect(directory: &Path) -> io::Result<UnixStream> {
    let open = fs::File::open(directory)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()))
}

fn sessions() -> Vec<PathBuf> {
    let entries = places().into_iter().filter_map(|place| fs::read_dir(place).ok()).flatten();
    let is_session = |name: OsString| name.to_string_lossy().starts_with(PREFIX);
    entries.flatten().filter(|it| is_session(it.file_name())).map(|it| it.path()).collect()
}

/// Tables are called by the id of their process, a dash, and a number. One that is elsewhere has its name
/// here ([`Session::is_for`]).
fn has_table_of(directory: &Path, pid: u32) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let start = format!("{pid}-");
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
}

/// The process that listens at the other end.
fn peer_pid(stream: &UnixStream) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the descriptor is open; `peer` is as long as `length` says, and both may be written.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    u32::try_from(peer.pid).ok().filter(|_| failed == 0)
}
