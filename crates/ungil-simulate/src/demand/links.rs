//! Which threads wait for others: for an item in a queue, an answer, a lock.
//!
//! No event says so. But a thread that another wakes wants the GIL soon after that one began to
//! use it, again and again, and far more often than by chance. If that holds for a thread, its
//! time away is not a length of its own, but lasts until that use of the other.

use super::Burst;
use serde::Serialize;
use std::collections::VecDeque;

/// What happens within this time of the beginning of a use may have been its doing.
const SOON_NS: u64 = 1_000_000;
/// Of a thread that was away for long, one of so many parts of that: the kernel may have let it wait.
const LATE_PART: u64 = 8;
/// A shorter time away is a thread's own: a file is read, a socket written to.
pub(crate) const OWN_NS: u64 = 100_000;
/// A thread whose last use ended so long ago at most has woken another through a lock or a queue of
/// the program, not through a network.
pub(super) const POSTED_NS: u64 = 100_000;
/// So many beginnings are remembered, which bounds what one look costs.
const REMEMBERED: usize = 64;
/// Where others use the GIL so often that this part of the times or less is not explained by chance
/// anyway, nothing can be said.
const OPEN: f64 = 0.25;
/// A thread follows others if they explain so many of its times away that chance does not,
const EXPLAINED: f64 = 0.6;
/// or so many of them, and so much of their length,
const EXPLAINED_IF_LONG: f64 = 0.3;
const EXPLAINED_LENGTH: f64 = 0.75;
/// and if that is about so many times at least.
const LEAST_TIMES: f64 = 10.0;
/// So many times the deviation that chance has are no chance, of which there is so much at least.
const SIGNIFICANT: f64 = 6.0;
const LEAST_BY_CHANCE: f64 = 4.0;
/// A thread that sleeps by the clock follows nobody. Its times away differ by at most this part of
/// the shortest, apart from one in so many at either end,
const ALIKE: f64 = 0.2;
const OUTLIERS: usize = 20;
/// and it came back so often without another, of which this part (of 1) after as long as ever.
const LEAST_ALONE: usize = 3;
const ALONE: f64 = 0.8;

/// Until when a thread was away: until so long after the beginning of a use of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    /// The other's place.
    pub(crate) thread: u32,
    /// Which of its uses.
    pub(crate) burst: u32,
    /// The how many-th it was that the other began in that time away; the first is 1.
    pub(crate) turn: u32,
    /// Whether the other did not sleep between the first of them and this one.
    pub(crate) awake: bool,
    pub(crate) after_ns: u32,
    /// Whether it was woken through a lock of the program.
    pub(crate) posted: bool,
}

/// The last beginnings of uses: when, whose, which.
#[derive(Debug, Default)]
pub(super) struct Beginnings(VecDeque<(u64, usize, usize)>);

/// Whether the ends of a thread's times away follow others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    times: f64,
    follows: f64,
    by_chance: f64,
}

impl Beginnings {
    pub(super) fn add(&mut self, at_ns: u64, seat: usize, burst: usize) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((at_ns, seat, burst));
    }

    /// What the end at `to_ns` of a time away since `from_ns` tells: what it may follow, by place
    /// in the GIL, and how likely it is by chance that it follows anything soon. `None` if it is the
    /// thread's own.
    pub(super) fn look(&self, from_ns: u64, to_ns: u64) -> Option<(Option<Link>, f64)> {
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns <= OWN_NS {
            return None;
        }
        let inside = || self.0.iter().rev().take_while(|(began_ns, ..)| *began_ns > from_ns);
        // Where all that is remembered is in it, nothing is known of before.
        let since_ns = inside().nth(REMEMBERED - 1).map_or(from_ns, |(began_ns, ..)| *began_ns);
        let by_chance = by_chance(inside().map(|it| it.0), [since_ns, to_ns], SOON_NS);
        let leader = self.0.back().map(|(_, seat, _)| *seat);
        let turn = inside().filter(|(_, seat, _)| leader == Some(*seat)).count();
        let late_ns = SOON_NS.max(length_ns / LATE_PART);
        let last = inside().next().filter(|it| to_ns.saturating_sub(it.0) <= late_ns);
        let link = last.and_then(|&(began_ns, seat, burst)| {
            Some(Link {
                thread: u32::try_from(seat).ok()?,
                burst: u32::try_from(burst).ok()?,
                turn: u32::try_from(turn).ok()?,
                awake: false,
                after_ns: u32::try_from(to_ns.saturating_sub(began_ns)).ok()?,
                posted: false,
            })
        });
        Some((link, by_chance))
    }
}

