//! What coroutines wait for: time, descriptors, names.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ungil_fanout::reactor::{Direction, Reactor, Refused, timespec};
use ungil_fanout::timers::Timers;

use super::hand::{Belongs, Want};
use super::resolver::Resolver;
use crate::fanout::clock;

/// A signal that comes between the look for signals and the wait does not end the wait. So no wait
/// is longer than this, and Ctrl-C later than that once in a blue moon.
const LONGEST: u64 = 1_000_000_000;

/// For what a task waits.
#[derive(Clone, Copy)]
pub enum Waiting {
    /// For nothing: it goes on in the next round.
    Nothing,
    Timer,
    Ready(RawFd, Direction),
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
    /// What the coroutine shall be told in the place of what it wanted.
    pub fn begin(&mut self, want: Want, key: u64, now: u64) -> PyResult<Waiting> {
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
                    Err(refused) => Err(raised(refused, fd)),
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

    fn reactor(&mut self) -> PyResult<&mut Reactor> {
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
    pub fn look(&mut self, ready: &mut VecDeque<u64>) -> PyResult<()> {
        if let Some(reactor) = &mut self.reactor {
            reactor.wait(Some(0), |key| ready.push_back(key))?;
            self.take_lookups(ready);
        }
        Ok(())
    }

    /// Waits until something is ready, or until this time; at times for nothing. Others may have
    /// the GIL meanwhile.
    pub fn wait(
        &mut self,
        py: Python<'_>,
        until: Option<u64>,
        ready: &mut VecDeque<u64>,
    ) -> PyResult<()> {
        let now = clock::now();
        let until = until.map_or(now + LONGEST, |until| until.min(now + LONGEST));
        if until > now {
            match &mut self.reactor {
                Some(reactor) => {
                    py.detach(|| reactor.wait(Some(until - now), |key| ready.push_back(key)))?;
                }
                None => py.detach(|| sleep_until(until)),
            }
            py.check_signals()?;
        } else {
            self.look(ready)?;
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

fn raised(refused: Refused, fd: RawFd) -> PyErr {
    match refused {
        Refused::Io(error) => error.into(),
        Refused::Busy => {
            PyRuntimeError::new_err(format!("another item waits for descriptor {fd} already"))
        }
        Refused::Kept => PyRuntimeError::new_err(format!(
            "descriptor {fd} is a Connection's: use its read and write"
        )),
    }
}

/// Sleeps, unless a signal comes.
fn sleep_until(time: u64) {
    let time = timespec(time);
    let flags = libc::TIMER_ABSTIME;
    // SAFETY: a time, and no interest in what is left of it.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, flags, &raw const time, ptr::null_mut());
    }
}
