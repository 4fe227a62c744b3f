//! The size of a record, before it is written.

use crate::record::Record;

/// How much text a record brings, with what it costs to write each piece of it.
pub fn text_bytes(record: &Record) -> usize {
    let piece = |text: &String| text.len() + 16;
    match record {
        Record::ProcessStarted(process) => {
            let reason = process.not_recorded.iter();
            process.argv.iter().chain(reason).chain([&process.python]).map(piece).sum()
        }
        Record::ThreadStarted { name: text, .. }
        | Record::ThreadNamed { name: text, .. }
        | Record::NoStack { why: text, .. }
        | Record::Note { text } => piece(text),
        Record::Libraries { files, .. } => files.iter().map(piece).sum(),
        Record::Stack { frames, native, .. } => {
            let python = frames.iter().map(|it| 2 * piece(&it.function) + piece(&it.file));
            let native = native
                .iter()
                .flatten()
                .map(|it| 2 * (piece(&it.symbol) + piece(&it.method) + piece(&it.library)));
            python.chain(native).sum()
        }
        Record::GilSwitchedOn { library, frames, .. } => {
            let frames = frames.iter().map(|it| 2 * piece(&it.function) + piece(&it.file));
            piece(library) + frames.sum::<usize>()
        }
        Record::Look { frames, .. } | Record::ParkStack { frames, .. } => {
            frames.iter().map(|frame| 2 * piece(&frame.function) + piece(&frame.file)).sum()
        }
        Record::Parked { park, .. } => piece(&park.of),
        Record::Gil { .. }
        | Record::Stopped { .. }
        | Record::Snapshot { .. }
        | Record::KernelCount { .. }
        | Record::Throttled { .. }
        | Record::ProcessEnded { .. }
        | Record::ThreadEnded { .. } => 0,
    }
}
