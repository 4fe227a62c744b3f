//! Asks for snapshots on their way to the recorder, and what was written on its way back.

use crate::flight::Cause;
use serde::Serialize;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Words about snapshots that nobody fetches are kept up to this number, the latest ones.
const UNTOLD: usize = 1_000;

/// Somebody wants a snapshot.
#[derive(Debug)]
pub struct Ask {
    /// Where to; `None` where the recorder puts its own.
    pub path: Option<PathBuf>,
    /// Who waits for it, besides those who are told of all.
    pub answer: Option<Sender<Written>>,
}

/// A snapshot that was written, or could not be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Written {
    /// Where it is; `None` if it could not be written.
    pub path: Option<PathBuf>,
    /// Why it could not.
    pub error: Option<String>,
    /// Whether somebody asked for it.
    pub asked: bool,
    /// What made it, if nobody asked.
    pub cause: Option<Cause>,
    /// How many stalls there were since the snapshot before, the one of `cause` included.
    pub stalls: u64,
    /// How many seconds it holds,
    pub kept_s: f64,
    /// and how many it was to hold.
    pub last_s: f64,
    /// Whether it holds fewer because there was no room for more.
    pub is_short: bool,
}

/// What lies between a flight recorder and those who ask and listen.
#[derive(Debug, Default)]
pub struct Exchange {
    asks: Mutex<Vec<Ask>>,
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    waiting: VecDeque<Written>,
    is_open: bool,
}

impl Exchange {
    /// A flight recorder is at work from now on.
    pub fn open(&self) {
        lock(&self.told).is_open = true;
    }

    /// Leaves an ask for the recorder, which looks for it in every round. Where none is at work, it
    /// is forgotten.
    pub fn ask(&self, ask: Ask) {
        let told = lock(&self.told);
        if told.is_open {
            lock(&self.asks).push(ask);
        }
    }

    /// Asks for a snapshot and waits for it. `None` if no flight recorder is at work.
    pub fn ask_and_wait(&self, path: Option<PathBuf>) -> Option<Written> {
        let (sender, receiver) = channel();
        self.ask(Ask { path, answer: Some(sender) });
        receiver.recv().ok()
    }

    /// The asks that have come.
    pub fn asks(&self) -> Vec<Ask> {
        std::mem::take(&mut *lock(&self.asks))
    }

    /// Tells of a snapshot.
    pub fn tell(&self, written: Written) {
        let mut told = lock(&self.told);
        if told.waiting.len() == UNTOLD {
            told.waiting.pop_front();
        }
        told.waiting.push_back(written);
        self.changed.notify_all();
    }

    /// No more will be told.
    pub fn end(&self) {
        let mut told = lock(&self.told);
        told.is_open = false;
        lock(&self.asks).clear();
        self.changed.notify_all();
    }

    /// The next one that nobody has fetched; waits for it so long. `None` if none came, or comes.
    pub fn next(&self, patience: Duration) -> Option<Written> {
        let idle = |told: &mut Told| told.waiting.is_empty() && told.is_open;
        let told = self.changed.wait_timeout_while(lock(&self.told), patience, idle);
        told.unwrap_or_else(PoisonError::into_inner).0.waiting.pop_front()
    }
}

/// What is behind it is whole after every change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
