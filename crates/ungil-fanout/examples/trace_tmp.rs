#![allow(warnings)]
#[path = "../tests/support/service.rs"]
mod service;
use service::*;
use ungil_fanout::limit::{Adaptive, Opening, Settings};
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let (kind, knee, items, seed) = (a[0].as_str(), a[1].parse::<usize>().unwrap(), a[2].parse::<usize>().unwrap(), a[3].parse::<u64>().unwrap());
    let mut w = World::new(items, knee, Latency::Exponential(50 * MS), seed);
    match kind {
        "dead" => { w.latency = Latency::Hosts { fastest: 20 * MS, slowest: S }; w.dead = 0.1; w.groups = Groups::Hosts; }
        "hosts" => { w.latency = Latency::Hosts { fastest: 20 * MS, slowest: S }; w.groups = Groups::Hosts; }
        "thrash" => w.discipline = Discipline::Thrashing,
        "exp" => (),
        "refuse1" => w.refuses_beyond = Some(1.0),
        _ => panic!(),
    }
    let mut l = Adaptive::new(Settings { ceiling: 20_000, opening: Opening::Service, cpu_so_far: 0 }, 0);
    let r = run(&w, &mut l);
    let mut last = 0;
    for (t, n) in &r.limits { println!("{:.3} {}", *t as f64 / 1e9, n); last = *n; }
    println!("{:.1} s, {:.0}/s refused {}", r.took_ns as f64/1e9, r.throughput(), r.refused);
    println!("{}", l.report());
    for b in l.report().back_offs { println!("{:?}", b); }
}
