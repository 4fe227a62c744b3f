//! Questions for what was judged so far, from another thread to the one that records.

use crate::report::JudgedReport;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

/// Where the answer goes.
pub type Question = Sender<JudgedReport>;

/// Those that have not been taken up.
#[derive(Debug, Default)]
pub struct Questions(Mutex<Vec<Question>>);

impl Questions {
    /// Asks. No answer comes from a recording that is over.
    pub fn ask(&self) -> Receiver<JudgedReport> {
        let (question, answer) = mpsc::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(question);
        answer
    }

    /// Takes them up.
    pub fn take(&self) -> Vec<Question> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
