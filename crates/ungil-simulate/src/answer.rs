//! A prediction beside the recording, as JSON.

use crate::demand::Demand;
use crate::figures::Figures;
use crate::prediction::{Prediction, Unpredictable, predict};
use crate::ranges::{EQUAL_US, Ranges, WAKE_UP_US, missed_by};
use crate::rules::{Change, Gil, Rules};
use serde::Serialize;
use ungil_core::schedule::Settings;
use ungil_trace::analysis::words;
use ungil_trace::report::Processors;

/// The version of [`Answer`] and [`Listed`]: keys may be added to it.
pub const SCHEMA: u32 = 1;

/// A simulation of the recorded rules whose mean wait is off by such a factor shows that something
/// in the program is unknown to it, on which any prediction hangs.
const FAR: f64 = 2.0;

/// A GIL of a trace, to choose from.
#[derive(Clone, Debug, Serialize)]
pub struct Listed<'a> {
    /// Kernel process id.
    pub pid: u32,
    /// Command line.
    pub argv: &'a [String],
    /// Which GIL of the process.
    pub gil: u8,
    /// How it was scheduled.
    pub recorded_under: Scheduling,
    /// How long threads held it and waited for it.
    pub wanted_s: f64,
    /// How many processors the process may use; `None` if the trace does not tell.
    pub processors: Option<usize>,
    /// The names of its threads, in the order in which they first used it.
    pub threads: Vec<&'a str>,
}

/// A policy and its quantum, or the switch interval of `stock`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scheduling {
    /// The policy; `None` where there is no GIL.
    pub policy: Option<&'static str>,
    /// In milliseconds.
    pub quantum_ms: Option<f64>,
}

/// A prediction beside the recording.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Kernel process id.
    pub pid: u32,
    /// Command line.
    pub argv: &'a [String],
    /// Which GIL of the process.
    pub gil: u8,
    /// How it was scheduled.
    pub recorded_under: Scheduling,
    /// What is different.
    pub rules: Told<'a>,
    /// What was recorded.
    pub recorded: &'a Figures,
    /// What the simulation says of the rules under which it was recorded.
    pub reproduced: &'a Figures,
    /// What it says of the rules that were asked for.
    pub predicted: Figures,
    /// How far that may be off.
    pub ranges: Ranges,
    /// What a reader must know, in sentences without a final dot.
    pub notes: Vec<String>,
}

/// [`Rules`] by names.
#[derive(Clone, Debug, Serialize)]
pub struct Told<'a> {
    /// Who gets the GIL.
    #[serde(flatten)]
    pub scheduling: Scheduling,
    /// Processors, `None` for those of the recording.
    pub cores: Option<usize>,
    /// Threads that are left out.
    pub without: Vec<&'a str>,
    /// Threads that are changed.
    pub changes: Vec<Changed<'a>>,
    /// Threads with a level other than normal.
    pub levels: Vec<(&'a str, &'static str)>,
    /// Whether each thread does its work once.
    pub once: bool,
}

/// A thread that is changed.
#[derive(Clone, Debug, Serialize)]
pub struct Changed<'a> {
    /// Its name.
    pub thread: &'a str,
    /// So many times the work.
    pub work: f64,
    /// So many threads.
    pub times: usize,
}

impl From<Settings> for Scheduling {
    fn from(settings: Settings) -> Self {
        let quantum_ms = Some(settings.quantum_ns as f64 / 1e6);
        Self { policy: Some(settings.policy.name()), quantum_ms }
    }
}

