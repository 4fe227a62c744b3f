//! Names become addresses in threads, as `getaddrinfo` blocks. Numeric addresses never come here.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::mem;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::socket::Address;
use super::waker::Waker;

/// How many lookups may be under way at once. A resolver mostly waits, for seconds where a name has
/// no answer, so there are more than processors.
const THREADS: usize = 32;

/// Enough for the modules that the system's resolver loads.
const STACK: usize = 1 << 20;

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// A number of `getaddrinfo`.
    Name(i32),
    /// An errno.
    System(i32),
}

/// What the system says about a number of `getaddrinfo`.
pub fn name_error(number: i32) -> String {
    // SAFETY: it takes any integer, and gives a static string.
    let text = unsafe { libc::gai_strerror(number) };
    // SAFETY: a string that ends with a zero and is never changed.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// One name, and in the end its addresses.
pub struct Lookup {
    host: CString,
    port: u16,
    found: OnceLock<Result<Vec<Address>, Unresolved>>,
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lookup({:?}, {})", self.host, self.port)
    }
}

impl Lookup {
    /// Nothing is known yet.
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
    let hints = libc::addrinfo {
        ai_flags: 0,
        ai_family: libc::AF_UNSPEC,
        ai_socktype: libc::SOCK_STREAM,
        ai_protocol: 0,
        ai_addrlen: 0,
        ai_addr: ptr::null_mut(),
        ai_canonname: ptr::null_mut(),
        ai_next: ptr::null_mut(),
    };
    let mut list: *mut libc::addrinfo = ptr::null_mut();
    // SAFETY: both strings end with a zero, the hints have no pointers, and `list` is writable.
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
    // SAFETY: null, or an entry of the list, which lives until it is freed below.
    while let Some(entry) = unsafe { at.as_ref() } {
        // SAFETY: an entry points at an address of the length that it says.
        addresses.extend(unsafe { Address::copied(entry.ai_addr, entry.ai_addrlen) });
        at = entry.ai_next;
    }
    // SAFETY: `getaddrinfo` has made the list, and nothing refers to it any more.
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
    let mut all = mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is writable, and is filled in here.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set is filled in, and nobody wants the one before.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::super::reactor::Reactor;
    use super::*;

    fn lookup(host: &str) -> Lookup {
        Lookup::new(CString::new(host).unwrap(), 80)
    }

    #[test]
    fn a_numeric_name_is_found_without_asking_anybody() {
        let lookup = lookup("127.0.0.1");
        assert!(lookup.found().is_none());
        lookup.run();
        let addresses = lookup.found().unwrap().as_ref().unwrap();
        assert_eq!(addresses.len(), 1);
        assert!(addresses[0].is_internet());
    }

    #[test]
    fn a_name_that_is_too_long_to_be_one_says_why() {
        let lookup = lookup(&"x".repeat(64));
        lookup.run();
        let Some(Err(Unresolved::Name(number))) = lookup.found() else {
            panic!("{:?}", lookup.found().map(|found| found.as_ref().map(Vec::len)));
        };
        assert!(!name_error(*number).is_empty());
    }

    #[test]
    fn whoever_waits_is_woken_for_each_lookup_and_told_its_key_once() {
        let mut reactor = Reactor::new().unwrap();
        let mut resolver = Resolver::new(reactor.waker());
        let lookups: Vec<Arc<Lookup>> =
            (0..THREADS + 8).map(|_| Arc::new(lookup("127.0.0.1"))).collect();
        for (key, lookup) in lookups.iter().enumerate() {
            resolver.start(lookup.clone(), key as u64).unwrap();
        }
        assert!(resolver.threads <= THREADS);
        let mut done = Vec::new();
        while done.len() < lookups.len() {
            reactor.wait(None, |_| panic!("nobody waits for a descriptor")).unwrap();
            done.extend(resolver.done());
        }
        done.sort_unstable();
        assert!(done.into_iter().eq(0..lookups.len() as u64));
        assert!(lookups.iter().all(|lookup| lookup.found().is_some()));
        assert!(resolver.done().is_empty());
    }
}
