//! A level for some threads: those that compute come last.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use crate::groups::is_option;
use crate::shell::joined;
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_simulate::Rules;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let (culprits, victims) = (&scene.culprits, &scene.victims);
    // Where all suffer from all there is nobody to come last.
    if culprits.is_empty() || culprits.iter().any(|it| victims.contains(it)) {
        return None;
    }
    let is_main = culprits.iter().any(|&place| scene.thread(place).main);
    let pattern = scene.pattern(culprits).filter(|pattern| is_option(pattern, is_main));
    let tids = scene.tids(culprits);
    let (gain, confidence) = ward.predicted(
        |baseline| {
            let mut rules = Rules::from(Settings::from(Policy::Priority));
            let low = baseline.sources(&tids).into_iter().map(|source| (source, Level::Low));
            rules.levels = low.collect();
            rules
        },
        None,
    );
    let run = |options: &[&str]| -> Vec<String> {
        let words = ["ungil", "run", "--policy", "priority"].iter().chain(options).chain(&["--"]);
        words.map(|&word| word.to_owned()).chain(scene.argv.iter().cloned()).collect()
    };
    // A level means nothing in a program that was started in any other way.
    let code = format!(
        "# start it with: {}\nfrom ungil import gil\ngil.priority(\"low\")  # in the thread itself",
        joined(&run(&[]))
    );
    let action = match &pattern {
        Some(pattern) => {
            let level = format!("{pattern}=low");
            Action { code: Some(code), ..Action::command(run(&["--priority", &level])) }
        }
        None => Action::code(code),
    };
    let becomes = becomes(gain.as_ref());
    let whom = ward.names(culprits);
    Some(Advice {
        kind: Kind::Priority,
        cause: None,
        text: format!("give {whom} low priority{}{becomes}", scene.of_which(ward.report)),
        subject: scene.subject(culprits),
        action,
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}
