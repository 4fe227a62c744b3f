//! A stream socket that tasks read and write, one of each at a time.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::hand;
use super::reactor::Direction;
use super::socket;
use super::unread::Unread;
use super::until::Until;
use super::want::{Progress, Want};

/// How much is received at once. It lies on the stack.
const PIECE: usize = 1 << 14;

/// So many pieces are received or sent before others have their turn.
const PIECES: usize = 64;

/// Whether the system lets what is written wait for the answer to what was written before.
#[derive(Debug)]
enum Nagle {
    /// There is nothing before. Most connections are written to once, and need no system call.
    Idle,
    On,
    Off,
}

/// A connected socket, with what has arrived and was not asked for.
#[derive(Debug)]
pub struct Stream {
    socket: Option<OwnedFd>,
    unread: Unread,
    /// The loop that has it in its reactor, or 0.
    kept_by: u64,
    /// Somebody waits to read, or to write.
    is_read: bool,
    is_written: bool,
    /// Closed by the user; the socket stays until nobody waits for it.
    is_closed: bool,
    nagle: Nagle,
}

/// Why nothing is read.
#[derive(Debug)]
pub enum ReadError {
    /// The system's reason.
    Io(io::Error),
    /// The peer has ended too early, as the sentence goes on: `after 2 of 3 bytes`.
    Ended(String),
    /// So many bytes have come without the end that was waited for.
    TooLong {
        /// How many have come.
        arrived: usize,
        /// How many there may be.
        limit: usize,
    },
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Stream {
    /// A socket that is connected and does not block. `kept_by` is the loop that has waited for it.
    pub fn new(socket: OwnedFd, kept_by: u64, is_internet: bool) -> Self {
        Self {
            socket: Some(socket),
            unread: Unread::default(),
            kept_by,
            is_read: false,
            is_written: false,
            is_closed: false,
            nagle: if is_internet { Nagle::Idle } else { Nagle::Off },
        }
    }

    /// The descriptor, as long as the user has not closed it.
    ///
    /// # Errors
    /// `EBADF` from then on.
    pub fn fd(&self) -> io::Result<RawFd> {
        match &self.socket {
            Some(socket) if !self.is_closed => Ok(socket.as_raw_fd()),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Whether the user has closed it.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether somebody waits for it.
    pub fn is_waited_for(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.is_read,
            Direction::Write => self.is_written,
        }
    }

    /// Somebody waits for it from now on, until [`Self::leave`].
    pub fn enter(&mut self, direction: Direction) {
        *self.waiter(direction) = true;
    }

    /// Whoever waited for it does so no more.
    pub fn leave(&mut self, direction: Direction) {
        *self.waiter(direction) = false;
        if self.is_closed {
            self.release();
        }
    }

    fn waiter(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Read => &mut self.is_read,
            Direction::Write => &mut self.is_written,
        }
    }

    /// Closes it. Whoever waits for it is woken, and told `EBADF`.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.release();
    }

    /// Closes the socket if nobody waits for it, and else wakes those who do.
    fn release(&mut self) {
        if !self.is_read && !self.is_written {
            self.socket = None;
        } else if let Some(socket) = &self.socket {
            socket::shut_down(socket.as_raw_fd());
        }
    }

    fn want(&mut self, direction: Direction) -> io::Result<Want> {
        Ok(Want::Ready { fd: self.fd()?, direction, belongs: hand::belongs(&mut self.kept_by) })
    }

