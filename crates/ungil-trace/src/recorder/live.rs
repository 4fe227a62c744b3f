//! A recording without a file, for somebody who looks now and then: at what was counted since the
//! last look, and at who holds and who waits now.

use super::now::ProcessNow;
use crate::analysis::{Rolling, WorstWait};
use crate::clock::now_ns;
use crate::record::Record;
use crate::report::Report;
use serde::Serialize;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// What one look shows.
#[derive(Clone, Debug, Serialize)]
pub struct Look {
    /// Since the last look. There are no findings in it.
    pub lately: Report,
    /// The longest waits of the last minute, one a thread that lives.
    pub worst_waits: Vec<WorstWait>,
    /// The processes that are there.
    pub now: Vec<ProcessNow>,
}

/// Who waits for a look.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<Mutex<Option<Sender<Look>>>>);

impl Asked {
    /// Asks for a look. It comes with the next round.
    pub fn ask(&self) -> Receiver<Look> {
        let (sender, receiver) = mpsc::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    fn take(&self) -> Option<Sender<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where records go.
#[derive(Debug)]
pub struct Live {
    rolling: Rolling,
    asked: Asked,
}

impl Live {
    /// Whoever asks gets a look.
    pub fn new(blame_after_ns: u64, asked: Asked) -> Self {
        Self { rolling: Rolling::new(blame_after_ns), asked }
    }

    /// Takes in one record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        self.rolling.push(record);
    }

    /// Gives a look if one was asked for; `now` tells of the processes.
    pub fn answer(&mut self, now: impl FnOnce() -> Vec<ProcessNow>) {
        if let Some(sender) = self.asked.take() {
            let now = now();
            let (lately, worst_waits) = self.rolling.take(now_ns());
            // Whoever asked may have given up.
            let _ = sender.send(Look { lately, worst_waits, now });
        }
    }

    /// What was counted since the last look.
    pub fn finish(mut self) -> Report {
        self.rolling.take(now_ns()).0
    }
}