/// Whether a thread mostly waits for other threads of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nobody,
    /// Most of its times away end with what others do.
    Often,
    /// The long ones do.
    ForLong,
}

/// Whether a thread waits for others, by all of its times away. How long they were says more than how
/// many there were: calls of its own may take longer than [`OWN_NS`], on a slow machine all the more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dependence {
    times: Evidence,
    lengths: Evidence,
}

/// How likely it is by chance that what ends at `to_ns`, or at any other time since `since_ns`, does
/// so at most `soon_ns` after one of these beginnings in that time, of which the last one comes first.
pub(super) fn by_chance(
    began_ns: impl Iterator<Item = u64>,
    [since_ns, to_ns]: [u64; 2],
    soon_ns: u64,
) -> f64 {
    let (mut covered_ns, mut until_ns) = (0, to_ns);
    for began_ns in began_ns {
        covered_ns += until_ns.saturating_sub(began_ns).min(soon_ns);
        until_ns = until_ns.min(began_ns);
    }
    (covered_ns as f64 / to_ns.saturating_sub(since_ns).max(1) as f64).min(1.0)
}

impl Dependence {
    /// The end of a time away of that length follows another thread, or does not.
    pub(super) fn add(&mut self, away_ns: u64, follows: bool, by_chance: f64) {
        self.times.add(follows, by_chance);
        self.lengths.weigh(away_ns as f64, follows, by_chance);
    }

    /// Whether the thread follows others.
    pub(super) fn follows(&self) -> Follows {
        if self.times.explains(EXPLAINED) {
            Follows::Often
        } else if self.times.explains(EXPLAINED_IF_LONG)
            && self.lengths.explained() >= EXPLAINED_LENGTH
        {
            Follows::ForLong
        } else {
            Follows::Nobody
        }
    }
}

impl Link {
    /// Whether what it follows was soon enough before it to tell of other times away as well.
    pub(super) fn is_soon(&self) -> bool {
        u64::from(self.after_ns) <= SOON_NS
    }
}

impl Evidence {
    pub(super) fn add(&mut self, follows: bool, by_chance: f64) {
        self.weigh(1.0, follows, by_chance);
    }

    fn weigh(&mut self, weight: f64, follows: bool, by_chance: f64) {
        self.times += weight;
        self.follows += weight * f64::from(u8::from(follows));
        self.by_chance += weight * by_chance;
    }

    /// What chance does not explain.
    fn open(&self) -> f64 {
        self.times - self.by_chance
    }

    /// Which part of that they explain.
    fn explained(&self) -> f64 {
        self.beyond_chance() / self.open()
    }

    /// How many more follow than by chance.
    pub(super) fn beyond_chance(&self) -> f64 {
        self.follows - self.by_chance
    }

    /// Whether that is more than chance brings, however little of all it is.
    pub(super) fn is_significant(&self) -> bool {
        self.beyond_chance() >= SIGNIFICANT * self.by_chance.max(LEAST_BY_CHANCE).sqrt()
    }

    /// Whether they explain so much of what chance does not.
    pub(super) fn explains(&self, part: f64) -> bool {
        let open = self.open();
        self.follows >= LEAST_TIMES
            && open >= (LEAST_TIMES / 2.0).max(OPEN * self.times)
            && self.beyond_chance() >= part * open
    }
}

