//! What would have happened.

use crate::demand::{Demand, Follows, Reproduced, Way};
use crate::figures::{Figures, ThreadFigures, Total};
use crate::lengths::Lengths;
use crate::machine::{NoStack, Setting, simulate};
use crate::plan::{Planned, count, planned};
use crate::ranges::{EQUAL_US, Ranges, missed_by, ranges};
use crate::rules::{Change, Gil, Rules};
use serde::Serialize;
use ungil_core::schedule::Policy;

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredictable {
    /// Nothing is left to run.
    #[error("no thread is left to simulate; leave out fewer threads")]
    NoThread,
    /// It would take for ever.
    #[error("the recording lasts {0} days, which is too long to simulate; record a part of it")]
    TooLong(u64),
    /// The threads do not fit into memory.
    #[error("{0} threads are too many to simulate; ask for fewer of them")]
    TooMany(usize),
}

/// What would have happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Of the run of the simulation whose median wait is the middle one.
    pub figures: Figures,
    /// How far they may be off.
    pub ranges: Ranges,
}

/// A run in which each thread does its work once ends after so many times the recorded one.
const LONGEST: u64 = 1_000;
/// Counts below this are equal.
const EQUAL_COUNT: f64 = 10.0;
/// That threads do a piece for each delivery is believed unless the simulation misses the recording by
/// so many times as much then.
const BELIEVED: f64 = 1.25;
/// How much faster and slower threads may wake up than recorded.
const OTHER_WAKE_UPS: [f64; 2] = [0.5, 2.0];

/// No more threads are simulated, however few live at once.
const MOST_THREADS: usize = 1_000_000;
/// No longer recording is simulated: a week.
const MOST_DAYS: u64 = 7;
const DAY_NS: u64 = 86_400_000_000_000;

/// What `demand` would have met under `rules`.
pub fn predict(demand: &Demand, rules: &Rules) -> Result<Prediction, Unpredictable> {
    let count = count(demand, rules);
    if count > MOST_THREADS {
        return Err(Unpredictable::TooMany(count));
    }
    let &Reproduced { way, displaces, .. } = demand.replayed()?;
    let threads = planned(demand, rules, way);
    if threads.is_empty() {
        return Err(Unpredictable::NoThread);
    }
    let replay = Replay { demand, rules, threads: &threads, displaces };
    let (first, mut others) = replay.alike()?;
    if rules.runs > 1 {
        for factor in OTHER_WAKE_UPS {
            others.push(replay.run(rules.seed, factor)?);
        }
    }
    let all: Vec<_> = std::iter::once(&first).chain(&others).collect();
    let other = !rules.are_those_of(demand.settings);
    let ranges = ranges(&all, &demand.recorded, demand.reproduced()?, other);
    Ok(Prediction { figures: first, ranges })
}

impl Demand {
    /// What the simulation says of the rules under which this was recorded.
    pub fn reproduced(&self) -> Result<&Figures, Unpredictable> {
        self.replayed().map(|it| &it.figures)
    }

    /// How many seconds all the work would take, each thread doing its own once, if it were none: the sleeps
    /// that no other thread is known to end, one behind the other. These threads are left out.
    pub fn sleeps_s(&self, without: &[usize]) -> Result<f64, Unpredictable> {
        let changes = (0..self.threads.len()).map(|thread| (thread, Change::Idle)).collect();
        let rules = Rules {
            without: without.to_vec(),
            changes,
            once: true,
            runs: 1,
            ..Rules::of(Gil::Free)
        };
        let &Reproduced { way, displaces, .. } = self.replayed()?;
        let threads = planned(self, &rules, way);
        Ok(Replay { demand: self, rules: &rules, threads: &threads, displaces }
            .run(0, 1.0)?
            .duration_s)
    }

    /// The same, in the way that is more like what was recorded.
    fn replayed(&self) -> Result<&Reproduced, Unpredictable> {
        if let Some(reproduced) = self.reproduced.get() {
            return Ok(reproduced);
        }
        let rules = Rules::of(Gil::Scheduled(self.settings));
        let may_displace = self.may_displace();
        let simulated = |threads: &[Planned], way, displaces| {
            let (figures, _) =
                Replay { demand: self, rules: &rules, threads, displaces }.alike()?;
            Ok(Reproduced { figures, way, displaces })
        };
        let of = |way| {
            let threads = planned(self, &rules, way);
            Ok((simulated(&threads, way, may_displace)?, threads))
        };
        let by_deliveries = self.threads.iter().any(|thread| thread.deliveries.is_some());
        let (mut best, mut threads) = of(Way { by_deliveries, ..Way::default() })?;
        if by_deliveries {
            let other = of(Way::default())?;
            if self.missed_by(&other.0) * BELIEVED < self.missed_by(&best) {
                (best, threads) = other;
            }
        }
        for way in self.other_ways(best.way) {
            let other = of(way)?;
            if self.missed_by(&other.0) < self.missed_by(&best) {
                (best, threads) = other;
            }
        }
        // Of two threads, none but the holder and the one that was forced out can have asked.
        if may_displace && self.threads.len() > 2 {
            let other = simulated(&threads, best.way, false)?;
            if self.missed_by(&other) < self.missed_by(&best) {
                best = other;
            }
        }
        Ok(self.reproduced.get_or_init(|| best))
    }

