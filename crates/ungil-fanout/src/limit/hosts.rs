//! What each host (group) usually takes.

/// Places in the table. If there are more hosts they push each other out, and one that comes again
/// after that is new.
const PLACES: usize = 4096;

/// The share of the way that what is usual goes, once a round, to a visit that took longer. A
/// service that becomes slow must not become usual as fast.
const UP: f32 = 0.03;

/// The same for a visit that was quicker: the first one may have been in a crowd.
const DOWN: f32 = 0.25;

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
                if host.round != round {
                    host.round = round;
                    let weight = if times < 1.0 { DOWN } else { UP };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_compared_with_the_hosts_own_latency() {
        let mut hosts = Hosts::default();
        assert_eq!(hosts.visit(1, 10.0, 1), None);
        assert_eq!(hosts.visit(2, 1_000.0, 1), None);
        assert_eq!(hosts.visit(1, 20.0, 1), Some(2.0));
        assert_eq!(hosts.visit(2, 1_000.0, 1), Some(1.0));
    }

    #[test]
    fn a_host_that_is_visited_often_does_not_become_slow_within_a_round() {
        let mut hosts = Hosts::default();
        hosts.visit(1, 10.0, 1);
        for _ in 0..1_000 {
            assert_eq!(hosts.visit(1, 20.0, 1), Some(2.0));
        }
    }

    #[test]
    fn a_first_visit_in_a_crowd_is_soon_forgotten() {
        let mut hosts = Hosts::default();
        hosts.visit(1, 100.0, 1);
        let times = (2..20).filter_map(|round| hosts.visit(1, 10.0, round)).last();
        assert!(times.is_some_and(|times| times > 0.9), "{times:?}");
    }

    #[test]
    fn hosts_without_a_place_are_new_each_time() {
        let mut hosts = Hosts::default();
        for group in 0..10 * PLACES as u64 {
            hosts.visit(group, 10.0, 1);
        }
        assert_eq!(hosts.visit(0, 10.0, 1), None);
    }

    #[test]
    fn what_is_usual_follows_slower_visits_by_3_percent_and_quicker_ones_by_25() {
        for (visit, usual) in [(20.0, 10.3), (5.0, 8.75)] {
            let mut hosts = Hosts::default();
            hosts.visit(1, 10.0, 1);
            hosts.visit(1, visit, 2);
            let times = hosts.visit(1, usual, 3).expect("it is known");
            assert!((times - 1.0).abs() < 1e-5, "{times}");
        }
    }

    #[test]
    fn there_is_room_for_some_four_thousand_hosts() {
        let known = |count: u64| {
            let mut hosts = Hosts::default();
            for group in 0..count {
                hosts.visit(group, 10.0, 1);
            }
            (0..count).filter(|group| hosts.visit(*group, 10.0, 2).is_some()).count()
        };
        assert!(known(4_000) > 2_000, "{}", known(4_000));
        assert!(known(8_000) < 1_000, "{}", known(8_000));
    }
}
