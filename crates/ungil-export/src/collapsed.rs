//! Collapsed stacks, as flamegraph.pl, inferno and speedscope read them: one line for each stack,
//! its frames from the outermost on with `;` in between, then a space and its weight.

use crate::weights::{Weight, Weights};
use std::collections::BTreeMap;
use std::io::{self, Write};
use ungil_trace::Record;

/// Makes collapsed stacks. Weights are in microseconds.
#[derive(Debug)]
pub struct Collapsed {
    weights: Weights,
    weight: Weight,
}

impl Collapsed {
    /// Of what happens from `from_ns` on and before `to_ns`.
    pub fn new(weight: Weight, from_ns: u64, to_ns: u64) -> Self {
        Self { weights: Weights::new(from_ns, to_ns), weight }
    }

    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        self.weights.push(record);
    }

    /// Writes all stacks that weigh something, each once.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for row in self.weights.rows() {
            let frames: Vec<_> = row.frames.iter().map(|frame| plain(&frame.label())).collect();
            let ns = match self.weight {
                Weight::Waited => row.waited_ns,
                Weight::Held => row.held_ns,
            };
            *lines.entry(frames.join(";")).or_default() += ns;
        }
        for (frames, ns) in lines {
            // Half a microsecond and more is one, so that rounding loses as little as it adds.
            let us = (ns + 500) / 1_000;
            if us > 0 {
                writeln!(out, "{frames} {us}")?;
            }
        }
        out.flush()
    }
}

/// A frame without what has a meaning in the format.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it == ';' || it.is_control() { '_' } else { it }).collect()
}
