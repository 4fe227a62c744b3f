//! Convoy: threads that lose a switch interval or more whenever they come back from a blocking
//! call, because whoever took the GIL meanwhile keeps it until it is asked to let go.

use super::scene::{RELEVANT_SHARE, Scene};
use super::words;
use crate::analysis::held::{Held, held};
use crate::report::{Evidence, Finding, ThreadReport};

/// Fewer late returns than this, over all victims, are chance.
const LATE_CALLS: u64 = 10;
/// A thread that is off the GIL for less than this on average, and of whose calls less than this part
/// (of 1) return late, does not block: it computes in a library that lets go of the GIL now and then.
const BRIEF_MS: f64 = 0.1;
const SELDOM: f64 = 0.005;
/// The main culprits are those that together held for this part of the wait.
const MAIN_PART: f64 = 0.8;
/// Culprits named in one sentence.
const NAMED: usize = 3;
/// So much (of 1) of what they held for was in the function that is named, by so many looks.
const MOSTLY: f64 = 0.5;
const LEAST_LOOKS: u64 = 3;

/// The convoy behind the CPU-bound threads of this GIL, unless most of its cost is the `told_s` for
/// which native code kept the GIL, or nobody had it: the cure of that is another one.
pub(super) fn find(scene: Scene, told_s: f64) -> Option<Finding> {
    let is_victim = |thread: &&ThreadReport| {
        let blocking = &thread.blocking;
        // The cost decides, not the part of the calls: most calls that let go of the GIL come
        // back at once (a send, a stat), and now and then one of them loses it.
        let is_late = blocking.late > 0 && !computes(thread);
        is_late && blocking.waited_s > RELEVANT_SHARE * scene.life_s(thread)
    };
    let mut victims: Vec<_> = scene.gil.threads.iter().filter(is_victim).collect();
    victims.sort_by(|a, b| b.blocking.waited_s.total_cmp(&a.blocking.waited_s));
    let cost_s: f64 = victims.iter().map(|victim| victim.blocking.waited_s).sum();
    let late: u64 = victims.iter().map(|victim| victim.blocking.late).sum();
    let worst = *victims.first()?;
    if late < LATE_CALLS || !scene.is_relevant(cost_s) || 2.0 * told_s > cost_s {
        return None;
    }
    let culprits = main_culprits(scene, worst);
    let behind = behind(scene, &culprits);
    let alike = match victims.len() as u64 - 1 {
        0 => String::new(),
        more => {
            let (more, all) = (words::count(more, "more thread"), words::length(cost_s));
            format!("; {more} likewise, {all} summed over all")
        }
    };
    let blocking = &worst.blocking;
    let text = format!(
        "thread {} waited {} for the GIL after blocking calls{behind}: {} of its {} returned at \
         least {} late, {} on average, {} in total{alike}",
        scene.name(worst),
        words::part(blocking.waited_s, scene.process.duration_s),
        words::number(blocking.late),
        words::count(blocking.calls, "call"),
        words::length(scene.late_s()),
        words::length(blocking.late_s / blocking.late as f64),
        words::length(blocking.late_s),
    );
    let evidence = Evidence::Convoy {
        calls: blocking.calls,
        late: blocking.late,
        late_s: blocking.late_s,
        late_p50_ms: blocking.late_p50_ms,
        waited_s: blocking.waited_s,
        culprits: culprits.iter().map(|thread| thread.tid).collect(),
    };
    Some(Finding {
        advice: Some(scene.advice_to_schedule(
            "ungil run lets a thread that returns from a blocking call acquire the GIL at once; ",
            "moving the CPU-bound work to another process ends these waits",
        )),
        threads: victims.iter().map(|thread| thread.tid).collect(),
        cost_s,
        ..scene.finding(evidence, text)
    })
}

/// Whether a thread lets go of the GIL as one does that computes.
fn computes(thread: &ThreadReport) -> bool {
    let is_seldom_late = (thread.blocking.late as f64) < SELDOM * thread.blocking.calls as f64;
    thread.gaps.mean_ms < BRIEF_MS && is_seldom_late
}

/// Who these are, and what they did: `, behind cpu, mostly in compute (app.py:12)`.
fn behind(scene: Scene, culprits: &[&ThreadReport]) -> String {
    let who = match culprits {
        [] => return String::new(),
        few if few.len() <= NAMED => {
            let names: Vec<_> = few.iter().map(|thread| scene.name(thread)).collect();
            words::list(&names)
        }
        many => format!("{} and {} more", scene.name(many[0]), many.len() - 1),
    };
    let held = held(culprits.iter().map(|thread| &thread.held_in[..]));
    let place = held.filter(|held| held.share >= MOSTLY && held.function.looks >= LEAST_LOOKS);
    match place {
        Some(Held { function, .. }) => {
            let frame = function.frame.as_ref().unwrap_or(&function.function);
            format!(", behind {who}, mostly in {}", words::short(frame))
        }
        None => format!(", behind {who}"),
    }
}

/// Those who held for most of the victim's wait, worst first.
fn main_culprits<'a>(scene: Scene<'a>, victim: &ThreadReport) -> Vec<&'a ThreadReport> {
    let culprits = scene.culprits(victim);
    let charged_s: f64 = culprits.iter().map(|(_, waited_s)| waited_s).sum();
    let mut sum_s = 0.0;
    let mut main = Vec::new();
    for (thread, waited_s) in culprits {
        if sum_s >= MAIN_PART * charged_s {
            break;
        }
        sum_s += waited_s;
        main.push(thread);
    }
    main
}
