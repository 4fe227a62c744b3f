//! Threads that look for something to do again and again, and sleep for milliseconds in between.
//!
//! Each time they wake up costs some tens of microseconds of a processor. What tells them from threads
//! that do a little work for each message is that their sleeps and waits end by themselves.

use super::sight::{Seen, Sight, Told, at, line};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use ungil_trace::analysis::words;
use ungil_trace::record::SHORT_TIMEOUT;
use ungil_trace::report::{ThreadReport, What};

/// They wake up at least so often in a second,
const WAKES_PER_S: f64 = 50.0;
/// have the GIL for no longer than this each time, on average, in us,
const HOLD_US: f64 = 100.0;
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
    let wakes: u64 = reports().map(|thread| thread.voluntary).sum();
    let looks: u64 = seen.iter().map(|it| it.off.gaps + it.off.samples).sum();
    // The gaps of some are too short for their stack to be read.
    let known = seen.iter().filter(|it| line(it.off).is_some());
    let told = known.max_by(|a, b| a.off.total_s.total_cmp(&b.off.total_s)).or(seen.first())?;
    let place = line(told.off).map_or_else(String::new, |_| format!(" at {}", at(told.off)));
    let sleeps = told.off.what == What::Sleep;
    let (who, them) = match threads[..] {
        [only] => (format!("thread {} polls: it woke", sight.thread(only).name), "it"),
        _ => (format!("{} poll: they woke", words::count(threads.len() as u64, "thread")), "them"),
    };
    let text = format!(
        "{who} up {} times a second, from {}{place}, and took {} of a processor for that; let \
         the thread that has news for {them} wake {them} up",
        words::number(rounded(wakes as f64 / busy_s)),
        if sleeps { "sleep" } else { "waits with a short timeout" },
        words::percent(cpu_s / busy_s),
    );
    let code = if sleeps {
        "event.wait()  # threading.Event(), in the place of time.sleep(...) in a loop; the thread \
         that has news calls event.set()"
    } else {
        "item = items.get()  # or event.wait(): without a timeout, or with one of seconds; to end \
         the thread, put None into the queue"
    };
    let made = |what: &str, value, unit| Evidence::made(what, value, unit);
    let because = "each release of the GIL was recorded, and most looks found these threads in a \
                   sleep or a wait of milliseconds; the trace does not show whether they found \
                   something to do";
    let told = Told {
        text,
        frame: line(told.off).cloned(),
        code: Some(code.to_owned()),
        sure: Sure::Medium,
        because: because.to_owned(),
        evidence: vec![
            made("CPU time of these threads, summed", cpu_s, Unit::Seconds),
            made("times that they let go of the GIL", wakes as f64, Unit::Count),
            made("looks that found one there", looks as f64, Unit::Count),
        ],
    };
    Some(sight.not_the_gil(Cause::Polling, &threads, told))
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
    let polls = thread.voluntary as f64 >= WAKES_PER_S * life_s
        && short_s >= LIFE * life_s
        && thread.holds.mean_us <= HOLD_US
        && found >= LEAST_LOOKS
        && found as f64 >= PART * count as f64;
    polls.then_some(timed)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
