//! Reading ahead: one thread inflates and decodes while another one works on the records.

use super::reader::{Ending, ReadError, read};
use crate::record::Record;
use std::mem;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};

/// Records that are handed over together.
const BATCH: usize = 4_096;
/// How many batches may wait.
const AHEAD: usize = 4;

/// The same as [`read`]; `take` is called by this thread, while another one reads. It saves up to
/// half of the time where there is a processor for each, and costs some MB of memory.
pub fn read_ahead(path: &Path, mut take: impl FnMut(Record)) -> Result<Ending, ReadError> {
    thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<Record>>(AHEAD);
        let reading = Builder::new().name("ungil-read".to_owned()).spawn_scoped(scope, move || {
            let mut batch = Vec::with_capacity(BATCH);
            // If nobody takes records any more, `take` has panicked, and that is what is told.
            let ending = read(path, |record| {
                batch.push(record);
                if batch.len() == BATCH {
                    let _ = send.send(mem::replace(&mut batch, Vec::with_capacity(BATCH)));
                }
            });
            let _ = send.send(batch);
            ending
        });
        let Ok(reading) = reading else { return read(path, take) };
        receive.into_iter().flatten().for_each(&mut take);
        reading.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
