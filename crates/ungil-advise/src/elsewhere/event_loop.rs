//! A call that blocks, made by the thread of an event loop: nothing else of that loop runs meanwhile.

use super::sight::{Seen, Sight, Told, at, doing, how_often, line};
use crate::advice::{Advice, Cause, Sure};
use crate::functions::short;
use ungil_trace::analysis::words;
use ungil_trace::report::{OffGil, What};

/// From this length on asyncio itself calls a callback slow (`loop.slow_callback_duration`).
const SLOW_MS: f64 = 100.0;
/// Shorter ones count if they take this part (of 1) of the time,
const PART: f64 = 0.05;
/// so much in all,
const LEAST_S: f64 = 0.05;
/// and so many looks found the thread there: one may stand for many gaps in which it did other things.
const LEAST_LOOKS: u64 = 3;

/// The worst such line of each thread that has one.
pub fn find(sight: &Sight) -> Option<Advice> {
    let blocks = |seen: &Seen| seen.off.on_event_loop && line(seen.off).is_some();
    let matters = |seen: &Seen| {
        seen.off.longest_ms >= SLOW_MS
            || (seen.off.total_s > LEAST_S.max(PART * sight.busy_s())
                && seen.off.gaps + seen.off.samples >= LEAST_LOOKS)
    };
    let all = sight.seen().filter(blocks).filter(matters);
    let worst = all.max_by(|a, b| a.off.total_s.total_cmp(&b.off.total_s))?;
    let off = worst.off;
    let name = &sight.thread(worst.thread).name;
    let text = format!(
        "a call blocks the event loop of thread {name}: {} {} for {}{}",
        at(off),
        doing(off),
        words::length(off.total_s),
        how_often(off.gaps, off.samples, off.longest_ms),
    );
    Some(sight.not_the_gil(
        Cause::BlockedEventLoop,
        &[worst.thread],
        Told {
            text,
            frame: line(off).cloned(),
            code: Some(code(off).to_owned()),
            sure: Sure::High,
            because: format!(
                "in these gaps, looks found the thread in {}, which the loop's own code had called",
                line(off).map_or_else(String::new, |frame| short(frame))
            ),
            evidence: vec![
                sight.evidence(worst, "long blocking calls", "gaps"),
                sight.evidence(worst, "time in them", "total_s"),
                sight.evidence(worst, "longest of them", "longest_ms"),
            ],
        },
    ))
}

fn code(off: &OffGil) -> &'static str {
    let is_trio = off.stack.iter().any(|frame| frame.contains("/trio/_core/_run.py"));
    match off.what {
        What::Sleep if is_trio => "await trio.sleep(seconds)  # instead of time.sleep(seconds)",
        What::Lock | What::Thread if is_trio => {
            "async with trio.Lock(): ...  # or: await trio.to_thread.run_sync(function, ...)"
        }
        _ if is_trio => "await trio.to_thread.run_sync(function, ...)  # or use a library for trio",
        What::Sleep => "await asyncio.sleep(seconds)  # instead of time.sleep(seconds)",
        What::Lock | What::Thread => {
            "async with asyncio.Lock(): ...  # or: await asyncio.to_thread(function, ...)"
        }
        _ => "await asyncio.to_thread(function, ...)  # or use a library for asyncio",
    }
}
