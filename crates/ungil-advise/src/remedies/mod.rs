//! What could help where threads wait for a GIL, one file a kind, each with what it is predicted to
//! gain.

mod policy;
mod priority;
mod switch_interval;
mod fewer_threads;
mod fewer_collections;
mod early_imports;
mod to_a_process;
mod let_go;
mod free_threaded;
mod blame;

use crate::advice::{Advice, Advised, Confidence, Gain, Kind, Sure};
use crate::predicted::Baseline;
use crate::scene::{Scene, scenes};
use crate::supply::left_by_others;
use fewer_collections::are_much_work;
use free_threaded::leaves_out_processors;
use rayon::prelude::*;
use std::time::Instant;
use ungil_simulate::{Change, Demand, Prediction, Rules};
use ungil_trace::report::{Report, ThreadReport};

/// What saves less than this part of what the victims wait is not advised.
const LEAST: f64 = 0.1;
/// A prediction that may be as bad as the recording has to be less than this part of it.
const MUCH: f64 = 0.5;
/// Gains are alike that save two of these parts of what the victims wait, or one, or less: what asks
/// less of the user comes first then.
const PART: f64 = 1.0 / 3.0;

/// Remedies are looked for at so many GILs, those that cost most. Of hundreds of workers that are all
/// alike, a few say as much as all, and each takes some two dozen simulations.
const MOST_GILS: usize = 20;

/// Where native code makes up for this part (of 1) of the waits, who has the GIL next hardly matters:
/// of shorter calls it is not known that they were native.
const NATIVE: f64 = 0.75;

/// What all remedies of one GIL are made from.
struct Ward<'a> {
    report: &'a Report,
    scene: Scene<'a>,
    /// Or why nothing can be predicted.
    baseline: Result<Baseline<'a>, String>,
}

type Remedy = fn(&Ward) -> Option<Advice>;

/// Those that say who has the GIL next, and when. Each remedy tries out its own changes, so they can
/// be tried side by side.
const OF_SCHEDULING: [Remedy; 3] = [policy::find, priority::find, switch_interval::find];
/// All others.
const REMEDIES: [Remedy; 6] = [
    fewer_threads::find,
    fewer_collections::find,
    early_imports::find,
    to_a_process::find,
    let_go::find,
    free_threaded::find,
];

/// What helps at the GILs at which threads wait most, best first, and what does not. From `until` on
/// nothing is predicted any more.
pub fn find(report: &Report, demands: &[Demand], until: Option<Instant>) -> Advised {
    let mut scenes = scenes(report, demands);
    let gils_left_out = scenes.len().saturating_sub(MOST_GILS);
    scenes.truncate(MOST_GILS);
    let found: Vec<_> = scenes.into_par_iter().map(|scene| of(report, scene, until)).collect();
    let mut advised = Advised { gils_left_out, ..Advised::default() };
    for (good, bad) in found {
        advised.advice.extend(good);
        advised.rejected.extend(bad);
    }
    advised
}

/// What helps at one GIL, and what does not.
fn of(report: &Report, scene: Scene, until: Option<Instant>) -> (Vec<Advice>, Vec<Advice>) {
    let baseline = Baseline::of(&scene, until);
    let ward = Ward { report, scene, baseline };
    let is_no_use = ward.is_for_native_code() || ward.scene.is_batch_of_gil();
    let of_scheduling = if is_no_use { &[][..] } else { &OF_SCHEDULING };
    let remedies = of_scheduling.par_iter().chain(&REMEDIES);
    let tried: Vec<_> = remedies.map(|find| find(&ward)).collect();
    let waits_s_per_s = ward.waited_s_per_s();
    // Without a prediction, it says nothing of how little is left to gain.
    let lacks_all = ward.scene.lacks_processors(report);
    let is_vain = |it: &Advice| {
        lacks_all && it.gain.is_none() && matches!(it.kind, Kind::ToAProcess | Kind::FreeThreaded)
    };
    let tried = tried.into_iter().flatten().filter(|it| !is_vain(it));
    let (mut good, bad): (Vec<_>, Vec<_>) = tried.partition(|it| {
        let saves_work = it.kind == Kind::FewerCollections && are_much_work(&ward);
        saves_work || is_worth_it(it, waits_s_per_s)
    });
    let lacks_processors = leaves_out_processors(&ward).is_some();
    let can_do_more = ward.scene.only_computes() || ward.scene.is_batch();
    let place = |it: &Advice| rank(it, waits_s_per_s, lacks_processors, can_do_more);
    good.sort_by_key(place);
    (good, bad)
}

