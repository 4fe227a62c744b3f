//! Ends a wait of the reactor from another thread.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::reactor::owned;

/// Ends a [`Reactor::wait`](super::reactor::Reactor::wait) from another thread.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// # Errors
    /// `EMFILE` without a free descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a start value and flags.
        let fd = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(Self(Arc::new(fd)))
    }

    /// Ends the wait that is under way, or the next one.
    pub fn wake(&self) {
        let one = 1_u64;
        // SAFETY: eight readable bytes and an open eventfd. It can only fail when it is already
        // about to wake.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// The wait has ended.
    pub fn calm(&self) {
        let mut count = 0_u64;
        // SAFETY: eight writable bytes and an open eventfd that does not block.
        unsafe { libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }

    /// What becomes readable when it wakes.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
