//! Looks at one thread again and again, and prints its native frames and how long it stood still.
//!
//!     cargo run -p ungil-unwind --example look -- PID [TID] [TIMES]

use std::time::{Duration, Instant};

use ungil_unwind::NativeReader;

#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn main() {
    let mut words = std::env::args().skip(1).map(|it| it.parse::<u32>());
    let mut number = || words.next().and_then(Result::ok);
    let Some(pid) = number() else {
        println!("usage: look PID [TID] [TIMES]");
        return;
    };
    let (tid, times) = (number().unwrap_or(pid), number().unwrap_or(1));
    let mut reader = match NativeReader::of(pid, Some(|| ())) {
        Ok(reader) => reader,
        Err(why) => return println!("no native stack: {why}"),
    };
    let mut stood: Vec<Duration> = Vec::new();
    for _ in 0..times {
        match reader.look(tid) {
            Err(why) => println!("no native stack: {why}"),
            Ok(look) => {
                let begun = Instant::now();
                stood.extend(look.stood());
                let frames = reader.frames(&look);
                println!("stood still for {:?}, read in {:?}", look.stood(), begun.elapsed());
                match frames {
                    None => println!("  the stack did not lead to Python"),
                    Some(frames) => {
                        for it in frames {
                            println!("  {} {} [{}]", it.symbol, it.method, it.library);
                        }
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    stood.sort();
    if let (Some(longest), median) = (stood.last(), stood.get(stood.len() / 2)) {
        println!("{} stops: median {median:?}, longest {longest:?}", stood.len());
    }
}
