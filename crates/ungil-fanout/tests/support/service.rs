//! A service with a known knee, and a client in front of it, as a deterministic discrete-event
//! simulation: what a limit is judged by, in the tests and in `examples/knee.rs`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::collapsible_if,
    clippy::float_cmp,
    clippy::too_many_lines,
    reason = "times and sizes of a simulation are positive and small, and its loop is one story"
)]
#![allow(dead_code, unused_imports, reason = "each of those that include it uses a part")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ungil_fanout::limit::{Adaptive, Outcome, Sample, Ticket};

mod scenarios;
mod sweep;
mod world;

pub use scenarios::{SCENARIOS, Scenario};
pub use sweep::{Sweep, best_fixed, sweep};
use world::Random;
pub use world::{Discipline, Groups, Latency, World};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

/// A limit, fixed or not.
pub trait Limit {
    fn limit(&self) -> usize;
    fn started(&mut self, _now: u64, _group: Option<u64>) -> Ticket {
        Ticket::default()
    }
    fn finished(&mut self, _sample: Sample) {}
    fn due(&self) -> Option<u64> {
        None
    }
    fn tick(&mut self, _now: u64) {}
}

pub struct Fixed(pub usize);

impl Limit for Fixed {
    fn limit(&self) -> usize {
        self.0
    }
}

impl Limit for Adaptive {
    fn limit(&self) -> usize {
        Adaptive::limit(self)
    }
    fn started(&mut self, now: u64, group: Option<u64>) -> Ticket {
        Adaptive::started(self, now, group)
    }
    fn finished(&mut self, sample: Sample) {
        Adaptive::finished(self, sample);
    }
    fn due(&self) -> Option<u64> {
        Adaptive::due(self)
    }
    fn tick(&mut self, now: u64) {
        Adaptive::tick(self, now);
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    pub took_ns: u64,
    /// Of those that were served, sorted.
    pub latencies: Vec<u64>,
    pub refused: usize,
    pub most_in_flight: usize,
    /// At the service, in line or served.
    pub most_inside: usize,
    /// The limit whenever it changed, with the time.
    pub limits: Vec<(u64, usize)>,
    /// What each item's attempt took, in order of its end: when it ended, and the latency.
    pub ends: Vec<(u64, u64)>,
}

impl Run {
    /// Items a second.
    pub fn throughput(&self) -> f64 {
        self.latencies.len() as f64 * S as f64 / self.took_ns as f64
    }

    /// The latency that this share of the items stayed below.
    pub fn quantile(&self, share: f64) -> u64 {
        let last = self.latencies.len() - 1;
        self.latencies[((self.latencies.len() as f64 * share) as usize).min(last)]
    }
}

struct Item {
    started: u64,
    ticket: Ticket,
    group: Option<u64>,
    latency: u64,
    host: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Served(usize),
    Refused(usize),
    /// It comes again.
    Again(usize),
    /// The service shares its time and its load has changed since if the number is an old one.
    Shared(u64),
}

struct Service<'a> {
    world: &'a World,
    knee: usize,
    inside: usize,
    busy: usize,
    line: VecDeque<usize>,
    /// When sharing: what each would have received at its end, in ns of service.
    shared: BinaryHeap<Reverse<(u64, usize)>>,
    received: f64,
    received_at: u64,
    generation: u64,
}

impl Service<'_> {
    fn rate(&self) -> f64 {
        let load = self.inside as f64 / self.knee as f64;
        match self.world.discipline {
            _ if load <= 1.0 => 1.0,
            Discipline::Thrashing => load.powf(-1.5),
            _ => 1.0 / load,
        }
    }

    fn catch_up(&mut self, now: u64) {
        self.received += (now - self.received_at) as f64 * self.rate();
        self.received_at = now;
    }

    fn next_end(&mut self, events: &mut BinaryHeap<Reverse<(u64, Event)>>) {
        self.generation += 1;
        if let Some(Reverse((end, _))) = self.shared.peek() {
            let rest = (*end as f64 - self.received).max(0.0) / self.rate();
            let event = Event::Shared(self.generation);
            events.push(Reverse((self.received_at + rest.ceil() as u64, event)));
        }
    }
}

