//! What threads did that had got past the line at which others wait for a lock, and what helps
//! where it is known whose lock that is. No event tells who has a lock; but who is further in the
//! same function, behind that line, most likely has it.

use super::sight::{Sight, Sum, doing, line};
use crate::functions::{is_of, only_takes_lock, short};
use ungil_trace::analysis::{held, words};
use ungil_trace::report::{OffGil, ThreadReport, What};

/// What took less than this part (of 1) of the waits of each thread does not explain them.
const PART: f64 = 0.05;
/// What took less than this part of them was not always seen.
const MOST: f64 = 0.5;

/// The function that takes the lock of a logging handler, as file and function; that of a thread that
/// writes for all others; and what makes one.
const LOGGING: (&str, &str) = ("logging/__init__.py", "handle");
const LISTENER: (&str, &str) = ("logging/handlers.py", "_monitor");
const QUEUE: &str = "import logging.handlers, queue\n\
    records = queue.SimpleQueue()\n\
    logger.addHandler(logging.handlers.QueueHandler(records))  # in the place of handler\n\
    listener = logging.handlers.QueueListener(records, handler)  # its one thread writes\n\
    listener.start()  # and listener.stop() at the end of the program";

/// What the lock was held for, most likely.
#[derive(Debug)]
pub struct Past<'a> {
    /// `; past that line, threads slept (nanosleep) at load (app.py:5) for 4 s`.
    pub clause: String,
    /// The line of which that is told, if it is one off the GIL.
    pub frame: Option<&'a String>,
}

/// What to write where threads wait for the lock of a logging handler, unless one writes for all
/// already.
pub fn code(sight: &Sight, wait: &OffGil) -> Option<&'static str> {
    let has_writer = || sight.gil.threads.iter().any(is_writer);
    taken_at(wait).filter(|frame| is_of(frame, LOGGING) && !has_writer()).map(|_| QUEUE)
}

/// Whether it is the thread of a `QueueListener`. Looks find it seldom, but from 3.10 on threads are
/// called after their functions.
fn is_writer(thread: &ThreadReport) -> bool {
    let mut frames = thread.off_gil.iter().flat_map(|off| &off.stack);
    thread.name.ends_with("(_monitor)") || frames.any(|frame| is_of(frame, LISTENER))
}

/// What threads did behind the line of `wait`, at which `threads` of them waited for `waited_s` in
/// all. `None` if no look shows a thread there for long: while one is there, all others may wait for
/// it.
pub fn find<'a>(
    sight: &Sight<'a>,
    wait: &OffGil,
    waited_s: f64,
    threads: usize,
) -> Option<Past<'a>> {
    let at = taken_at(wait)?;
    let waited_s = waited_s / threads.max(1) as f64;
    let off = off_the_gil(sight, at).filter(|off| off.total_s >= PART * waited_s);
    let on = with_the_gil(sight, at).filter(|(_, held_s)| *held_s >= PART * waited_s);
    let (what, past_s, frame) = match (off, on) {
        (Some(off), on) if on.as_ref().is_none_or(|(_, held_s)| *held_s <= off.total_s) => {
            let frame = line(off.worst.off)?;
            let what = format!("{} at {}", doing(off.worst.off), short(frame));
            (what, off.total_s, Some(frame))
        }
        (_, Some((function, held_s))) => (format!("had the GIL in {function}"), held_s, None),
        (_, None) => return None,
    };
    // Of short calls few looks find any.
    let at_least = if past_s < MOST * waited_s { "at least " } else { "" };
    let length = words::length(past_s);
    let clause = format!("; past that line, threads {what} for {at_least}{length}");
    Some(Past { clause, frame })
}

/// The line that takes the lock for which `wait` is.
fn taken_at(wait: &OffGil) -> Option<&String> {
    wait.stack.iter().find(|frame| !only_takes_lock(frame))
}

/// Where threads were longest off the GIL behind a line.
fn off_the_gil<'a>(sight: &Sight<'a>, at: &str) -> Option<Sum<'a>> {
    let mut places: Vec<Sum<'a>> = Vec::new();
    for seen in sight.seen().filter(|seen| is_past(seen.off, at)) {
        let same = |it: &&mut Sum| {
            it.worst.off.what == seen.off.what && line(it.worst.off) == line(seen.off)
        };
        match places.iter_mut().find(same) {
            Some(place) => place.add(seen),
            None => places.push(Sum::of(seen)),
        }
    }
    places.into_iter().max_by(|a, b| a.total_s.total_cmp(&b.total_s))
}

/// The function in which threads had the GIL that the function of the line had called, and for how
/// long, by the looks at them.
fn with_the_gil(sight: &Sight, at: &str) -> Option<(String, f64)> {
    let outer = function(at);
    let threads = &sight.gil.threads;
    let held_s: f64 = threads.iter().map(|thread| held_in_s(thread, &outer)).sum();
    let those = threads.iter().filter(|thread| held_in_s(thread, &outer) > 0.0);
    let inmost = held(those.map(|thread| &thread.held_in[..]))?.function;
    Some((short(inmost.frame.as_ref().unwrap_or(&inmost.function)), held_s))
}

/// How long a thread had the GIL in a function, or in what that called, by the looks at its holds.
fn held_in_s(thread: &ThreadReport, function: &str) -> f64 {
    let looks: u64 = thread.held_in.iter().map(|it| it.innermost).sum();
    let there = thread.held_in.iter().find(|it| it.function == function).map_or(0, |it| it.looks);
    let share = (there as f64 / looks.max(1) as f64).min(1.0);
    share * (thread.held_s - thread.startup_held_s)
}

/// Whether a thread was further in the function of this line, and not to wait for a lock there.
fn is_past(off: &OffGil, at: &str) -> bool {
    let place = off.stack.iter().position(|frame| function(frame) == function(at));
    let waits = matches!(off.what, What::Lock | What::Idle);
    !waits && place.is_some_and(|place| off.stack[place] != at)
}

/// `f (app.py)` of the frame `f (app.py:5)`.
fn function(frame: &str) -> String {
    frame.rsplit_once(':').map_or_else(|| frame.to_owned(), |(place, _)| format!("{place})"))
}
