//! A call that blocks, made by the thread of an event loop: nothing else of that loop runs meanwhile.

use super::sight::{Seen, Sight, Sum, Told, at, doing, how_often, line};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::functions::{callable, is_of, is_users, short};
use crate::loops::{Library, Work, is_native, runs_loop};
use ungil_trace::analysis::words;
use ungil_trace::report::{OffGil, What};

/// From this length on asyncio itself calls a callback slow (`loop.slow_callback_duration`).
pub(super) const SLOW_MS: f64 = 100.0;
/// Shorter ones count if they take this part (of 1) of the time,
pub(super) const PART: f64 = 0.05;
/// so much in all,
pub(super) const LEAST_S: f64 = 0.05;
/// and so many looks found the thread there: one may stand for many gaps in which it did other things.
pub(super) const LEAST_LOOKS: u64 = 3;

/// Lines told at most.
const TOLD: usize = 2;
/// A thread that starts another one waits in so many frames of `threading.py` at most.
const WAITS_IN: usize = 4;

/// The worst such lines, worst first.
pub fn find(sight: &Sight) -> Vec<Advice> {
    let mut lines: Vec<Line> = Vec::new();
    let blocks = |seen: &Seen| seen.off.on_event_loop && !starts_thread(seen.off);
    for seen in sight.seen().filter(blocks) {
        let Some(frame) = line(seen.off) else { continue };
        let is_it = |it: &Line| (it.sum.worst.thread, it.frame) == (seen.thread, frame);
        match lines.iter_mut().find(|it| is_it(it)) {
            Some(line) => line.sum.add(seen),
            None => lines.push(Line { frame, sum: Sum::of(seen) }),
        }
    }
    lines.retain(|line| line.matters(sight));
    lines.sort_by(|a, b| b.sum.total_s.total_cmp(&a.sum.total_s));
    lines.truncate(TOLD);
    lines.into_iter().map(|line| line.advice(sight)).collect()
}

/// A line that blocks the loop of a thread.
struct Line<'a> {
    frame: &'a String,
    sum: Sum<'a>,
}

impl Line<'_> {
    fn matters(&self, sight: &Sight) -> bool {
        let Sum { total_s, gaps, samples, longest_ms, .. } = self.sum;
        longest_ms >= SLOW_MS
            || (total_s > LEAST_S.max(PART * sight.busy_s()) && gaps + samples >= LEAST_LOOKS)
    }

    fn advice(self, sight: &Sight) -> Advice {
        let Self { frame, sum: Sum { worst, total_s, gaps, samples, longest_ms } } = self;
        let off = worst.off;
        let name = &sight.thread(worst.thread).name;
        let text = format!(
            "a call blocks the event loop of thread {name}: {} {} for {}{}",
            at(off),
            doing(off),
            words::length(total_s),
            how_often(gaps, samples, longest_ms),
        );
        let looks = (gaps + samples) as f64;
        let made = |what: &str, value, unit| Evidence::made(what, value, unit);
        let mut evidence = vec![
            made("time in such calls", total_s, Unit::Seconds),
            made("looks that found one", looks, Unit::Count),
        ];
        // Of those that are over sooner, no length is known.
        if gaps > 0 {
            evidence.push(made("longest of them", longest_ms, Unit::Milliseconds));
        }
        sight.not_the_gil(Cause::BlockedEventLoop, &[worst.thread], Told {
            text,
            frame: Some(frame.clone()),
            code: Some(code(off)),
            // Nothing tells what such a loop calls from what its line calls once it is over.
            sure: if off.stack.iter().any(|frame| is_native(frame)) { Sure::Medium } else { Sure::High },
            because: format!(
                "in these gaps, looks found the thread in {}, which the loop's own code had called",
                short(frame)
            ),
            evidence,
        })
    }
}

/// Whether it waits until a thread that it starts runs. That one needs the GIL for it, and nothing else.
fn starts_thread(off: &OffGil) -> bool {
    let mut innermost = off.stack.iter().take(WAITS_IN);
    innermost.any(|frame| is_of(frame, ("threading.py", "start")))
}

fn code(off: &OffGil) -> String {
    let run_by = off.stack.iter().find(|frame| runs_loop(frame));
    let library = run_by.map_or(Some(Library::Asyncio), |frame| Library::of(frame));
    let instead = Instead::of(library);
    // Somebody else's lock cannot be replaced, and native code waits so for threads of its own, too.
    let what = if off.user_frame == off.frame || off.what != What::Lock {
        off.what
    } else {
        What::Computing
    };
    match what {
        What::Sleep => format!("{}  # instead of time.sleep(seconds)", instead.sleep),
        What::Thread => instead.result.to_owned(),
        _ => instead.to_a_thread(what, work(off)),
    }
}

/// What code of a loop has to call, so that the loop goes on.
struct Instead {
    library: &'static str,
    /// Instead of `time.sleep`.
    sleep: &'static str,
    /// Instead of waiting for what a thread does.
    result: &'static str,
    /// Instead of a lock of `threading`.
    lock: &'static str,
    /// Before and after the function that a thread is to run.
    thread: [&'static str; 2],
}

impl Instead {
    fn of(library: Option<Library>) -> Self {
        match library {
            Some(Library::Asyncio) => Self {
                library: "asyncio",
                sleep: "await asyncio.sleep(seconds)",
                result: "await asyncio.wrap_future(future)  \
                         # or: await asyncio.to_thread(function, *arguments)",
                lock: "async with asyncio.Lock(): ...",
                thread: ["await asyncio.to_thread(", ", *arguments)"],
            },
            Some(Library::Trio) => Self {
                library: "trio",
                sleep: "await trio.sleep(seconds)",
                result: "await trio.to_thread.run_sync(function, *arguments)  \
                         # or: ...run_sync(future.result)",
                lock: "async with trio.Lock(): ...",
                thread: ["await trio.to_thread.run_sync(", ", *arguments)"],
            },
            Some(Library::Twisted) => Self {
                library: "Twisted",
                sleep: "await deferLater(reactor, seconds)",
                result: "await deferToThread(function, *arguments)  \
                         # or: ...deferToThread(future.result)",
                lock: "async with DeferredLock(): ...",
                thread: ["await deferToThread(", ", *arguments)"],
            },
            // The only one that is left. Its own calls wait, whatever the program has patched.
            None => Self {
                library: "gevent",
                sleep: "gevent.sleep(seconds)",
                result: "gevent.get_hub().threadpool.apply(function, arguments)  \
                         # or: ....apply(future.result)",
                lock: "with gevent.lock.RLock(): ...",
                thread: ["gevent.get_hub().threadpool.apply(", ", arguments)"],
            },
        }
    }

    fn to_a_thread(&self, what: What, work: Work) -> String {
        let [before, after] = self.thread;
        let call = format!("{before}{}{after}", work.word());
        let line = match what {
            What::Lock => format!("{}  # or: {call}", self.lock),
            _ => format!("{call}  # or use a library for {}", self.library),
        };
        let comment = work.comment("blocks").map_or_else(String::new, |it| format!("\n{it}"));
        format!("{line}{comment}")
    }
}

/// The innermost function of the user's own that has a name, of those that the loop called.
fn work(off: &OffGil) -> Work<'_> {
    let called = off.stack.iter().take_while(|frame| !runs_loop(frame));
    let mut called = called.filter(|frame| is_users(frame));
    let Some(name) = called.find_map(|frame| callable(frame)) else { return Work::default() };
    // One that calls itself may be the outermost.
    let is_outermost = called.all(|frame| callable(frame) == Some(name));
    Work { name: Some(name), is_outermost }
}
