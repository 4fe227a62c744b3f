//! A level for some threads: those that compute come last.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use crate::groups::{groups, is_option};
use crate::scene::Scene;
use crate::shell::joined;
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_simulate::Rules;

/// A thread that holds this part (of 1) of what others of its name hold does the same as they do.
const LIKE: f64 = 0.5;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let low = with_their_like(scene);
    // Where all suffer from all there is nobody to come last.
    if low.is_empty() || low.iter().any(|it| scene.victims.contains(it)) {
        return None;
    }
    let is_main = low.iter().any(|&place| scene.thread(place).main);
    let pattern = scene.pattern(&low).filter(|pattern| is_option(pattern, is_main));
    let tids = scene.tids(&low);
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
    let whom = ward.names(&low);
    Some(Advice {
        kind: Kind::Priority,
        cause: None,
        text: format!("give {whom} low priority{}{becomes}", scene.of_which(ward.report)),
        subject: scene.subject(&low),
        action,
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}

/// The threads for which others wait most, and those of the same names that hold about as long: the
/// threads of a pool do the same work.
fn with_their_like(scene: &Scene) -> Vec<usize> {
    let mut low = scene.culprits.clone();
    for group in groups(&scene.gil.threads) {
        let held = group.threads.iter().filter(|(place, _)| scene.culprits.contains(place));
        let held: Vec<_> = held.map(|(_, thread)| thread.held_s).collect();
        if held.is_empty() {
            continue;
        }
        let enough_s = LIKE * held.iter().sum::<f64>() / held.len() as f64;
        let like = group.threads.iter().filter(|(_, thread)| thread.held_s >= enough_s);
        low.extend(like.map(|(place, _)| *place).filter(|place| !scene.culprits.contains(place)));
    }
    low
}
