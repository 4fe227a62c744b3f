//! The limit of a fan-out: a number, or what `ungil_fanout::limit` finds out.

use std::iter::successors;

use pyo3::exceptions::{PyConnectionError, PyOSError, PyTimeoutError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyInt, PyString, PyTuple};
use ungil_fanout::limit::{
    Adaptive, Driver, FEW, Opening, Outcome as Ended, Sample, Settings, Ticket,
};

use super::clock::processor;

/// Of how many ends one reads the processor's time: it is a system call.
const EACH: u64 = 32;

/// How many threads are started before any item has come back: who uses threads is used to
/// `ThreadPoolExecutor`'s 32; and how many be there a host for each, as the first come back before
/// more are started.
const FEW_THREADS: usize = 32;
const MOST_THREADS: usize = 200;

/// An adaptive limit, with what it has to be told.
pub struct Limiter {
    adaptive: Adaptive,
    ends: u64,
    cpu_so_far: u64,
    /// When it changes although nothing starts or ends.
    due: Option<u64>,
}

impl Limiter {
    pub fn new(ceiling: usize, opening: Opening, driver: Driver, now: u64) -> Self {
        let (first, at_once) = match driver {
            Driver::Loop => (FEW, ceiling),
            Driver::Threads => (FEW_THREADS, MOST_THREADS),
        };
        let settings =
            Settings { ceiling, opening, first, at_once, driver, cpu_so_far: processor() };
        let adaptive = Adaptive::new(settings, now);
        Self { adaptive, ends: 0, cpu_so_far: 0, due: None }
    }

    pub fn limit(&self) -> usize {
        self.adaptive.limit()
    }

    pub fn most_jitter(&self) -> u64 {
        self.adaptive.most_jitter().max(1)
    }

    pub fn started(&mut self, now: u64, group: Option<u64>) -> Ticket {
        self.adaptive.started(now, group)
    }

    pub fn ended(
        &mut self,
        ticket: Ticket,
        started: u64,
        finished: u64,
        group: Option<u64>,
        (outcome, asked): (Ended, u64),
    ) {
        // The first are what the limit opens with.
        if self.ends < EACH || self.ends.is_multiple_of(EACH) {
            self.cpu_so_far = processor();
        }
        self.ends += 1;
        let cpu_so_far = self.cpu_so_far;
        self.adaptive.finished(Sample {
            ticket,
            started,
            finished,
            cpu_so_far,
            outcome,
            asked,
            group,
        });
    }

    /// Whether nobody knows yet what the items are, and no more of them may start.
    pub fn is_in_the_dark(&self) -> bool {
        self.adaptive.is_in_the_dark()
    }

    /// Those that run do nothing but sleep.
    pub fn asleep(&mut self, now: u64) {
        self.adaptive.asleep(now);
    }

    /// Nothing may start: when that changes by itself.
    pub fn due(&mut self) -> Option<u64> {
        self.due = self.adaptive.due();
        self.due
    }

    /// What has changed since [`Self::due`] was asked.
    pub fn tick(&mut self, now: u64) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.adaptive.tick(now);
        }
    }

    pub fn lagged(&mut self, now: u64, lag: u64) {
        self.adaptive.lagged(now, lag);
    }

    /// What it has found, in sentences.
    pub fn report(&self) -> String {
        self.adaptive.report().to_string()
    }
}

/// The host of an item that is a URL: a string with a scheme and a host, or what has both.
pub fn host_of<'py>(item: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if let Ok(text) = item.cast::<PyString>() {
        // What cannot be encoded is no URL.
        let host = text.to_str().ok().and_then(host_in);
        return host.map(|host| PyString::new(item.py(), host).into_any());
    }
    if item.is_exact_instance_of::<PyInt>() || item.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    // Those of yarl and httpx. Other things may have a host without being one.
    let part = |name| {
        item.getattr_opt(name).ok().flatten().filter(PyAnyMethods::is_instance_of::<PyString>)
    };
    let (scheme, host) = (part(intern!(item.py(), "scheme")), part(intern!(item.py(), "host")));
    scheme.and(host)
}

/// The host and the port in a URL (RFC 3986, section 3).
fn host_in(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = |it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(host).filter(|host| !host.is_empty())
}

/// Whether an exception may come from load: it, or one of those that it was raised for.
pub fn kind(exception: &Bound<'_, PyAny>) -> Ended {
    // Libraries raise errors of their own in the place of the system's. A chain may be a ring.
    let mut chain = successors(Some(exception.clone()), raised_for).take(8);
    if chain.any(|error| may_be_load(&error)) { Ended::Overloaded } else { Ended::Failed }
}

fn raised_for<'py>(error: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut links = ["__cause__", "__context__"].into_iter();
    links.find_map(|link| error.getattr(link).ok().filter(|error| !error.is_none()))
}

fn may_be_load(error: &Bound<'_, PyAny>) -> bool {
    if error.is_instance_of::<PyTimeoutError>() || error.is_instance_of::<PyConnectionError>() {
        return true;
    }
    let errno = error
        .is_instance_of::<PyOSError>()
        .then(|| error.getattr("errno").ok()?.extract::<i32>().ok())
        .flatten();
    matches!(errno, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN))
}