/// Runs all items of `world` under `limit`.
pub fn run(world: &World, limit: &mut impl Limit) -> Run {
    let mut random = Random(world.seed);
    let typical = match world.latency {
        Latency::Constant(ns) | Latency::Exponential(ns) | Latency::HeavyTailed(ns) => ns,
        Latency::Hosts { fastest, slowest } | Latency::Sites { fastest, slowest } => {
            (fastest as f64 * slowest as f64).sqrt() as u64
        }
    };
    let mut items: Vec<Item> = Vec::new();
    let mut again: VecDeque<usize> = VecDeque::new();
    let mut events: BinaryHeap<Reverse<(u64, Event)>> = BinaryHeap::new();
    let mut service = Service {
        world,
        knee: world.knee,
        inside: 0,
        busy: 0,
        line: VecDeque::new(),
        shared: BinaryHeap::new(),
        received: 0.0,
        received_at: 0,
        generation: 0,
    };
    let (mut now, mut cpu, mut in_flight, mut served, mut dead) = (0_u64, 0_u64, 0, 0, 0);
    let mut out = Run {
        took_ns: 0,
        latencies: Vec::with_capacity(world.items),
        refused: 0,
        most_in_flight: 0,
        most_inside: 0,
        limits: vec![(0, limit.limit())],
        ends: Vec::with_capacity(world.items),
    };
    while served + dead < world.items {
        let wanted = limit.limit();
        if out.limits.last().is_none_or(|last| last.1 != wanted) {
            out.limits.push((now, wanted));
        }
        let can_start = in_flight < wanted && (items.len() < world.items || !again.is_empty());
        let next = events.peek().map(|Reverse((time, _))| *time);
        if can_start && next.is_none_or(|time| time > now) {
            let number = again.pop_front().unwrap_or_else(|| {
                let host = (items.len() % world.hosts) as u64;
                let group = match world.groups {
                    Groups::Unknown => None,
                    Groups::Service => Some(7),
                    Groups::Hosts => Some(host),
                };
                let latency = world.latency.draw(&mut random, host, world.hosts);
                items.push(Item { started: 0, ticket: Ticket::default(), group, latency, host });
                items.len() - 1
            });
            now += world.cpu_ns;
            cpu += world.cpu_ns;
            in_flight += 1;
            out.most_in_flight = out.most_in_flight.max(in_flight);
            let item = &mut items[number];
            item.started = now;
            item.ticket = limit.started(now, item.group);
            let room = world.refuses_beyond.map(|times| (service.knee as f64 * times) as usize);
            let is_dead = (Random(item.host ^ world.seed).unit()) < world.dead;
            if is_dead || room.is_some_and(|room| service.inside >= room) {
                let hangs = is_dead && world.dead_after > 0;
                let after = if hangs { world.dead_after } else { typical / 5 };
                events.push(Reverse((now + after, Event::Refused(number))));
                continue;
            }
            if world.discipline == Discipline::Queue {
                service.inside += 1;
                if service.busy < service.knee {
                    service.busy += 1;
                    events.push(Reverse((now + item.latency, Event::Served(number))));
                } else {
                    service.line.push_back(number);
                }
            } else {
                service.catch_up(now);
                service.inside += 1;
                let end = service.received as u64 + item.latency;
                service.shared.push(Reverse((end, number)));
                service.next_end(&mut events);
            }
            out.most_inside = out.most_inside.max(service.inside);
            continue;
        }
        if let Some(due) = limit.due().filter(|due| next.is_none_or(|time| *due < time)) {
            if !can_start || due <= now {
                now = now.max(due);
                limit.tick(now);
                continue;
            }
        }
        let Some(Reverse((time, event))) = events.pop() else {
            panic!("nothing runs, and the limit is {wanted}");
        };
        now = now.max(time);
        let (number, outcome) = match event {
            Event::Again(number) => {
                again.push_back(number);
                continue;
            }
            Event::Refused(number) => (number, Outcome::Overloaded),
            Event::Served(number) => {
                service.inside -= 1;
                service.busy -= 1;
                (number, Outcome::Completed)
            }
            Event::Shared(generation) if generation != service.generation => continue,
            Event::Shared(_) => {
                service.catch_up(now);
                let Reverse((_, number)) = service.shared.pop().expect("it ends by this event");
                service.inside -= 1;
                service.next_end(&mut events);
                (number, Outcome::Completed)
            }
        };
        while service.busy < service.knee {
            let Some(first) = service.line.pop_front() else { break };
            service.busy += 1;
            events.push(Reverse((time + items[first].latency, Event::Served(first))));
        }
        now += world.cpu_ns;
        cpu += world.cpu_ns;
        in_flight -= 1;
        let item = &items[number];
        limit.finished(Sample {
            ticket: item.ticket,
            started: item.started,
            finished: now,
            cpu_so_far: cpu,
            outcome,
            asked: world.again_after,
            group: item.group,
        });
        if outcome == Outcome::Completed {
            served += 1;
            out.latencies.push(now - item.started);
            out.ends.push((now, now - item.started));
            if served == world.items / 2 && world.moves != 1.0 {
                service.catch_up(now);
                service.knee = ((service.knee as f64 * world.moves) as usize).max(1);
                if world.discipline != Discipline::Queue {
                    service.next_end(&mut events);
                }
            }
        } else if (Random(item.host ^ world.seed).unit()) < world.dead {
            dead += 1;
        } else {
            out.refused += 1;
            events.push(Reverse((now + world.again_after, Event::Again(number))));
        }
    }
    out.took_ns = now;
    out.latencies.sort_unstable();
    out
}
