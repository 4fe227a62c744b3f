//! The evidence that remedies have in common: what the finding says that they are for.

use super::Ward;
use crate::advice::{Evidence, Unit};
use crate::place::finding_key;
use ungil_trace::analysis::words;
use ungil_trace::report::Evidence as Found;

/// Threads named in one sentence.
const NAMED: usize = 3;

impl Ward<'_> {
    /// What threads waited, as the finding and the report tell it.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let (place, finding) = self.scene.finding;
        let at = |what: &str, value: f64, unit, key| {
            Evidence::at(what, value, unit, finding_key(place, key))
        };
        let mut all = Vec::new();
        match &finding.evidence {
            Found::Convoy { late_p50_ms, late, .. } => {
                all.push(at(
                    "median delay of late returns",
                    *late_p50_ms,
                    Unit::Milliseconds,
                    "late_p50_ms",
                ));
                all.push(at("late returns", *late as f64, Unit::Count, "late"));
            }
            Found::Hog { held_share, .. } => {
                all.push(at("its share of the held time", *held_share, Unit::Share, "held_share"));
            }
            Found::Unfair { jain, .. } => {
                all.push(at("Jain index", *jain, Unit::Share, "jain"));
            }
            Found::NativeHold { longest_ms, holds, .. } => {
                all.push(at(
                    "longest hold after a request",
                    *longest_ms,
                    Unit::Milliseconds,
                    "longest_ms",
                ));
                all.push(at("such holds", *holds as f64, Unit::Count, "holds"));
            }
            Found::None { contended_share, .. } => {
                all.push(at("contended", *contended_share, Unit::Share, "contended_share"));
            }
            Found::Descheduled { .. }
            | Found::LateWakeups { .. }
            | Found::Parked { .. }
            | Found::WorldPauses { .. }
            | Found::GilSwitchedOn { .. }
            | Found::NotRecorded {} => {}
        }
        if finding.cost_s > 0.0 {
            all.push(at("wait time of this finding", finding.cost_s, Unit::Seconds, "cost_s"));
        }
        all
    }

    /// These threads, as a sentence calls them: by their pattern, or one after the other.
    pub(super) fn names(&self, places: &[usize]) -> String {
        if let Some(pattern) = self.scene.pattern(places).filter(|_| places.len() > 1) {
            return format!("threads {pattern}");
        }
        let name = |place: &usize| match self.scene.thread(*place) {
            thread if thread.name.is_empty() => thread.tid.to_string(),
            thread => thread.name.clone(),
        };
        let named: Vec<_> = places.iter().take(NAMED).map(name).collect();
        match places.len() {
            1 => format!("thread {}", named[0]),
            few if few <= NAMED => format!("threads {}", words::list(&named)),
            many => format!("threads {} and {} more", named[0], many - 1),
        }
    }
}
