//! Who has the GIL after a release: the thread that it woke, or the one that let go, which may be
//! back before that one runs.
//!
//! No event says when a woken thread ran, or that it came too late and sleeps again. And what it
//! takes depends on more than a trace tells: whether its processor has halted, who is on it, whether
//! it is still on its way because of the release before. So a simulation draws how a whole race
//! ended, of those in the recording in which the thread that let go was away for about as long.

use crate::naps::{Naps, is_nap};
use crate::sample::Sample;
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::Arc;

/// As many are kept of one thread: others would tell the same.
const MOST_SEEN: usize = 8_192;
/// As many with about the same time away are drawn from.
const ALIKE: usize = 24;
/// So many are enough if others had less than half of it, or more than twice as much,
const FEW_ALIKE: usize = 8;
/// apart from such a difference.
const SAME_NS: u32 = 2_000;
/// So many tell how races of two threads, or of one, end; fewer are taken together with others.
const ENOUGH: usize = 40;
/// Who is away for so long has left the GIL to others, and is away for as long as anybody.
pub(crate) const FOR_LONG_NS: u32 = 1_000_000;
/// So many are drawn to find one that took longer than a third thread: there may be very many.
const TRIES: usize = 64;
/// How much longer than a third thread it takes one that is woken, where the trace does not tell.
const WAKES_NS: u32 = 20_000;

/// How a race ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// A thread that waited had the GIL after so long.
    Woken(u32),
    /// The one that let go had it again.
    TooLate,
    /// A third one had it after so long; that which waited would have had it later.
    Later(u32),
}

/// A release while a thread waits, as it is seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Race {
    let_go_ns: u64,
    /// Who was woken, and whether it had only just begun to wait.
    pub(super) woken: usize,
    after_nap: bool,
    /// When the thread that let go wanted the GIL again, after so long.
    away_ns: Option<u32>,
    end: Option<End>,
}

/// A race as it is known in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    away_ns: u32,
    end: End,
    after_nap: bool,
}

/// All races of one woken thread, with who let go.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Sample<(usize, Known), MOST_SEEN>);

/// Races of one thread, or of one against another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// By how long the other one was away; never empty.
    all: Vec<(u32, End)>,
}

/// Races of one thread, by the place in the demand of the thread that let go, if there are enough of
/// them.
type Against = HashMap<usize, Ends>;

/// The races of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Races {
    /// As they would have ended after a longer sleep than a nap.
    by: Against,
    /// Against all threads.
    others: Arc<Ends>,
    /// As those ended that came after a nap: who has slept for a moment is seldom too late.
    after_naps: Against,
    /// Against all threads, if there are enough of them.
    others_after_naps: Option<Ends>,
}

impl Race {
    /// Thread `woken` has waited for `slept_ns`.
    pub(super) fn new(let_go_ns: u64, woken: usize, slept_ns: u64, was_forced: bool) -> Self {
        // One that was forced to let go leaves the GIL to another.
        let away_ns = was_forced.then_some(FOR_LONG_NS);
        Self { let_go_ns, woken, after_nap: is_nap(slept_ns), away_ns, end: None }
    }

    fn since(&self, at_ns: u64) -> u32 {
        u32::try_from(at_ns.saturating_sub(self.let_go_ns)).unwrap_or(u32::MAX)
    }

    /// Whether a thread that has waited since then was there when the GIL was let go of.
    pub(super) fn is_after(&self, waits_since_ns: u64) -> bool {
        waits_since_ns < self.let_go_ns
    }

    /// The one that let go wants the GIL again.
    pub(super) fn is_back(&mut self, at_ns: u64) {
        let away_ns = alike_ns(at_ns.saturating_sub(self.let_go_ns));
        self.away_ns.get_or_insert(away_ns);
    }

    /// A thread has the GIL: the one that let go, or one that waited, or a third one.
    pub(super) fn ends(&mut self, at_ns: u64, itself: bool, waited: bool) {
        self.end.get_or_insert(match (itself, waited) {
            (true, _) => End::TooLate,
            (_, true) => End::Woken(self.since(at_ns)),
            _ => End::Later(self.since(at_ns)),
        });
    }

