//! What the browser reads first, as JSON; `web/FORMAT.md` explains each key.

use super::table::{Block, Table};
use crate::report::{Finding, FreeThreaded, OtherProcesses, PartReport};
use serde::Serialize;
use serde_json::Value;

/// Version of the format.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) format: u32,
    pub(super) made_by: &'static str,
    pub(super) source: &'a str,
    pub(super) unit_ns: u64,
    pub(super) end: u64,
    pub(super) offset_s: f64,
    pub(super) blame_after_ms: f64,
    pub(super) report: Head<'a>,
    pub(super) full_report: Block,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) gils: Vec<Gil>,
    pub(super) stacks: Option<Block>,
    pub(super) advised: Option<&'a Value>,
    pub(super) is_whole: bool,
    pub(super) lost_share: f64,
    pub(super) sleeps_from: u64,
    pub(super) bounds: Vec<String>,
}

/// The report without its processes.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) schema: u32,
    pub(super) python: &'a str,
    pub(super) duration_s: f64,
    pub(super) lost_events: u64,
    pub(super) findings: &'a [Finding],
    pub(super) notes: &'a [String],
    pub(super) started_at: Option<&'a str>,
    pub(super) part: Option<&'a PartReport>,
    pub(super) other_processes: Option<OtherProcesses>,
}

#[derive(Serialize)]
pub(super) struct Process<'a> {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) python: &'a str,
    pub(super) not_recorded: Option<&'a str>,
    pub(super) free_threaded: Option<&'a FreeThreaded>,
    pub(super) held_s: f64,
    pub(super) waited_s: f64,
    pub(super) threads: u64,
    pub(super) sleeps: Option<Sleeps>,
}

/// Its sleeps one by one.
#[derive(Serialize)]
pub(super) struct Sleeps {
    pub(super) parks: Option<Table>,
    pub(super) lock_waits: Option<Table>,
}

#[derive(Serialize)]
pub(super) struct Gil {
    pub(super) process: usize,
    pub(super) gil: u8,
    pub(super) report: Option<usize>,
    pub(super) held_s: f64,
    pub(super) waited_s: f64,
    pub(super) contended_s: f64,
    pub(super) busy_s: f64,
    pub(super) busy_held_s: f64,
    pub(super) switch_interval_ms: Option<f64>,
    pub(super) lanes: LanesBlock,
    pub(super) busy: Busy,
    pub(super) levels: Vec<Level>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) loose: Option<Table>,
    pub(super) samples: Option<Table>,
    pub(super) look_for: u64,
    pub(super) missing: Vec<Missing>,
}

#[derive(Serialize)]
pub(super) struct LanesBlock {
    pub(super) block: usize,
    pub(super) rows: usize,
}

/// The arrays in the block of lanes.
#[derive(Default, Serialize)]
pub(super) struct Lanes {
    pub(super) tid: Vec<Option<u32>>,
    pub(super) name: Vec<String>,
    pub(super) main: Vec<bool>,
    pub(super) started: Vec<u64>,
    pub(super) ended: Vec<Option<u64>>,
    pub(super) row: Vec<Option<usize>>,
}

#[derive(Serialize)]
pub(super) struct Busy {
    pub(super) width: u64,
    pub(super) held: Vec<u64>,
    pub(super) waited: Vec<u64>,
    pub(super) contended: Vec<u64>,
    /// -1: nobody held.
    pub(super) holder: Vec<i64>,
}

#[derive(Serialize)]
pub(super) struct Level {
    pub(super) width: u64,
    pub(super) table: Table,
}

#[derive(Serialize)]
pub(super) struct Chunk {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) waits_from: u64,
    pub(super) holds: Table,
    pub(super) extras: Option<Table>,
    pub(super) asks: Option<Table>,
}

/// A stretch of time whose single holds were left out.
#[derive(Serialize)]
pub(super) struct Missing {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) blame: Table,
    pub(super) lengths: Table,
}
