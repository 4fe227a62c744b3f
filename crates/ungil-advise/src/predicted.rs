//! What the simulator says about a change, as a gain.
//!
//! A simulation of the recording as it was is not the recording: what it has too much or too little
//! of, a change of it has likewise. So what is told is the recorded figure, changed by the factor
//! between two simulations.
//!
//! Of a batch it is told when all of its work is done. That nobody waits long in it gains nothing.

use crate::advice::{Confidence, Gain, Measure, Sure, Unit};
use crate::scene::Scene;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Instant;
use ungil_simulate::{
    Demand, Figures, Prediction, Range, Rules, ThreadFigures, WAKE_UP_US, predict,
};

/// A simulation of the recording that is off by more than this (of 1) is not trusted much,
const CLOSE: f64 = 0.25;
/// and one that is off by more than this not at all.
const FAR: f64 = 1.0;
/// One that has less than this part (of 1) of the recorded waits does not tell what ends them. Too many
/// waits it may have where the program was slowed down by others: a change still ends them there.
const HAS: f64 = 0.2;

/// What was predicted from fewer waits than this may be chance,
const FEW_WAITS: u64 = 20;
/// and from fewer than this it is hardly more.
const HARDLY_ANY: u64 = 5;

/// All the work of a batch, done once, takes as long in a simulation as recorded, but for this factor.
const AS_LONG: f64 = 1.15;

/// If it would take more than this part (of 1) of that without any work, by sleeps of which nobody knows who
/// ends them, a simulation does not tell how long it takes.
const SLEEPS: f64 = 0.9;

/// How often a change is simulated, each time with other delays,
const SEEDS: u64 = 3;
/// unless threads used the GIL so often that the delays of one simulation are as good as all.
const MANY_USES: usize = 100_000;

/// The simulation of the recording as it was, beside which changes are told.
#[derive(Debug)]
pub struct Baseline<'a> {
    demand: &'a Demand,
    victims: Vec<u32>,
    measure: Measure,
    recorded: f64,
    simulated: f64,
    figures: Cow<'a, Figures>,
    /// When nobody waits for a prediction any more.
    until: Option<Instant>,
}

impl<'a> Baseline<'a> {
    /// Simulates what was recorded. `Err` says why nothing can be predicted.
    pub fn of(scene: &Scene<'a>, until: Option<Instant>) -> Result<Self, String> {
        let Some(demand) = scene.demand else {
            return Err("the trace lacks what a simulation of this GIL needs".to_owned());
        };
        let victims = scene.tids(&scene.victims);
        let done_once = scene.is_batch().then(|| done_once(demand)).flatten();
        let (measure, figures) = match done_once {
            Some(figures) => (Measure::Duration, Cow::Owned(figures)),
            None => (
                scene.measure(),
                Cow::Borrowed(demand.reproduced().map_err(|error| error.to_string())?),
            ),
        };
        let recorded = value(&demand.recorded, &victims, measure);
        let simulated = value(&figures, &victims, measure);
        if recorded <= 0.0 || simulated <= 0.0 {
            return Err("the simulation of the recording shows no such waits".to_owned());
        }
        if simulated < HAS * recorded {
            return Err(format!(
                "the simulation does not reproduce the recording: it gives {}, and {} was recorded",
                told(measure, simulated),
                told(measure, recorded),
            ));
        }
        Ok(Self { demand, victims, measure, recorded, simulated, figures, until })
    }

    /// The recording as it was, to be changed otherwise.
    pub fn as_recorded(&self) -> Rules {
        Rules::from(self.demand.settings)
    }

    /// Places in the demand of these threads.
    pub fn sources(&self, tids: &[u32]) -> Vec<usize> {
        let tids: HashSet<u32> = tids.iter().copied().collect();
        let threads = self.demand.threads.iter().enumerate();
        threads.filter(|(_, thread)| tids.contains(&thread.tid)).map(|(place, _)| place).collect()
    }

    /// What these threads together hold of the GIL in a simulation, of 1.
    pub fn held_share(figures: &Figures, tids: &[u32]) -> f64 {
        of_those(figures, tids).map(|thread| thread.held_s).sum::<f64>()
            / figures.duration_s.max(1e-9)
    }

    /// The simulation of the recording as it was.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Whether it is told how long all the work takes. Then threads are simulated on so many processors
    /// as there are where they can run side by side.
    pub fn is_of_duration(&self) -> bool {
        self.measure == Measure::Duration
    }

