//! Late wake-ups: threads that waited for the GIL while nobody had it.
//!
//! A thread that is woken for the GIL needs a processor to take it. If more threads want to run than
//! there are processors, it waits for one, and all others wait for it. That is common where a pool
//! computes without the GIL in more threads than processors. No policy of the GIL helps: it is free.

use super::scene::{MOST_PART, Scene};
use super::words;
use crate::report::{Evidence, Finding, GilReport, Processors, Who};

/// For how long nobody has the GIL at a handoff then. Who finds a processor has it in half of that.
const LATE_S: f64 = 1e-4;
/// A process that used such a part of its processors has too many threads itself. Beside one other
/// program it has half of them, and of a process that idles nobody knows.
const OWN_PART: f64 = 0.6;

/// The waits for a GIL that was free.
pub(super) fn find(scene: Scene) -> Option<Finding> {
    let unheld = scene.gil.blame.iter().filter(|row| row.culprit == Who::Nobody);
    let mut victims: Vec<(u32, f64)> = Vec::new();
    let mut unheld_s = 0.0;
    for row in unheld {
        unheld_s += row.waited_s;
        if let Who::Thread(tid) = row.victim {
            victims.push((tid, row.waited_s));
        }
    }
    let waited_s = scene.waited_s();
    let (wanting, handoffs) = (scene.gil.wanting_busy_mean, scene.gil.handoffs);
    // All that wait do so at the same time.
    let is_late = unheld_s / wanting.max(1.0) > LATE_S * handoffs as f64;
    let processors = scene.process.processors.map(Processors::usable);
    let are_too_many = wanting > processors.unwrap_or(1.0);
    let is_most = unheld_s >= MOST_PART * waited_s && scene.is_relevant(unheld_s);
    if !(is_late && are_too_many && is_most) {
        return None;
    }
    victims.sort_by(|a, b| b.1.total_cmp(&a.1));
    let on = processors.map_or_else(String::new, |it| format!(" on {}", words::processors(it)));
    let used = used(scene.gil, scene.process.duration_s);
    let of_them = match used {
        Some(used) if processors.is_some() => format!(", and the process used {used:.1} of them"),
        _ => String::new(),
    };
    let text = format!(
        "nobody had the GIL for {} of the {} that threads waited for it, summed over them: a thread \
         that is woken for it waits for a processor; {wanting:.1} threads wanted to run on \
         average{on}{of_them}",
        words::length(unheld_s),
        words::length(waited_s),
    );
    let are_its_own = used.zip(processors).is_some_and(|(used, all)| used >= OWN_PART * all);
    let evidence =
        Evidence::LateWakeups { unheld_s, waited_s, handoffs, wanting, used, are_its_own };
    Some(Finding {
        advice: Some(format!("{}; no GIL policy helps here", words::fewer_threads(are_its_own))),
        threads: victims.iter().map(|(tid, _)| *tid).collect(),
        cost_s: unheld_s,
        ..scene.finding(evidence, text)
    })
}

/// How many processors its threads used on average; `None` if some still run, or are not known.
fn used(gil: &GilReport, duration_s: f64) -> Option<f64> {
    let listed_s: f64 = gil.threads.iter().map(|thread| thread.cpu_s).sum::<Option<f64>>()?;
    let others_s = gil.others.map_or(0.0, |others| others.cpu_s);
    (duration_s > 0.0).then(|| (listed_s + others_s) / duration_s)
}
