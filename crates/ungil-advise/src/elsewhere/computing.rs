//! Code that computes for long in the thread of an event loop: nothing else of that loop runs meanwhile,
//! although nobody waits for the GIL.

use super::event_loop::{LEAST_LOOKS, LEAST_S, PART, SLOW_MS};
use super::sight::{Sight, Told};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::functions::{callable, is_users, short};
use crate::loops::{InProcess, Library, Work, is_native};
use ungil_trace::analysis::words;
use ungil_trace::report::{ComputedIn, EventLoop};

/// So many looks tell for sure in which function most of that was.
const SURE_LOOKS: u64 = 10;
/// A function is where it computed if so much (of 1) of what was seen was there.
const MOST: f64 = 0.8;

/// What the threads of loops computed, longest first.
pub fn find(sight: &Sight) -> Vec<Advice> {
    let computed = |(thread, it): &(usize, &EventLoop)| {
        let inmost = inmost(it, &|_| true)?;
        Some((it.computed_s, advice(sight, *thread, it, inmost)))
    };
    let mut found: Vec<_> =
        blocked(sight).filter(|(_, it)| is_known(it)).filter_map(|it| computed(&it)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, advice)| advice).collect()
}

/// The thread of a loop that computed for as long, in functions that no looks found, or too few: its
/// name, and what it did.
pub fn unknown<'a>(sight: &Sight<'a>) -> Option<(&'a str, &'a EventLoop)> {
    let mut unknown = blocked(sight).filter(|(_, it)| !is_known(it));
    unknown.next().map(|(thread, it)| (sight.thread(thread).name.as_str(), it))
}

/// ` for 2.9 s in 54 holds, the longest 223 ms`.
pub fn how_long(it: &EventLoop) -> String {
    format!(
        "for {} in {}, the longest {}",
        words::length(it.computed_s),
        words::count(it.holds, "hold"),
        words::length(it.longest_ms / 1e3),
    )
}

/// The threads whose loop was blocked by what they computed.
fn blocked<'a>(sight: &Sight<'a>) -> impl Iterator<Item = (usize, &'a EventLoop)> {
    let threads = sight.gil.threads.iter().enumerate();
    threads.filter_map(|(place, thread)| {
        let it = thread.event_loop.as_ref()?;
        let least_s = LEAST_S.max(PART * sight.life_s(thread));
        (it.longest_ms >= SLOW_MS || it.computed_s >= least_s).then_some((place, it))
    })
}

/// Whether looks found where: one look at a hold that was slow, and several at shorter ones.
fn is_known(it: &EventLoop) -> bool {
    let least = if it.longest_ms >= SLOW_MS { 1 } else { LEAST_LOOKS };
    it.looks >= least && !it.functions.is_empty()
}

/// Of those that are meant, the innermost function that was nearly always on the stack; if there is
/// none, the one that was there most often.
fn inmost<'a>(it: &'a EventLoop, is_meant: &dyn Fn(&ComputedIn) -> bool) -> Option<&'a ComputedIn> {
    let meant = || it.functions.iter().filter(|function| is_meant(function));
    let inmost = meant().filter(|function| share(it, function) >= MOST);
    let inmost = inmost.max_by_key(|function| (function.depth, function.looks));
    inmost.or_else(|| meant().max_by_key(|function| (function.looks, function.depth)))
}

fn share(it: &EventLoop, function: &ComputedIn) -> f64 {
    function.looks as f64 / it.looks.max(1) as f64
}

fn advice(sight: &Sight, thread: usize, it: &EventLoop, function: &ComputedIn) -> Advice {
    let name = &sight.thread(thread).name;
    let line = function.frame.as_ref().unwrap_or(&function.function);
    // One look may have found it at anything.
    let is_most = share(it, function) >= MOST && it.looks >= LEAST_LOOKS;
    // What a collection of garbage interrupts may be any function, and is not to be moved.
    let is_chance = !is_most && !is_users(line);
    let found = if is_most {
        format!("{} computed {}", short(line), how_long(it))
    } else {
        format!(
            "its callbacks computed {}; {} of {} found it in {}{}",
            how_long(it),
            words::number(function.looks),
            words::count(it.looks, "look"),
            short(line),
            if is_chance && it.looks > 1 { ", and the others elsewhere" } else { "" },
        )
    };
    let at = |what: &str, value, unit, key: &str| {
        let pointer = sight.place.thread_key(thread, &format!("event_loop/{key}"));
        Evidence::at(what, value, unit, pointer)
    };
    let told = Told {
        text: format!("computing blocks the event loop of thread {name}: {found}"),
        frame: Some(line.clone()),
        code: code(it).filter(|_| !is_chance),
        sure: if is_most && it.looks >= SURE_LOOKS && !is_native(&it.by) {
            Sure::High
        } else {
            Sure::Medium
        },
        because: format!(
            "the events tell how long each hold was, and {} found the thread in a callback of its \
             loop, {} of them in this function",
            words::count(it.looks, "look"),
            words::number(function.looks),
        ),
        evidence: vec![
            at("time that it computed in such holds", it.computed_s, Unit::Seconds, "computed_s"),
            at("such holds", it.holds as f64, Unit::Count, "holds"),
            at("longest of them", it.longest_ms, Unit::Milliseconds, "longest_ms"),
            at("looks that found it in a callback", it.looks as f64, Unit::Count, "looks"),
        ],
    };
    sight.not_the_gil(Cause::BlockedEventLoop, &[thread], told)
}

/// What to write instead. A thread would share the GIL with the loop, so a process is better.
fn code(it: &EventLoop) -> Option<String> {
    let library = Library::of(&it.by)?;
    let why = match library {
        Library::Asyncio => {
            "# in asyncio.to_thread it would share the GIL with the loop, which then runs in between"
        }
        Library::Trio => "# another process: a thread would share the GIL with the loop",
        Library::Twisted => "# the thread only waits for the other process",
    };
    let has_name = |function: &ComputedIn| callable(&function.function).is_some();
    let is_whole = |function: &ComputedIn| !function.is_called_back() && has_name(function);
    let work = inmost(it, &is_whole).or_else(|| inmost(it, &has_name)).map(|function| Work {
        name: callable(&function.function),
        is_outermost: function.depth == 0,
    });
    let work = work.unwrap_or_default();
    let InProcess { before, call, needs } = InProcess::of(Some(library), work.word());
    let comments = [work.comment("computes"), Some(why.to_owned()), needs.map(str::to_owned)];
    let lines: Vec<_> = std::iter::once(call).chain(comments.into_iter().flatten()).collect();
    Some(format!("{before}{}", lines.join("\n")))
}
