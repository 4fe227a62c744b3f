//! What belongs to a thread under a policy. In one piece: to find it is a call.

use crate::lock::Poster;
use crate::taken::Taken;
use crate::thread;
use std::cell::Cell;
use ungil_core::schedule::Account;

thread_local! {
    static OWN: Own = const { Own::new() };
}

/// Of one thread.
pub struct Own {
    /// What it has used.
    pub account: Cell<Account>,
    /// Who woke it since it last had the GIL.
    pub waker: Cell<Poster>,
    /// The locks that it has.
    pub taken: Taken,
    token: Cell<u32>,
}

impl Own {
    const fn new() -> Self {
        Self {
            account: Cell::new(Account::new()),
            waker: Cell::new(Poster::NOBODY),
            taken: Taken::new(),
            token: Cell::new(0),
        }
    }

    /// Calls `look` with that of the calling thread.
    #[inline]
    pub fn with<T>(look: impl FnOnce(&Self) -> T) -> T {
        OWN.with(look)
    }

    /// [`thread::token`].
    #[inline]
    pub fn token(&self) -> u32 {
        if self.token.get() == 0 {
            self.token.set(thread::token());
        }
        self.token.get()
    }
}
