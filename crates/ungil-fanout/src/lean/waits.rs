//! What tasks wait for: time, descriptors, names.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::ptr;

use super::reactor::{Direction, Reactor, Refused, timespec};
use super::resolver::Resolver;
use super::timers::Timers;
use super::want::{Belongs, Want};

/// For what a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For nothing: it goes on in the next round.
    Nothing,
    /// For time to pass.
    Timer,
    /// For a descriptor.
    Ready(RawFd, Direction),
    /// For the addresses of a name.
    Lookup,
}

/// Everything that is waited for. Descriptors and threads are made when they are needed: most
/// fan-outs that only sleep need none.
#[derive(Default)]
pub struct Waits {
    timers: Timers,
    reactor: Option<Reactor>,
    resolver: Option<Resolver>,
}

impl Waits {
    /// Lets `key` wait.
    ///
    /// # Errors
    /// What the task shall be told in the place of what it wanted.
    pub fn begin(&mut self, want: Want, key: u64, now: u64) -> Result<Waiting, Refused> {
        match want {
            Want::Sleep(0) => Ok(Waiting::Nothing),
            Want::Sleep(nanoseconds) => {
                self.timers.add(now.saturating_add(nanoseconds), key);
                Ok(Waiting::Timer)
            }
            Want::Ready { fd, direction, belongs } => {
                let reactor = self.reactor()?;
                let begun = match belongs {
                    Belongs::New => reactor
                        .keep(fd)
                        .map_err(Refused::Io)
                        .and_then(|()| reactor.wait_for_kept(fd, direction, key)),
                    Belongs::Kept => reactor.wait_for_kept(fd, direction, key),
                    Belongs::User => reactor.wait_for(fd, direction, key),
                };
                match begun {
                    Ok(()) => Ok(Waiting::Ready(fd, direction)),
                    // What has no readiness is always ready, as select() says of it too.
                    Err(Refused::Io(error)) if error.raw_os_error() == Some(libc::EPERM) => {
                        Ok(Waiting::Nothing)
                    }
                    Err(refused) => Err(refused),
                }
            }
            Want::Lookup(lookup) => {
                let waker = self.reactor()?.waker();
                let resolver = self.resolver.get_or_insert_with(|| Resolver::new(waker));
                resolver.start(lookup, key)?;
                Ok(Waiting::Lookup)
            }
        }
    }

    fn reactor(&mut self) -> io::Result<&mut Reactor> {
        match &mut self.reactor {
            Some(reactor) => Ok(reactor),
            none => Ok(none.insert(Reactor::new()?)),
        }
    }

    /// Lets `key` wait no more.
    pub fn end(&mut self, waiting: Waiting, key: u64, is_current: impl Fn(u64) -> bool) {
        match waiting {
            Waiting::Timer => self.timers.forget(is_current),
            Waiting::Ready(fd, direction) => {
                if let Some(reactor) = &mut self.reactor {
                    reactor.forget(fd, direction, key);
                }
            }
            // A key that is old wakes nobody.
            Waiting::Lookup | Waiting::Nothing => {}
        }
    }

    /// A key whose time has come.
    pub fn due(&mut self, now: u64) -> Option<u64> {
        self.timers.pop(now)
    }

    /// When that of the next comes.
    pub fn next(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Takes what is ready.
    pub fn look(&mut self, ready: &mut VecDeque<u64>) -> io::Result<()> {
        if let Some(reactor) = &mut self.reactor {
            reactor.wait(Some(0), |key| ready.push_back(key))?;
            self.take_lookups(ready);
        }
        Ok(())
    }

    /// Waits until something is ready, or from `now` on until this time, which is on
    /// `CLOCK_MONOTONIC`; at times for nothing.
    pub fn wait(&mut self, until: u64, now: u64, ready: &mut VecDeque<u64>) -> io::Result<()> {
        match &mut self.reactor {
            Some(reactor) => reactor.wait(Some(until - now), |key| ready.push_back(key))?,
            None => sleep_until(until),
        }
        self.take_lookups(ready);
        Ok(())
    }

    fn take_lookups(&self, ready: &mut VecDeque<u64>) {
        if let Some(resolver) = &self.resolver {
            ready.extend(resolver.done());
        }
    }
}

/// Sleeps, unless a signal comes.
fn sleep_until(time: u64) {
    let time = timespec(time);
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    // SAFETY: the time is readable, and nobody is interested in what is left of it.
    unsafe { libc::clock_nanosleep(clock, flags, &raw const time, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;

    use super::super::resolver::Lookup;
    use super::*;

    #[test]
    fn who_only_sleeps_needs_no_descriptor() {
        let (mut waits, mut ready) = (Waits::default(), VecDeque::new());
        assert_eq!(waits.begin(Want::Sleep(0), 1, 10).unwrap(), Waiting::Nothing);
        assert_eq!(waits.begin(Want::Sleep(5), 2, 10).unwrap(), Waiting::Timer);
        assert_eq!(waits.begin(Want::Sleep(u64::MAX), 3, 10).unwrap(), Waiting::Timer);
        // This time has long passed on every machine.
        waits.wait(11, 10, &mut ready).unwrap();
        assert_eq!((waits.next(), waits.due(14), waits.due(15)), (Some(15), None, Some(2)));
        assert!(waits.reactor.is_none() && ready.is_empty());
    }

    #[test]
    fn a_regular_file_is_always_ready() {
        let file = File::open("/proc/self/exe").unwrap();
        let (fd, direction) = (file.as_raw_fd(), Direction::Read);
        let want = Want::Ready { fd, direction, belongs: Belongs::User };
        assert_eq!(Waits::default().begin(want, 1, 0).unwrap(), Waiting::Nothing);
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_refused() {
        let want = Want::Ready { fd: 1 << 20, direction: Direction::Read, belongs: Belongs::User };
        let Err(Refused::Io(error)) = Waits::default().begin(want, 1, 0) else {
            panic!("nobody has so many");
        };
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_lookup_ends_a_wait() {
        let (mut waits, mut ready) = (Waits::default(), VecDeque::new());
        let lookup = Arc::new(Lookup::new(CString::new("127.0.0.1").unwrap(), 80));
        assert_eq!(waits.begin(Want::Lookup(lookup.clone()), 7, 0).unwrap(), Waiting::Lookup);
        while ready.is_empty() {
            waits.wait(u64::MAX, 0, &mut ready).unwrap();
        }
        assert_eq!(ready, [7]);
        assert!(lookup.found().is_some());
    }
}
