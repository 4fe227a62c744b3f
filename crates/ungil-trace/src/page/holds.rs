//! The holds of a GIL one by one, each with the wait before it, in columns: a chunk at a time.

use super::sums::Sums;
use super::table::{Packed, pack};
use crate::analysis::Ending;

/// Holds of one chunk.
const ROWS: usize = 16_384;
/// Waits of one GIL that no hold ended.
const LOOSE: usize = 65_536;

/// A hold, in units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) lane: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// When the wait for it began, if there was one.
    pub(super) waited_from: Option<u64>,
    pub(super) ending: Ending,
    pub(super) not_run: u64,
    pub(super) not_run_most: u64,
    pub(super) cpu: Option<u64>,
}

/// Holds that are complete.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) from: u64,
    pub(super) to: u64,
    /// When the first wait in it began.
    pub(super) waits_from: u64,
    pub(super) holds: Packed,
    pub(super) extras: Option<Packed>,
    pub(super) asks: Option<Packed>,
    pub(super) sums: Sums,
    /// How much was waited in it, over all threads: what makes it worth its bytes.
    pub(super) waited: u64,
}

impl Chunk {
    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let more = self.extras.iter().chain(&self.asks).map(|packed| packed.bytes.len());
        self.holds.bytes.len() + more.sum::<usize>()
    }
}

/// A chunk that is being filled.
#[derive(Debug, Default)]
struct Open {
    lanes: Vec<u64>,
    gaps: Vec<u64>,
    lengths: Vec<u64>,
    waits: Vec<u64>,
    ends: Vec<u64>,
    /// Row, the least and the most that the holder did not run, and its time on a processor + 1.
    extras: [Vec<u64>; 4],
    /// When, and the lane.
    asks: Vec<(u64, u64)>,
    from: u64,
    to: u64,
    waits_from: u64,
    waited: u64,
    sums: Sums,
}

/// All holds of a GIL.
#[derive(Debug, Default)]
pub(super) struct Holds {
    open: Open,
    pub(super) chunks: Vec<Chunk>,
    /// Lane, begin, length, and whether it did not end by itself.
    loose: Vec<[u64; 4]>,
    pub(super) lost_loose: u64,
    /// How many holds there were.
    pub(super) rows: usize,
    /// What was left out, by time.
    pub(super) left_out: Vec<LeftOut>,
    bytes: usize,
}