/// Whether it saves something that is worth the trouble, and either certainly something or much; what
/// nothing is predicted of may.
fn is_worth_it(advice: &Advice, waits_s_per_s: f64) -> bool {
    advice.gain.as_ref().is_none_or(|gain| {
        let is_certain = gain.high < gain.before || gain.after < MUCH * gain.before;
        gain.saved_s_per_s > LEAST * waits_s_per_s && is_certain
    })
}

/// Those that save most first; of those that are alike the one that asks least; then those of which
/// nothing is predicted; at last a build whose prediction leaves out that threads wait for a processor.
/// Fewer threads that only compute wait less, and do the same work; side by side they `can_do_more`.
fn rank(
    advice: &Advice,
    waits_s_per_s: f64,
    lacks_processors: bool,
    can_do_more: bool,
) -> (u8, Kind) {
    let saved = advice.gain.as_ref().map(|gain| gain.saved_s_per_s / waits_s_per_s.max(1e-12));
    let class = match saved {
        _ if lacks_processors && advice.kind == Kind::FreeThreaded => 4,
        Some(saved) if saved >= 2.0 * PART => 0,
        Some(saved) if saved >= PART => 1,
        Some(_) => 2,
        None => 3,
    };
    let gains_no_work = can_do_more && advice.kind == Kind::FewerThreads;
    (class + u8::from(gains_no_work), advice.kind)
}

impl<'a> Ward<'a> {
    fn waited_s_per_s(&self) -> f64 {
        self.scene.waited_s() / self.scene.busy_s()
    }

    /// Whether its threads wait for next to nothing but native code, which keeps the GIL under any rules.
    ///
    /// The time in which the kernel did not run who kept it is none in which that could have let go.
    /// And before a request there is the switch interval, in which the same call runs.
    fn is_for_native_code(&self) -> bool {
        let culprits = &self.scene.culprits;
        let of = |part: fn(&ThreadReport) -> f64| -> f64 {
            culprits.iter().map(|&place| part(self.scene.thread(place))).sum()
        };
        let kept_s = of(|it| it.kept.total_s).max(1e-9);
        let asked_s = of(|it| it.kept.holds as f64) * self.scene.switch_interval_s();
        let native_s = of(|it| it.kept.waited_s) * (1.0 + asked_s / kept_s);
        let ran_s = self.scene.charged_s(culprits) - of(|it| it.descheduled.waited_s);
        let part = (native_s / ran_s.max(1e-9)).min(1.0);
        part * self.scene.blame_share(culprits) >= NATIVE
    }

