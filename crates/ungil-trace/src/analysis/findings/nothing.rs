//! Nothing wrong, or nothing but that there is one GIL for all, with the numbers that say so; or
//! nothing known.

use super::words;
use crate::record::NOTHING_RECORDED;
use crate::report::{Evidence, Finding, ProcessReport};

/// Contended for more of the time than this, a GIL that treats all alike still slows them down.
const LIMIT_SHARE: f64 = 0.2;

/// The finding of a trace without other findings, about its busiest GIL.
pub(super) fn find(processes: &[ProcessReport], notes: &[String]) -> Finding {
    let gils = super::recorded(processes)
        .flat_map(|process| process.gils.iter().map(move |gil| (process, gil)));
    let busiest = gils.max_by(|(_, a), (_, b)| a.held_s.total_cmp(&b.held_s));
    let Some((process, gil)) = busiest else { return not_recorded(processes, notes) };
    let share = |part_s: f64| {
        if process.duration_s > 0.0 { (part_s / process.duration_s).min(1.0) } else { 0.0 }
    };
    let (held_share, contended_share) = (share(gil.held_s), share(gil.contended_s));
    let waited_max_s = gil.threads.iter().map(|thread| thread.waited_s).fold(0.0, f64::max);
    let is_limit = contended_share > LIMIT_SHARE;
    let verdict = if is_limit {
        format!(
            "nobody is treated badly, but the GIL is the limit: {:.1} threads wanted it on average; \
             it",
            gil.wanting_mean
        )
    } else {
        "nothing wrong: the GIL".to_owned()
    };
    let text = format!(
        "{verdict} was held {} of the time, contended {}; no thread waited more than {}",
        words::percent(held_share),
        words::percent(contended_share),
        words::length(waited_max_s),
    );
    let advice = "only processes, or native code that lets go of the GIL, run at the same time";
    Finding {
        evidence: Evidence::None { held_share, contended_share, waited_max_s },
        text,
        advice: is_limit.then(|| advice.to_owned()),
        pid: Some(process.pid),
        gil: Some(gil.gil),
        threads: Vec::new(),
        cost_s: 0.0,
    }
}

/// The finding of a trace without a GIL: why there is none.
fn not_recorded(processes: &[ProcessReport], notes: &[String]) -> Finding {
    let told = processes.iter().find_map(|process| process.not_recorded.as_deref());
    let from_recorder = || notes.iter().find_map(|note| note.strip_prefix(NOTHING_RECORDED));
    let text = told.or_else(from_recorder).unwrap_or(if processes.is_empty() {
        "no Python was seen"
    } else {
        "no Python took its GIL: it was not started, or is 2.7 and has started no thread"
    });
    Finding {
        evidence: Evidence::NotRecorded {},
        text: text.to_owned(),
        advice: None,
        pid: None,
        gil: None,
        threads: Vec::new(),
        cost_s: 0.0,
    }
}
