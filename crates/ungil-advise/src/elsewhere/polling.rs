//! Threads that look for something to do again and again, and sleep for milliseconds in between.
//!
//! Each time they wake up costs some tens of microseconds of a processor. What tells them from threads
//! that do a little work for each message is that their sleeps and waits end by themselves.

use super::sight::{Seen, Sight, Told, at, line, sleeps};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::groups::groups;
use ungil_trace::analysis::words;
use ungil_trace::record::SHORT_TIMEOUT;
use ungil_trace::report::{ThreadReport, What};

/// They wake up at least so often in a second,
const WAKES_PER_S: f64 = 50.0;
/// have the GIL for no longer than this each time, in all, on average,
const HELD_S: f64 = 100e-6;
/// and are found in such a sleep or wait in at least this part (of 1) of the looks, of
const PART: f64 = 0.6;
/// so many at least,
const LEAST_LOOKS: u64 = 3;
/// and they are short ones that make up for this part (of 1) of their life.
const LIFE: f64 = 0.5;
/// What they take of one processor (of 1), all together, to be worth a word.
const COST: f64 = 0.03;
/// Shorter programs cost nobody anything.
const LEAST_S: f64 = 1.0;
/// Groups of threads that are named at most.
const NAMED: usize = 4;

/// The threads of a process that poll, if it costs so much that they do.
pub fn find(sight: &Sight) -> Option<Advice> {
    let threads = sight.gil.threads.iter().enumerate();
    let polling = threads.filter_map(|(place, thread)| of(sight, place, thread));
    let (mut threads, mut seen): (Vec<usize>, Vec<Seen>) = (Vec::new(), Vec::new());
    polling.for_each(|all| {
        threads.push(all[0].thread);
        seen.extend(all);
    });
    let reports = || threads.iter().map(|&place| sight.thread(place));
    let cpu_s: f64 = reports().filter_map(|thread| thread.cpu_s).sum();
    let busy_s = sight.busy_s();
    if busy_s < LEAST_S || cpu_s < COST * busy_s {
        return None;
    }
    let wakes: u64 = reports().map(wakes).sum();
    let looks: u64 = seen.iter().map(|it| it.off.gaps + it.off.samples).sum();
    let (frame, place) = place(sight, &threads, &seen);
    let naps = seen.iter().max_by(|a, b| a.off.total_s.total_cmp(&b.off.total_s))?;
    let naps = naps.off.what == What::Sleep;
    let (who, waits, them) = match threads[..] {
        [only] => (format!("thread {} polls: it woke", sight.thread(only).name), "it waits", "it"),
        _ => (format!("{} poll: they woke", named(sight, &threads)), "they wait", "them"),
    };
    let text = format!(
        "{who} up {} times a second, from {}{place}, and took {} of a processor for that; \
         have the thread that {waits} for wake {them} up",
        words::times(wakes as f64 / busy_s),
        if naps { "sleep" } else { "waits with a short timeout" },
        words::percent(cpu_s / busy_s),
    );
    let code = code(sight, &threads, naps);
    let made = |what: &str, value, unit| Evidence::made(what, value, unit);
    let shown = match frame {
        Some(_) => "not whether",
        None => {
            "neither from which line, because these calls are over before a stack can be read, nor \
             whether"
        }
    };
    let because = format!(
        "each time that they woke up was counted, and most looks found these threads in a sleep or \
         a wait of milliseconds; the trace shows {shown} they found something to do"
    );
    let told = Told {
        text,
        frame,
        code: Some(code.to_owned()),
        sure: Sure::Medium,
        because,
        evidence: vec![
            made("CPU time of these threads, summed", cpu_s, Unit::Seconds),
            made("times that they woke up", wakes as f64, Unit::Count),
            made("looks that found one there", looks as f64, Unit::Count),
        ],
    };
    Some(sight.not_the_gil(Cause::Polling, &threads, told))
}

