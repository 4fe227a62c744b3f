//! What the line of waiting threads has around it: an interpreter, a model of one, or a simulation.

use super::account::Waker;
use crate::atomic::AtomicU32;

/// What the line needs from around it. All but the sleep is called with the GIL's mutex held.
pub trait Host {
    /// Now, by a clock that never goes back.
    fn now_ns(&self) -> u64;
    /// CPU time of the calling thread.
    fn thread_cpu_ns(&self) -> u64;
    /// Lets go of the GIL's mutex, sleeps while `word` is `expected`, at most `timeout_ns`, and
    /// takes the mutex again. Returns whether a signal ended the sleep for which the calling
    /// thread has to run a handler.
    fn sleep(&self, word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) -> bool;
    /// Wakes the thread that sleeps on `word`.
    fn wake(&self, word: &AtomicU32);
    /// The same as soon as the GIL's mutex has been let go, which the calling thread is about to
    /// do; asked for at most once until then.
    fn wake_when_unlocked(&self, word: &AtomicU32) {
        self.wake(word);
    }
    /// Whether a thread holds the GIL.
    fn is_locked(&self) -> bool;
    /// How often the GIL went to another thread than the one before.
    fn switches(&self) -> u32;
    /// Whether the holder has been asked to let go.
    fn drop_requested(&self) -> bool;
    /// Who has woken the calling thread, if it was a thread, by letting go of a lock.
    fn waker(&self) -> Option<Waker>;
    /// A number for the lock that the calling thread has taken last and not let go of, if there is
    /// one: another number each time.
    fn lock_taken(&self) -> Option<u32>;
    /// Those that it has taken so far do not count.
    fn forget_locks(&self);
}
