//! A report with what is advised, with or without a simulation.

use serde::Serialize;
use ungil_advise::{Advised, Kind};
use ungil_trace::report::Report;

/// A report with what is advised.
#[derive(Serialize)]
pub struct WithAdvice<'a> {
    #[serde(flatten)]
    pub report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<Advised>,
    /// What could help at the GIL was not simulated, and is not in `advised`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remedies_left_out: bool,
}

impl<'a> WithAdvice<'a> {
    pub fn new(report: &'a Report, advised: Option<Advised>) -> Self {
        Self { report, advised, remedies_left_out: false }
    }

    /// With what needs no simulation.
    pub fn of_causes(report: &'a Report) -> Self {
        let (advised, remedies_left_out) = causes(report);
        Self { report, advised: Some(advised), remedies_left_out }
    }
}

/// What it is where it is not the GIL, and whether there is more to advise: what could help at the
/// GIL is only known from a simulation.
pub fn causes(report: &Report) -> (Advised, bool) {
    let mut advised = ungil_advise::advise(report, &[]);
    let all = advised.advice.len() + advised.rejected.len();
    let mut places = Vec::new();
    let mut kept = Vec::new();
    for mut advice in std::mem::take(&mut advised.advice) {
        let is_kept = advice.kind == Kind::NotTheGil;
        places.push(is_kept.then_some(kept.len()));
        if is_kept {
            // What is the same is of the same kind, and comes later.
            advice.same_as = advice.same_as.and_then(|place| places[place]);
            kept.push(advice);
        }
    }
    advised.advice = kept;
    advised.rejected.clear();
    // Of no GIL was anything simulated.
    advised.gils_left_out = 0;
    let is_less = advised.advice.len() < all;
    (advised, is_less)
}
