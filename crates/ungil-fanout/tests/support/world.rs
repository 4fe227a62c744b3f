//! A service, and what it is asked: what a simulation is made from.

use super::S;

/// SplitMix64.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// How long an item takes that waits for nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    Constant(u64),
    /// Of this mean.
    Exponential(u64),
    /// Pareto with shape 1.5: finite mean (this one), infinite variance.
    HeavyTailed(u64),
    /// Each host has its own, spread evenly in logarithm between these; a visit adds up to 5 %.
    Hosts {
        fastest: u64,
        slowest: u64,
    },
    /// The same, but every tenth of the hosts is slower than the one before: they are listed site
    /// by site.
    Sites {
        fastest: u64,
        slowest: u64,
    },
}

impl Latency {
    pub fn draw(self, random: &mut Random, host: u64, hosts: usize) -> u64 {
        let ns = match self {
            Self::Constant(ns) => ns as f64,
            Self::Exponential(mean) => -random.unit().ln() * mean as f64,
            // The mean of Pareto(1.5) is three times its minimum.
            Self::HeavyTailed(mean) => mean as f64 / 3.0 * random.unit().powf(-1.0 / 1.5),
            Self::Hosts { fastest, slowest } => {
                let own = Random(host.wrapping_mul(0x2545_f491_4f6c_dd1d)).unit();
                let ratio = slowest as f64 / fastest as f64;
                fastest as f64 * ratio.powf(own) * (1.0 + 0.05 * random.unit())
            }
            Self::Sites { fastest, slowest } => {
                let site = (host * 10 / hosts as u64) as f64 / 9.0;
                let ratio = slowest as f64 / fastest as f64;
                fastest as f64 * ratio.powf(site) * (1.0 + 0.2 * random.unit())
            }
        };
        (ns as u64).clamp(1_000, 1_000 * S)
    }
}

/// What happens to those that the service has no room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// They wait in a line, in order.
    Queue,
    /// All are served at once, each slower in proportion.
    Shared,
    /// As shared, and the throughput falls with the square root of the excess.
    Thrashing,
}

/// What items say of where they go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Groups {
    Unknown,
    Service,
    Hosts,
}

/// A service and what it is asked.
#[derive(Clone, Debug)]
pub struct World {
    pub items: usize,
    pub latency: Latency,
    pub discipline: Discipline,
    /// How many can be served at once.
    pub knee: usize,
    /// What the knee is multiplied by when half of the items are done.
    pub moves: f64,
    /// Turns items away, after a fifth of a typical latency, when more than this many times the
    /// knee are inside.
    pub refuses_beyond: Option<f64>,
    /// After how long those that were turned away come again, ns.
    pub again_after: u64,
    /// The share of items whose host refuses, whatever the limit. They are not tried again.
    pub dead: f64,
    /// After how long it does so, ns; a fifth of a typical latency if this is zero.
    pub dead_after: u64,
    /// The different hosts that the items go to, in turn.
    pub hosts: usize,
    pub groups: Groups,
    /// The client's processor time to start an item, and as much to finish it.
    pub cpu_ns: u64,
    pub seed: u64,
}

impl World {
    pub fn new(items: usize, knee: usize, latency: Latency, seed: u64) -> Self {
        Self {
            items,
            latency,
            discipline: Discipline::Queue,
            knee,
            moves: 1.0,
            refuses_beyond: None,
            again_after: 0,
            dead: 0.0,
            dead_after: 0,
            hosts: items,
            groups: Groups::Service,
            cpu_ns: 0,
            seed,
        }
    }
}
