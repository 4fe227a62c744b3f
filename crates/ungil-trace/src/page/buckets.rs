//! What each lane did, in buckets of time: the levels of detail that are drawn where single holds
//! are too small, and that stay where single holds were left out.
//!
//! The width of a bucket doubles whenever there are too many rows. A lane's stretches come in the
//! order of time, so rows are only ever appended. Buckets that one hold or one wait fills are one
//! row together, so that ten thousand threads that wait for a minute cost ten thousand rows.

use super::table::{Packed, pack};

/// Buckets that a run may be long; more would be of no use to anyone.
const MOST_BUCKETS: u64 = 1 << 20;

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Holds { not_run: u64 },
    Waits,
}

/// What happened in a bucket of a lane, or in each of several that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) bucket: u64,
    /// How many buckets follow it that are alike: then it is filled by one hold or one wait.
    pub(super) run: u64,
    pub(super) held: u64,
    pub(super) waited: u64,
    pub(super) not_run: u64,
    pub(super) holds: u64,
    pub(super) waits: u64,
    pub(super) forced: u64,
    pub(super) asks: u64,
}

impl Row {
    /// Counts the piece of what a lane did in `whole`.
    fn count(&mut self, doing: Doing, (from, to): (u64, u64), whole: (u64, u64)) {
        match doing {
            Doing::Holds { not_run } => {
                self.held += to - from;
                self.not_run += share(not_run, whole, from, to);
            }
            Doing::Waits => self.waited += to - from,
        }
    }
}

/// One lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    rows: Vec<Row>,
    /// Nothing is told of what was before.
    end: u64,
    /// Drop requests made since then.
    asks: Vec<u64>,
}

/// All lanes of a GIL, in buckets of one width.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    /// In units.
    pub(super) width: u64,
    lanes: Vec<Lane>,
    pub(super) rows: usize,
}

impl Buckets {
    pub(super) const fn new(width: u64) -> Self {
        Self { width, lanes: Vec::new(), rows: 0 }
    }

    /// A lane held or waited from `begin` to `end`.
    pub(super) fn add(&mut self, lane: u32, doing: Doing, begin: u64, end: u64) {
        while end / self.width >= MOST_BUCKETS {
            self.coarsen();
        }
        let lane = self.lane(lane);
        let asks = std::mem::take(&mut self.lanes[lane].asks);
        let (mut later, mut from) = (Vec::new(), begin);
        for at in asks {
            if at > end {
                later.push(at);
                continue;
            }
            let at = at.max(self.lanes[lane].end);
            self.stretch(lane, doing, from, at, (begin, end));
            from = from.max(at);
            self.row_at(lane, at).asks += 1;
        }
        self.lanes[lane].asks = later;
        self.stretch(lane, doing, from, end, (begin, end));
    }

    /// A hold of the lane ended.
    pub(super) fn end_hold(&mut self, lane: u32, at: u64, is_forced: bool) {
        let row = self.ended(lane, at);
        row.holds += 1;
        row.forced += u64::from(is_forced);
    }

    /// A wait of the lane ended.
    pub(super) fn end_wait(&mut self, lane: u32, at: u64) {
        self.ended(lane, at).waits += 1;
    }

    /// The lane asked for the GIL. It is counted with the wait in which it did, which is told later.
    pub(super) fn ask(&mut self, lane: u32, at: u64) {
        let lane = self.lane(lane);
        self.lanes[lane].asks.push(at);
    }

    /// What was asked without a wait that is told.
    pub(super) fn finish(&mut self) {
        for lane in 0..self.lanes.len() {
            for at in std::mem::take(&mut self.lanes[lane].asks) {
                let at = at.max(self.lanes[lane].end).min(self.width.saturating_mul(MOST_BUCKETS));
                self.row_at(lane, at).asks += 1;
            }
        }
    }