/// Whether a thread comes back by the clock, and only seems to follow others, as those that sleep for
/// equally long and once were kept from the GIL together: each is away as long without the others.
pub(super) fn keeps_time(bursts: &[Burst]) -> bool {
    let slept = bursts.iter().filter(|burst: &&Burst| burst.away_ns > OWN_NS);
    let (followed, alone): (Vec<&Burst>, Vec<&Burst>) =
        slept.partition(|burst| burst.after.is_some());
    if alone.len() < LEAST_ALONE || (followed.len() as f64) < LEAST_TIMES {
        return false;
    }
    let mut usual_ns: Vec<u64> = followed.iter().map(|burst| burst.away_ns).collect();
    usual_ns.sort_unstable();
    let few = usual_ns.len() / OUTLIERS;
    let (least_ns, most_ns) = (usual_ns[few] as f64, usual_ns[usual_ns.len() - 1 - few] as f64);
    let margin_ns = ALIKE * least_ns;
    if most_ns > least_ns + margin_ns {
        return false;
    }
    let usual_ns = least_ns - margin_ns..=most_ns + margin_ns;
    let as_ever = alone.iter().filter(|burst| usual_ns.contains(&(burst.away_ns as f64))).count();
    as_ever as f64 >= ALONE * alone.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A thread is away 20 times, for 10 ms each, in which another begins a use at these times.
    fn dependence(begin_at_ns: impl Fn(u64) -> Vec<u64>) -> Dependence {
        let (mut beginnings, mut dependence) = (Beginnings::default(), Dependence::default());
        for turn in 0..20 {
            let from_ns = turn * 20 * MS;
            for at_ns in begin_at_ns(turn) {
                beginnings.add(from_ns + at_ns, 1, 0);
            }
            let (link, by_chance) = beginnings.look(from_ns, from_ns + 10 * MS).unwrap();
            dependence.add(10 * MS, link.is_some(), by_chance);
        }
        dependence
    }

    #[test]
    fn a_thread_that_always_comes_soon_after_another_follows_it() {
        assert_eq!(dependence(|_| vec![10 * MS - 50_000]).follows(), Follows::Often);
    }

    #[test]
    fn one_that_comes_soon_after_others_because_they_always_come_does_not() {
        assert_eq!(
            dependence(|_| (0..20).map(|it| it * MS / 2).collect()).follows(),
            Follows::Nobody
        );
    }

    #[test]
    fn who_comes_late_after_a_long_time_follows_what_it_came_after_but_that_is_no_evidence() {
        let after = |away_ms: u64, late_ms: u64| {
            let mut beginnings = Beginnings::default();
            beginnings.add((1_000 - late_ms) * MS, 1, 7);
            let (link, _) = beginnings.look((1_000 - away_ms) * MS, 1_000 * MS).unwrap();
            link.map(|link| (link.burst, link.is_soon()))
        };
        assert_eq!(after(30, 1), Some((7, true)));
        assert_eq!(after(30, 3), Some((7, false)));
        assert_eq!(after(30, 4), None);
        assert_eq!(after(130, 16), Some((7, false)));
    }

    #[test]
    fn one_that_comes_at_any_time_does_not() {
        assert_eq!(dependence(|turn| vec![turn * MS / 2 + 1]).follows(), Follows::Nobody);
    }

    #[test]
    fn calls_of_its_own_that_take_somewhat_longer_do_not_hide_that_it_follows_another() {
        let after_another = || dependence(|_| vec![10 * MS - 50_000]);
        let with_others = |count: usize, length_ns| {
            let mut all = after_another();
            (0..count).for_each(|_| all.add(length_ns, false, 0.0));
            all.follows()
        };
        // Half of all times away, but little of their length; half of that, too.
        assert_eq!(with_others(20, 150_000), Follows::ForLong);
        assert_eq!(with_others(20, 9 * MS), Follows::Nobody);
        // They are what it mostly does; it seldom does anything else.
        assert_eq!(with_others(60, 150_000), Follows::Nobody);
        assert_eq!(with_others(5, 900 * MS), Follows::Often);
    }

    #[test]
    fn a_short_time_away_is_its_own() {
        let mut beginnings = Beginnings::default();
        beginnings.add(10, 1, 0);
        assert_eq!(beginnings.look(0, OWN_NS), None);
    }

    /// A thread that 20 times came soon after another, after so long away, and some times alone.
    fn times_away(followed_ns: impl Fn(u64) -> u64, alone_ns: &[u64]) -> Vec<Burst> {
        let after = Link { thread: 1, burst: 0, turn: 1, awake: false, after_ns: 1, posted: false };
        let followed = (0..20).map(|turn| Burst {
            away_ns: followed_ns(turn),
            after: Some(after),
            ..Burst::default()
        });
        let alone = alone_ns.iter().map(|&away_ns| Burst { away_ns, ..Burst::default() });
        followed.chain(alone).collect()
    }

    #[test]
    fn one_that_sleeps_for_as_long_without_the_others_keeps_time() {
        let about_5_ms = |turn| 5 * MS + turn * 10_000;
        assert!(keeps_time(&times_away(about_5_ms, &[5 * MS, 5 * MS + 90_000, 5 * MS])));
    }

    #[test]
    fn one_that_takes_another_time_without_the_others_does_not() {
        let about_5_ms = |turn| 5 * MS + turn * 10_000;
        assert!(!keeps_time(&times_away(about_5_ms, &[40 * MS, 5 * MS, 300_000])));
        assert!(!keeps_time(&times_away(about_5_ms, &[5 * MS])), "too seldom");
        assert!(!keeps_time(&times_away(|turn| (turn + 1) * MS, &[5 * MS; 5])));
    }
}
