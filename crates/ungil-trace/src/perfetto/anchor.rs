//! What day it was when a trace was begun: the clock snapshot near the start of the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::schema::{TRACE_PACKET, clock, packet};
use super::wire::{Fields, Malformed, Value};
use crate::wall_clock::WallClock;

/// The snapshot is within the first few hundred bytes.
const START_BYTES: u64 = 4_096;

/// The clocks that the trace at `path` was begun with; `None` if it does not tell, because it is
/// damaged, or no trace ([`read`](super::read) says so).
pub fn wall_clock(path: &Path) -> io::Result<Option<WallClock>> {
    let mut start = Vec::new();
    File::open(path)?.take(START_BYTES).read_to_end(&mut start)?;
    Ok(find(&start))
}

/// The first snapshot in `start`, whose last packet may be cut off.
fn find(start: &[u8]) -> Option<WallClock> {
    for field in Fields(start) {
        let (TRACE_PACKET, Value::Bytes(packet)) = field.ok()? else { return None };
        for field in Fields(packet) {
            if let (packet::CLOCK_SNAPSHOT, Value::Bytes(snapshot)) = field.ok()? {
                return clocks(snapshot).ok()?;
            }
        }
    }
    None
}

fn clocks(snapshot: &[u8]) -> Result<Option<WallClock>, Malformed> {
    let (mut monotonic_ns, mut realtime_ns) = (None, None);
    for field in Fields(snapshot) {
        let (clock::CLOCKS, Value::Bytes(of_one)) = field? else { continue };
        let (mut id, mut now_ns) = (0, 0);
        for field in Fields(of_one) {
            match field? {
                (clock::ID, Value::Uint(value)) => id = value,
                (clock::TIMESTAMP, Value::Uint(value)) => now_ns = value,
                _ => {}
            }
        }
        match id {
            clock::MONOTONIC => monotonic_ns = Some(now_ns),
            clock::REALTIME => realtime_ns = Some(now_ns),
            _ => {}
        }
    }
    Ok(monotonic_ns.zip(realtime_ns).map(|(monotonic, real)| WallClock::new(monotonic, real)))
}

#[cfg(test)]
mod tests {
    use super::super::encode::Encoder;
    use super::*;

    #[test]
    fn the_clocks_of_a_trace_are_read_back_and_half_a_snapshot_is_none() {
        let encoder =
            Encoder::new(&[(clock::MONOTONIC, 7), (clock::REALTIME, 1_700_000_000_000_000_000)]);
        let expected = Some(WallClock::new(7, 1_700_000_000_000_000_000));
        assert_eq!(find(encoder.bytes()), expected);
        let read = (0..encoder.bytes().len()).map(|end| find(&encoder.bytes()[..end]));
        assert!(read.into_iter().all(|clock| clock.is_none() || clock == expected));
        assert_eq!(find(Encoder::new(&[(clock::MONOTONIC, 7)]).bytes()), None);
    }
}
