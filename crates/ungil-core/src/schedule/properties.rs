use super::simulation::{Outcome, Step, Then, Thread, Workload, simulate};
use super::{Level, Policy, Settings};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn cpu(level: Level) -> Thread {
    Thread { level, begins_ns: 0, steps: vec![Step::Compute(1 << 50)], then: Then::Exit }
}
fn io(use_ns: u64, block_ns: u64) -> Thread {
    Thread { level: Level::Normal, begins_ns: 0, steps: vec![Step::Compute(use_ns), Step::Block(block_ns)], then: Then::Repeat }
}
fn run(policy: Policy, threads: Vec<Thread>, lasts_ns: u64) -> Outcome {
    simulate(&Workload { settings: policy.into(), threads, lasts_ns, wake_ns: 20*US, drop_ns: 10*US })
}
fn show(name: &str, o: &Outcome, n: usize, lasts: u64) {
    print!("{name}: idle {} ", o.idle_ns);
    for t in 0..n { print!(" {}:{:.3}/{:.2}ms", t, o.held_ns(t, lasts/10, lasts) as f64/(lasts as f64*0.9), o.longest_wait_ns(t, lasts/10) as f64/1e6); }
    println!(" holds {}", o.holds.len());
}

#[test]
fn explore() {
    let _ : Settings = Policy::Fair.into();
    for p in [Policy::Interactive, Policy::Fair, Policy::Batch, Policy::Priority] {
        let l = if p==Policy::Batch {200_000*MS} else {20_000*MS};
        for n in [2, 4, 16, 100] {
            let o = run(p, vec![cpu(Level::Normal); n], l);
            let h: Vec<u64> = (0..n).map(|t| o.held_ns(t, 0, l)).collect();
            println!("{p:?} cpu x{n}: min {:.4} max {:.4} holds {} idle {} wait {}", *h.iter().min().unwrap() as f64/l as f64, *h.iter().max().unwrap() as f64/l as f64, o.holds.len(), o.idle_ns, (0..n).map(|t|o.longest_wait_ns(t,0)).max().unwrap());
        }
        let o = run(p, vec![cpu(Level::High), cpu(Level::Normal), cpu(Level::Low)], l); show(&format!("{p:?} HNL"), &o, 3, l);
        let o = run(p, vec![cpu(Level::High), cpu(Level::Normal), cpu(Level::Low), io(200*US, 2*MS)], l); show(&format!("{p:?} HNL+io"), &o, 4, l);
        let o = run(p, vec![cpu(Level::Normal), cpu(Level::Normal), io(200*US, 2*MS)], l); show(&format!("{p:?} 2 cpu +io"), &o, 3, l);
        let o = run(p, vec![cpu(Level::Normal), io(200*US, 2*MS)], l); show(&format!("{p:?} 1 cpu +io"), &o, 2, l);
        let o = run(p, vec![cpu(Level::Normal), io(2000*US, 2*MS)], l); show(&format!("{p:?} 1 cpu +greedy io"), &o, 2, l);
        let o = run(p, vec![cpu(Level::Normal), io(2000*US, 20*US), io(2000*US, 20*US), io(2000*US, 20*US), io(2000*US, 20*US)], l); show(&format!("{p:?} 1 cpu +4 greedy io"), &o, 5, l);
        let mut v = vec![cpu(Level::Normal)]; v.extend(vec![io(100*US, 1*MS); 40]);
        let o = run(p, v, l); show(&format!("{p:?} 1 cpu + 40 io"), &o, 3, l);
        let mut v = vec![cpu(Level::Normal)]; v.extend(vec![Thread{ then: Then::Replace, ..io(3*MS, 1*US)}; 4]);
        let o = run(p, v, l); show(&format!("{p:?} 1 cpu + 4 newcomers"), &o, 5, l);
        let mut v = vec![cpu(Level::Normal), io(200*US, 2*MS)]; v.extend(vec![Thread{ then: Then::Replace, ..io(300*MS, 1*US)}; 4]);
        let o = run(p, v, l); show(&format!("{p:?} 1 cpu, 1 io + 4 long newcomers"), &o, 6, l);
        let mut v = vec![cpu(Level::Normal), cpu(Level::Normal)]; v.push(Thread{level:Level::Normal,begins_ns:5000*MS, steps:vec![Step::Hold(1000*MS), Step::Compute(1<<50)], then:Then::Exit});
        let o = run(p, v, l); show(&format!("{p:?} long hold"), &o, 3, l);
    }
}