impl Holds {
    /// Adds a hold that begins after the end of the one before; `ns` is its exact length.
    pub(super) fn push(&mut self, hold: Hold, ns: u64) {
        self.rows += 1;
        let open = &mut self.open;
        if open.lanes.is_empty() {
            (open.from, open.to, open.waits_from) = (hold.begin, hold.begin, hold.begin);
        }
        open.lanes.push(u64::from(hold.lane));
        open.gaps.push(hold.begin.saturating_sub(open.to));
        open.lengths.push(hold.end - hold.begin);
        let waited = hold.waited_from.map(|from| hold.begin.saturating_sub(from));
        open.waits.push(waited.map_or(0, |waited| waited + 1));
        open.ends.push(match hold.ending {
            Ending::Voluntary => 0,
            Ending::Forced => 1,
            Ending::Unseen => 2,
            Ending::Cut => 3,
        });
        if hold.not_run > 0 || hold.not_run_most > 0 || hold.cpu.is_some() {
            let row = open.lanes.len() as u64 - 1;
            let cpu = hold.cpu.map_or(0, |cpu| cpu + 1);
            let values = [row, hold.not_run, hold.not_run_most, cpu];
            open.extras.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
        open.waited = open.waited.saturating_add(waited.unwrap_or(0));
        open.waits_from = open.waits_from.min(hold.waited_from.unwrap_or(hold.begin));
        open.to = hold.end;
        open.sums.hold(ns);
        if open.lanes.len() >= ROWS {
            self.close();
        }
    }

    /// Adds a wait that no hold ended.
    pub(super) fn push_loose(&mut self, lane: u32, begin: u64, end: u64, is_cut: bool) {
        if self.loose.len() < LOOSE {
            self.loose.push([u64::from(lane), begin, end.saturating_sub(begin), u64::from(is_cut)]);
        } else {
            self.lost_loose += 1;
        }
    }

    /// A thread asked.
    pub(super) fn ask(&mut self, lane: u32, at: u64) {
        self.open.asks.push((at, u64::from(lane)));
    }

    /// What to count waits in that end now.
    pub(super) fn sums(&mut self) -> &mut Sums {
        &mut self.open.sums
    }

    /// Packs what is open.
    pub(super) fn close(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        if open.lanes.is_empty() {
            // The last chunk has no hold if threads asked after the last one.
            let Some(from) = open.asks.iter().map(|(at, _)| *at).min() else { return };
            (open.from, open.to, open.waits_from) = (from, from, from);
        }
        let holds = pack(&[
            ("lane", &open.lanes),
            ("gap", &open.gaps),
            ("length", &open.lengths),
            ("wait", &open.waits),
            ("end", &open.ends),
        ]);
        let [row, not_run, not_run_most, cpu] = &open.extras;
        let extras = (!row.is_empty()).then(|| {
            let columns: [(_, &[u64]); 4] =
                [("hold", row), ("not_run", not_run), ("not_run_most", not_run_most), ("cpu", cpu)];
            pack(&columns)
        });
        let chunk = Chunk {
            from: open.from,
            to: open.to,
            waits_from: open.waits_from,
            holds,
            extras,
            asks: packed_asks(open.asks, open.from),
            sums: open.sums,
            waited: open.waited,
        };
        self.bytes += chunk.bytes();
        self.chunks.push(chunk);
    }

    /// The table of the waits that no hold ended.
    pub(super) fn pack_loose(&mut self) -> Option<Packed> {
        self.loose.sort_unstable_by_key(|wait| wait[1]);
        let mut columns: [Vec<u64>; 4] = Default::default();
        let mut last = 0;
        for &[lane, begin, length, is_cut] in &self.loose {
            let values = [lane, begin - last, length, is_cut];
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            last = begin;
        }
        let [lane, begin, length, is_cut] = &columns;
        (!lane.is_empty()).then(|| {
            pack(&[("lane", lane), ("begin", begin), ("length", length), ("is_cut", is_cut)])
        })
    }
}

fn packed_asks(mut asks: Vec<(u64, u64)>, from: u64) -> Option<Packed> {
    asks.sort_unstable();
    let mut last = from;
    let (mut times, mut lanes) = (Vec::with_capacity(asks.len()), Vec::with_capacity(asks.len()));
    for (at, lane) in asks {
        times.push(at.saturating_sub(last));
        lanes.push(lane);
        last = last.max(at);
    }
    (!times.is_empty()).then(|| pack(&[("at", &times), ("lane", &lanes)]))
}

/// A stretch of time whose single holds were left out.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) sums: Sums,
}

/// Of a GIL with more stretches than this, neighbours become one.
const STRETCHES: usize = 256;

impl Holds {
    /// How many bytes its chunks take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Leaves out the chunks at these places, which are in order, but for their sums.
    pub(super) fn leave_out(&mut self, places: &[usize]) {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for (number, chunk) in std::mem::take(&mut self.chunks).into_iter().enumerate() {
            let is_gone = places.binary_search(&number).is_ok();
            if is_gone { &mut gone } else { &mut kept }.push(chunk);
        }
        self.chunks = kept;
        self.bytes = self.chunks.iter().map(Chunk::bytes).sum();
        let gone = gone.into_iter().map(|it| LeftOut { from: it.from, to: it.to, sums: it.sums });
        self.left_out.extend(gone);
        self.left_out.sort_by_key(|it| it.from);
        let mut most = self.left_out.len();
        while self.left_out.len() > STRETCHES {
            self.join_neighbours();
            if self.left_out.len() == most {
                return;
            }
            most = self.left_out.len();
        }
    }

    /// Joins each second stretch with the one before, if no chunk is between them.
    fn join_neighbours(&mut self) {
        let mut joined: Vec<LeftOut> = Vec::new();
        let mut may_join = false;
        for stretch in std::mem::take(&mut self.left_out) {
            let is_free = |from: u64, to: u64| {
                !self.chunks.iter().any(|chunk| chunk.from < to && chunk.to > from)
            };
            if let Some(last) = joined.last_mut()
                && may_join
                && is_free(last.to, stretch.from)
            {
                last.to = stretch.to;
                last.sums.absorb(&stretch.sums);
                may_join = false;
            } else {
                joined.push(stretch);
                may_join = true;
            }
        }
        self.left_out = joined;
    }
}
