//! Which descriptors are ready: a thin layer over epoll.
//!
//! Keys stand for what waits, as in [`Timers`](super::timers::Timers). To be woken without need is
//! legal everywhere: whoever is woken tries, and waits again if that was in vain. So nothing has to
//! be taken back when a descriptor is closed, and a number that comes back as another connection
//! costs at most such a try.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN,
    EPOLLONESHOT, EPOLLOUT, EPOLLRDHUP,
};
use thiserror::Error;

use super::waker::Waker;

/// How many events are taken at once.
const EVENTS: usize = 1024;

/// The event of the [`Waker`]; all others have a descriptor's number.
const WOKEN: u64 = u64::MAX;

/// What a descriptor shall become ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To be read, or to say that nothing comes any more.
    Read,
    /// To be written.
    Write,
}

/// Why one cannot wait for something.
#[derive(Debug, Error)]
pub enum Refused {
    /// Somebody else waits for the same.
    #[error("another item already waits for descriptor {0}")]
    Busy(RawFd),
    /// It was given to [`Reactor::keep`] and has to be waited for as such.
    #[error("descriptor {0} is a Connection's: use its read and write")]
    Kept(RawFd),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    reader: Option<u64>,
    writer: Option<u64>,
    /// Registered once and for all, by [`Reactor::keep`].
    is_kept: bool,
}

impl Waiting {
    fn of(&mut self, direction: Direction) -> &mut Option<u64> {
        match direction {
            Direction::Read => &mut self.reader,
            Direction::Write => &mut self.writer,
        }
    }

    /// What a registration that is not kept asks for.
    fn interest(self) -> i32 {
        let reads = if self.reader.is_some() { EPOLLIN | EPOLLRDHUP } else { 0 };
        let writes = if self.writer.is_some() { EPOLLOUT } else { 0 };
        reads | writes
    }
}

/// Descriptors and who waits for them.
pub struct Reactor {
    epoll: OwnedFd,
    /// By descriptor.
    waiting: Vec<Waiting>,
    events: Vec<libc::epoll_event>,
    waker: Waker,
    /// Whether the kernel has `epoll_pwait2` (5.11), which knows fractions of a millisecond.
    is_precise: bool,
}

