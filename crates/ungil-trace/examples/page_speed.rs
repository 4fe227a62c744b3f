//! What it costs to write a page.
//!
//! `cargo run --release -p ungil-trace --example page_speed TRACE SHELL PAGE` prints seconds, the
//! peak of memory and the size of the page.
#![allow(clippy::print_stdout, reason = "it prints numbers")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};
use ungil_trace::page::{Options, write};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [trace, shell, page] = &words[..] else {
        return Err("usage: page_speed TRACE SHELL PAGE".into());
    };
    let shell = fs::read_to_string(shell)?;
    let options = Options {
        trace: Path::new(trace),
        page: Path::new(page),
        shell: &shell,
        blame_after_ns: 20_000_000,
        part: None,
        most_bytes: None,
    };
    let (start, mut records) = (Instant::now(), 0);
    write(&options, None, |read| {
        records = read;
        true
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{records} records, {seconds:.1} s, {peak}, {} bytes", fs::metadata(page)?.len());
    Ok(())
}
