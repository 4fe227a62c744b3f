//! A lock in one word that names its holder, and that does not outlive it.
//!
//! | bits | meaning |
//! |---|---|
//! | 31 | somebody waits |
//! | 19-30 | number of the holder's lane, plus 1; 0: free |
//! | 0-18 | generation of that lane |
//!
//! Who waits looks now and then whether the holder still lives ([`Liveness::is_gone`]); if not, it
//! takes the lock over and is told so. A wake-up can get lost only together with a process, or with
//! a waiter that gave up; then the same look finds a free lock.

use std::time::{Duration, Instant};

use crate::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed, SeqCst},
};
pub use crate::futex::{wait, wake};
use crate::{Error, Result, clock, fault};

/// Bits of the generation of a lane.
pub const GENERATION_BITS: u32 = 19;
/// How many generations there are.
pub const GENERATIONS: u32 = 1 << GENERATION_BITS;

/// Somebody waits.
const WAITED: u32 = 1 << 31;
/// How long a waiter sleeps until it looks whether the holder lives.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);
/// How often a waiter looks at the word before it sleeps.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// Who holds a lock: a lane in one of its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(u32);

impl Holder {
    /// The holder with a lane's number, which is below 4095, and generation.
    #[expect(clippy::cast_possible_truncation, reason = "the number of a lane has 12 bits")]
    pub const fn new(lane: usize, generation: u32) -> Self {
        Self((lane as u32 + 1) << GENERATION_BITS | (generation % GENERATIONS))
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
        self.0 % GENERATIONS
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

    /// Whether that was found out before, so that a look at a few words tells.
    fn is_known_gone(&self, _: Holder) -> bool {
        false
    }
}

/// What a thread does around a wait: the place to let others of its process run.
pub trait Pause: Send + Sync {
    /// Calls `wait`, which sleeps for at most some 20 ms.
    ///
    /// # Errors
    /// Gives up the lock, with this error.
    fn pause(&self, wait: &mut dyn FnMut()) -> Result<()>;

