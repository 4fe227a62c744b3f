//! The atomics of everything that processes share: the standard ones, or loom's.

#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use model::{AtomicU32, AtomicU64, compiler_fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Marks a place where a load must not be older than the operation before it, both being `SeqCst`.
/// Loom takes such accesses for `AcqRel` and has to be told.
#[inline(always)]
pub fn in_total_order() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Loom's atomics, with all orders of their accesses tried.
///
/// Loom goes back to the last access of a word before one that conflicts with it. If a thread loads
/// a word and stores to it then, that is its own load, and what others loaded before is never tried
/// after the store. So here each load is a conflict by itself, by way of a second word.
#[cfg(loom)]
mod model {
    use super::Ordering::{self, Relaxed};

    macro_rules! atomic {
        ($name:ident, $number:ty) => {
            #[derive(Debug, Default)]
            pub struct $name {
                word: loom::sync::atomic::$name,
                looks: loom::sync::atomic::AtomicU32,
            }

            impl $name {
                pub fn new(value: $number) -> Self {
                    Self { word: value.into(), looks: 0.into() }
                }

                pub fn load(&self, order: Ordering) -> $number {
                    // Relaxed: it makes nothing known to anybody.
                    self.looks.fetch_add(1, Relaxed);
                    self.word.load(order)
                }
            }

            impl std::ops::Deref for $name {
                type Target = loom::sync::atomic::$name;

                fn deref(&self) -> &Self::Target {
                    &self.word
                }
            }
        };
    }

    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);

    /// Loom knows no compiler that swaps accesses of one thread.
    pub const fn compiler_fence(_: Ordering) {}
}
