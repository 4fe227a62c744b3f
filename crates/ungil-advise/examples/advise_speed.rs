//! How long the advice about a trace takes, and where that goes.
//!
//! `cargo run --release -p ungil-advise --example advise_speed FILE [ROUNDS]`

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::path::PathBuf;
use std::time::Instant;
use std::{env, io};

use ungil_simulate::Collector;
use ungil_trace::analysis::Analysis;
use ungil_trace::perfetto;

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: advise_speed FILE [ROUNDS]");
    let words: Vec<String> = env::args().skip(1).collect();
    let path = PathBuf::from(words.first().ok_or_else(usage)?);
    let rounds = words.get(1).map_or(Ok(1), |word| word.parse().map_err(|_| usage()))?;
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut count = 0u64;
        perfetto::read(&path, |_| count += 1).map_err(io::Error::other)?;
        let read_s = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let (mut analysis, mut collector) = (Analysis::new(20_000_000), Collector::default());
        perfetto::read_ahead(&path, |record| {
            analysis.push(&record);
            collector.push(&record);
        })
        .map_err(io::Error::other)?;
        let report = analysis.report();
        let analysed_s = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let demands = collector.finish();
        let settled_s = begun.elapsed().as_secs_f64();
        let bursts: usize =
            demands.iter().flat_map(|it| &it.threads).map(|it| it.bursts.len()).sum();
        let begun = Instant::now();
        let advised = ungil_advise::advise(&report, &demands);
        let advised_s = begun.elapsed().as_secs_f64();
        println!(
            "{count} records, {bursts} bursts: read {read_s:.2} s, with analysis and demand \
             {analysed_s:.2} s, settled {settled_s:.2} s, advised {advised_s:.2} s: {} and {} pieces",
            advised.advice.len(),
            advised.rejected.len(),
        );
    }
    Ok(())
}