impl Demand {
    /// What there is to choose from.
    pub fn listed(&self) -> Listed<'_> {
        Listed {
            pid: self.pid,
            argv: &self.argv,
            gil: self.gil,
            recorded_under: self.settings.into(),
            wanted_s: self.recorded.wanted_s(),
            processors: self.processors.map(Processors::whole),
            threads: self.threads.iter().map(|thread| thread.name.as_str()).collect(),
        }
    }

    /// [`predict`], told in full.
    pub fn answer(&self, rules: &Rules) -> Result<Answer<'_>, Unpredictable> {
        let Prediction { figures, ranges } = predict(self, rules)?;
        let reproduced = self.reproduced()?;
        let mut notes = self.notes(rules, reproduced);
        notes.extend(self.sleeps_on(rules, figures.duration_s));
        Ok(Answer {
            schema: SCHEMA,
            pid: self.pid,
            argv: &self.argv,
            gil: self.gil,
            recorded_under: self.settings.into(),
            rules: self.told(rules),
            recorded: &self.recorded,
            reproduced,
            predicted: figures,
            ranges,
            notes,
        })
    }

    /// A note if how long a batch lasts, such as `duration_s`, hangs on sleeps that stay as they were.
    fn sleeps_on(&self, rules: &Rules, duration_s: f64) -> Option<String> {
        let asleep_s = rules.once.then(|| self.sleeps_s(&rules.without).ok()).flatten()?;
        (asleep_s > duration_s / 2.0).then(|| {
            format!(
                "it would take {} if no thread had anything to do: sleeps that no lock of another \
                 thread ends stay as they were (a poll, an event loop, input or output)",
                words::length(asleep_s),
            )
        })
    }

    fn told(&self, rules: &Rules) -> Told<'_> {
        let name = |index: &usize| self.threads.get(*index).map(|thread| thread.name.as_str());
        let changed = |(index, change): &(usize, Change)| {
            let (work, times) = match *change {
                Change::Work(factor) => (factor, 1),
                Change::OffGil(part) => (1.0 - part, 1),
                Change::Idle => (0.0, 1),
                Change::Times(count) => (1.0, count),
            };
            Some(Changed { thread: name(index)?, work, times })
        };
        Told {
            scheduling: match rules.gil {
                Gil::Scheduled(settings) => settings.into(),
                Gil::Free => Scheduling { policy: None, quantum_ms: None },
            },
            cores: rules.cores,
            without: rules.without.iter().filter_map(name).collect(),
            changes: rules.changes.iter().filter_map(changed).collect(),
            levels: rules
                .levels
                .iter()
                .filter_map(|(index, level)| Some((name(index)?, level.name())))
                .collect(),
            once: rules.once,
        }
    }

    fn notes(&self, rules: &Rules, reproduced: &Figures) -> Vec<String> {
        let mut notes = Vec::new();
        let [is_us, was_us] = [reproduced, &self.recorded].map(|figures| figures.waits.mean_us);
        if missed_by(is_us, was_us, EQUAL_US) >= FAR && is_us.max(was_us) >= 2.0 * WAKE_UP_US {
            notes.push(format!(
                "the simulation of the recorded rules has waits of {} on average, and the recording \
                 {}: rely on a real run, not on this prediction",
                words::length(is_us / 1e6),
                words::length(was_us / 1e6),
            ));
        }
        if self.lost_events > 0 {
            notes.push(format!(
                "{} events of this GIL were lost, and the simulation lacks them",
                self.lost_events
            ));
        }
        let not_run_ns: u64 =
            self.threads.iter().flat_map(|it| it.bursts.iter()).map(|it| it.not_run_ns).sum();
        let held_s: f64 = self.recorded.threads.iter().map(|thread| thread.held_s).sum();
        let lost_s = not_run_ns as f64 / 1e9;
        if lost_s > held_s / 10.0 {
            let percent = lost_s / held_s * 100.0;
            let then = match rules.cores {
                None => "the prediction assumes the same",
                Some(_) => "the prediction leaves this out",
            };
            notes.push(format!(
                "the kernel did not run the holder for {percent:.0} % of the time with the GIL; \
                 {then}"
            ));
        }
        if rules.gil == Gil::Free {
            notes.push(
                "without a GIL, threads share only processors: the trace lacks the locks of the \
                 program and of the interpreter"
                    .to_owned(),
            );
        }
        notes
    }
}
