//! Names become addresses in threads, as `getaddrinfo` blocks. Numeric addresses never come here.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use ungil_fanout::reactor::Waker;

use super::socket::Address;

/// How many lookups may be under way at once. A resolver mostly waits, for seconds where a name has
/// no answer, so there are more than processors.
const THREADS: usize = 32;

/// Enough for the modules that the system's resolver loads.
const STACK: usize = 1 << 20;

/// Why a name has no address.
#[derive(Clone, Copy)]
pub enum Unresolved {
    /// A number of `getaddrinfo`.
    Name(i32),
    /// An errno.
    System(i32),
}

/// One name, and in the end its addresses.
pub struct Lookup {
    host: CString,
    port: u16,
    found: OnceLock<Result<Vec<Address>, Unresolved>>,
}

impl Lookup {
    pub fn new(host: CString, port: u16) -> Self {
        Self { host, port, found: OnceLock::new() }
    }

    /// What was found, if that is known.
    pub fn found(&self) -> Option<&Result<Vec<Address>, Unresolved>> {
        self.found.get()
    }

    /// Finds out, which may take seconds.
    pub fn run(&self) {
        self.found.get_or_init(|| resolve(&self.host, self.port));
    }
}

fn resolve(host: &CStr, port: u16) -> Result<Vec<Address>, Unresolved> {
    let service = CString::new(port.to_string()).expect("a number has no zero bytes");
    // SAFETY: numbers and null pointers, for which zeros are valid.
    let mut hints: libc::addrinfo = unsafe { mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list: *mut libc::addrinfo = ptr::null_mut();
    // SAFETY: strings that end with a zero, hints, and room for the list.
    let result = unsafe {
        libc::getaddrinfo(host.as_ptr(), service.as_ptr(), &raw const hints, &raw mut list)
    };
    match result {
        0 => {}
        libc::EAI_SYSTEM => {
            return Err(Unresolved::System(io::Error::last_os_error().raw_os_error().unwrap_or(0)));
        }
        number => return Err(Unresolved::Name(number)),
    }
    let mut addresses = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: an entry of the list, which holds an address of that length.
        unsafe {
            addresses.extend(Address::copied((*at).ai_addr, (*at).ai_addrlen));
            at = (*at).ai_next;
        }
    }
    // SAFETY: the list, which nobody uses any more.
    unsafe { libc::freeaddrinfo(list) };
    Ok(addresses)
}

/// Threads that resolve names, started as they are needed.
pub struct Resolver {
    shared: Arc<Shared>,
    threads: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    done: Mutex<Vec<u64>>,
    waker: Waker,
}

#[derive(Default)]
struct Queue {
    lookups: VecDeque<(Arc<Lookup>, u64)>,
    idle: usize,
    is_closed: bool,
}

impl Resolver {
    /// Wakes whoever waits with this when a lookup is done.
    pub fn new(waker: Waker) -> Self {
        let shared = Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            done: Mutex::default(),
            waker,
        };
        Self { shared: Arc::new(shared), threads: 0 }
    }

    /// Looks a name up for `key`.
    ///
    /// # Errors
    /// When not even one thread can be started.
    pub fn start(&mut self, lookup: Arc<Lookup>, key: u64) -> io::Result<()> {
        let mut queue = self.shared.queue();
        queue.lookups.push_back((lookup, key));
        let needs_thread = queue.lookups.len() > queue.idle && self.threads < THREADS;
        drop(queue);
        self.shared.arrived.notify_one();
        if needs_thread {
            let shared = self.shared.clone();
            let builder = thread::Builder::new().name("ungil-resolver".into()).stack_size(STACK);
            match builder.spawn(move || shared.work()) {
                Ok(_) => self.threads += 1,
                Err(error) if self.threads == 0 => {
                    self.shared.queue().lookups.pop_back();
                    return Err(error);
                }
                // Those that there are do it later.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The keys whose lookups are done, once.
    pub fn done(&self) -> Vec<u64> {
        mem::take(&mut self.shared.done())
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.arrived.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self) -> MutexGuard<'_, Vec<u64>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        block_signals();
        while let Some((lookup, key)) = self.next() {
            lookup.run();
            self.done().push(key);
            self.waker.wake();
        }
    }

    fn next(&self) -> Option<(Arc<Lookup>, u64)> {
        let mut queue = self.queue();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(job) = queue.lookups.pop_front() {
                return Some(job);
            }
            queue.idle += 1;
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

/// Signals are for the threads that Python knows: they have to interrupt what those wait for.
fn block_signals() {
    // SAFETY: a set of signals that the first call fills and the second reads.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// A lookup as a function of Python, for the threads of another event loop.
pub fn function(py: Python<'_>, lookup: Arc<Lookup>) -> PyResult<Bound<'_, PyAny>> {
    let run = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        arguments.py().detach(|| lookup.run());
    };
    Ok(PyCFunction::new_closure(py, None, None, run)?.into_any())
}
