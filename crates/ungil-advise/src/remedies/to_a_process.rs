//! The function for which others wait, in a process of its own.

use super::fewer_collections::is_about_collections;
use super::{Ward, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::functions::short;
use crate::loops::{InProcess, Library};
use crate::scene::Scene;
use crate::servers::more_processes;
use ungil_simulate::{Change, Rules};
use ungil_trace::analysis::{Held, held, words};

/// A thread that spends this part (of 1) of what others wait for in the function is gone with it.
const ALL: f64 = 0.8;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    if is_about_collections(ward.scene.finding.1) {
        return None;
    }
    let scene = &ward.scene;
    let culprits = &scene.culprits;
    culprits.first()?;
    let function = held(culprits.iter().map(|&place| &scene.thread(place).held_in[..]));
    let in_it = function.as_ref().map_or(1.0, |it| it.share);
    let tids = scene.tids(culprits);
    let rests_on = match &function {
        Some(_) => "it assumes that sending arguments and results costs little",
        None => {
            "it assumes that all the work of these threads can move, because no look at them \
             shows which function they ran"
        }
    };
    let (gain, confidence) = ward.predicted(
        |baseline| {
            let (sources, rules) = (baseline.sources(&tids), baseline.as_recorded());
            if in_it >= ALL {
                return Rules { without: sources, ..rules };
            }
            let less = sources.into_iter().map(|source| (source, Change::Work(1.0 - in_it)));
            Rules { changes: less.collect(), ..rules }
        },
        Some(rests_on),
    );
    let caused = scene.blame_share(culprits) * in_it;
    let mut evidence = ward.evidence();
    let what = "share of the waits during which it held the GIL";
    evidence.push(Evidence::made(what, caused, Unit::Share));
    let mut subject = scene.subject(culprits);
    let (what, code) = match function {
        Some(held) => {
            let looks = held.function.looks as f64;
            evidence.push(Evidence::made("looks that found it there", looks, Unit::Count));
            let frame =
                held.function.frame.clone().unwrap_or_else(|| held.function.function.clone());
            let what = match short(&frame).strip_prefix("<module> (") {
                Some(place) => format!("the code at {}", place.trim_end_matches(')')),
                None => short(&frame),
            };
            subject.function = Some(frame);
            (what, Some(code(scene, &held)))
        }
        None => (format!("the work of {}", ward.names(culprits)), None),
    };
    let becomes = becomes(gain.as_ref());
    Some(Advice {
        kind: Kind::ToAProcess,
        cause: None,
        text: format!(
            "run {what} in a process of its own: it held the GIL during {} of the other threads' \
             waits{}{becomes}",
            words::percent(caused),
            scene.of_which(ward.report),
        ),
        subject,
        action: action(code, scene.argv),
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// The code, and what makes more processes of the server that `command` starts, if it is one.
fn action(code: Option<String>, command: &[String]) -> Action {
    let server = more_processes(command).map(|(server, options)| {
        format!("# or run {server} with {options}: each process has its own GIL")
    });
    let lines: Vec<_> = code.into_iter().chain(server).collect();
    if lines.is_empty() { Action::default() } else { Action::code(lines.join("\n")) }
}

/// What to write. Arguments and results are sent; what both sides change belongs into shared memory.
fn code(scene: &Scene, held: &Held) -> String {
    let function = held.function.name();
    let is_name = function.chars().all(|it| it.is_alphanumeric() || "_.".contains(it));
    let function = if is_name && !function.is_empty() { function } else { "function" };
    let awaited_on = awaited_on(scene, held.function.depth == 0);
    let InProcess { before, call, needs } = InProcess::of(awaited_on, function);
    let comment = match awaited_on {
        Some(_) => "",
        None if Library::run_by(&scene.gil.threads).is_some() => {
            "  # in its own thread, not on the event loop"
        }
        None => "  # sends them and the result",
    };
    let needs = needs.map_or_else(String::new, |it| format!("{it}\n"));
    format!(
        "{before}result = {call}{comment}\n{needs}\
         # what both sides use and change: from ungil import share; share.Heap().root[...] = ..."
    )
}

/// The library whose loop has to await the function; `None` if what calls it may wait.
///
/// A thread that runs a loop calls it there. Any other one may wait for a process, unless the function
/// is the outermost in it: a loop gave it that, and would wait in its place.
fn awaited_on(scene: &Scene, is_outermost: bool) -> Option<Library> {
    let scene_threads =
        |places: &[usize]| -> Vec<_> { places.iter().map(|&place| scene.thread(place)).collect() };
    let culprits = scene_threads(&scene.culprits);
    let own = Library::run_by(culprits.iter().copied());
    let given = || {
        let by_name = culprits.iter().find_map(|it| Library::that_gives_work_to(&it.name));
        Library::run_by(scene_threads(&scene.victims)).or(by_name)
    };
    own.or_else(|| if is_outermost { given() } else { None })
}
