//! `limit="auto"` against simulated services with a known knee, beside the best fixed limit.
//!
//! ```text
//! cargo run --release -p ungil-fanout --example knee -- table [SEEDS] [TIMES] [SCENARIO]
//! cargo run --release -p ungil-fanout --example knee -- plot
//! ```
//!
//! `table` prints a line for each scenario, with TIMES (100) as many items as the knee; `plot` prints
//! JSON for `bench/fanout_limit.py`. The best fixed limit is the best of a sweep in the same simulation, see
//! [`service::best_fixed`]; a seed counts as good with at least 75 % of its throughput and at most
//! twice its 99th percentile of latency.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

#[path = "../tests/support/service.rs"]
mod service;

use std::env::args;

use service::{Run, S, SCENARIOS, Sweep, World, best_fixed, run, sweep};
use ungil_fanout::limit::{Adaptive, Opening, Settings};

const KNEES: [usize; 3] = [20, 200, 2_000];

/// A run under an adaptive limit that takes the items for those of one service.
fn adaptive(world: &World) -> (Run, Adaptive) {
    let settings = Settings::new(20_000, Opening::Service);
    let mut limit = Adaptive::new(settings, 0);
    let run = run(world, &mut limit);
    (run, limit)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn table(seeds: u64, times: usize, only: Option<&str>) {
    println!(
        "Median throughput and p99 relative to the best fixed limit's (worst of {seeds} seeds)\n"
    );
    println!("| | knee 20 | knee 200 | knee 2,000 | good |");
    println!("|---|---|---|---|---|");
    let (mut good_in_all, mut runs_in_all) = (0, 0);
    for scenario in SCENARIOS.iter().filter(|it| only.is_none_or(|only| it.name.contains(only))) {
        let (mut cells, mut good, mut runs) = (Vec::new(), 0, 0);
        for knee in KNEES {
            let (mut throughputs, mut tails) = (Vec::new(), Vec::new());
            for seed in 0..seeds {
                let world = scenario.world(times * knee, knee, seed);
                let best = best_fixed(&world);
                let (run, _) = adaptive(&world);
                let throughput = run.throughput() / best.throughput;
                let tail = run.quantile(0.99) as f64 / best.p99 as f64;
                good += u64::from(throughput >= 0.75 && tail <= 2.0);
                throughputs.push(throughput);
                tails.push(tail);
            }
            runs += seeds;
            let (throughput, tail) = (median(&mut throughputs), median(&mut tails));
            let (least, most) = (throughputs[0], tails[tails.len() - 1]);
            cells.push(format!("{throughput:.2} ({least:.2}), {tail:.2} ({most:.2})"));
        }
        println!("| {} | {} | {good}/{runs} |", scenario.name, cells.join(" | "));
        (good_in_all, runs_in_all) = (good_in_all + good, runs_in_all + runs);
    }
    println!("\n{good_in_all} of {runs_in_all} runs are good.");
}

/// A run over time, in `parts`: seconds, the highest limit, items a second, the 99th percentile of
/// latency in seconds.
fn course(run: &Run, parts: usize) -> String {
    let part = run.took_ns.div_ceil(parts as u64).max(1);
    let mut rows = Vec::new();
    let (mut ends, mut limits) = (run.ends.iter().peekable(), run.limits.iter().peekable());
    let mut limit = run.limits.first().map_or(0, |first| first.1);
    for number in 1..=parts as u64 {
        let until = part * number;
        let mut highest = limit;
        while let Some(&&(_, next)) = limits.peek().filter(|change| change.0 < until) {
            limits.next();
            (limit, highest) = (next, highest.max(next));
        }
        let mut latencies = Vec::new();
        while let Some(&&(_, latency)) = ends.peek().filter(|end| end.0 < until) {
            ends.next();
            latencies.push(latency);
        }
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(0);
        let rate = latencies.len() as f64 * S as f64 / part as f64;
        let (time, p99) = (until as f64 / S as f64, p99 as f64 / S as f64);
        rows.push(format!("[{time:.3}, {highest}, {rate:.1}, {p99:.4}]"));
    }
    format!("[{}]", rows.join(", "))
}

fn plot() {
    let shown = [
        ("knee 20", "exponential", 20, 2_000),
        ("knee 200", "exponential", 200, 20_000),
        ("knee 2,000", "exponential", 2_000, 200_000),
        ("knee 200, then 100", "halves, exponential", 200, 50_000),
        ("knee 200, then 400", "doubles, exponential", 200, 50_000),
        ("knee 200, refuses beyond 250", "refuses, exponential", 200, 50_000),
    ];
    let panels: Vec<String> = shown
        .iter()
        .filter_map(|(title, name, knee, items)| {
            let scenario = SCENARIOS.iter().find(|scenario| scenario.name == *name)?;
            let world = scenario.world(*items, *knee, 1);
            let best = best_fixed(&world);
            let (chosen, _) = adaptive(&world);
            let fixed: Vec<String> = sweep(&world)
                .iter()
                .map(|Sweep { limit, throughput, p99 }| {
                    format!("[{limit}, {throughput:.1}, {:.4}]", *p99 as f64 / S as f64)
                })
                .collect();
            Some(format!(
                "{{\"title\": \"{title}\", \"knee\": {knee}, \"items\": {items}, \"moves\": {}, \
                 \"best\": [{}, {:.1}, {:.4}], \"auto\": [{:.1}, {:.4}], \"fixed\": [{}], \
                 \"course\": {}}}",
                world.moves,
                best.limit,
                best.throughput,
                best.p99 as f64 / S as f64,
                chosen.throughput(),
                chosen.quantile(0.99) as f64 / S as f64,
                fixed.join(", "),
                course(&chosen, 120),
            ))
        })
        .collect();
    println!("[{}]", panels.join(",\n"));
}

fn main() {
    let words: Vec<String> = args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("plot") => plot(),
        Some("table") | None => {
            let seeds = words.get(1).and_then(|seeds| seeds.parse().ok()).unwrap_or(10);
            let times = words.get(2).and_then(|times| times.parse().ok()).unwrap_or(100);
            table(seeds, times, words.get(3).map(String::as_str));
        }
        Some(other) => println!("{other}? knee table [SEEDS] [TIMES] [SCENARIO], or knee plot"),
    }
}