    /// Simulates a change once.
    pub fn try_out(&self, rules: &Rules) -> Result<Prediction, String> {
        self.run(rules, 0)
    }

    /// Simulates a change some times, each with other delays, if that makes a difference; `first`
    /// is what [`Self::try_out`] said, if it was asked.
    pub fn try_often(
        &self,
        rules: &Rules,
        first: Option<Prediction>,
    ) -> Result<Vec<Prediction>, String> {
        let uses: usize = self.demand.threads.iter().map(|thread| thread.bursts.len()).sum();
        let seeds = if uses > MANY_USES { 1 } else { SEEDS };
        let others = u64::from(first.is_some())..seeds;
        let others = others.into_par_iter().map(|seed| self.run(rules, seed));
        let mut told: Vec<_> = first.into_iter().collect();
        told.extend(others.collect::<Result<Vec<_>, _>>()?);
        Ok(told)
    }

    fn run(&self, rules: &Rules, seed: u64) -> Result<Prediction, String> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err("the simulation takes too long".to_owned());
        }
        let rules = Rules { runs: 1, seed, once: self.is_of_duration(), ..rules.clone() };
        predict(self.demand, &rules).map_err(|error| error.to_string())
    }

    /// What the measure is in a simulation of the recording on as many processors as these rules have: what
    /// threads compute without the GIL took longer there already.
    fn beside(&self, rules: &Rules) -> Result<f64, String> {
        if rules.cores.is_none() {
            return Ok(self.simulated);
        }
        let told = self.try_out(&Rules { cores: rules.cores, ..self.as_recorded() })?;
        Ok(value(&told.figures, &self.victims, self.measure))
    }

    /// What a change by these rules would gain, of its simulations, of which there is one at least.
    /// `waited_s_per_s` is what the victims waited for in each second; at least the part `left` (of
    /// 1) of that remains.
    pub fn gain(
        &self,
        rules: &Rules,
        told: &[Prediction],
        waited_s_per_s: f64,
        left: f64,
    ) -> Result<Gain, String> {
        let beside = self.beside(rules)?;
        let scaled = |before: f64, of: fn(&Figures) -> f64| {
            let simulated = of(&self.figures);
            let factor = if simulated > 0.0 { of(&told[0].figures) / simulated } else { 1.0 };
            [before, before * factor]
        };
        let factor_of = |told: &Prediction| {
            (value(&told.figures, &self.victims, self.measure) / beside).max(left)
        };
        let factor = told.iter().map(factor_of).sum::<f64>() / told.len().max(1) as f64;
        let least = told.iter().map(factor_of).fold(factor, f64::min);
        let most = told.iter().map(factor_of).fold(factor, f64::max);
        let after = self.recorded * factor;
        // What the simulation of the recording is off by, the prediction may be off by.
        let error = self.error();
        let range = Range {
            low: self.recorded * (least / (1.0 + error)).max(left),
            high: self.recorded * most * (1.0 + error),
        };
        let range = match self.measure {
            Measure::WaitAfterBlockingCall => range.under_other_rules(WAKE_UP_US / 1e3),
            Measure::WaitAfterThousandBlockingCalls => range.under_other_rules(WAKE_UP_US),
            Measure::WaitedPerSecond => range.under_other_rules(0.0),
            Measure::Duration => range.of_other_duration(),
        };
        let recorded = &self.demand.recorded;
        let per_s = |figures: &Figures| {
            let waited_s: f64 = figures.threads.iter().map(|thread| thread.waited_s).sum();
            waited_s / figures.duration_s.max(1e-9)
        };
        let [before_per_s, after_per_s] = scaled(per_s(recorded), per_s);
        Ok(Gain {
            measure: self.measure,
            unit: match self.measure {
                Measure::WaitAfterBlockingCall | Measure::WaitAfterThousandBlockingCalls => {
                    Unit::Milliseconds
                }
                Measure::WaitedPerSecond => Unit::PerSecond,
                Measure::Duration => Unit::Seconds,
            },
            before: self.recorded,
            after,
            low: range.low,
            high: range.high,
            saved_s_per_s: waited_s_per_s * (1.0 - factor),
            waited_s_per_s: [before_per_s, after_per_s.max(before_per_s * left)],
            p99_ms: scaled(recorded.returns.p99_us / 1e3, |it| it.returns.p99_us / 1e3),
            cpu_s_per_s: scaled(recorded.cpu_per_s, |it| it.cpu_per_s),
        })
    }

    /// By which part (of 1) the simulation of the recording misses it.
    fn error(&self) -> f64 {
        let ratio = self.simulated / self.recorded;
        ratio.max(1.0 / ratio) - 1.0
    }

    /// How sure a predicted gain is; `rests_on` is what the prediction assumes besides.
    pub fn confidence(&self, gain: &Gain, rests_on: Option<&str>) -> Confidence {
        let error = self.error();
        let may_be_none = gain.high >= gain.before;
        let waits = count(&self.demand.recorded, &self.victims, self.measure);
        let level = match error {
            _ if error > FAR || waits < HARDLY_ANY => Sure::Low,
            _ if error > CLOSE || waits < FEW_WAITS => Sure::Medium,
            _ if may_be_none || rests_on.is_some() => Sure::Medium,
            _ => Sure::High,
        };
        let few = match waits {
            1 => "; only one such wait was recorded".to_owned(),
            ..FEW_WAITS => format!("; only {waits} such waits were recorded"),
            _ => String::new(),
        };
        let or_none = if may_be_none { "; its range reaches what was recorded" } else { "" };
        let and = rests_on.map_or_else(String::new, |what| format!("; {what}"));
        Confidence {
            level,
            because: format!(
                "predicted by simulation, which gives {} for the recording itself ({} was \
                 recorded){few}{or_none}{and}",
                self.told(self.simulated),
                self.told(self.recorded),
            ),
        }
    }

    /// A value of the measure.
    pub fn told(&self, value: f64) -> String {
        told(self.measure, value)
    }
}

