//! Reads a page as a browser does.

use crate::page::assembled::Page;
use crate::page::collected::Collected;
use crate::page::table::{Bytes, Packed, unpack};
use crate::record::{Process, ProcessId, Record, ThreadId};
use crate::report::Report;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;
use ungil_core::{Event, Kind};

pub(super) const BLAME_NS: u64 = 20_000_000;
/// When every trace of these tests begins.
pub(super) const START: u64 = 5_000;

/// A table: columns by name.
pub(super) type Table = HashMap<String, Vec<u64>>;

/// A page, taken apart.
pub(super) struct Parsed {
    pub(super) summary: Value,
    pub(super) blocks: Vec<Bytes>,
}

/// A hold: lane, begin, end, wait (0 or 1 + its length), how it ended.
pub(super) type Hold = [u64; 5];

/// What the page of these records says, and the report.
pub(super) fn page_of(
    records: &[Record],
    part: Option<(u64, u64)>,
    unit_ns: u64,
    room: usize,
) -> (Parsed, Report) {
    let mut collected = Collected::new(BLAME_NS, None, part, unit_ns, room);
    for record in records {
        collected.push(record);
    }
    let report = collected.finish();
    let page = Page::new("x.pftrace", BLAME_NS, None);
    let (summary, blocks) = page.assemble(collected, report.clone(), room).unwrap();
    (Parsed { summary: serde_json::from_str(&summary).unwrap(), blocks }, report)
}

impl Parsed {
    pub(super) fn gils(&self) -> &Vec<Value> {
        self.summary["gils"].as_array().unwrap()
    }

    pub(super) fn json(&self, block: &Value) -> Value {
        let bytes = &self.blocks[usize::try_from(block["block"].as_u64().unwrap()).unwrap()];
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn table(&self, table: &Value) -> Table {
        if table.is_null() {
            return Table::new();
        }
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let columns = table["columns"].as_array().unwrap();
        let packed = Packed {
            rows: number(&table["rows"]),
            columns: columns.iter().map(|column| ("", number(&column[1]))).collect(),
            bytes: self.blocks[number(&table["block"])].clone(),
        };
        let names = columns.iter().map(|column| column[0].as_str().unwrap().to_owned());
        names.zip(unpack(&packed)).collect()
    }

    /// All holds of a GIL.
    pub(super) fn holds(&self, gil: &Value) -> Vec<Hold> {
        let mut holds = Vec::new();
        for chunk in gil["chunks"].as_array().unwrap() {
            let table = self.table(&chunk["holds"]);
            let mut at = chunk["from"].as_u64().unwrap();
            for [lane, gap, length, wait, end] in
                rows(&table, ["lane", "gap", "length", "wait", "end"])
            {
                let begin = at + gap;
                at = begin + length;
                holds.push([lane, begin, at, wait, end]);
            }
            assert_eq!(chunk["to"].as_u64().unwrap(), at);
        }
        holds
    }

    /// All waits of a GIL: lane, begin, end.
    pub(super) fn waits(&self, gil: &Value) -> Vec<[u64; 3]> {
        let holds = self.holds(gil);
        let waited = holds.iter().filter(|hold| hold[3] > 0);
        let mut waits: Vec<_> =
            waited.map(|hold| [hold[0], hold[1] - (hold[3] - 1), hold[1]]).collect();
        let mut at = 0;
        for [lane, begin, length] in rows(&self.table(&gil["loose"]), ["lane", "begin", "length"]) {
            at += begin;
            waits.push([lane, at, at + length]);
        }
        waits
    }

    /// The sums of a level: by lane, `held`, `waited`, `holds`, `waits`, `forced` and `asks`.
    pub(super) fn level(&self, level: &Value) -> HashMap<u64, [u64; 6]> {
        let (mut sums, mut lane) = (HashMap::<u64, [u64; 6]>::new(), 0);
        let names = ["lane", "run", "held", "waited", "holds", "waits", "forced", "asks"];
        for [step, run, of_row @ ..] in rows(&self.table(&level["table"]), names) {
            lane += step;
            let sum = sums.entry(lane).or_default();
            for (sum, value) in sum.iter_mut().zip::<[u64; 6]>(of_row) {
                *sum += value * (run + 1);
            }
        }
        sums
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// These columns of a table, row by row.
pub(super) fn rows<const N: usize>(table: &Table, names: [&str; N]) -> Vec<[u64; N]> {
    let count = table.get(names[0]).map_or(0, Vec::len);
    (0..count).map(|row| names.map(|name| table[name][row])).collect()
}

/// A process with so many threads; thread n has tid 100 + n.
pub(super) fn begun(threads: u32) -> Vec<Record> {
    let mut records = vec![Record::ProcessStarted(Process {
        process: ProcessId(0),
        pid: 100,
        parent_pid: 1,
        at_ns: START,
        argv: vec!["python3".into(), "/srv/app.py".into()],
        python: "3.13.0".into(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })];
    records.extend((0..threads).map(|number| Record::ThreadStarted {
        thread: ThreadId(number),
        process: ProcessId(0),
        tid: 100 + number,
        at_ns: START,
        name: format!("t{number}"),
    }));
    records
}

/// Something that thread `thread` did, so many ns after the start.
pub(super) fn does(thread: u32, at_ns: u64, kind: Kind) -> Record {
    let event = Event { at_ns: START + at_ns, kind, gil: 0, seq: 0 };
    Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event }
}