/// `6 threads puller-*`: how many they are, and what they are called.
fn named(sight: &Sight, threads: &[usize]) -> String {
    let groups = groups(&sight.gil.threads).into_iter();
    let meant = groups.filter(|it| it.threads.iter().any(|(place, _)| threads.contains(place)));
    let mut names: Vec<String> = meant.map(|group| group.pattern).collect();
    if names.len() > NAMED {
        let more = names.len() - NAMED + 1;
        names.splice(NAMED - 1.., [format!("{more} more")]);
    }
    format!("{} {}", words::count(threads.len() as u64, "thread"), words::list(&names))
}

/// The line from which threads poll, if one is known, and how it is told. The gaps of some are too short
/// for their stack to be read; one that a look finds awake is near it.
fn place(sight: &Sight, threads: &[usize], seen: &[Seen]) -> (Option<String>, String) {
    let asleep = seen.iter().copied().filter(|it| line(it.off).is_some());
    let is_awake = |it: &Seen| it.off.what == What::Computing && it.off.user_frame.is_some();
    let awake = sight.seen().filter(|it| threads.contains(&it.thread) && is_awake(it));
    let length = |a: &Seen, b: &Seen| a.off.total_s.total_cmp(&b.off.total_s);
    let (told, how) = match asleep.max_by(length) {
        Some(told) => (Some(told), "at"),
        None => (awake.max_by(length), "near"),
    };
    let place = told.map_or_else(String::new, |told| format!(" {how} {}", at(told.off)));
    (told.and_then(|told| line(told.off).cloned()), place)
}

/// What to write instead of short sleeps, or of waits with a short timeout.
fn code(sight: &Sight, threads: &[usize], naps: bool) -> &'static str {
    let of_these = sight.seen().filter(|it| threads.contains(&it.thread));
    let mut frames = of_these.flat_map(|it| &it.off.stack);
    if frames.any(|frame| frame.contains("/zmq/")) {
        "poller.poll()  # zmq.Poller(), with all sockets registered, in the place of the sleeps; or \
         socket.recv() without NOBLOCK"
    } else if naps {
        "event.wait()  # threading.Event(), in the place of time.sleep(...) in a loop; the thread \
         that has news calls event.set(); for news of a socket or a queue: its own call that blocks"
    } else {
        "item = items.get()  # or event.wait(): without a timeout, or with one of seconds; to end \
         the thread, put None into the queue"
    }
}

/// The short sleeps and waits of a thread that polls.
fn of<'a>(sight: &Sight<'a>, place: usize, thread: &ThreadReport) -> Option<Vec<Seen<'a>>> {
    let looks = |it: &Seen| it.off.gaps + it.off.samples;
    let all: Vec<Seen> = sight.seen().filter(|it| it.thread == place).collect();
    // A look may find it on its way from one sleep to the next.
    let others = all.iter().filter(|it| it.off.what != What::Computing);
    let count: u64 = others.map(looks).sum();
    let is_timed = |it: &Seen| it.off.what == What::Sleep || it.off.on == SHORT_TIMEOUT;
    let timed: Vec<Seen> = all.iter().copied().filter(is_timed).collect();
    let found: u64 = timed.iter().map(looks).sum();
    // Between long sleeps a thread may make many short calls of another kind.
    let short_s: f64 = timed.iter().map(|it| it.off.sampled_s).sum();
    let life_s = sight.life_s(thread);
    let wakes = wakes(thread) as f64;
    let polls = wakes >= WAKES_PER_S * life_s
        && short_s >= LIFE * life_s
        && thread.held_s - thread.startup_held_s <= HELD_S * wakes
        && found >= LEAST_LOOKS
        && found as f64 >= PART * count as f64;
    polls.then_some(timed)
}

/// How often a thread woke up. Of the calls for which it let go of the GIL, many do not sleep.
fn wakes(thread: &ThreadReport) -> u64 {
    thread.voluntary.min(sleeps(thread).unwrap_or(u64::MAX))
}
