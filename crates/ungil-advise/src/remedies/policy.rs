//! `ungil run --policy`: the GIL scheduled.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use ungil_core::schedule::{Policy, Settings};
use ungil_simulate::Rules;

/// The better of the two policies that are for programs which somebody waits for.
pub(super) fn find(ward: &Ward) -> Option<Advice> {
    // Of threads that compute, it can only change who gets how much.
    if ward.scene.only_computes() && !ward.scene.is_unequal() {
        return None;
    }
    let recorded = ward.scene.policy();
    let policies = [Policy::Interactive, Policy::Fair];
    let tried = policies.into_iter().filter(|policy| *policy != recorded).map(|policy| {
        let told = ward.predicted(|_| Rules::from(Settings::from(policy)), None);
        (policy, told)
    });
    let saved =
        |gain: &Option<crate::advice::Gain>| gain.as_ref().map_or(0.0, |gain| gain.saved_s_per_s);
    // Of two that are alike the first one.
    let (policy, (gain, confidence)) = tried.reduce(|best, next| {
        let clearly = super::LEAST * ward.waited_s_per_s();
        if saved(&next.1.0) > saved(&best.1.0) + clearly { next } else { best }
    })?;
    let words = ["ungil", "run", "--policy", policy.name(), "--"].map(str::to_owned);
    let command = words.into_iter().chain(ward.scene.argv.iter().cloned()).collect();
    let becomes = becomes(gain.as_ref());
    Some(Advice {
        kind: Kind::Policy,
        cause: None,
        text: format!(
            "run it under policy {}{}{becomes}",
            policy.name(),
            ward.scene.of_which(ward.report)
        ),
        subject: ward.scene.subject(&ward.scene.victims),
        action: Action::command(command),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}