    /// Reads what can be read now. `seen` is how much of what has arrived was looked at in vain, 0
    /// at first; `give` makes the result of the bytes.
    pub fn read<T>(
        &mut self,
        until: &Until,
        seen: &mut usize,
        give: impl FnOnce(&[u8]) -> T,
    ) -> Result<Progress<T>, ReadError> {
        let fd = self.fd()?;
        if let Some(count) = until.found(self.unread.as_slice(), *seen) {
            return Ok(Progress::Done(self.taken(count, give)));
        }
        *seen = self.unread.len();
        // What is ready before it is registered is announced then: no need to be told `EAGAIN`.
        if self.kept_by == 0 && hand::driver().is_some() {
            return Ok(Progress::Wait(self.want(Direction::Read)?));
        }
        for _ in 0..PIECES {
            let mut room = [MaybeUninit::<u8>::uninit(); PIECE];
            let arrived = match socket::receive(fd, &mut room) {
                Ok([]) => {
                    let count = self.unread.len();
                    until.is_found_by_end(count).map_err(ReadError::Ended)?;
                    return Ok(Progress::Done(self.taken(count, give)));
                }
                Ok(arrived) => arrived,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress::Wait(self.want(Direction::Read)?));
                }
                Err(error) => return Err(error.into()),
            };
            if *seen == 0
                && let Some(count) = until.found(arrived, 0)
            {
                let (bytes, rest) = arrived.split_at(count);
                if !rest.is_empty() {
                    self.unread.add(rest);
                }
                return Ok(Progress::Done(give(bytes)));
            }
            self.unread.add(arrived);
            if let Some(count) = until.found(self.unread.as_slice(), *seen) {
                return Ok(Progress::Done(self.taken(count, give)));
            }
            *seen = self.unread.len();
            if let Some(limit) = until.is_beyond(*seen) {
                return Err(ReadError::TooLong { arrived: *seen, limit });
            }
        }
        Ok(Progress::Wait(Want::Sleep(0)))
    }

    fn taken<T>(&mut self, count: usize, give: impl FnOnce(&[u8]) -> T) -> T {
        let given = give(&self.unread.as_slice()[..count]);
        self.unread.take(count);
        given
    }

    /// Writes what can be written now of `bytes`, of which the first `written` have been.
    pub fn write(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<Progress<()>> {
        for _ in 0..PIECES {
            let rest = &bytes[*written..];
            if rest.is_empty() {
                return Ok(Progress::Done(()));
            }
            match self.send(rest) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.want(Direction::Write).map(Progress::Wait);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Wait(Want::Sleep(0)))
    }

    /// Sends what goes now; says how much of `bytes` that was.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.fd()?;
        match self.nagle {
            Nagle::Idle => self.nagle = Nagle::On,
            Nagle::On => {
                socket::without_delay(fd);
                self.nagle = Nagle::Off;
            }
            Nagle::Off => {}
        }
        socket::send(fd, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::lean::want::Belongs;

    fn pair() -> (Stream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Stream::new(ours.into(), 0, false), theirs)
    }

    fn line() -> Until {
        Until::Separator { separator: b"\n".to_vec(), limit: 100, or_end: true }
    }

    /// What is read now; None if it has to wait.
    fn read(stream: &mut Stream, until: &Until, seen: &mut usize) -> Option<Vec<u8>> {
        match stream.read(until, seen, <[u8]>::to_vec).unwrap() {
            Progress::Done(bytes) => Some(bytes),
            Progress::Wait(_) => None,
        }
    }

    #[test]
    fn lines_come_one_by_one_however_they_arrive() {
        let (mut stream, mut theirs) = pair();
        theirs.write_all(b"first\nsec").unwrap();
        assert_eq!(read(&mut stream, &line(), &mut 0).unwrap(), b"first\n");
        let mut seen = 0;
        assert_eq!(read(&mut stream, &line(), &mut seen), None);
        assert_eq!(seen, 3);
        theirs.write_all(b"ond\nrest").unwrap();
        assert_eq!(read(&mut stream, &line(), &mut seen).unwrap(), b"second\n");
        drop(theirs);
        assert_eq!(read(&mut stream, &line(), &mut 0).unwrap(), b"rest");
        assert_eq!(read(&mut stream, &line(), &mut 0).unwrap(), b"");
    }

    #[test]
    fn a_peer_that_ends_too_early_or_too_late_is_an_error() {
        let (mut stream, mut theirs) = pair();
        theirs.write_all(&[b'x'; 101]).unwrap();
        let too_long = stream.read(&line(), &mut 0, <[u8]>::to_vec);
        assert!(matches!(too_long, Err(ReadError::TooLong { arrived: 101, limit: 100 })));
        let (mut stream, theirs) = pair();
        drop(theirs);
        let Err(ReadError::Ended(why)) = stream.read(&Until::Exactly(2), &mut 0, <[u8]>::to_vec)
        else {
            panic!("there are no two bytes");
        };
        assert_eq!(why, "after 0 of 2 bytes");
    }

    #[test]
    fn under_a_loop_a_new_stream_waits_before_it_is_asked() {
        let (mut stream, mut theirs) = pair();
        theirs.write_all(b"x").unwrap();
        let _driving = hand::Driving::begin(3);
        let until = Until::AtMost(9);
        let Ok(Progress::Wait(Want::Ready { belongs, .. })) =
            stream.read(&until, &mut 0, <[u8]>::to_vec)
        else {
            panic!("the loop has not seen it");
        };
        assert_eq!(belongs, Belongs::New);
        assert_eq!(read(&mut stream, &until, &mut 0).unwrap(), b"x");
    }

    #[test]
    fn what_the_system_does_not_take_is_written_later() {
        let (mut stream, mut theirs) = pair();
        let bytes = vec![7; 1 << 22];
        let (mut written, mut arrived) = (0, Vec::new());
        let mut room = vec![0; 1 << 16];
        while let Progress::Wait(_) = stream.write(&bytes, &mut written).unwrap() {
            let count = theirs.read(&mut room).unwrap();
            arrived.extend_from_slice(&room[..count]);
        }
        assert_eq!(written, bytes.len());
        drop(stream);
        theirs.read_to_end(&mut arrived).unwrap();
        assert!(arrived == bytes);
    }

    #[test]
    fn a_closed_stream_stays_until_nobody_waits_for_it() {
        let (mut stream, mut theirs) = pair();
        stream.enter(Direction::Read);
        assert!(stream.is_waited_for(Direction::Read) && !stream.is_waited_for(Direction::Write));
        stream.close();
        assert_eq!(stream.fd().unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert!(stream.socket.is_some(), "its number must not come back as another's");
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        stream.leave(Direction::Read);
        assert!(stream.socket.is_none());
    }
}
