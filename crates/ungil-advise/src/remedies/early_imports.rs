//! Imports that keep other threads waiting, done before there are others.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::functions::short;
use std::iter::repeat;
use ungil_trace::analysis::{movable, words};

/// Modules that the sentence names, and lines of code at most.
const NAMED: usize = 3;
const LINES: usize = 12;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let culprits = &scene.culprits;
    culprits.first()?;
    // All of a batch is done no sooner for it.
    if ward.is_of_duration() {
        return None;
    }
    let held = movable(culprits.iter().map(|&place| &scene.thread(place).held_in[..]))?;
    let function = held.function;
    if !function.is_importing() {
        return None;
    }
    let importing = function.importing as f64 / function.looks.max(1) as f64;
    let part = held.share * importing;
    let tids = scene.tids(culprits);
    let rests_on = "it assumes that all of these imports can be done before the threads start";
    let (gain, confidence) = ward.predicted_with_less_work(&tids, part, rests_on);
    let frame = function.frame.clone().unwrap_or_else(|| function.function.clone());
    let place = match short(&frame).strip_prefix("<module> (") {
        Some(place) => format!("at {}", place.trim_end_matches(')')),
        None => format!("in {}", short(&frame)),
    };
    let modules = outermost(&function.imported);
    let caused = scene.blame_share(culprits) * part;
    let mut evidence = ward.evidence();
    let what = "share of the waits during which imports held the GIL";
    evidence.push(Evidence::made(what, caused, Unit::Share));
    let looks = function.importing as f64;
    evidence.push(Evidence::made("looks that found an import there", looks, Unit::Count));
    let mut subject = scene.subject(culprits);
    subject.function = Some(frame.clone());
    Some(Advice {
        kind: Kind::EarlyImports,
        cause: None,
        text: format!(
            "import {} before the threads start: imports {place} held the GIL during {} of the other \
             threads' waits{}{}",
            named(&modules),
            words::percent(caused),
            scene.of_which(ward.report),
            becomes(gain.as_ref()),
        ),
        subject,
        action: Action::code(code(&modules)),
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// The modules without those that another one imports: its packages.
fn outermost(modules: &[String]) -> Vec<String> {
    let is_package = |module: &&String| {
        modules.iter().any(|it| it.strip_prefix(*module).is_some_and(|rest| rest.starts_with('.')))
    };
    let mut outermost: Vec<String> = modules.iter().filter(|it| !is_package(it)).cloned().collect();
    outermost.sort_unstable();
    outermost
}

/// `pandas, scrapy and 4 more`.
fn named(modules: &[String]) -> String {
    match modules {
        few if few.len() <= NAMED => words::list(few),
        many => {
            let more = format!("{} more", many.len() - NAMED + 1);
            words::list(&[&many[..NAMED - 1], &[more]].concat())
        }
    }
}

fn code(modules: &[String]) -> String {
    let comment = "  # at the top of the program, before its threads start";
    let lines = modules.iter().take(LINES).zip([comment].into_iter().chain(repeat("")));
    let lines: Vec<_> = lines.map(|(module, end)| format!("import {module}{end}")).collect();
    lines.join("\n")
}