    /// Whether a light thread may have taken the processor of another: three had two of them, and waited
    /// as CPython has them wait.
    fn may_displace(&self) -> bool {
        let is_cramped = self.processors.is_some_and(|it| it.whole() == 2);
        is_cramped && self.settings.policy == Policy::Stock
    }

    /// How it can be understood other than in this way.
    fn other_ways(&self, way: Way) -> impl Iterator<Item = Way> {
        let for_long = self.threads.iter().any(|it| it.follows == Follows::ForLong);
        let for_long = for_long.then_some(Way { for_long, ..way });
        let in_pools = !self.pools.is_empty();
        for_long.into_iter().chain(in_pools.then_some(Way { in_pools, ..way }))
    }

    /// The product of the factors by which the mean and the median of all waits are off, and how often
    /// threads came back from blocking calls, and got the GIL from another.
    fn missed_by(&self, reproduced: &Reproduced) -> f64 {
        let (is, was) = (&reproduced.figures, &self.recorded);
        let of = |figure: fn(&Figures) -> f64, equal| missed_by(figure(is), figure(was), equal);
        of(|it| it.waits.mean_us, EQUAL_US)
            * of(|it| it.waits.p50_us, EQUAL_US)
            * of(|it| it.returns.count as f64, EQUAL_COUNT)
            * of(|it| it.handoffs as f64, EQUAL_COUNT)
    }
}

/// What is simulated several times, differently by chance.
struct Replay<'a> {
    demand: &'a Demand,
    rules: &'a Rules,
    threads: &'a [Planned],
    displaces: bool,
}

impl Replay<'_> {
    /// The run whose median wait is the middle one, and the others, which differ from it by chance.
    fn alike(&self) -> Result<(Figures, Vec<Figures>), Unpredictable> {
        let mut runs = Vec::new();
        for chance in 0..u64::from(self.rules.runs.max(1)) {
            runs.push(self.run(self.rules.seed.wrapping_add(chance), 1.0)?);
        }
        runs.sort_by(|a, b| a.waits.p50_us.total_cmp(&b.waits.p50_us));
        let middle = runs.remove(runs.len() / 2);
        Ok((middle, runs))
    }

    fn run(&self, seed: u64, wake_up_factor: f64) -> Result<Figures, Unpredictable> {
        let &Self { demand, rules, threads, displaces } = self;
        if demand.lasts_ns > MOST_DAYS * DAY_NS {
            return Err(Unpredictable::TooLong(demand.lasts_ns / DAY_NS));
        }
        let lasts_ns =
            if rules.once { demand.lasts_ns.saturating_mul(LONGEST) } else { demand.lasts_ns };
        let setting = Setting {
            gil: rules.gil,
            cores: rules.cores,
            displaces: displaces && rules.cores.is_none(),
            wake_up_factor,
            lateness: demand.machine.lateness.clone(),
            naps: demand.machine.naps,
            coldness: demand.machine.coldness,
            lasts_ns,
            seed,
        };
        let outcome =
            simulate(threads, &setting).map_err(|NoStack| Unpredictable::TooMany(threads.len()))?;
        let mut total = Total::default();
        let (mut waits, mut returns) = (Lengths::default(), Lengths::default());
        let mut rows = Vec::new();
        for (happened, thread) in outcome.threads.iter().zip(threads) {
            total.add(happened.held_ns, happened.ran_ns);
            waits.merge(&happened.waits);
            returns.merge(&happened.returns);
            let source = &demand.threads[thread.source];
            rows.push(ThreadFigures {
                tid: source.tid,
                name: source.name.clone(),
                held_s: happened.held_ns as f64 / 1e9,
                waited_s: happened.waits.total_ns() as f64 / 1e9,
                ran_s: happened.ran_ns as f64 / 1e9,
                waits: happened.waits.summary(),
                returns: happened.returns.summary(),
            });
        }
        let (handoffs, forced) = (outcome.handoffs, outcome.forced);
        Ok(Figures::new(outcome.ended_ns, total, handoffs, forced, [&waits, &returns], rows))
    }
}
