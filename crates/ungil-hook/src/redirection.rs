//! Where calls of images lead: slots that hold the addresses of functions, and what was in them
//! before, so that everything can be taken back.

use libc::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// All that were made at once. Those that wait for a policy are [`crate::handoff::CALLS`].
pub static MADE: Redirections = Redirections::new();

/// Slots that lead, or are to lead, to this library.
pub struct Redirections {
    all: [Redirection; 32],
    count: AtomicUsize,
}

struct Redirection {
    slot: AtomicUsize,
    to: AtomicUsize,
    /// What was there before; 0 as long as it is there.
    from: AtomicUsize,
    is_protected: AtomicBool,
}

impl Redirection {
    const fn none() -> Self {
        Self {
            slot: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            from: AtomicUsize::new(0),
            is_protected: AtomicBool::new(false),
        }
    }

    /// Makes it, and says whether that was possible.
    fn make(&self) -> bool {
        let slot = self.slot.load(Ordering::Relaxed);
        let from = read_slot(slot);
        let to = self.to.load(Ordering::Relaxed);
        if from == to {
            return true;
        }
        self.from.store(from, Ordering::Relaxed);
        write_slot(slot, to, self.is_protected.load(Ordering::Relaxed))
    }

    /// Takes it back, unless it was not made, or somebody else has redirected the call since.
    fn undo(&self) {
        let slot = self.slot.load(Ordering::Relaxed);
        let from = self.from.swap(0, Ordering::Relaxed);
        if from != 0 && read_slot(slot) == self.to.load(Ordering::Relaxed) {
            write_slot(slot, from, self.is_protected.load(Ordering::Relaxed));
        }
    }
}

/// One thread at a time changes them.
impl Redirections {
    pub const fn new() -> Self {
        Self { all: [const { Redirection::none() }; 32], count: AtomicUsize::new(0) }
    }

    /// Forgets them: their image was unloaded, or they were taken back.
    pub fn forget(&self) {
        self.count.store(0, Ordering::Release);
    }

    /// Makes all, and says whether that was possible.
    pub fn redirect(&self) -> bool {
        self.known().iter().all(Redirection::make)
    }

    /// Makes this one now.
    pub fn make(&self, slot: usize, to: usize, is_protected: bool) {
        let is_added = self.add(slot, to, is_protected);
        debug_assert!(is_added, "there is room for what one interpreter calls");
        if let Some(it) = self.known().iter().find(|it| it.slot.load(Ordering::Relaxed) == slot) {
            it.make();
        }
    }

    /// Takes all back.
    pub fn undo(&self) {
        self.known().iter().for_each(Redirection::undo);
    }

    /// Adds one, which is made later. `false` if there is no room.
    pub fn add(&self, slot: usize, to: usize, is_protected: bool) -> bool {
        if self.known().iter().any(|it| it.slot.load(Ordering::Relaxed) == slot) {
            return true;
        }
        let count = self.count.load(Ordering::Relaxed);
        let Some(free) = self.all.get(count) else { return false };
        free.slot.store(slot, Ordering::Relaxed);
        free.to.store(to, Ordering::Relaxed);
        free.from.store(0, Ordering::Relaxed);
        free.is_protected.store(is_protected, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
        true
    }

    fn known(&self) -> &[Redirection] {
        &self.all[..self.count.load(Ordering::Acquire)]
    }
}

fn read_slot(slot: usize) -> usize {
    // SAFETY: a relocation slot is an aligned, mapped pointer.
    unsafe { AtomicUsize::from_ptr(slot as *mut usize) }.load(Ordering::Relaxed)
}

/// Stores `value` at the address `slot`, and says whether that was possible; a protected page is
/// made writable meanwhile.
fn write_slot(slot: usize, value: usize, is_protected: bool) -> bool {
    let page = page_of(slot) as *mut c_void;
    let protect = |protection| {
        // SAFETY: the page belongs to the relocated data of a loaded image, never to code.
        !is_protected || unsafe { libc::mprotect(page, page_size(), protection) } == 0
    };
    if !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return false;
    }
    // SAFETY: a relocation slot is an aligned, mapped, now writable pointer; other threads only
    // load it as a whole word, in their calls.
    unsafe { AtomicUsize::from_ptr(slot as *mut usize) }.store(value, Ordering::Release);
    protect(libc::PROT_READ);
    true
}

/// The page that contains `address`.
pub fn page_of(address: usize) -> usize {
    address & !(page_size() - 1)
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
