//! Draft.
#[path = "../tests/support/service.rs"]
mod service;
use service::*;
use ungil_fanout::limit::*;

fn main() {
    let seeds: u64 = std::env::args().nth(1).map_or(5, |a| a.parse().unwrap());
    let only: Option<String> = std::env::args().nth(2);
    let models: Vec<(&str, Box<dyn Fn(&mut World)>, Latency)> = vec![
        ("constant", Box::new(|_| {}), Latency::Constant(50 * MS)),
        ("exponential", Box::new(|_| {}), Latency::Exponential(50 * MS)),
        ("heavy", Box::new(|_| {}), Latency::HeavyTailed(50 * MS)),
        ("hosts-once", Box::new(|w| w.groups = Groups::Hosts), Latency::Hosts { fastest: 20 * MS, slowest: S }),
        ("hosts-often", Box::new(|w| { w.groups = Groups::Hosts; w.hosts = 100 }), Latency::Hosts { fastest: 20 * MS, slowest: S }),
        ("hosts-more", Box::new(|w| { w.groups = Groups::Hosts; w.hosts = 1000 }), Latency::Hosts { fastest: 20 * MS, slowest: S }),
        ("shared-exp", Box::new(|w| w.discipline = Discipline::Shared), Latency::Exponential(50 * MS)),
        ("shared-const", Box::new(|w| w.discipline = Discipline::Shared), Latency::Constant(50 * MS)),
        ("thrash-exp", Box::new(|w| w.discipline = Discipline::Thrashing), Latency::Exponential(50 * MS)),
        ("refuses-const", Box::new(|w| w.refuses_beyond = Some(1.25)), Latency::Constant(50 * MS)),
        ("refuses-exp", Box::new(|w| w.refuses_beyond = Some(1.25)), Latency::Exponential(50 * MS)),
        ("refuses-at-exp", Box::new(|w| w.refuses_beyond = Some(1.0)), Latency::Exponential(50 * MS)),
        ("refuses-halves-exp", Box::new(|w| {w.refuses_beyond = Some(1.25); w.moves = 0.5}), Latency::Exponential(50 * MS)),
        ("refuses-doubles-exp", Box::new(|w| {w.refuses_beyond = Some(1.25); w.moves = 2.0}), Latency::Exponential(50 * MS)),
        ("refuses-hosts", Box::new(|w| {w.refuses_beyond = Some(1.25); w.groups = Groups::Hosts}), Latency::Hosts { fastest: 20 * MS, slowest: S }),
        ("dead-hosts", Box::new(|w| {w.dead = 0.1; w.groups = Groups::Hosts}), Latency::Hosts { fastest: 20 * MS, slowest: S }),
        ("dead-exp", Box::new(|w| {w.dead = 0.3; w.groups = Groups::Hosts}), Latency::Exponential(50 * MS)),
        ("halves-exp", Box::new(|w| w.moves = 0.5), Latency::Exponential(50 * MS)),
        ("doubles-exp", Box::new(|w| w.moves = 2.0), Latency::Exponential(50 * MS)),
        ("halves-const", Box::new(|w| w.moves = 0.5), Latency::Constant(50 * MS)),
        ("doubles-const", Box::new(|w| w.moves = 2.0), Latency::Constant(50 * MS)),
    ];
    println!("{:>14} {:>6} {:>7} | best N  p99ms | throughput min..median  p99 median..max  | final limits", "model", "knee", "items");
    for (name, change, latency) in &models {
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) { continue }
        for (knee, sizes) in [(20, [500, 2_000, 10_000]), (200, [2_000, 10_000, 50_000]), (2_000, [10_000, 50_000, 100_000])] {
            for items in sizes {
                let one = std::env::var("ONLY").ok();
                let one: Vec<u64> = one.iter().flat_map(|o| o.split(' ')).map(|x| x.parse().unwrap()).collect();
                if !one.is_empty() && (one[0] != knee as u64 || one[1] != items as u64) { continue }
                let mut ratios = vec![];
                let mut tails = vec![];
                let mut finals = vec![];
                let mut bests = String::new();
                for seed in if one.is_empty() { 0..seeds } else { one[2]..one[2] + 1 } {
                    let mut world = World::new(items, knee, *latency, seed * 77 + 5);
                    change(&mut world);
                    let best = best_fixed(&world);
                    let mut limit = Adaptive::new(Settings { ceiling: 20_000, opening: Opening::Service, cpu_so_far: 0 }, 0);
                    let run = run(&world, &mut limit);
                    ratios.push(run.throughput() / best.throughput);
                    tails.push(run.quantile(0.99) as f64 / best.p99 as f64);
                    finals.push(limit.limit()); if std::env::var_os("REPORT").is_some() { println!("{}\n{:?}", limit.report(), limit.report()) }
                    bests = format!("{:6} {:6}", best.limit, best.p99 / MS);
                }
                ratios.sort_by(f64::total_cmp);
                tails.sort_by(f64::total_cmp);
                let n = ratios.len();
                let ok = ratios[n / 2] >= 0.75 && tails[n / 2] <= 2.0;
                let all = ratios[0] >= 0.75 && tails[n - 1] <= 2.0;
                println!("{name:>14} {knee:>6} {items:>7} | {bests} | {:.2} {:.2}   {:.2} {:.2} {} | {:?}", ratios[0], ratios[n / 2], tails[n / 2], tails[n - 1], if all { "ALL" }  else if ok { "med" } else { " - " }, &finals[..finals.len().min(6)]);
            }
        }
    }
}
