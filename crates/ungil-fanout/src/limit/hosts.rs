//! What each host (group) usually takes.

/// Places in the table. If there are more hosts they push each other out, and one that comes again
/// after that is new.
const PLACES: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Host {
    group: u64,
    /// The square root of its latency.
    usual: f32,
    /// The round that it was last changed in.
    round: u32,
}

/// The latencies of hosts, in a table of fixed size: a visit touches one cache line and allocates
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// Empty until there is a group.
    table: Vec<Option<Host>>,
}

impl Hosts {
    /// How many times its usual latency this visit took, both as square roots; nothing if the host
    /// is new.
    pub fn visit(&mut self, group: u64, latency: f32, round: u32) -> Option<f32> {
        if self.table.is_empty() {
            self.table.resize(PLACES, None);
        }
        // Fibonacci hashing, because groups are often consecutive numbers.
        let place = group.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros());
        let place = usize::try_from(place).expect("the table has far fewer places");
        match &mut self.table[place] {
            Some(host) if host.group == group => {
                let times = latency / host.usual;
                // Once a round, or one service would become usual as fast as it becomes slow.
                // Quicker down than up: a first visit may have been in a crowd.
                if host.round != round {
                    host.round = round;
                    let weight = if times < 1.0 { 0.25 } else { 0.03 };
                    host.usual += weight * (latency - host.usual);
                }
                Some(times)
            }
            free => {
                *free = Some(Host { group, usual: latency, round });
                None
            }
        }
    }
}
