//! Sleeping on a word until somebody wakes.

use std::time::Duration;

use crate::atomic::AtomicU32;

#[cfg(all(test, loom))]
pub use model::{Sleepers, sleepers};
#[cfg(loom)]
pub use model::{wait, wake};

/// Sleeps while a word has a value, for at most `longest`; false: neither was it woken nor had the
/// word another value.
#[cfg(not(loom))]
pub fn wait(word: &AtomicU32, value: u32, longest: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: longest.as_secs().cast_signed(),
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
    result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}

/// Wakes up to `count` of those who sleep on a word.
#[cfg(not(loom))]
pub fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word lives during the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

#[cfg(loom)]
mod model {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;

    use loom::sync::{Condvar, Mutex};

    use super::{AtomicU32, Duration};
    use crate::atomic::Ordering::SeqCst;
    use crate::clock;

    /// How threads of a model sleep.
    #[derive(Clone, Default)]
    pub enum Sleepers {
        /// Until the time is over, which it is at once: no sleep is woken from.
        #[default]
        Short,
        /// Until somebody wakes, with no end of the time: a wake-up that gets lost is a deadlock.
        /// Who sleeps longest on a word is woken first, as by the kernel.
        Long(Rc<Mutex<Vec<Sleeper>>>),
    }

    /// A word, by its address, and what wakes one who sleeps on it.
    type Sleeper = (*const AtomicU32, Arc<Condvar>);

    thread_local! {
        // Loom runs all threads of a model in one.
        static SLEEPERS: RefCell<Sleepers> = RefCell::default();
    }

    /// Says how threads sleep in this execution of a model; returns how they did.
    pub fn sleepers(how: Sleepers) -> Sleepers {
        SLEEPERS.replace(how)
    }

    /// A sleep.
    pub fn wait(word: &AtomicU32, value: u32, longest: Duration) -> bool {
        let Sleepers::Long(sleepers) = SLEEPERS.with_borrow(Clone::clone) else {
            clock::sleep(longest);
            return false;
        };
        let mut all = sleepers.lock().expect("no model goes on after a panic");
        if word.load(SeqCst) == value {
            let me = Arc::new(Condvar::new());
            all.push((word, me.clone()));
            drop(me.wait(all));
        }
        true
    }

    /// Wakes up to `count` of those who sleep on the word.
    pub fn wake(word: &AtomicU32, count: i32) {
        if let Sleepers::Long(sleepers) = SLEEPERS.with_borrow(Clone::clone) {
            let mut all = sleepers.lock().expect("no model goes on after a panic");
            for _ in 0..count {
                let Some(first) = all.iter().position(|(other, _)| std::ptr::eq(*other, word))
                else {
                    break;
                };
                all.remove(first).1.notify_one();
            }
        }
    }
}
