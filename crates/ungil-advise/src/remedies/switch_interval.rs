//! `sys.setswitchinterval`: CPython's own way, asked more often.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use ungil_core::schedule::{Policy, Settings};
use ungil_simulate::Rules;
use ungil_trace::analysis::words;

/// The interval that docs/scheduling.md compares policies with.
const INTERVAL_NS: u64 = 50_000;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let interval_s = ward.scene.switch_interval_s();
    if ward.scene.policy() != Policy::Stock || interval_s * 1e9 <= 2.0 * INTERVAL_NS as f64 {
        return None;
    }
    // Threads that compute all the time do no more work for it.
    if ward.scene.only_computes() {
        return None;
    }
    let settings = Settings { policy: Policy::Stock, quantum_ns: INTERVAL_NS };
    let (gain, confidence) = ward.predicted(|_| Rules::from(settings), None);
    let becomes = becomes(gain.as_ref());
    Some(Advice {
        kind: Kind::SwitchInterval,
        cause: None,
        text: format!(
            "let threads ask for the GIL every 50 µs instead of {}{}{becomes}",
            words::length(interval_s),
            ward.scene.of_which(ward.report)
        ),
        subject: ward.scene.subject(&ward.scene.victims),
        action: Action::code("import sys\nsys.setswitchinterval(5e-5)"),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}
