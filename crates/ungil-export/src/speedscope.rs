//! speedscope's own file format (<https://www.speedscope.app/file-format-schema.json>): what others
//! waited by the code that held, and how long that held.
//!
//! Samples are summed by stack, so the views "left heavy" and "sandwich" are the ones to look at.

use crate::weights::{Weighed, Weights};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};
use ungil_trace::Record;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Makes a file for speedscope.
#[derive(Debug)]
pub struct Speedscope {
    weights: Weights,
    name: String,
    exporter: String,
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'a str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<'a>,
    profiles: [Profile; 2],
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

#[derive(Serialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

impl Speedscope {
    /// Of what happens from `from_ns` on and before `to_ns`. The file will say that `exporter` made
    /// it, of the trace `name`.
    pub fn new(name: String, exporter: String, from_ns: u64, to_ns: u64) -> Self {
        Self { weights: Weights::new(from_ns, to_ns), name, exporter }
    }

    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        self.weights.push(record);
    }

    /// Writes the file.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let Self { weights, name, exporter } = self;
        let rows = weights.rows();
        let mut numbers = HashMap::new();
        let mut frames = Vec::new();
        let stacks: Vec<Vec<usize>> = rows
            .iter()
            .map(|row| {
                let number = |frame| {
                    *numbers.entry(frame).or_insert_with(|| {
                        frames.push(frame);
                        frames.len() - 1
                    })
                };
                row.frames.iter().map(number).collect()
            })
            .collect();
        let file = File {
            schema: SCHEMA,
            name: &name,
            exporter: &exporter,
            active: 0,
            shared: Shared {
                frames: frames
                    .iter()
                    .map(|frame| Frame {
                        name: frame.function(),
                        file: frame.file(),
                        line: frame.line(),
                    })
                    .collect(),
            },
            profiles: [
                profile("time that others waited", &rows, &stacks, |row| row.waited_ns),
                profile("thread that held the GIL", &rows, &stacks, |row| row.held_ns),
            ],
        };
        serde_json::to_writer(&mut *out, &file)?;
        out.flush()
    }
}

/// The heaviest stack first.
fn profile(
    name: &'static str,
    rows: &[Weighed],
    stacks: &[Vec<usize>],
    weight: fn(&Weighed) -> u64,
) -> Profile {
    let mut weighed: Vec<_> =
        rows.iter().zip(stacks).map(|(row, stack)| (weight(row), stack.clone())).collect();
    weighed.retain(|(weight, _)| *weight > 0);
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let end = weighed.iter().fold(0, |sum: u64, (weight, _)| sum.saturating_add(*weight));
    let (weights, samples) = weighed.into_iter().unzip();
    Profile { kind: "sampled", name, unit: "nanoseconds", start: 0, end, samples, weights }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}
