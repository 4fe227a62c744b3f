//! Sleeps at locks one by one, for those who want more than the report's sums.

use super::Analysis;
use super::park_stacks::ParkStacks;
use super::parks::{Counted, Parks, Wait, Waits};
use crate::record::{COLLECTED, Park, ProcessId, ThreadId};
use crate::report::ParkedIn;
use std::collections::HashMap;
use ungil_core::park::Cause;

/// Sleeps that are kept, over all processes.
const KEPT: usize = 100_000;

/// One sleep, as a row of the report counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Since when; where counting begins in it, since that moment.
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
    /// The row in the `waits` of [`crate::report::ParksReport`], or in `lock_waits`.
    pub row: usize,
    /// Who ended it: the place in the `wakers` of that row.
    pub waker: Option<usize>,
    /// Where it was: the place in the `places` of that row. `None` if it is none of these.
    pub place: Option<usize>,
    /// Whether the world was stopped to collect garbage.
    pub is_collection: bool,
}

/// The sleeps of one process, in no order.
#[derive(Clone, Debug, Default)]
pub struct ProcessSleeps {
    /// Those of the report's `parks`.
    pub parks: Vec<Sleep>,
    /// Those of its `lock_waits`.
    pub lock_waits: Vec<Sleep>,
}

/// The longest sleeps.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    kept: Vec<Kept>,
    /// All those of at least this length are kept.
    least_ns: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    process: ProcessId,
    counted: Counted,
    since_ns: u64,
    until_ns: u64,
    stack: u16,
    is_collection: bool,
}

impl Kept {
    const fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

impl Sleeps {
    /// Keeps one that began at `since_ns`, or there where counting begins, and was `counted`.
    pub(super) fn add(&mut self, process: ProcessId, park: &Park, since_ns: u64, counted: Counted) {
        if park.until_ns.saturating_sub(since_ns) < self.least_ns {
            return;
        }
        if self.kept.len() >= KEPT {
            let middle = self.kept.len() / 2;
            let (_, kept, _) = self.kept.select_nth_unstable_by_key(middle, Kept::length_ns);
            self.least_ns = kept.length_ns() + 1;
            let least_ns = self.least_ns;
            self.kept.retain(|kept| kept.length_ns() >= least_ns);
        }
        self.kept.push(Kept {
            process,
            counted,
            since_ns,
            until_ns: park.until_ns,
            stack: park.stack,
            is_collection: park.cause == Cause::Pause && park.of == COLLECTED,
        });
    }
}

/// The rows of one table of the report, by what they count.
struct Rows<'a> {
    stacks: &'a ParkStacks,
    rows: HashMap<Wait, Row>,
}

struct Row {
    number: usize,
    wakers: Vec<Option<ThreadId>>,
    places: Vec<ParkedIn>,
    /// By the number of a stack, its place.
    known: HashMap<u16, Option<usize>>,
}

impl<'a> Rows<'a> {
    fn new(parks: Option<&Parks>, stacks: &'a ParkStacks) -> Self {
        let ordered = parks.map(|parks| parks.ordered(&parks.contended())).unwrap_or_default();
        let row = |(number, (wait, waits)): (usize, (&Wait, &Waits))| {
            let wakers = waits.ordered_wakers().iter().map(|wakes| wakes.waker).collect();
            let places = waits.places.report(stacks);
            (*wait, Row { number, wakers, places, known: HashMap::new() })
        };
        Self { stacks, rows: ordered.into_iter().enumerate().map(row).collect() }
    }

    /// As its row tells it; `None` if it is in none that the report has.
    fn tell(&mut self, kept: &Kept) -> Option<Sleep> {
        let row = self.rows.get_mut(&kept.counted.wait)?;
        let place = || self.stacks.place_of(kept.stack, &row.places);
        Some(Sleep {
            since_ns: kept.since_ns,
            until_ns: kept.until_ns,
            row: row.number,
            waker: row.wakers.iter().position(|waker| *waker == kept.counted.waker),
            place: *row.known.entry(kept.stack).or_insert_with(place),
            is_collection: kept.is_collection,
        })
    }
}

impl Analysis {
    /// All sleeps that the report of this moment counts in a row, those of each process together, and
    /// how long a sleep must have been to be among them. Only of an analysis that tells what ends
    /// ([`Self::telling_ended`]).
    pub fn sleeps(&self) -> (Vec<(ProcessId, ProcessSleeps)>, u64) {
        let Some(sleeps) = &self.tally.sleeps else { return (Vec::new(), 0) };
        let none = ParkStacks::default();
        let of_process = self.tally.processes.iter().filter_map(|process| {
            let id = process.known.process;
            let mut parks = Rows::new(process.parks.as_deref(), &process.park_stacks);
            let mut locks = Rows::new(process.locks.as_deref(), &none);
            let mut told = ProcessSleeps::default();
            for kept in sleeps.kept.iter().filter(|kept| kept.process == id) {
                if kept.counted.wait.cause == Cause::OffGil {
                    told.lock_waits.extend(locks.tell(kept));
                } else {
                    told.parks.extend(parks.tell(kept));
                }
            }
            (!told.parks.is_empty() || !told.lock_waits.is_empty()).then_some((id, told))
        });
        (of_process.collect(), sleeps.least_ns)
    }
}