    /// What is to be known of it, once it is.
    pub(super) fn known(&self) -> Option<Known> {
        let (away_ns, end) = self.away_ns.zip(self.end)?;
        Some(Known { away_ns, end, after_nap: self.after_nap })
    }
}

impl Known {
    /// How long the other thread was away, and how this would have ended after a longer sleep.
    fn after_sleep(self, naps: Naps) -> (u32, End) {
        let end = match self.end {
            End::Woken(ns) if self.after_nap => {
                End::Woken(u32::try_from(naps.after_sleep(ns.into())).unwrap_or(u32::MAX))
            }
            end => end,
        };
        (self.away_ns, end)
    }

    /// The same of a race after a nap, as it was.
    fn after_nap(self) -> Option<(u32, End)> {
        self.after_nap.then_some((self.away_ns, self.end))
    }

    /// How long the woken thread took, if it has got the GIL and nobody was back before.
    fn took_ns(self) -> Option<u32> {
        match self.end {
            End::Woken(ns) if self.away_ns == FOR_LONG_NS => Some(ns),
            _ => None,
        }
    }
}

impl Seen {
    /// One against the thread of that seat.
    pub(super) fn add(&mut self, against: usize, known: Known) {
        self.0.add((against, known));
    }

    fn known(&self) -> impl Iterator<Item = Known> + '_ {
        self.0.kept().iter().map(|(_, known)| *known)
    }

    fn ends(&self, naps: Naps) -> impl Iterator<Item = (u32, End)> + '_ {
        self.known().map(move |known| known.after_sleep(naps))
    }

    fn ends_after_naps(&self) -> impl Iterator<Item = (u32, End)> + '_ {
        self.known().filter_map(Known::after_nap)
    }

    /// Those against each thread, by its place, of which that says how they ended.
    fn against(
        &self,
        place_of: &HashMap<usize, usize>,
        ended: impl Fn(Known) -> Option<(u32, End)>,
    ) -> Against {
        let mut by: HashMap<usize, Vec<(u32, End)>> = HashMap::new();
        for (against, known) in self.0.kept() {
            if let Some((place, end)) = place_of.get(against).copied().zip(ended(*known)) {
                by.entry(place).or_default().push(end);
            }
        }
        by.into_iter()
            .filter_map(|(place, ends)| Some((place, Ends::of(ends.into_iter(), ENOUGH)?)))
            .collect()
    }

    /// How long it took a woken thread to have the GIL where nobody was back before: of all these,
    /// half took less.
    pub(super) fn median_ns<'a>(all: impl Iterator<Item = &'a Self>) -> Option<u64> {
        let mut took_ns: Vec<_> = all.flat_map(Self::known).filter_map(Known::took_ns).collect();
        let middle = took_ns.len() / 2;
        (took_ns.len() >= ENOUGH).then(|| (*took_ns.select_nth_unstable(middle).1).into())
    }

    /// How much sooner a woken thread has the GIL after a nap, by all these.
    pub(super) fn naps<'a>(all: impl Iterator<Item = &'a Self>) -> Naps {
        let (mut naps, mut sleeps) = (Vec::new(), Vec::new());
        for known in all.flat_map(Self::known) {
            let of_its_kind = if known.after_nap { &mut naps } else { &mut sleeps };
            of_its_kind.extend(known.took_ns());
        }
        Naps::of(naps, sleeps)
    }
}

impl Ends {
    /// Woken threads always have the GIL after so long.
    fn always(woken_ns: u32) -> Self {
        Self { all: vec![(FOR_LONG_NS, End::Woken(woken_ns))] }
    }

    /// `None` if there are fewer than that.
    fn of(ends: impl Iterator<Item = (u32, End)>, enough: usize) -> Option<Self> {
        let mut all: Vec<_> = ends.collect();
        all.sort_unstable();
        (all.len() >= enough).then_some(Self { all })
    }