    /// What a change gains, and how sure that is; `rests_on` is what a prediction assumes besides.
    fn predicted(
        &self,
        rules: impl FnOnce(&Baseline<'a>) -> Rules,
        rests_on: Option<&str>,
    ) -> (Option<Gain>, Confidence) {
        self.predicted_after(None, rules, rests_on)
    }

    /// The same of a change after which threads run side by side, as far as there are processors.
    fn predicted_side_by_side(
        &self,
        rules: impl FnOnce(&Baseline<'a>) -> Rules,
        rests_on: &str,
    ) -> (Option<Gain>, Confidence) {
        if !self.is_of_duration() {
            let left = self.scene.left_for_processors(self.report);
            return self.told(None, rules, Some(rests_on), left);
        }
        let cores = left_by_others(self.report, self.scene.process).map(whole);
        self.told(None, |baseline| Rules { cores, ..rules(baseline) }, Some(rests_on), 0.0)
    }

    /// The same, if these threads did such a part (of 1) of what they do with the GIL without it.
    fn predicted_without_gil(
        &self,
        tids: &[u32],
        part: f64,
        rests_on: &str,
    ) -> (Option<Gain>, Confidence) {
        if !self.is_of_duration() {
            return self.predicted_with_less_work(tids, part, rests_on);
        }
        let rules = |baseline: &Baseline| Rules {
            changes: all_to(baseline.sources(tids), Change::OffGil(part)),
            ..baseline.as_recorded()
        };
        self.predicted_side_by_side(rules, rests_on)
    }

    /// Whether gains are told in how long all the work takes.
    fn is_of_duration(&self) -> bool {
        self.baseline.as_ref().is_ok_and(Baseline::is_of_duration)
    }

    /// The same, if these threads used the GIL for such a part (of 1) less.
    fn predicted_with_less_work(
        &self,
        tids: &[u32],
        part: f64,
        rests_on: &str,
    ) -> (Option<Gain>, Confidence) {
        let rules = |baseline: &Baseline| Rules {
            changes: all_to(baseline.sources(tids), Change::Work(1.0 - part)),
            ..baseline.as_recorded()
        };
        self.predicted(rules, Some(rests_on))
    }

    /// The same, if `first` is what the first simulation of that change said.
    fn predicted_after(
        &self,
        first: Option<Prediction>,
        rules: impl FnOnce(&Baseline<'a>) -> Rules,
        rests_on: Option<&str>,
    ) -> (Option<Gain>, Confidence) {
        self.told(first, rules, rests_on, 0.0)
    }

    /// The same, where at least this part (of 1) of the waits is left.
    fn told(
        &self,
        first: Option<Prediction>,
        rules: impl FnOnce(&Baseline<'a>) -> Rules,
        rests_on: Option<&str>,
        left: f64,
    ) -> (Option<Gain>, Confidence) {
        let told = self.baseline.as_ref().map_err(Clone::clone).and_then(|baseline| {
            let rules = rules(baseline);
            let told = baseline.try_often(&rules, first)?;
            let gain = baseline.gain(&rules, &told, self.waited_s_per_s(), left)?;
            let confidence = baseline.confidence(&gain, rests_on);
            Ok((gain, confidence))
        });
        match told {
            Ok((gain, confidence)) => (Some(gain), confidence),
            Err(why) => {
                let because = format!("nothing is predicted: {why}");
                (None, Confidence { level: Sure::Low, because })
            }
        }
    }
}

/// These threads, each changed so.
fn all_to(sources: Vec<usize>, change: Change) -> Vec<(usize, Change)> {
    sources.into_iter().map(|source| (source, change)).collect()
}

/// How many processors that is as a number of them, at least one.
fn whole(processors: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 1 at least")]
    let whole = processors.round().max(1.0) as usize;
    whole
}

/// `: the wait after a blocking call is predicted to be 0.2 ms instead of 5.13 ms`, the end of a
/// sentence about a gain.
fn becomes(gain: Option<&Gain>) -> String {
    use crate::advice::Measure;
    use ungil_trace::analysis::words;
    let Some(gain) = gain else { return String::new() };
    let (what, is) = match gain.measure {
        Measure::WaitedPerSecond => {
            let (before, after) = (words::length(gain.before), words::length(gain.after));
            return format!(
                ": threads are predicted to wait for {after} in each second instead of {before}"
            );
        }
        Measure::WaitAfterBlockingCall => ("the wait after a blocking call", "be"),
        Measure::WaitAfterThousandBlockingCalls => {
            ("the sum of the waits after 1,000 blocking calls", "be")
        }
        Measure::Duration => ("all the recorded work", "take"),
    };
    let told = |value| crate::predicted::told(gain.measure, value);
    format!(": {what} is predicted to {is} {} instead of {}", told(gain.after), told(gain.before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{Action, Measure, Subject, Unit};

    fn saves(kind: Kind, saved_s_per_s: f64) -> Advice {
        let gain = Gain {
            measure: Measure::WaitedPerSecond,
            unit: Unit::PerSecond,
            before: 1.0,
            after: 1.0 - saved_s_per_s,
            low: 0.0,
            high: 1.0,
            saved_s_per_s,
            waited_s_per_s: [1.0, 1.0 - saved_s_per_s],
            p99_ms: [0.0; 2],
            cpu_s_per_s: [1.0; 2],
        };
        Advice {
            kind,
            cause: None,
            text: String::new(),
            subject: Subject::default(),
            action: Action::default(),
            gain: Some(gain),
            confidence: Confidence { level: Sure::Medium, because: String::new() },
            evidence: Vec::new(),
            same_as: None,
        }
    }

    #[test]
    fn a_build_whose_threads_would_lack_processors_is_the_last_resort() {
        let (all, part) = (saves(Kind::FreeThreaded, 1.0), saves(Kind::ToAProcess, 0.4));
        let ranks = |lacks| [&all, &part].map(|it| rank(it, 1.0, lacks, false));
        assert!(ranks(false)[0] < ranks(false)[1]);
        assert!(ranks(true)[0] > ranks(true)[1]);
    }

    #[test]
    fn of_threads_that_only_compute_fewer_come_behind_what_lets_them_do_more() {
        let (fewer, process) = (saves(Kind::FewerThreads, 0.4), saves(Kind::ToAProcess, 0.4));
        let ranks = |can_do_more| [&fewer, &process].map(|it| rank(it, 1.0, false, can_do_more));
        assert!(ranks(false)[0] < ranks(false)[1]);
        assert!(ranks(true)[0] > ranks(true)[1]);
    }
}