impl Reactor {
    /// # Errors
    /// `EMFILE` without two free descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a flag is all that it takes.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let reactor = Self {
            epoll,
            waiting: Vec::new(),
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS],
            waker: Waker::new()?,
            is_precise: true,
        };
        let fd = reactor.waker.fd();
        reactor.control(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, WOKEN)?;
        Ok(reactor)
    }

    /// For the threads that shall be able to end a wait.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Registers a descriptor of the caller's own, for both directions, until it is closed. That is
    /// one system call in the life of a connection.
    ///
    /// An event comes at once if it is ready already, and from then on when it *becomes* so: only
    /// who was told `EAGAIN` may wait for it.
    pub fn keep(&mut self, fd: RawFd) -> io::Result<()> {
        let edges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        match self.control(EPOLL_CTL_ADD, fd, edges, token(fd)) {
            // It was another loop's in between.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                self.control(EPOLL_CTL_MOD, fd, edges, token(fd))?;
            }
            added => added?,
        }
        *self.entry(fd) = Waiting { is_kept: true, ..Waiting::default() };
        Ok(())
    }

    /// Lets `key` wait for a descriptor that is kept.
    pub fn wait_for_kept(
        &mut self,
        fd: RawFd,
        direction: Direction,
        key: u64,
    ) -> Result<(), Refused> {
        match self.entry(fd).of(direction) {
            Some(_) => Err(Refused::Busy(fd)),
            free => {
                *free = Some(key);
                Ok(())
            }
        }
    }

    /// Lets `key` wait once for a descriptor that somebody else owns. Nothing is left behind.
    ///
    /// # Errors
    /// `EPERM` for those that are always ready, such as regular files.
    pub fn wait_for(&mut self, fd: RawFd, direction: Direction, key: u64) -> Result<(), Refused> {
        let mut wanted = Waiting::default();
        *wanted.of(direction) = Some(key);
        match self.control(EPOLL_CTL_ADD, fd, wanted.interest() | EPOLLONESHOT, token(fd)) {
            // Whatever was known of this number, it is another descriptor now.
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                wanted = *self.entry(fd);
                if wanted.is_kept {
                    return Err(Refused::Kept(fd));
                }
                if wanted.of(direction).replace(key).is_some() {
                    return Err(Refused::Busy(fd));
                }
                self.control(EPOLL_CTL_MOD, fd, wanted.interest() | EPOLLONESHOT, token(fd))?;
            }
            Err(error) => return Err(error.into()),
        }
        *self.entry(fd) = wanted;
        Ok(())
    }

    /// Lets `key` no longer wait for this.
    pub fn forget(&mut self, fd: RawFd, direction: Direction, key: u64) {
        // Who was woken meanwhile has left, and the place may be another's.
        if self.entry(fd).of(direction).take_if(|waiting| *waiting == key).is_some() {
            self.settle(fd);
        }
    }

    /// Waits at most so many nanoseconds, or without end, and reports the keys whose descriptors are
    /// ready. A signal ends it early.
    pub fn wait(&mut self, timeout: Option<u64>, mut woken: impl FnMut(u64)) -> io::Result<()> {
        let count = match self.take_events(timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            taken => taken?,
        };
        for at in 0..count {
            let libc::epoll_event { events, u64: token } = self.events[at];
            let Ok(fd) = RawFd::try_from(token) else {
                self.waker.calm();
                continue;
            };
            let happened = events.cast_signed();
            let entry = self.entry(fd);
            if happened & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR) != 0 {
                entry.reader.take().map(&mut woken);
            }
            if happened & (EPOLLOUT | EPOLLHUP | EPOLLERR) != 0 {
                entry.writer.take().map(&mut woken);
            }
            self.settle(fd);
        }
        Ok(())
    }

    /// Makes the registration of a descriptor that is not kept fit who still waits for it.
    fn settle(&mut self, fd: RawFd) {
        let entry = *self.entry(fd);
        // It may be closed by now, and with it gone from the epoll: there is nothing to do then.
        let _ = match (entry.is_kept, entry.interest()) {
            (true, _) => Ok(()),
            (false, 0) => self.control(EPOLL_CTL_DEL, fd, 0, 0),
            (false, interest) => {
                self.control(EPOLL_CTL_MOD, fd, interest | EPOLLONESHOT, token(fd))
            }
        };
    }

    fn entry(&mut self, fd: RawFd) -> &mut Waiting {
        let at = usize::try_from(fd).expect("descriptors that epoll took are not negative");
        if self.waiting.len() <= at {
            self.waiting.resize(at + 1, Waiting::default());
        }
        &mut self.waiting[at]
    }

    fn control(&self, change: i32, fd: RawFd, events: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: token };
        // SAFETY: an open epoll, and an event that outlives the call.
        checked(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), change, fd, &raw mut event) })?;
        Ok(())
    }

    fn take_events(&mut self, timeout: Option<u64>) -> io::Result<usize> {
        if self.is_precise {
            match self.take_events_precisely(timeout) {
                // EPERM comes from filters of system calls that are older than the call.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.is_precise = false;
                }
                taken => return taken,
            }
        }
        let milliseconds = timeout.map_or(-1, |nanoseconds| {
            i32::try_from(nanoseconds.div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
        let most = i32::try_from(self.events.len()).expect("EVENTS is small");
        // SAFETY: room for that many events.
        checked(unsafe { libc::epoll_wait(epoll, events, most, milliseconds) })
    }

    fn take_events_precisely(&mut self, timeout: Option<u64>) -> io::Result<usize> {
        let time = timeout.map(timespec);
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
        // SAFETY: room for that many events, a time or null, and no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll,
                events,
                EVENTS,
                time,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        checked(i32::try_from(count).expect("at most as many events as there is room for"))
    }
}

/// A span of nanoseconds for system calls.
pub fn timespec(nanoseconds: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000).cast_signed(),
        tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
    }
}

