use ungil_core::schedule::{Policy, Settings};
use ungil_simulate::{Collector, Gil, Rules, predict};
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut c = Collector::default();
    ungil_trace::perfetto::read(path.as_ref(), |r| c.push(&r)).unwrap();
    for d in c.finish().iter().take(1) {
        println!("pid {} gil {} {:?} {} s", d.pid, d.gil, d.settings, d.lasts_ns as f64 / 1e9);
        show("recorded", &d.recorded);
        let mut all: Vec<_> = [Policy::Stock, Policy::Interactive, Policy::Fair, Policy::Batch]
            .into_iter()
            .map(|p| (p.name().to_string(), Gil::Scheduled(p.into())))
            .collect();
        all.push((
            "50us".into(),
            Gil::Scheduled(Settings { policy: Policy::Stock, quantum_ns: 50_000 }),
        ));
        all.push(("free".into(), Gil::Free));
        for (n, g) in all {
            let t = std::time::Instant::now();
            let p = predict(d, &Rules::of(g)).unwrap();
            show(&format!("{n} ({:?})", t.elapsed()), &p.figures);
        }
    }
}
fn show(n: &str, f: &ungil_simulate::Figures) {
    println!(
        "== {n}: {:.2}s cpu/s {:.3} held {:.3} handoffs {} forced {} jain {:?} waits {:?}",
        f.duration_s, f.cpu_per_s, f.held_share, f.handoffs, f.forced, f.jain, f.waits
    );
    for t in &f.threads {
        println!(
            "   {:24} held {:.3} waited {:.3} ran {:.3} waits {} p50 {:.0} p99 {:.0} max {:.0} | back {} p50 {:.0} p99 {:.0}",
            t.name,
            t.held_s,
            t.waited_s,
            t.ran_s,
            t.waits.count,
            t.waits.p50_us,
            t.waits.p99_us,
            t.waits.max_us,
            t.returns.count,
            t.returns.p50_us,
            t.returns.p99_us
        );
    }
}
