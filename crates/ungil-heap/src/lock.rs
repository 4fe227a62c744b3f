//! A lock in one word that names its holder, and that does not outlive it.
//!
//! | bits | meaning |
//! |---|---|
//! | 31 | somebody waits |
//! | 19-30 | number of the holder's lane, plus 1; 0: free |
//! | 0-18 | generation of that lane |
//!
//! Who waits looks now and then whether the holder still lives ([`Liveness::is_gone`]); if not, it
//! takes the lock over and is told so. A wake-up can get lost only together with a process, and then
//! the same look finds a free lock.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release, SeqCst},
};
use std::time::{Duration, Instant};

use crate::lane::GENERATION_BITS;
use crate::{Error, Result, fault};

/// Somebody waits.
const WAITED: u32 = 1 << 31;
/// How long a waiter sleeps until it looks whether the holder lives.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);
/// How often a waiter looks at the word before it sleeps.
const SPINS: u32 = 100;

/// Who holds a lock: a lane in one of its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(u32);

impl Holder {
    /// The holder with a lane's number and generation.
    pub const fn new(lane: usize, generation: u32) -> Self {
        Self((lane as u32 + 1) << GENERATION_BITS | generation)
    }

    /// Who holds a lock with this word, if anybody.
    pub const fn of(word: u32) -> Option<Self> {
        let holder = word & !WAITED;
        if holder == 0 { None } else { Some(Self(holder)) }
    }

    /// The number of the lane, which may not exist in a damaged heap.
    pub const fn lane(self) -> usize {
        (self.0 >> GENERATION_BITS).wrapping_sub(1) as usize
    }

    /// The generation of the lane.
    pub const fn generation(self) -> u32 {
        self.0 & ((1 << GENERATION_BITS) - 1)
    }

    /// The word of a lock that is held by this one, and for which nobody waits.
    pub const fn word(self) -> u32 {
        self.0
    }
}

/// How a lock was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// From nobody, or from somebody who let go.
    Free,
    /// From somebody who died with it.
    Abandoned,
}

/// Says whether a holder is gone, and cleans up behind it first.
pub trait Liveness {
    /// Whether `holder` can never let go of a lock. What it was changing is undone by then.
    fn is_gone(&self, holder: Holder) -> Result<bool>;
}

/// What a thread does around a wait: the place to let others of its process run.
pub trait Pause: Send + Sync {
    /// Calls `wait`, which sleeps for at most some 20 ms.
    ///
    /// # Errors
    /// Gives up the lock, with this error.
    fn pause(&self, wait: &mut dyn FnMut()) -> Result<()>;
}

/// Only waits.
#[derive(Debug)]
pub struct Sleep;

impl Pause for Sleep {
    fn pause(&self, wait: &mut dyn FnMut()) -> Result<()> {
        wait();
        Ok(())
    }
}

/// Takes a lock, if it is free.
#[inline]
pub fn try_acquire(word: &AtomicU32, me: Holder) -> bool {
    word.compare_exchange(0, me.word(), SeqCst, Relaxed).is_ok()
}

/// Takes a lock, and waits for it until `deadline`; `None`: it was not got in time.
pub fn acquire(
    word: &AtomicU32,
    me: Holder,
    liveness: &dyn Liveness,
    pause: &dyn Pause,
    deadline: Option<Instant>,
) -> Result<Option<Acquired>> {
    for _ in 0..SPINS {
        if try_acquire(word, me) {
            return Ok(Some(Acquired::Free));
        }
        std::hint::spin_loop();
    }
    loop {
        let seen = word.load(Relaxed);
        let Some(holder) = Holder::of(seen) else {
            // Others may wait too, and only this holder will know of them.
            if word.compare_exchange(seen, me.word() | WAITED, SeqCst, Relaxed).is_ok() {
                return Ok(Some(Acquired::Free));
            }
            continue;
        };
        if holder == me {
            return Err(Error::Corrupt("a lock is waited for by its own holder"));
        }
        if seen & WAITED == 0
            && word.compare_exchange(seen, seen | WAITED, Relaxed, Relaxed).is_err()
        {
            continue;
        }
        let now = Instant::now();
        let left = deadline.map_or(PATIENCE, |end| end.saturating_duration_since(now));
        if left.is_zero() {
            return Ok(None);
        }
        let mut slept = true;
        pause.pause(&mut || slept = wait(word, seen | WAITED, left.min(PATIENCE)))?;
        if !slept && word.load(Relaxed) == seen | WAITED && liveness.is_gone(holder)? {
            fault::point("lock: holder is gone");
            if word.compare_exchange(seen | WAITED, me.word() | WAITED, SeqCst, Relaxed).is_ok() {
                fault::point("lock: taken over");
                return Ok(Some(Acquired::Abandoned));
            }
        }
    }
}

/// Lets go of a lock, whose holder the caller is.
#[inline]
pub fn release(word: &AtomicU32) {
    if word.swap(0, Release) & WAITED != 0 {
        fault::point("lock: free, nobody woken");
        wake(word, 1);
    }
}

/// Sleeps while a word has a value, for at most `longest`; false: nobody woke it.
pub fn wait(word: &AtomicU32, value: u32, longest: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: longest.as_secs().cast_signed() as libc::time_t,
        tv_nsec: libc::c_long::from(longest.subsec_nanos().cast_signed()),
    };
    // SAFETY: the word and the time live during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const time,
            std::ptr::null::<u32>(),
            0,
        )
    };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Wakes up to `count` of those who sleep on a word.
pub fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word lives during the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}
