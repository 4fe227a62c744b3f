//! What a model leaves out of the code, to see that it notices.
//!
//! A step that a protocol depends on asks whether it is left out. Outside of the models that is a
//! constant, and nothing of it is built.

/// Whether the step with this name is left out.
#[cfg(not(all(test, loom)))]
#[inline]
pub const fn is(_name: &'static str) -> bool {
    false
}

/// Whether a model has failed, so that nothing can be cleaned up: it has no atomics any more.
pub fn has_failed() -> bool {
    cfg!(all(test, loom)) && std::thread::panicking()
}

#[cfg(all(test, loom))]
pub use made::{is, make};

#[cfg(all(test, loom))]
mod made {
    use std::cell::Cell;

    thread_local! {
        // Loom runs all threads of a model in one, and each test has its own.
        static MADE: Cell<&'static str> = const { Cell::new("") };
    }

    /// Whether the step with this name is left out.
    pub fn is(name: &'static str) -> bool {
        MADE.get() == name
    }

    /// Leaves it out from here on.
    pub fn make(name: &'static str) {
        MADE.set(name);
    }
}