    /// One of those in which the other thread was away for about as long.
    fn draw(&self, away_ns: u64, random: &mut Rng) -> End {
        let away_ns = alike_ns(away_ns);
        let alike = self.alike(away_ns);
        let mut one = || alike[random.usize(..alike.len())].1;
        let drawn = one();
        let End::Later(ns) = drawn else { return drawn };
        // A third thread may come at another time in the simulation.
        let is_later = |end: &End| match *end {
            End::Woken(after_ns) => after_ns > ns,
            End::TooLate => true,
            End::Later(_) => false,
        };
        match std::iter::repeat_with(one).take(TRIES).find(is_later) {
            Some(end) => end,
            None if away_ns == FOR_LONG_NS => End::Woken(ns.saturating_add(WAKES_NS)),
            None => End::TooLate,
        }
    }

    fn alike(&self, away_ns: u32) -> &[(u32, End)] {
        let is_near = |ns: u32| {
            ns + SAME_NS / 2 >= away_ns / 2 && ns / 2 <= away_ns.saturating_add(SAME_NS / 2)
        };
        let mut from = self.all.partition_point(|(its_ns, _)| *its_ns < away_ns);
        let mut to = self.all.partition_point(|(its_ns, _)| *its_ns <= away_ns);
        while to - from < ALIKE.min(self.all.len()) {
            let shorter = from.checked_sub(1).map(|before| away_ns - self.all[before].0);
            let longer = self.all.get(to).map(|(its_ns, _)| its_ns - away_ns);
            let is_shorter =
                shorter.is_some_and(|ns| longer.is_none_or(|longer_ns| ns <= longer_ns));
            let next = if is_shorter { from - 1 } else { to };
            if to - from >= FEW_ALIKE && !is_near(self.all[next].0) {
                break;
            }
            if is_shorter {
                from -= 1;
            } else {
                to += 1;
            }
        }
        &self.all[from..to]
    }
}

/// A time away, as far as it makes a difference.
fn alike_ns(away_ns: u64) -> u32 {
    u32::try_from(away_ns).unwrap_or(FOR_LONG_NS).min(FOR_LONG_NS)
}

impl Races {
    /// Woken threads always have the GIL after so long.
    pub(crate) fn always(woken_ns: u32) -> Self {
        Self::all_end(Ends::always(woken_ns))
    }

    /// Woken threads are always too late.
    #[cfg(test)]
    pub(crate) fn too_late() -> Self {
        Self::all_end(Ends { all: vec![(FOR_LONG_NS, End::TooLate)] })
    }

    fn all_end(so: Ends) -> Self {
        Self {
            by: Against::new(),
            others: so.into(),
            after_naps: Against::new(),
            others_after_naps: None,
        }
    }

    /// Those of each thread, where they are enough, or those of all: `seen` are theirs.
    pub(super) fn of_each(
        seen: Vec<Seen>,
        place_of: &HashMap<usize, usize>,
        naps: Naps,
        usual_ns: u32,
    ) -> Vec<Self> {
        let every = Ends::of(seen.iter().flat_map(|seen| seen.ends(naps)), 1);
        let every = Arc::new(every.unwrap_or_else(|| Ends::always(usual_ns)));
        let of = |seen: Seen| {
            let others = Ends::of(seen.ends(naps), ENOUGH);
            Self {
                by: seen.against(place_of, |known| Some(known.after_sleep(naps))),
                others: others.map_or_else(|| every.clone(), Arc::new),
                after_naps: seen.against(place_of, Known::after_nap),
                others_after_naps: Ends::of(seen.ends_after_naps(), ENOUGH),
            }
        };
        seen.into_iter().map(of).collect()
    }

