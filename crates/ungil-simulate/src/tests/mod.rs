//! What holds for every demand, and what a recording made of known pieces tells.

mod deliveries;
mod launches;
mod naps;
mod pools;
mod processors;
mod properties;
mod races;
mod recordings;
mod records;
mod wakes;

use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::demand::{Burst, Demand, Follows, Machine, Races, Steady, Switches, Thread};
use crate::figures::Figures;
use crate::naps::Naps;
use std::sync::{Arc, OnceLock};
use ungil_core::schedule::{Policy, Settings};

pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000 * US;

pub(super) fn burst(held_ns: u64, away_ns: u64) -> Burst {
    Burst { held_ns, away_ns, ..Burst::default() }
}

/// A thread that begins then and does this.
pub(super) fn thread(begins_ns: u64, bursts: &[Burst]) -> Thread {
    Thread {
        tid: 1,
        name: String::new(),
        main: false,
        begins_ns,
        successor: None,
        starter: None,
        started: None,
        launches: [].into(),
        is_launched: false,
        begun_by: None,
        wakes: [].into(),
        deliveries: None,
        lives_on: None,
        bursts: bursts.into(),
        unanswered: [].into(),
        steady: Steady { uses: 0..bursts.len(), away_ns: bursts.last().map_or(0, |it| it.away_ns) },
        follows: Follows::Nobody,
        away_ran: 0.0,
        answers: Arc::new(Delays::fixed(10 * US)),
        races: Races::always(30_000).into(),
        switches: Switches::always(Arc::new(Delays::fixed(30 * US))),
    }
}

/// What these threads want in so long a time.
pub(super) fn demand(lasts_ns: u64, threads: Vec<Thread>) -> Demand {
    Demand {
        pid: 1,
        argv: Vec::new(),
        gil: 0,
        settings: Settings::from(Policy::Stock),
        processors: None,
        lasts_ns,
        threads,
        recorded: Figures::default(),
        lost_events: 0,
        pools: Vec::new(),
        machine: Machine {
            lateness: Delays::fixed(50 * US),
            naps: Naps::NO_MATTER,
            coldness: Coldness::NEVER,
        },
        reproduced: OnceLock::new(),
    }
}
