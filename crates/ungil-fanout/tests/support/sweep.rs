//! The best fixed limit, for comparison.

use super::{Fixed, World, run};

/// What a fixed limit comes to.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    pub limit: usize,
    /// Items a second.
    pub throughput: f64,
    /// The 99th percentile of the latency, ns.
    pub p99: u64,
}

/// Fixed limits from a third of the knee to three times as many, smallest first.
pub fn sweep(world: &World) -> Vec<Sweep> {
    (-5..=5)
        .map(|step| ((world.knee as f64 * 1.25_f64.powi(step)).round() as usize).max(1))
        .map(|limit| {
            let run = run(world, &mut Fixed(limit));
            Sweep { limit, throughput: run.throughput(), p99: run.quantile(0.99) }
        })
        .collect()
}

/// The best fixed limit: the best throughput of all, with the smallest limit that reaches 99 % of
/// it and the 99th percentile of the latency there. A larger one would have a longer line and so be
/// easier to keep up with.
pub fn best_fixed(world: &World) -> Sweep {
    let limits = sweep(world);
    let throughput = limits.iter().map(|limit| limit.throughput).fold(0.0, f64::max);
    let enough = limits.into_iter().find(|limit| limit.throughput >= 0.99 * throughput);
    Sweep { throughput, ..enough.expect("the best reaches all of it") }
}
