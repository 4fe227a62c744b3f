//! The sleeps at locks of a page, one by one, so that a browser can count those of a part.

use super::collected::Collected;
use super::gil::Scale;
use super::summary::Sleeps;
use super::table::{Blocks, Packed, pack};
use crate::analysis::{ProcessSleeps, Sleep};
use crate::record::ProcessId;
use std::collections::HashMap;

/// Adds them to the blocks of the page: those of each process by its place in the report, which
/// `place_of` tells, and from how many units on all are there.
pub(super) fn add_sleeps(
    blocks: &mut Blocks,
    collected: &Collected,
    place_of: impl Fn(ProcessId) -> Option<usize>,
) -> (HashMap<usize, Sleeps>, u64) {
    let (sleeps, least_ns) = collected.sleeps();
    let scale = collected.scale();
    let mut add = |sleeps: Vec<Sleep>| {
        let packed = (!sleeps.is_empty()).then(|| packed(sleeps, scale));
        packed.map(|packed| blocks.add_table(packed))
    };
    let those = sleeps.into_iter().filter_map(|(process, ProcessSleeps { parks, lock_waits })| {
        Some((place_of(process)?, Sleeps { parks: add(parks), lock_waits: add(lock_waits) }))
    });
    (those.collect(), least_ns.div_ceil(scale.unit_ns))
}

fn packed(mut sleeps: Vec<Sleep>, scale: Scale) -> Packed {
    sleeps.sort_unstable_by_key(|sleep| (sleep.since_ns, sleep.until_ns, sleep.row));
    let mut columns: [Vec<u64>; 6] = Default::default();
    let mut last = 0;
    for sleep in sleeps {
        let (begin, end) = (scale.at(sleep.since_ns), scale.at(sleep.until_ns));
        let number = |place: Option<usize>| place.map_or(0, |place| place as u64 + 1);
        let row = [
            sleep.row as u64,
            begin - last,
            end.saturating_sub(begin),
            number(sleep.waker),
            number(sleep.place),
            u64::from(sleep.is_collection),
        ];
        last = begin;
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    let heads = ["row", "begin", "length", "waker", "place", "collection"];
    let named: Vec<_> = heads.into_iter().zip(columns.iter().map(Vec::as_slice)).collect();
    pack(&named)
}
