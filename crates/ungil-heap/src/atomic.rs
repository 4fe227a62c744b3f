//! The atomics of everything that processes share: the standard ones, or loom's.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Marks a place where a load must not be older than the operation before it, both being `SeqCst`.
/// Loom takes such accesses for `AcqRel` and has to be told.
#[inline(always)]
pub fn in_total_order() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Loom knows no compiler that swaps accesses of one thread.
#[cfg(loom)]
pub const fn compiler_fence(_: Ordering) {}