fn token(fd: RawFd) -> u64 {
    // Negative ones become numbers that epoll is never asked about: it refuses them first.
    u64::from(fd.cast_unsigned())
}

/// The descriptor that a call has opened.
pub(super) fn owned(fd: i32) -> io::Result<OwnedFd> {
    checked(fd)?;
    // SAFETY: just opened, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (ours, theirs)
    }

    /// What is ready now.
    fn ready(reactor: &mut Reactor) -> Vec<u64> {
        let mut woken = Vec::new();
        reactor.wait(Some(0), |key| woken.push(key)).unwrap();
        woken.sort_unstable();
        woken
    }

    #[test]
    fn a_descriptor_that_is_ready_when_it_comes_is_announced() {
        let mut reactor = Reactor::new().unwrap();
        let (ours, mut theirs) = pair();
        theirs.write_all(b"x").unwrap();
        reactor.keep(ours.as_raw_fd()).unwrap();
        reactor.wait_for_kept(ours.as_raw_fd(), Direction::Read, 1).unwrap();
        reactor.wait_for_kept(ours.as_raw_fd(), Direction::Write, 2).unwrap();
        assert_eq!(ready(&mut reactor), [1, 2]);
    }

    #[test]
    fn who_read_everything_is_told_of_more() {
        let mut reactor = Reactor::new().unwrap();
        let (mut ours, mut theirs) = pair();
        reactor.keep(ours.as_raw_fd()).unwrap();
        for key in 0..3 {
            reactor.wait_for_kept(ours.as_raw_fd(), Direction::Read, key).unwrap();
            assert_eq!(ready(&mut reactor), []);
            theirs.write_all(b"x").unwrap();
            assert_eq!(ready(&mut reactor), [key]);
            assert_eq!(ready(&mut reactor), []);
            ours.read_exact(&mut [0]).unwrap();
        }
    }

    #[test]
    fn who_reads_learns_that_the_peer_has_closed() {
        let mut reactor = Reactor::new().unwrap();
        let (ours, theirs) = pair();
        reactor.keep(ours.as_raw_fd()).unwrap();
        reactor.wait_for_kept(ours.as_raw_fd(), Direction::Read, 1).unwrap();
        assert_eq!(ready(&mut reactor), []);
        drop(theirs);
        assert_eq!(ready(&mut reactor), [1]);
    }

    #[test]
    fn who_waits_for_a_foreign_descriptor_leaves_nothing_behind() {
        let mut reactor = Reactor::new().unwrap();
        let (mut ours, mut theirs) = pair();
        let fd = ours.as_raw_fd();
        theirs.write_all(b"x").unwrap();
        reactor.wait_for(fd, Direction::Read, 1).unwrap();
        assert_eq!(ready(&mut reactor), [1]);
        assert_eq!(ready(&mut reactor), []);
        // It is registered no more, so it can be registered anew.
        reactor.control(EPOLL_CTL_ADD, fd, EPOLLIN, token(fd)).unwrap();
        reactor.control(EPOLL_CTL_DEL, fd, 0, 0).unwrap();
        ours.read_exact(&mut [0]).unwrap();
        reactor.wait_for(fd, Direction::Read, 2).unwrap();
        reactor.forget(fd, Direction::Read, 2);
        theirs.write_all(b"x").unwrap();
        assert_eq!(ready(&mut reactor), []);
    }

    #[test]
    fn a_reader_and_a_writer_wait_for_one_descriptor_apart() {
        let mut reactor = Reactor::new().unwrap();
        let (ours, mut theirs) = pair();
        let fd = ours.as_raw_fd();
        reactor.wait_for(fd, Direction::Read, 1).unwrap();
        reactor.wait_for(fd, Direction::Write, 2).unwrap();
        assert_eq!(ready(&mut reactor), [2]);
        assert_eq!(ready(&mut reactor), []);
        theirs.write_all(b"x").unwrap();
        assert_eq!(ready(&mut reactor), [1]);
    }

    #[test]
    fn two_cannot_wait_for_the_same() {
        let mut reactor = Reactor::new().unwrap();
        let (ours, theirs) = pair();
        let fd = ours.as_raw_fd();
        reactor.wait_for(fd, Direction::Read, 1).unwrap();
        assert!(matches!(reactor.wait_for(fd, Direction::Read, 2), Err(Refused::Busy(_))));
        reactor.forget(fd, Direction::Read, 2); // It never came to wait.
        drop(theirs);
        assert_eq!(ready(&mut reactor), [1]);
        let (ours, _theirs) = pair();
        let fd = ours.as_raw_fd();
        reactor.keep(fd).unwrap();
        reactor.wait_for_kept(fd, Direction::Read, 1).unwrap();
        assert!(matches!(reactor.wait_for_kept(fd, Direction::Read, 2), Err(Refused::Busy(_))));
        assert!(matches!(reactor.wait_for(fd, Direction::Write, 2), Err(Refused::Kept(_))));
    }

    #[test]
    fn a_number_that_comes_back_is_another_descriptor() {
        let mut reactor = Reactor::new().unwrap();
        let (ours, _theirs) = pair();
        let fd = ours.into_raw_fd();
        reactor.keep(fd).unwrap();
        reactor.wait_for_kept(fd, Direction::Read, 1).unwrap();
        let (again, mut theirs) = pair();
        // SAFETY: both are open, and nobody else has the number of the first, which this closes.
        let again = owned(unsafe { libc::dup2(again.as_raw_fd(), fd) }).unwrap();
        reactor.wait_for(again.as_raw_fd(), Direction::Read, 2).unwrap();
        theirs.write_all(b"x").unwrap();
        assert_eq!(ready(&mut reactor), [2]);
        reactor.keep(again.as_raw_fd()).unwrap();
        reactor.wait_for_kept(again.as_raw_fd(), Direction::Read, 3).unwrap();
        assert_eq!(ready(&mut reactor), [3]);
    }

    #[test]
    fn what_is_always_ready_is_refused_as_such() {
        let mut reactor = Reactor::new().unwrap();
        let file = File::open("/proc/self/exe").unwrap();
        let Err(Refused::Io(error)) = reactor.wait_for(file.as_raw_fd(), Direction::Read, 1) else {
            panic!("epoll takes no regular files");
        };
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn another_thread_ends_a_wait_without_end() {
        let mut reactor = Reactor::new().unwrap();
        let waker = reactor.waker();
        let waking = thread::spawn(move || waker.wake());
        reactor.wait(None, |_| panic!("nobody waits")).unwrap();
        waking.join().unwrap();
        // Once is once.
        reactor.wait(Some(1), |_| panic!("nobody waits")).unwrap();
    }

    #[test]
    fn an_older_kernel_waits_in_milliseconds() {
        let mut reactor = Reactor::new().unwrap();
        reactor.is_precise = false;
        let (ours, mut theirs) = pair();
        reactor.wait_for(ours.as_raw_fd(), Direction::Read, 1).unwrap();
        assert_eq!(ready(&mut reactor), []);
        theirs.write_all(b"x").unwrap();
        reactor.wait(None, |key| assert_eq!(key, 1)).unwrap();
    }

    #[test]
    fn a_thousand_connections_are_all_announced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for stream in listener.incoming().take(1500) {
                stream.unwrap().write_all(b"hello").unwrap();
            }
        });
        let mut reactor = Reactor::new().unwrap();
        let mut streams = Vec::new();
        for key in 0..1500 {
            let stream = TcpStream::connect(address).unwrap();
            reactor.keep(stream.as_raw_fd()).unwrap();
            reactor.wait_for_kept(stream.as_raw_fd(), Direction::Read, key).unwrap();
            streams.push(stream);
        }
        let mut woken = Vec::new();
        while woken.len() < streams.len() {
            reactor.wait(None, |key| woken.push(key)).unwrap();
        }
        server.join().unwrap();
        woken.sort_unstable();
        assert!(woken.into_iter().eq(0..1500));
    }
}
