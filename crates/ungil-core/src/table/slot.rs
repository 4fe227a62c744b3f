//! The place of one thread in a table.

use super::counters::Counters;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::ring::Positions;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SlotState {
    /// Nobody's. A thread may claim it.
    Free = 0,
    /// Being claimed: its fields are not valid yet.
    Claimed = 1,
    /// A running thread's.
    Live = 2,
    /// The thread has ended; the recorder frees the slot once it has drained it.
    Ended = 3,
}

/// One thread: who it is, its counters, its ring's positions.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// A [`SlotState`] as a number. The thread moves it Free -> Claimed -> Live -> Ended,
    /// whoever drains moves it Ended -> Free.
    pub state: AtomicU32,
    /// Kernel thread id.
    pub tid: AtomicU32,
    /// How many threads have had this slot, this one included.
    pub generation: AtomicU32,
    /// How many events of the ring have memory behind them. Only grows.
    pub committed: AtomicU32,
    /// `pthread_self()`, which is `threading.get_ident()`.
    pub ident: AtomicU64,
    /// When the thread was first seen.
    pub started_ticks: AtomicU64,
    /// When it ended, or 0.
    pub ended_ticks: AtomicU64,
    /// Events that found the ring full.
    pub lost: AtomicU64,
    /// The name the kernel knows at the thread's start and end (`PR_GET_NAME`), NUL-padded.
    pub comm: [AtomicU64; 2],
    /// When the thread got the GIL it holds now, or 0.
    pub holding_since_ticks: AtomicU64,
    /// When the thread began to wait for the GIL, or 0 if it does not wait.
    pub waiting_since_ticks: AtomicU64,
    /// How long the thread's last wait was, in ns.
    pub last_wait_ns: AtomicU64,
    /// How many holds the thread had had when that wait ended in its next one.
    pub last_wait_holds: AtomicU64,
    /// How long it had waited for the hold before that one, in ns.
    pub wait_before_ns: AtomicU64,
    /// Exact totals.
    pub counters: Counters,
    /// In which sum of [`super::Ended`] the thread counts.
    pub group: AtomicU32,
    /// Where the ring stands.
    pub positions: Positions,
}

impl Slot {
    /// Takes the slot if it is free, with all counters at zero.
    pub(super) fn try_claim(&self) -> bool {
        let (free, claimed) = (SlotState::Free as u32, SlotState::Claimed as u32);
        if self.state.load(Ordering::Relaxed) != free
            || self
                .state
                .compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        self.generation.fetch_add(1, Ordering::Relaxed);
        let others = [
            &self.ended_ticks,
            &self.lost,
            &self.holding_since_ticks,
            &self.waiting_since_ticks,
            &self.last_wait_ns,
            &self.last_wait_holds,
            &self.wait_before_ns,
        ];
        for field in self.counters.fields().into_iter().chain(others) {
            field.store(0, Ordering::Relaxed);
        }
        self.group.store(0, Ordering::Relaxed);
        true
    }

    /// How long the thread waited for the hold that it is in, and for the one before, in ns.
    pub fn last_two_waits_ns(&self) -> (u64, u64) {
        let holds = self.counters.holds.load(Ordering::Relaxed);
        let last_ns = self.last_wait_ns.load(Ordering::Relaxed);
        match holds.checked_sub(self.last_wait_holds.load(Ordering::Relaxed)) {
            Some(0) => (last_ns, self.wait_before_ns.load(Ordering::Relaxed)),
            Some(1) => (0, last_ns),
            _ => (0, 0),
        }
    }

    /// Notes how long the thread has waited for the hold that it begins.
    #[inline]
    pub fn waited(&self, ns: u64) {
        let holds = self.counters.holds.load(Ordering::Relaxed);
        let before = self.last_wait_holds.load(Ordering::Relaxed);
        let before_ns =
            if before + 1 == holds { self.last_wait_ns.load(Ordering::Relaxed) } else { 0 };
        self.wait_before_ns.store(before_ns, Ordering::Relaxed);
        self.last_wait_ns.store(ns, Ordering::Relaxed);
        self.last_wait_holds.store(holds, Ordering::Relaxed);
    }

    /// Makes a claimed slot visible to the recorder.
    pub fn publish(&self) {
        self.state.store(SlotState::Live as u32, Ordering::Release);
    }

    /// What the slot holds, if the number is a known one.
    pub fn state(&self) -> Option<SlotState> {
        Some(match self.state.load(Ordering::Acquire) {
            0 => SlotState::Free,
            1 => SlotState::Claimed,
            2 => SlotState::Live,
            3 => SlotState::Ended,
            _ => return None,
        })
    }

    /// Says that the thread has ended: the slot waits to be drained.
    pub fn end(&self) {
        self.state.store(SlotState::Ended as u32, Ordering::Release);
    }

    /// Gives an ended slot back.
    pub fn free(&self) {
        self.state.store(SlotState::Free as u32, Ordering::Release);
    }
}
