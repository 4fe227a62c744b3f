//! Draft.
#[path = "../tests/support/service.rs"]
mod service;
use service::*;
use ungil_fanout::limit::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (knee, items) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let latency = match a[3].as_str() { "exp" => Latency::Exponential(50 * MS), "const" => Latency::Constant(50 * MS), "heavy" => Latency::HeavyTailed(50 * MS), _ => Latency::Hosts { fastest: 20 * MS, slowest: S } };
    for seed in a[4].split(',') {
        let mut w = World::new(items, knee, latency, seed.parse().unwrap());
        for o in a.iter().skip(5) { match o.as_str() { "shared" => w.discipline = Discipline::Shared, "thrash" => w.discipline = Discipline::Thrashing, "halves" => w.moves = 0.5, "doubles" => w.moves = 2.0, "refuses" => w.refuses_beyond = Some(1.25), "dead" => w.dead = 0.1, "hosts" => w.groups = Groups::Hosts, _ => panic!() } }
        let f = run(&w, &mut Fixed(knee));
        let mut limit = Adaptive::new(Settings { ceiling: 20_000, opening: Opening::Service, cpu_so_far: 0 }, 0);
        let r = run(&w, &mut limit);
        println!("seed {seed}: throughput {:.2} p99 {:.2}", r.throughput() / f.throughput(), r.quantile(0.99) as f64 / f.quantile(0.99) as f64);
    }
}
