//! Threads that live for so little work that to start them takes longer.

use super::sight::{Sight, Told};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use ungil_trace::analysis::words;
use ungil_trace::report::ThreadReport;

/// So many have to be started in all,
const LEAST: u64 = 500;
/// and in each second,
const PER_S: f64 = 100.0;
/// and work for no longer than this on average: to start a thread, to wait until it runs and to end it
/// takes about as much (`bench/starts.py` and others measure tens of microseconds).
const WORK_S: f64 = 100e-6;
/// Those that live longer are there to wait, and half of them may.
const LIFE_S: f64 = 0.01;
const SHORT: f64 = 0.5;

/// That the threads of a process are too many for what they do.
pub fn find(sight: &Sight) -> Option<Advice> {
    let places = 0..sight.gil.threads.len();
    let has_ended = |place: &usize| {
        let thread = sight.thread(*place);
        !thread.main && thread.ended_s.is_some()
    };
    let ended: Vec<usize> = places.filter(has_ended).collect();
    let is_short = |place: &usize| sight.life_s(sight.thread(*place)) <= LIFE_S;
    let listed: Vec<usize> = ended.iter().copied().filter(is_short).collect();
    if (listed.len() as f64) < SHORT * ended.len() as f64 {
        return None;
    }
    let others = sight.gil.others.unwrap_or_default();
    let number = listed.len() as u64 + others.threads;
    let sum = |of: fn(&ThreadReport) -> f64| -> f64 {
        listed.iter().map(|&place| of(sight.thread(place))).sum()
    };
    let held_s = sum(|thread| thread.held_s) + others.held_s;
    let cpu_s = sum(|thread| thread.cpu_s.unwrap_or_default()) + others.cpu_s;
    let each_s = held_s.max(cpu_s) / number.max(1) as f64;
    let per_s = number as f64 / sight.busy_s();
    if number < LEAST || per_s < PER_S || each_s > WORK_S {
        return None;
    }
    let text = format!(
        "{} threads were started, {} a second, and each worked for {} on average: starting a \
         thread takes about as long",
        words::number(number),
        words::times(per_s),
        words::length(each_s),
    );
    let code = "from concurrent.futures import ThreadPoolExecutor\n\
                pool = ThreadPoolExecutor()  # once: it keeps its threads\n\
                pool.submit(function, *arguments)  # or do such small work without threads";
    let told = Told {
        text,
        frame: None,
        code: Some(code.to_owned()),
        sure: Sure::Medium,
        because:
            "the trace counts the threads and how long they worked; how long a start takes is known \
                  from other programs; the trace does not show which line starts them"
                .to_owned(),
        evidence: vec![
            Evidence::made(
                "time that these threads worked, summed",
                held_s.max(cpu_s),
                Unit::Seconds,
            ),
            Evidence::made("threads that were started and ended", number as f64, Unit::Count),
        ],
    };
    Some(sight.not_the_gil(Cause::ShortThreads, &listed, told))
}