    /// How a race ends against the thread at that place, which is away for so long, for one that has
    /// slept for so long. Where too few are known that came after naps, `naps` make it sooner.
    pub(crate) fn draw(
        &self,
        against: usize,
        away_ns: u64,
        slept_ns: u64,
        naps: Naps,
        random: &mut Rng,
    ) -> End {
        let against_it = self.by.get(&against);
        // Against whom says more than after how long.
        let others_after_naps = self.others_after_naps.as_ref().filter(|_| against_it.is_none());
        let after_naps = self.after_naps.get(&against).or(others_after_naps);
        if let Some(ends) = after_naps.filter(|_| is_nap(slept_ns)) {
            return ends.draw(away_ns, random);
        }
        match against_it.unwrap_or(&self.others).draw(away_ns, random) {
            End::Woken(ns) => {
                let ns = naps.woken_ns(ns.into(), slept_ns);
                End::Woken(u32::try_from(ns).unwrap_or(u32::MAX))
            }
            end => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u32 = 1_000;
    const MS: u64 = 1_000_000;
    /// Longer than a nap.
    const SLEPT_NS: u64 = 5 * MS;
    const PLACES: [(usize, usize); 2] = [(3, 0), (5, 1)];

    /// Of a thread that is too late for short times away of one thread, and never for another.
    fn races() -> Races {
        let mut seen = Seen::default();
        for number in 0..100 {
            seen.add(3, known(10 * US + number, End::TooLate));
            seen.add(3, known(FOR_LONG_NS, End::Woken(30 * US)));
            seen.add(5, known(10 * US + number, End::Woken(4 * US)));
        }
        Races::of_each(vec![seen], &PLACES.into(), Naps::NO_MATTER, US).remove(0)
    }

    fn known(away_ns: u32, end: End) -> Known {
        Known { away_ns, end, after_nap: false }
    }

    fn drawn(races: &Races, against: usize, away_ns: u64) -> Vec<End> {
        let mut random = Rng::with_seed(1);
        let mut draw = |_| races.draw(against, away_ns, SLEPT_NS, Naps::NO_MATTER, &mut random);
        let mut all: Vec<_> = (0..50).map(&mut draw).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn a_race_ends_as_those_with_about_the_same_time_away_against_the_same_thread() {
        let races = races();
        assert_eq!(drawn(&races, 0, 12_000), [End::TooLate]);
        assert_eq!(drawn(&races, 0, 90_000_000), [End::Woken(30 * US)]);
        assert_eq!(drawn(&races, 1, 12_000), [End::Woken(4 * US)]);
        // Against any other thread, as against those.
        assert_eq!(drawn(&races, 7, 10_050), [End::Woken(4 * US), End::TooLate]);
    }

    #[test]
    fn few_races_that_are_alike_say_more_than_others_that_are_not() {
        let mut seen = Seen::default();
        (0..FEW_ALIKE).for_each(|_| seen.add(3, known(15 * US, End::TooLate)));
        (0..100).for_each(|_| seen.add(3, known(60 * US, End::Woken(8 * US))));
        let races = Races::of_each(vec![seen], &PLACES.into(), Naps::NO_MATTER, US).remove(0);
        assert_eq!(drawn(&races, 0, 17_000), [End::TooLate]);
        // Where there are none, those that are least unlike.
        assert_eq!(drawn(&races, 0, 500_000), [End::Woken(8 * US)]);
    }

    #[test]
    fn who_was_beaten_by_a_third_thread_would_have_come_after_it() {
        let ends = [End::Woken(5 * US), End::Woken(20 * US), End::Later(10 * US)];
        let mut seen = Seen::default();
        ends.iter().cycle().take(300).for_each(|end| seen.add(3, known(FOR_LONG_NS, *end)));
        let races = Races::of_each(vec![seen], &PLACES.into(), Naps::NO_MATTER, US).remove(0);
        let mut random = Rng::with_seed(1);
        let late = (0..300)
            .filter(|_| races.draw(0, u64::MAX, SLEPT_NS, Naps::NO_MATTER, &mut random) == ends[1])
            .count();
        assert!((180..220).contains(&late), "{late}");
        assert_eq!(drawn(&races, 0, u64::MAX), ends[..2]);
    }

    #[test]
    fn a_third_thread_alone_tells_that_a_woken_one_takes_longer() {
        let mut seen = Seen::default();
        (0..100).for_each(|_| seen.add(3, known(FOR_LONG_NS, End::Later(10 * US))));
        (0..100).for_each(|_| seen.add(3, known(5 * US, End::Later(10 * US))));
        let races = Races::of_each(vec![seen], &PLACES.into(), Naps::NO_MATTER, US).remove(0);
        assert_eq!(drawn(&races, 0, u64::MAX), [End::Woken(10 * US + WAKES_NS)]);
        assert_eq!(drawn(&races, 0, 5_000), [End::TooLate]);
    }

    #[test]
    fn threads_of_which_little_is_known_are_like_all_others_or_as_usual() {
        let mut much = Seen::default();
        (0..100).for_each(|_| much.add(3, known(FOR_LONG_NS, End::Woken(7 * US))));
        let all = Races::of_each(vec![much, Seen::default()], &PLACES.into(), Naps::NO_MATTER, US);
        assert_eq!(drawn(&all[1], 0, 1_000), [End::Woken(7 * US)]);
        let none = Races::of_each(vec![Seen::default()], &PLACES.into(), Naps::NO_MATTER, US);
        assert_eq!(none, [Races::always(US)]);
    }

    #[test]
    fn after_a_nap_a_race_ends_as_those_that_came_after_naps() {
        let mut seen = Seen::default();
        (0..100).for_each(|_| seen.add(3, known(20 * US, End::TooLate)));
        let after_nap = Known { after_nap: true, ..known(20 * US, End::Woken(9 * US)) };
        (0..ENOUGH).for_each(|_| seen.add(3, after_nap));
        (0..100).for_each(|_| seen.add(5, known(20 * US, End::TooLate)));
        let races = Races::of_each(vec![seen], &PLACES.into(), Naps::NO_MATTER, US).remove(0);
        let random = &mut Rng::with_seed(1);
        let mut after =
            |against, slept_ns| races.draw(against, 20_000, slept_ns, Naps::NO_MATTER, random);
        assert_eq!(after(0, 1_000), End::Woken(9 * US));
        assert_eq!(after(1, 1_000), End::TooLate, "against that one none came after a nap");
        assert_eq!(after(7, 1_000), End::Woken(9 * US), "against whom is not known");
        let late = (0..140).filter(|_| after(0, SLEPT_NS) == End::TooLate).count();
        assert!((80..120).contains(&late), "{late}");
    }

    #[test]
    fn a_wake_up_after_a_nap_counts_as_one_after_a_longer_sleep() {
        let woken = |ns| known(FOR_LONG_NS, End::Woken(ns));
        let mut seen = Seen::default();
        (0..100).for_each(|_| seen.add(3, woken(30 * US)));
        (0..100).for_each(|_| seen.add(3, Known { after_nap: true, ..woken(15 * US) }));
        let naps = Seen::naps(std::iter::once(&seen));
        assert_eq!(naps.woken_ns(30_000, 0), 15_000);
        let races = Races::of_each(vec![seen], &PLACES.into(), naps, US).remove(0);
        assert_eq!(drawn(&races, 0, u64::MAX), [End::Woken(30 * US)]);
        let nap = Race::new(1_000, 7, 50_000, true);
        assert!(nap.after_nap && !Race::new(1_000, 7, MS, true).after_nap);
    }

    #[test]
    fn a_race_is_known_once_it_has_ended_and_who_let_go_is_back() {
        let mut race = Race::new(1_000, 7, MS, false);
        race.ends(9_000, false, true);
        assert_eq!(race.known(), None);
        race.is_back(13_000);
        assert_eq!(race.known(), Some(known(12_000, End::Woken(8_000))));
        let mut itself = Race::new(1_000, 7, MS, false);
        itself.is_back(4_000);
        itself.ends(4_000, true, false);
        assert_eq!(itself.known(), Some(known(3_000, End::TooLate)));
        let mut forced = Race::new(1_000, 7, MS, true);
        forced.ends(2_000, false, false);
        assert_eq!(forced.known(), Some(known(FOR_LONG_NS, End::Later(1_000))));
    }
}
