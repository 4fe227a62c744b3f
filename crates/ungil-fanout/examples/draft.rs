//! Draft.
#[path = "../tests/support/service.rs"]
mod service;
use service::*;
use ungil_fanout::limit::*;

fn show(name: &str, world: &World, opening: Opening, ceiling: usize) {
    let best = best_fixed(world);
    let all = run(world, &mut Fixed(ceiling));
    let mut limit = Adaptive::new(Settings { ceiling, opening, cpu_so_far: 0 }, 0);
    let t = std::time::Instant::now();
    let r = run(world, &mut limit);
    println!("{name:30} {opening:?}: took {:.3} s, all at once {:.3} s, best fixed {:.3} s (p99 {}), p99 {} most {} refused {} [{:.2} s]", r.took_ns as f64 / 1e9, all.took_ns as f64 / 1e9, world.items as f64 / best.throughput, best.p99 / MS, r.quantile(0.99) / MS, r.most_in_flight, r.refused, t.elapsed().as_secs_f64());
    println!("      {}", limit.report());
    let mut l = r.limits.clone();
    l.dedup_by(|a, b| a.0 / (S / 100) == b.0 / (S / 100));
    println!("      {:?}", l.iter().take(24).map(|(t, l)| (t / MS, *l)).collect::<Vec<_>>());
}

fn main() {
    for opening in [Opening::Unknown, Opening::Hosts, Opening::Service] {
        // 10,000 hosts of their own
        let mut w = World::new(10_000, 1_000_000, Latency::Constant(50 * MS), 3);
        w.groups = Groups::Unknown;
        w.cpu_ns = 1_500;
        show("lean sleeps 50 ms", &w, opening, 20_000);
        w.latency = Latency::Constant(S);
        show("lean sleeps 1 s", &w, opening, 20_000);
        w.latency = Latency::Hosts { fastest: 20 * MS, slowest: S };
        show("hosts 20 ms - 1 s", &w, opening, 20_000);
        w.cpu_ns = 37_000;
        show("hosts 20 ms - 1 s, 74 us", &w, opening, 20_000);
        w.latency = Latency::Constant(50 * MS);
        show("sockets 50 ms, 74 us", &w, opening, 20_000);
        w.items = 100_000;
        w.cpu_ns = 1_500;
        show("100,000 lean sleeps 50 ms", &w, opening, 1_000_000);
        w.latency = Latency::Hosts { fastest: 20 * MS, slowest: S };
        show("100,000 hosts", &w, opening, 10_000);
        w.items = 10_000;
        w.cpu_ns = 1_300_000;
        show("ssh", &w, opening, 10_000);
        w.cpu_ns = 3_000;
        w.knee = 20;
        w.latency = Latency::Constant(50 * MS);
        show("knee 20", &w, opening, 5_000);
        w.latency = Latency::Exponential(5 * MS);
        show("knee 20, 5 ms", &w, opening, 5_000);
        w.discipline = Discipline::Shared;
        show("knee 20, 5 ms, shared", &w, opening, 5_000);
        w.discipline = Discipline::Queue;
        w.refuses_beyond = Some(1.25);
        show("knee 20, 5 ms, refuses", &w, opening, 5_000);
    }
}
