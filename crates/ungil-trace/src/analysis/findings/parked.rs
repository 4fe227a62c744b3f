//! What took the place of the GIL: in a free-threaded interpreter threads sleep for the lock of one
//! object, and for others that have stopped the world.

use super::scene::is_relevant;
use super::words;
use crate::report::{Evidence, Finding, ParkedAt, ParksReport, ProcessReport};

/// Locks that are told at most.
const LOCKS: usize = 3;
/// A waker is told if it ended so much of what was waited.
const MOSTLY: f64 = 0.5;

/// The findings about the parks of one process.
pub(super) fn find(process: &ProcessReport) -> Vec<Finding> {
    let Some(parks) = &process.parks else { return Vec::new() };
    let mut locks: Vec<Vec<&ParkedAt>> = Vec::new();
    // A condition makes a lock for each thread that waits for it, and that is no contention.
    let told = parks.waits.iter().filter(|row| match row.cause {
        "object" | "internal" => true,
        "lock" => row.together,
        _ => false,
    });
    for row in told.filter(|row| row.lock.is_some() && !is_its_own(row)) {
        let same = |at: &&mut Vec<&ParkedAt>| (at[0].cause, at[0].lock) == (row.cause, row.lock);
        match locks.iter_mut().find(same) {
            Some(at) => at.push(row),
            None => locks.push(vec![row]),
        }
    }
    let mut findings: Vec<_> =
        locks.into_iter().filter_map(|rows| at_a_lock(process, parks, &rows)).collect();
    findings.sort_by(|a, b| b.cost_s.total_cmp(&a.cost_s));
    findings.truncate(LOCKS);
    findings.extend(world(process, parks));
    findings
}

/// Whether the thread had that lock itself: it lets go of what it has in order to park, and so wakes
/// itself.
pub(super) fn is_its_own(row: &ParkedAt) -> bool {
    let own = row.wakers.iter().find(|waker| waker.tid == Some(row.tid));
    own.is_some_and(|own| own.waited_s > MOSTLY * row.waited_s)
}

/// Threads that waited for one lock; those that waited longest come first.
fn at_a_lock(process: &ProcessReport, parks: &ParksReport, rows: &[&ParkedAt]) -> Option<Finding> {
    let cost_s: f64 = rows.iter().map(|row| row.waited_s).sum();
    let worst = rows.first().filter(|_| is_relevant(process, cost_s))?;
    let lock = match (worst.cause, &worst.of) {
        ("object", Some(of)) => format!("the lock of one {of}"),
        ("object", None) => "the lock of one object".to_owned(),
        ("lock", _) => "one lock of the program".to_owned(),
        _ => "one lock inside the interpreter or an extension module".to_owned(),
    };
    let waker = worst.wakers.first().filter(|waker| waker.waited_s > MOSTLY * worst.waited_s);
    let woken = waker.and_then(|waker| Some((waker.tid?, waker.name.as_deref()?)));
    let from = waker.and_then(|waker| Some((waker.frame.as_ref()?, waker.user_frame.as_ref())));
    let woken = woken.map_or_else(String::new, |(tid, name)| {
        format!(", mostly woken by {}{}", called(parks, tid, name), at(from))
    });
    let place = worst.places.first().filter(|place| place.waited_s > MOSTLY * worst.waited_s);
    let frame = place.map(|place| (&place.frame, place.user_frame.as_ref()));
    let all = match rows.len() as u64 {
        1 => String::new(),
        victims => {
            format!("; {victims} threads waited for it for {}", words::summed(cost_s, victims))
        }
    };
    let text = format!(
        "thread {} waited {} for {lock}{}, in {}{woken}{all}",
        called(parks, worst.tid, &worst.name),
        words::part(worst.waited_s, process.duration_s),
        at(frame),
        words::count(worst.count, "park"),
    );
    let advice = match worst.cause {
        "object" => {
            "give each thread an object of its own and merge them at the end; reading an object \
             that never changes takes no lock"
        }
        "lock" => "do less while holding the lock, or split it into several locks",
        _ => "threads do not speed up calls that all need this lock",
    };
    let evidence = Evidence::Parked {
        cause: worst.cause,
        of: worst.of.clone(),
        parks: rows.iter().map(|row| row.count).sum(),
        frame: frame.map(|(innermost, _)| innermost.clone()),
        user_frame: frame.and_then(|(_, users)| users.cloned()),
        waker_frame: from.map(|(innermost, _)| innermost.clone()),
        longest_ms: rows.iter().map(|row| row.max_ms).fold(0.0, f64::max),
        wakers: worst.wakers.iter().filter_map(|waker| waker.tid).collect(),
    };
    let threads = rows.iter().map(|row| row.tid).collect();
    Some(Finding {
        advice: Some(advice.to_owned()),
        pid: Some(process.pid),
        threads,
        cost_s,
        ..Finding::of_run(evidence, text)
    })
}

/// Threads that others had stopped.
fn world(process: &ProcessReport, parks: &ParksReport) -> Option<Finding> {
    let pauses = parks.pauses;
    if !is_relevant(process, pauses.stopped_s) {
        return None;
    }
    let mut waits: Vec<_> = parks.waits.iter().filter(|row| row.cause == "pause").collect();
    waits.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s));
    let cost_s: f64 = waits.iter().map(|row| row.waited_s).sum();
    let who = match pauses.collections {
        0 => "the world was stopped".to_owned(),
        all if all == pauses.count => "garbage collections stopped the world".to_owned(),
        some => {
            format!(
                "garbage collections ({}) and other causes stopped the world",
                words::number(some)
            )
        }
    };
    let slept = words::summed(cost_s, waits.len() as u64);
    let text = format!(
        "{who} {}, for {}, at most {}; threads that wanted to run slept meanwhile for {}",
        words::count(pauses.count, "time"),
        words::part(pauses.stopped_s, process.duration_s),
        words::length(pauses.max_ms / 1e3),
        slept,
    );
    let evidence = Evidence::WorldPauses {
        pauses: pauses.count,
        stopped_s: pauses.stopped_s,
        longest_ms: pauses.max_ms,
        collections: pauses.collections,
    };
    let advice = "a garbage collection stops all threads: call gc.freeze() after start-up to \
                  exempt long-lived objects, and raise gc.set_threshold() to collect less often";
    Some(Finding {
        advice: Some(advice.to_owned()),
        pid: Some(process.pid),
        threads: waits.iter().map(|row| row.tid).collect(),
        cost_s,
        ..Finding::of_run(evidence, text)
    })
}

/// Where a frame is, and from which line of the user's own that was called, in parentheses.
fn at(frame: Option<(&String, Option<&String>)>) -> String {
    match frame {
        Some((innermost, Some(users))) if users != innermost => {
            format!(" ({}, called at {})", words::place(innermost), words::place(users))
        }
        Some((innermost, _)) => format!(" ({})", words::place(innermost)),
        None => String::new(),
    }
}

/// By its name, with its id if others are called so, too.
fn called(parks: &ParksReport, tid: u32, name: &str) -> String {
    let namesakes = parks.threads.iter().filter(|it| it.name == name && it.tid != tid).count();
    match (name, namesakes) {
        ("", _) => tid.to_string(),
        (name, 0) => name.to_owned(),
        (name, _) => format!("{name} ({tid})"),
    }
}