    fn lane(&mut self, lane: u32) -> usize {
        let lane = lane as usize;
        if lane >= self.lanes.len() {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        lane
    }

    fn ended(&mut self, lane: u32, at: u64) -> &mut Row {
        while at / self.width >= MOST_BUCKETS {
            self.coarsen();
        }
        let lane = self.lane(lane);
        self.row_at(lane, at)
    }

    /// The row of the bucket with `at`, or the last one if that is later.
    fn row_at(&mut self, lane: usize, at: u64) -> &mut Row {
        let Self { width, lanes, rows } = self;
        let lane = &mut lanes[lane];
        lane.end = lane.end.max(at);
        let bucket = at / *width;
        let is_new =
            lane.rows.last().is_none_or(|row| row.bucket + row.run < bucket || row.run > 0);
        if is_new {
            let next = lane.rows.last().map_or(0, |row| row.bucket + row.run + 1);
            lane.rows.push(Row { bucket: bucket.max(next), ..Row::default() });
            *rows += 1;
        }
        lane.rows.last_mut().expect("one was pushed if there was none")
    }

    /// A piece of what a lane did in `whole`.
    fn stretch(&mut self, lane: usize, doing: Doing, begin: u64, end: u64, whole: (u64, u64)) {
        let width = self.width;
        let mut at = begin.max(self.lanes[lane].end);
        while at < end {
            let first = at / width;
            let filled = if at.is_multiple_of(width) { (end - at) / width } else { 0 };
            let rows = &mut self.lanes[lane].rows;
            // The bucket has a row already if something ended right at its begin.
            let is_new = rows.last().is_none_or(|row| row.bucket + row.run < first);
            let to = if filled >= 2 && is_new {
                let mut row = Row { bucket: first, run: filled - 1, ..Row::default() };
                row.count(doing, (at, at + width), whole);
                rows.push(row);
                self.rows += 1;
                at + filled * width
            } else {
                let to = (first + 1).saturating_mul(width).min(end);
                self.row_at(lane, at).count(doing, (at, to), whole);
                to
            };
            at = to;
        }
        let lane = &mut self.lanes[lane];
        lane.end = lane.end.max(end);
    }

    /// Makes buckets twice as wide.
    pub(super) fn coarsen(&mut self) {
        *self = self.coarser(2);
    }

    /// The same in buckets that are wider by `factor`.
    pub(super) fn coarser(&self, factor: u64) -> Self {
        let mut coarse = Self::new(self.width.saturating_mul(factor));
        coarse.lanes = Vec::with_capacity(self.lanes.len());
        for (index, lane) in self.lanes.iter().enumerate() {
            coarse.lanes.push(Lane::default());
            for row in &lane.rows {
                coarse.add_row(index, row, factor, self.width);
            }
            coarse.lanes[index].end = lane.end;
            coarse.lanes[index].asks.clone_from(&lane.asks);
        }
        coarse
    }

    fn add_row(&mut self, lane: usize, row: &Row, factor: u64, fine: u64) {
        if row.run > 0 {
            let (begin, end) = (row.bucket * fine, (row.bucket + row.run + 1) * fine);
            let doing = if row.held > 0 {
                Doing::Holds { not_run: row.not_run.saturating_mul(row.run + 1) }
            } else {
                Doing::Waits
            };
            self.stretch(lane, doing, begin, end, (begin, end));
            return;
        }
        let sum = self.row_at(lane, row.bucket / factor * self.width);
        sum.held += row.held;
        sum.waited += row.waited;
        sum.not_run += row.not_run;
        sum.holds += row.holds;
        sum.waits += row.waits;
        sum.forced += row.forced;
        sum.asks += row.asks;
        self.lanes[lane].end = (row.bucket + 1) * fine;
    }

    /// Lane and row of all rows, by lane and time.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Row)> {
        let lanes = self.lanes.iter().enumerate();
        lanes.flat_map(|(lane, it)| it.rows.iter().map(move |row| (lane, row)))
    }

    /// The table of them.
    pub(super) fn pack(&self) -> Packed {
        let mut columns: [Vec<u64>; 10] = std::array::from_fn(|_| Vec::with_capacity(self.rows));
        let (mut last_lane, mut end) = (0, 0);
        for (lane, row) in self.iter() {
            if lane != last_lane {
                end = 0;
            }
            let values = [
                (lane - last_lane) as u64,
                row.bucket - end,
                row.run,
                row.held,
                row.waited,
                row.not_run,
                row.holds,
                row.waits,
                row.forced,
                row.asks,
            ];
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            (last_lane, end) = (lane, row.bucket + row.run + 1);
        }
        let names = [
            "lane", "bucket", "run", "held", "waited", "not_run", "holds", "waits", "forced",
            "asks",
        ];
        let columns: Vec<_> = names.into_iter().zip(columns.iter().map(|it| &it[..])).collect();
        pack(&columns)
    }
}

/// The part of `sum`, spread evenly from `begin` to `end`, that lies between `from` and `to`.
fn share(sum: u64, (begin, end): (u64, u64), from: u64, to: u64) -> u64 {
    if sum == 0 || end <= begin {
        return 0;
    }
    let until = |at: u64| {
        let part = u128::from(sum) * u128::from(at.saturating_sub(begin)) / u128::from(end - begin);
        u64::try_from(part).unwrap_or(sum)
    };
    until(to).saturating_sub(until(from))
}
