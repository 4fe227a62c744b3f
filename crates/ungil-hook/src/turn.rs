//! Waiting for one's turn under a policy: what [`Line`] needs from the interpreter and the kernel.

use crate::gil::Gil;
use crate::lock::Poster;
use crate::own::Own;
use crate::system::{keeping_errno, last_errno, set_errno};
use crate::{clock, handoff, settings, slice, table, thread};
use libc::{c_int, c_long, pthread_mutex_t, timespec};
use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use ungil_core::schedule::{Answer, Host, Level, Policy, Settings, Slice, Waker};

/// A thread that no timer wakes looks again after this long all the same. It is not needed; but
/// nobody should have to restart a server to find out that it was.
const LONGEST_SLEEP_NS: u64 = 1_000_000_000;

thread_local! {
    /// Whether this is the main thread; 0 while that is not known.
    static IS_MAIN: Cell<u8> = const { Cell::new(0) };
}

/// A GIL as its line sees it.
struct Here {
    gil: &'static Gil,
    /// The GIL's own mutex, held by the calling thread.
    mutex: *mut pthread_mutex_t,
    /// Who woke the calling thread.
    waker: Poster,
}

/// Waits for `gil` in its line, as `pthread_cond_timedwait` would: returns 0, or `ETIMEDOUT` if the
/// caller is to ask the holder to let go. From here on the thread waits, as the recording tells it.
///
/// # Safety
/// The calling thread holds `mutex`, which is that of `gil`.
pub unsafe fn wait(gil: &'static Gil, mutex: *mut pthread_mutex_t, settings: Settings) -> c_int {
    let urgent = must_run_a_handler();
    if thread::current().is_some_and(|thread| thread.waits_for(gil)) {
        table::saw_settings(settings);
    }
    let answer = Own::with(|own| {
        let here = Here { gil, mutex, waker: own.waker.get() };
        slice::want(gil.line.slice(&own.account, slice::of_this_thread()));
        gil.line.wait(&here, settings, &own.account, urgent)
    });
    match answer {
        Answer::LookAgain => 0,
        Answer::AskToDrop => libc::ETIMEDOUT,
    }
}

/// The calling thread has taken `gil`, whose mutex it holds. Need not be called as long as there
/// has never been a policy.
#[inline]
pub fn acquired(gil: &'static Gil) {
    Own::with(|own| {
        own.waker.set(Poster::NOBODY);
        gil.line.acquired(&Here::without_mutex(gil), &own.account);
    });
    // A thread that does not wait for it any more would keep what it has under another policy.
    if slice::of_this_thread() != Slice::Own && settings::in_force().policy != Policy::Interactive {
        slice::want(Slice::Own);
    }
}

/// The calling thread has let go of `gil`, whose mutex it holds.
#[inline]
pub fn released(gil: &'static Gil) {
    forget_interruption();
    let settings = settings::in_force();
    Own::with(|own| {
        own.waker.set(Poster::NOBODY);
        gil.line.released(&Here::without_mutex(gil), settings, &own.account);
    });
}

/// The level of the calling thread.
pub fn level() -> Level {
    Own::with(|own| own.account.get().level)
}

/// Gives the calling thread a level and returns the one it had.
pub fn set_level(level: Level) -> Level {
    Own::with(|own| {
        let mut account = own.account.get();
        let before = std::mem::replace(&mut account.level, level);
        own.account.set(account);
        before
    })
}

/// In a child after fork: its only thread is the main thread now.
pub fn after_fork() {
    IS_MAIN.set(0);
}

/// Whether the calling thread is the main thread and comes back from a call that a signal
/// interrupted: `take_gil` keeps the errno that it was called with.
fn must_run_a_handler() -> bool {
    last_errno() == libc::EINTR && is_main()
}

/// Takes back the errno of a call that was interrupted before this release, so that the next
/// wait can tell whether there was another one. `drop_gil` is followed by a call that sets its own
/// errno, or by other Python code; nobody looks at an old one there.
#[inline]
fn forget_interruption() {
    if last_errno() == libc::EINTR && is_main() {
        set_errno(0);
    }
}

/// Python runs signal handlers in the main thread only.
fn is_main() -> bool {
    match IS_MAIN.get() {
        0 => {
            // SAFETY: gettid has no preconditions.
            let thread = unsafe { libc::syscall(libc::SYS_gettid) };
            // SAFETY: getpid has no preconditions.
            let main = thread == c_long::from(unsafe { libc::getpid() });
            IS_MAIN.set(1 + u8::from(main));
            main
        }
        known => known == 2,
    }
}

impl Here {
    /// For what does not wait.
    fn without_mutex(gil: &'static Gil) -> Self {
        Self { gil, mutex: std::ptr::null_mut(), waker: Poster::NOBODY }
    }
}

impl Host for Here {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn thread_cpu_ns(&self) -> u64 {
        clock::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    fn sleep(&self, word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) -> bool {
        let timeout = timeout_ns.unwrap_or(LONGEST_SLEEP_NS).min(LONGEST_SLEEP_NS);
        let timeout = timespec {
            tv_sec: (timeout / 1_000_000_000).cast_signed(),
            tv_nsec: (timeout % 1_000_000_000).cast_signed(),
        };
        let errno = last_errno();
        // SAFETY: the caller of `wait` promised that this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.mutex) };
        // SAFETY: `word` and `timeout` outlive the call, and there is no second word.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                &raw const timeout,
                null::<u32>(),
                0,
            )
        };
        let interrupted = result == -1 && last_errno() == libc::EINTR && is_main();
        // SAFETY: the mutex that was let go above, and that the caller expects to hold.
        unsafe { handoff::lock_patiently(self.mutex) };
        // An interruption is remembered in errno until the GIL is taken: take_gil calls `wait` as
        // often as it has to, and gives its caller back the errno that it was called with.
        set_errno(if interrupted { libc::EINTR } else { errno });
        // Whoever looks at the clock looks at the page too: nobody else tells a line whose GIL
        // is held for long.
        self.gil.line.adopt(self, settings::in_force());
        interrupted
    }

    fn wake(&self, word: &AtomicU32) {
        wake(word);
    }

    fn wake_when_unlocked(&self, word: &AtomicU32) {
        self.gil.to_wake.set(word);
    }

    fn is_locked(&self) -> bool {
        self.gil.locked.load(Relaxed)
    }

    fn switches(&self) -> u32 {
        self.gil.switches.load(Relaxed)
    }

    fn drop_requested(&self) -> bool {
        self.gil.drop_requested.load(Relaxed)
    }

    fn waker(&self) -> Option<Waker> {
        let Poster { token, place_ns } = self.waker;
        let is_holder = self.is_locked() && self.gil.last_holder.load(Relaxed) == token;
        (token != 0).then_some(Waker { place_ns, is_holder })
    }

    fn lock_taken(&self) -> Option<u32> {
        Own::with(|own| own.taken.number())
    }

    fn forget_locks(&self) {
        Own::with(|own| own.taken.forget());
    }
}

/// Wakes the thread that sleeps on `word`, if there still is one: the word is never read.
pub fn wake(word: *const AtomicU32) {
    // SAFETY: the kernel takes any address, and answers EFAULT if it cannot be a futex's.
    keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1)
    });
}

/// The settings in force, if they are not CPython's own.
#[inline]
pub fn policy() -> Option<Settings> {
    let settings = settings::in_force();
    let is_policy = settings.policy != Policy::Stock && (handoff::is_seen() || handoff::see());
    is_policy.then_some(settings)
}