/// A simulation of the recording in which each thread does its work once; `None` if that tells nothing of
/// how long it takes, or is off.
fn done_once(demand: &Demand) -> Option<Figures> {
    let lasted_s = demand.recorded.duration_s;
    let asleep_s = demand.sleeps_s(&[]).ok()?;
    if asleep_s > SLEEPS * lasted_s {
        return None;
    }
    let rules = Rules { once: true, runs: 1, ..Rules::from(demand.settings) };
    let figures = predict(demand, &rules).ok()?.figures;
    let factor = figures.duration_s / lasted_s;
    (factor.max(1.0 / factor) <= AS_LONG).then_some(figures)
}

/// A value of a measure, as a sentence has it.
pub fn told(measure: Measure, value: f64) -> String {
    use ungil_trace::analysis::words::length;
    match measure {
        Measure::WaitAfterBlockingCall | Measure::WaitAfterThousandBlockingCalls => {
            length(value / 1e3)
        }
        Measure::WaitedPerSecond => format!("{} per second", length(value)),
        Measure::Duration => length(value),
    }
}

/// The figures of these threads.
fn of_those<'a>(figures: &'a Figures, tids: &[u32]) -> impl Iterator<Item = &'a ThreadFigures> {
    let tids: HashSet<u32> = tids.iter().copied().collect();
    figures.threads.iter().filter(move |thread| tids.contains(&thread.tid))
}

/// How many waits the measure is of; of a duration, which is no chance of a few waits, as many as can be.
fn count(figures: &Figures, tids: &[u32], measure: Measure) -> u64 {
    if measure == Measure::Duration {
        return u64::MAX;
    }
    let waits = of_those(figures, tids).map(|thread| match measure {
        Measure::WaitAfterBlockingCall | Measure::WaitAfterThousandBlockingCalls => {
            thread.returns.count
        }
        Measure::WaitedPerSecond | Measure::Duration => thread.waits.count,
    });
    waits.sum()
}

/// The measure, of these threads: milliseconds for one or a thousand blocking calls, or seconds for each
/// second; or seconds, of all threads.
fn value(figures: &Figures, tids: &[u32], measure: Measure) -> f64 {
    let threads = of_those(figures, tids);
    match measure {
        Measure::WaitAfterBlockingCall => wait_after_call_us(threads) / 1e3,
        Measure::WaitAfterThousandBlockingCalls => wait_after_call_us(threads),
        Measure::WaitedPerSecond => {
            threads.map(|thread| thread.waited_s).sum::<f64>() / figures.duration_s.max(1e-9)
        }
        Measure::Duration => figures.duration_s,
    }
}

/// How long these threads waited after a blocking call, on average.
fn wait_after_call_us<'a>(threads: impl Iterator<Item = &'a ThreadFigures>) -> f64 {
    let (sum_us, count) = threads.fold((0.0, 0), |(sum_us, count), thread| {
        let returns = &thread.returns;
        (sum_us + returns.mean_us * returns.count as f64, count + returns.count)
    });
    if count > 0 { sum_us / count as f64 } else { 0.0 }
}
