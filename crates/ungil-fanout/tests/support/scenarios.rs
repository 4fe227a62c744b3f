//! Kinds of services: those of the table in `docs/fanout-limits.md`.

use super::{Discipline, Groups, Latency, MS, S, World};

/// A kind of world, named.
pub struct Scenario {
    pub name: &'static str,
    latency: Latency,
    change: fn(&mut World),
}

const CONSTANT: Latency = Latency::Constant(50 * MS);
const EXPONENTIAL: Latency = Latency::Exponential(50 * MS);
const HEAVY_TAILED: Latency = Latency::HeavyTailed(50 * MS);
const HOSTS: Latency = Latency::Hosts { fastest: 20 * MS, slowest: S };

const fn scenario(name: &'static str, latency: Latency, change: fn(&mut World)) -> Scenario {
    Scenario { name, latency, change }
}

pub const SCENARIOS: [Scenario; 24] = [
    scenario("constant", CONSTANT, |_| ()),
    scenario("exponential", EXPONENTIAL, |_| ()),
    scenario("heavy-tailed", HEAVY_TAILED, |_| ()),
    scenario("hosts visited once", HOSTS, |world| world.groups = Groups::Hosts),
    scenario("100 hosts visited often", HOSTS, |world| {
        (world.groups, world.hosts) = (Groups::Hosts, 100);
    }),
    scenario("1,000 hosts visited often", HOSTS, |world| {
        (world.groups, world.hosts) = (Groups::Hosts, 1_000);
    }),
    scenario("shared, constant", CONSTANT, |world| world.discipline = Discipline::Shared),
    scenario("shared, exponential", EXPONENTIAL, |world| world.discipline = Discipline::Shared),
    scenario("thrashing, exponential", EXPONENTIAL, |world| {
        world.discipline = Discipline::Thrashing;
    }),
    scenario("halves, constant", CONSTANT, |world| world.moves = 0.5),
    scenario("halves, exponential", EXPONENTIAL, |world| world.moves = 0.5),
    scenario("halves, hosts", HOSTS, |world| {
        (world.moves, world.groups) = (0.5, Groups::Hosts);
    }),
    scenario("doubles, constant", CONSTANT, |world| world.moves = 2.0),
    scenario("doubles, exponential", EXPONENTIAL, |world| world.moves = 2.0),
    scenario("doubles, hosts", HOSTS, |world| {
        (world.moves, world.groups) = (2.0, Groups::Hosts);
    }),
    scenario("refuses, constant", CONSTANT, |world| world.refuses_beyond = Some(1.25)),
    scenario("refuses, exponential", EXPONENTIAL, |world| world.refuses_beyond = Some(1.25)),
    scenario("refuses at once, exponential", EXPONENTIAL, |world| {
        world.refuses_beyond = Some(1.0);
    }),
    scenario("refuses, halves, exponential", EXPONENTIAL, |world| {
        (world.refuses_beyond, world.moves) = (Some(1.25), 0.5);
    }),
    scenario("refuses, doubles, exponential", EXPONENTIAL, |world| {
        (world.refuses_beyond, world.moves) = (Some(1.25), 2.0);
    }),
    scenario("refuses, hosts", HOSTS, |world| {
        (world.refuses_beyond, world.groups) = (Some(1.25), Groups::Hosts);
    }),
    scenario("10 % dead hosts", HOSTS, |world| {
        (world.dead, world.groups) = (0.1, Groups::Hosts);
    }),
    scenario("5 % hang, exponential", EXPONENTIAL, |world| {
        (world.dead, world.dead_after) = (0.05, S);
    }),
    scenario("5 % hang, hosts", HOSTS, |world| {
        (world.dead, world.dead_after, world.groups) = (0.05, 3 * S, Groups::Hosts);
    }),
];

impl Scenario {
    /// So many items against a service with this knee.
    pub fn world(&self, items: usize, knee: usize, seed: u64) -> World {
        let mut world = World::new(items, knee, self.latency, seed);
        (self.change)(&mut world);
        world
    }
}