    /// Called before a thread uses a heap of which it has a transaction under way, or had one that
    /// was left ([`crate::transaction::Transaction::leave`]). May leave the transactions of what else
    /// runs in this thread, as tasks do in turns.
    ///
    /// # Errors
    /// Then the heap is not used.
    fn may_go_on(&self) -> Result<()> {
        Ok(())
    }
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

/// Takes a lock, if it becomes free while a change takes: without a sleep.
pub fn acquire_soon(word: &AtomicU32, me: Holder) -> bool {
    for _ in 0..SPINS {
        // Looking before trying leaves the word to its holder's processor.
        if word.load(Relaxed) == 0 && try_acquire(word, me) {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// Takes a lock, and waits for it until `deadline`; `None`: it was not got in time.
pub fn acquire(
    word: &AtomicU32,
    me: Holder,
    liveness: &dyn Liveness,
    pause: &dyn Pause,
    deadline: Option<Instant>,
) -> Result<Option<Acquired>> {
    if acquire_soon(word, me) {
        return Ok(Some(Acquired::Free));
    }
    // The first look comes soon: a dead holder is not worth a wait.
    let mut patience = PATIENCE / 20;
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
            return Err(Error::Corrupt("a thread waits for a lock that it holds itself"));
        }
        let waited = seen | WAITED;
        if liveness.is_known_gone(holder) {
            // Of a thousand locks that a process died with, one is waited for.
            if word.compare_exchange(seen, me.word() | WAITED, SeqCst, Relaxed).is_ok() {
                fault::point("lock: taken over");
                return Ok(Some(Acquired::Abandoned));
            }
            continue;
        }
        if seen != waited && word.compare_exchange(seen, waited, Relaxed, Relaxed).is_err() {
            continue;
        }
        let left = deadline.map_or(patience, |end| end.saturating_duration_since(clock::now()));
        if left.is_zero() {
            return Ok(None);
        }
        pause.pause(&mut || _ = wait(word, waited, left.min(patience)))?;
        patience = PATIENCE;
        // Whatever ended the sleep (signals can do so again and again): it is time to look.
        if word.load(Relaxed) == waited && liveness.is_gone(holder)? {
            fault::point("lock: holder is gone");
            if word.compare_exchange(waited, me.word() | WAITED, SeqCst, Relaxed).is_ok() {
                fault::point("lock: taken over");
                return Ok(Some(Acquired::Abandoned));
            }
        }
    }
}

/// Lets go of a lock, whose holder the caller is.
#[inline]
pub fn release(word: &AtomicU32) {
    // What the holder does next is not earlier than this: it may look who sleeps (`queue`).
    if word.swap(0, AcqRel) & WAITED != 0 {
        fault::point("lock: free, nobody woken");
        wake(word, 1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use super::*;

    const ME: Holder = Holder::new(0, 0);
    const OTHER: Holder = Holder::new(7, 3);

    /// Says that everybody is gone, or that nobody is.
    struct All(bool);

    impl Liveness for All {
        fn is_gone(&self, _: Holder) -> Result<bool> {
            Ok(self.0)
        }
    }

    #[test]
    fn a_holder_is_what_its_lane_and_generation_say() {
        for (lane, generation) in [(0, 0), (4094, GENERATIONS - 1), (17, 4)] {
            let holder = Holder::new(lane, generation);
            assert_eq!((holder.lane(), holder.generation()), (lane, generation));
            assert_eq!(Holder::of(holder.word() | WAITED), Some(holder));
        }
        assert_eq!(Holder::new(1, GENERATIONS + 5), Holder::new(1, 5), "a damaged generation");
    }

    #[test]
    fn a_lock_is_taken_over_from_a_holder_that_is_gone() {
        let word = AtomicU32::new(OTHER.word());
        let got = acquire(&word, ME, &All(true), &Sleep, None).unwrap();
        assert_eq!(got, Some(Acquired::Abandoned));
        assert_eq!(Holder::of(word.load(Relaxed)), Some(ME));
    }

    #[test]
    fn a_lock_of_a_holder_that_is_known_to_be_gone_is_had_without_a_wait() {
        struct Known;
        impl Liveness for Known {
            fn is_gone(&self, _: Holder) -> Result<bool> {
                unreachable!("it is known")
            }
            fn is_known_gone(&self, holder: Holder) -> bool {
                holder == OTHER
            }
        }
        struct Awake;
        impl Pause for Awake {
            fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
                unreachable!("it waits")
            }
        }
        let word = AtomicU32::new(OTHER.word());
        let got = acquire(&word, ME, &Known, &Awake, None).unwrap();
        assert_eq!(got, Some(Acquired::Abandoned));
        assert_eq!(Holder::of(word.load(Relaxed)), Some(ME));
    }

    #[test]
    fn a_lock_of_a_living_holder_is_not_had_before_the_deadline() {
        let word = AtomicU32::new(OTHER.word());
        let got = acquire(&word, ME, &All(false), &Sleep, Some(Instant::now())).unwrap();
        assert_eq!((got, Holder::of(word.load(Relaxed))), (None, Some(OTHER)));
    }

    #[test]
    fn a_lock_that_is_waited_for_by_its_holder_is_an_error_and_no_endless_wait() {
        let word = AtomicU32::new(ME.word());
        assert!(matches!(acquire(&word, ME, &All(true), &Sleep, None), Err(Error::Corrupt(_))));
    }

    #[test]
    fn an_interrupted_wait_leaves_the_lock_to_its_holder() {
        struct Interrupting;
        impl Pause for Interrupting {
            fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
                Err(Error::Interrupted)
            }
        }
        let word = AtomicU32::new(OTHER.word());
        let got = acquire(&word, ME, &All(true), &Interrupting, None);
        assert!(matches!(got, Err(Error::Interrupted)));
        assert_eq!(Holder::of(word.load(Relaxed)), Some(OTHER));
    }

    /// Whoever sleeps for good is woken by signals all the time, so that no sleep is ever over.
    #[test]
    fn signals_do_not_keep_a_waiter_from_seeing_that_the_holder_is_gone() {
        struct Signalled<'w>(&'w AtomicBool);
        impl Liveness for Signalled<'_> {
            fn is_gone(&self, _: Holder) -> Result<bool> {
                Ok(self.0.load(Relaxed))
            }
        }
        impl Pause for Signalled<'_> {
            fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
                // Interrupted at once: it never sleeps until its end.
                self.0.store(true, Relaxed);
                Ok(())
            }
        }
        let died = AtomicBool::new(false);
        let signalled = Signalled(&died);
        let word = AtomicU32::new(OTHER.word());
        let got = acquire(&word, ME, &signalled, &signalled, None).unwrap();
        assert_eq!(got, Some(Acquired::Abandoned));
    }

    #[test]
    fn threads_that_fight_for_a_lock_exclude_each_other() {
        let word = AtomicU32::new(0);
        let count = Mutex::new(0);
        std::thread::scope(|scope| {
            for lane in 0..4 {
                let (word, count) = (&word, &count);
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let got = acquire(word, Holder::new(lane, 0), &All(false), &Sleep, None);
                        assert_eq!(got.unwrap(), Some(Acquired::Free));
                        *count.try_lock().expect("nobody else is in") += 1;
                        release(word);
                    }
                });
            }
        });
        assert_eq!((word.load(Relaxed), count.into_inner().unwrap()), (0, 80_000));
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A lane that died if its generation has changed.
    struct Lane(AtomicU32);

    impl Liveness for Arc<Lane> {
        fn is_gone(&self, holder: Holder) -> Result<bool> {
            Ok(holder.lane() == 9 && self.0.load(SeqCst) != holder.generation())
        }
    }

    fn change(word: &AtomicU32, data: &UnsafeCell<u32>, lane: usize, lanes: &Arc<Lane>) {
        let me = Holder::new(lane, 0);
        let got = acquire(word, me, lanes, &Sleep, None).unwrap();
        assert!(got.is_some());
        // SAFETY: the lock is held; loom reports it if that means nothing.
        data.with_mut(|data| unsafe { *data += 1 });
        release(word);
    }

    // Fails if `release` or `try_acquire` are `Relaxed`.
    #[test]
    fn who_has_the_lock_is_alone_and_sees_what_was_done_before() {
        loom::model(|| {
            let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0)));
            let lanes = Arc::new(Lane(AtomicU32::new(0)));
            let other = {
                let (shared, lanes) = (shared.clone(), lanes.clone());
                thread::spawn(move || change(&shared.0, &shared.1, 1, &lanes))
            };
            change(&shared.0, &shared.1, 2, &lanes);
            other.join().unwrap();
            // SAFETY: the other thread has ended.
            shared.1.with(|data| assert_eq!(unsafe { *data }, 2));
        });
    }

    // Fails if a takeover stores instead of comparing.
    #[test]
    fn one_of_two_takes_over_and_sees_what_was_undone() {
        loom::model(|| {
            let dead = Holder::new(9, 0);
            let shared = Arc::new((AtomicU32::new(dead.word()), UnsafeCell::new(0)));
            let lanes = Arc::new(Lane(AtomicU32::new(0)));
            let other = {
                let (shared, lanes) = (shared.clone(), lanes.clone());
                thread::spawn(move || change(&shared.0, &shared.1, 1, &lanes))
            };
            // This thread cleans up behind the dead one, and then wants the lock too.
            // SAFETY: nobody has the lock but the dead one, for which this thread works.
            shared.1.with_mut(|data| unsafe { *data = 10 });
            lanes.0.store(1, SeqCst);
            change(&shared.0, &shared.1, 2, &lanes);
            other.join().unwrap();
            // SAFETY: the other thread has ended.
            shared.1.with(|data| assert_eq!(unsafe { *data }, 12));
        });
    }
}
