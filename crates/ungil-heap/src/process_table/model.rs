//! The locks of the kernel in a model: see `kernel.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Result;
use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::segment::Segment;

/// An open file, with the locks that were taken with it.
pub(super) type File = Arc<Open>;

/// The kernel lets go of the locks with the last one that has it.
#[derive(Debug)]
pub struct Open {
    segment: Segment,
    locked: Mutex<Vec<usize>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let locked = std::mem::take(self.locked.get_mut().unwrap_or_else(PoisonError::into_inner));
        for byte in locked {
            // Whoever learns of a death sees all that was done before it.
            self.segment.lives()[byte].store(0, Release);
        }
    }
}

pub(super) fn open(segment: &Segment) -> Result<File> {
    Ok(Arc::new(Open { segment: segment.clone(), locked: Mutex::default() }))
}

/// Keeps a process's lock as long as it lives.
#[derive(Debug)]
pub struct Life(#[expect(dead_code, reason = "only kept")] File);

impl Life {
    pub(super) fn holding(file: &File) -> Result<Self> {
        Ok(Self(file.clone()))
    }

    /// In a forked child.
    pub fn was_not_inherited(self) {
        std::mem::forget(self);
    }
}

/// Whether nobody holds the lock of a slot.
pub fn is_dead(segment: &Segment, index: usize) -> Result<bool> {
    Ok(segment.lives()[index].load(Acquire) == 0)
}

pub(super) fn lock(file: &File, byte: usize) -> Result<bool> {
    let is_mine = file.segment.lives()[byte].compare_exchange(0, 1, Acquire, Relaxed).is_ok();
    if is_mine {
        file.locked.lock().unwrap_or_else(PoisonError::into_inner).push(byte);
    }
    Ok(is_mine)
}

pub(super) fn unlock(file: &File, byte: usize) {
    let mut locked = file.locked.lock().unwrap_or_else(PoisonError::into_inner);
    // What another open file has stays locked.
    if let Some(index) = locked.iter().position(|locked| *locked == byte) {
        locked.remove(index);
        drop(locked);
        file.segment.lives()[byte].store(0, Release);
    }
}
