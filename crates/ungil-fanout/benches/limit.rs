//! What an item costs the adaptive limit, in nanoseconds: `cargo bench -p ungil-fanout`.
//!
//! A start and an end of an item, under a limit that has been found. Each figure is the median of
//! 31 samples of 100,000 items.

use std::time::Instant;

use ungil_fanout::limit::{Adaptive, Opening, Outcome, Sample, Settings};

const SAMPLES: usize = 31;
const ITEMS: u64 = 100_000;
const IN_FLIGHT: usize = 500;

/// What the limit is told of where items go.
type Groups = fn(u64) -> Option<u64>;

/// Nanoseconds an item, one sample after the other.
fn measure(groups: Groups) -> Vec<f64> {
    let settings = Settings::new(IN_FLIGHT, Opening::Hosts);
    let mut limit = Adaptive::new(settings, 0);
    let mut running = std::collections::VecDeque::with_capacity(IN_FLIGHT);
    let (mut now, mut number) = (0, 0_u64);
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..=SAMPLES {
        let begun = Instant::now();
        for _ in 0..ITEMS {
            while running.len() >= limit.limit() {
                let (ticket, started, group) = running.pop_front().expect("it is full");
                // Latencies that differ, so that rounds have something to sort.
                now += 100_000 + (number.wrapping_mul(0x9e37_79b9) & 0xff);
                limit.finished(Sample {
                    ticket,
                    started,
                    finished: now,
                    cpu_so_far: now / 10,
                    outcome: Outcome::Completed,
                    asked: 0,
                    group,
                });
            }
            number += 1;
            let group = groups(number);
            running.push_back((limit.started(now, group), now, group));
        }
        samples.push(begun.elapsed().as_nanos() as f64 / ITEMS as f64);
    }
    samples.remove(0);
    samples.sort_unstable_by(f64::total_cmp);
    samples
}

#[expect(clippy::print_stdout, reason = "a benchmark's result")]
fn main() {
    let kinds: [(&str, Groups); 4] = [
        ("without groups", |_| None),
        ("one service", |_| Some(7)),
        ("1,000 hosts", |number| Some(number % 1_000)),
        ("a host for each item", Some),
    ];
    for (name, groups) in kinds {
        let samples = measure(groups);
        let (median, last) = (samples[SAMPLES / 2], samples[SAMPLES - 1]);
        println!("{name:22} {median:6.1} ns an item ({:.1} to {last:.1})", samples[0]);
    }
}
