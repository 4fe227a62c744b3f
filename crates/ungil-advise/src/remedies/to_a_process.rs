//! The function for which others wait, in a process of its own.

use super::fewer_collections::are_what_to_end;
use super::{Ward, all_to, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::functions::{callable, short};
use crate::loops::{InProcess, Library, Work};
use crate::scene::Scene;
use crate::servers::more_processes;
use crate::supply;
use crate::workers::{is_carrier, runs_wrapped_tasks};
use ungil_simulate::{Change, Rules};
use ungil_trace::analysis::{Held, movable, words};

/// A thread that spends this part (of 1) of what others wait for in the function is gone with it.
const ALL: f64 = 0.8;
/// Of more threads than these, in no known function, nobody knows what to move.
const FEW: usize = 3;
/// To send arguments and to take results is work, too.
const LEAST: f64 = 0.02;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    // A batch has less for each process to collect.
    if are_what_to_end(ward) && !ward.is_of_duration() {
        return None;
    }
    let scene = &ward.scene;
    let culprits = &scene.culprits;
    culprits.first()?;
    let function = movable(culprits.iter().map(|&place| &scene.thread(place).held_in[..]));
    let is_no_job = match &function {
        Some(it) => it.function.is_importing(),
        None => culprits.len() > FEW,
    };
    if is_no_job {
        return None;
    }
    let callers = callers(scene, function.as_ref());
    let has_rest = function.is_some() && !scene.only_computes();
    let threads: Vec<usize> = callers.iter().map(|(place, _)| *place).collect();
    let is_short = supply::is_short(ward.report, scene.process);
    let rests_on = match &function {
        Some(_) => "it assumes that sending arguments and results costs little",
        None => {
            "it assumes that all the work of these threads can move, because no look at them \
             shows which function they ran"
        }
    };
    let rests_on = match supply::usable(scene.process).filter(|_| is_short) {
        Some(usable) => format!(
            "{rests_on}, and leaves out that the program keeps the {} busy that it may use",
            words::processors(usable)
        ),
        None => rests_on.to_owned(),
    };
    let (gain, confidence) = ward.predicted_side_by_side(
        |baseline| {
            let mut rules = baseline.as_recorded();
            if baseline.is_of_duration() {
                let moved = callers.iter().flat_map(|&(place, in_it)| {
                    let sources = baseline.sources(&scene.tids(&[place]));
                    all_to(sources, Change::OffGil(in_it))
                });
                return Rules { changes: moved.collect(), ..rules };
            }
            for &(place, in_it) in &callers {
                let sources = baseline.sources(&scene.tids(&[place]));
                // A thread that waits for the others, and does something else, too, stays with that.
                let stays = has_rest && scene.victims.contains(&place);
                if in_it >= ALL && !stays {
                    rules.without.extend(sources);
                } else {
                    let rest = Change::Work((1.0 - in_it).max(LEAST));
                    rules.changes.extend(sources.into_iter().map(|source| (source, rest)));
                }
            }
            rules
        },
        &rests_on,
    );
    let caused = callers.iter().map(|(place, in_it)| scene.blame_share(&[*place]) * in_it).sum();
    let mut evidence = ward.evidence();
    let what = "share of the waits during which it held the GIL";
    evidence.push(Evidence::made(what, caused, Unit::Share));
    let mut subject = scene.subject(&threads);
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
        action: action(code, scene.argv, is_short),
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// The threads that run the function, with the part (of 1) of what others wait for them that they are in
/// it: those for which most is waited, and all others that looks found there. Of threads without
/// looks it is that of all; without a function it is all that they do.
fn callers(scene: &Scene, function: Option<&Held>) -> Vec<(usize, f64)> {
    let of_all = function.map_or(1.0, |it| it.share);
    let in_it = |place: usize| {
        let (name, held) = (&function?.function.function, &scene.thread(place).held_in);
        let there = held.iter().find(|it| it.function == *name).map_or(0, |it| it.looks);
        let looks: u64 = held.iter().map(|it| it.innermost).sum();
        (looks > 0).then(|| (there as f64 / looks as f64).min(1.0))
    };
    let mut callers: Vec<_> =
        scene.culprits.iter().map(|&place| (place, in_it(place).unwrap_or(of_all))).collect();
    let others = (0..scene.gil.threads.len()).filter(|place| !scene.culprits.contains(place));
    callers.extend(others.filter_map(|place| Some((place, in_it(place).filter(|it| *it > 0.0)?))));
    callers
}

/// The code, and what makes more processes of the server that `command` starts, if it is one and there
/// are processors for them.
fn action(code: Option<String>, command: &[String], is_short: bool) -> Action {
    let server = more_processes(command).filter(|_| !is_short).map(|(server, options)| {
        format!("# or run {server} with {options}: each process has its own GIL")
    });
    let lines: Vec<_> = code.into_iter().chain(server).collect();
    if lines.is_empty() { Action::default() } else { Action::code(lines.join("\n")) }
}

/// What to write. Arguments and results are sent; what both sides change belongs into shared memory.
fn code(scene: &Scene, held: &Held) -> String {
    let name = callable(&held.function.function);
    // A thread object cannot be sent, and its `run` needs it.
    let is_outermost = held.function.depth == 0;
    let runs_thread = is_outermost
        && name.and_then(|it| it.rsplit_once('.')).is_some_and(|(_, method)| method == "run");
    let is_task =
        is_outermost && scene.culprits.iter().any(|&place| runs_wrapped_tasks(scene.thread(place)));
    let shares =
        "# what both sides use and change: from ungil import share; share.Heap().root[...] = ...";
    if let Some(job) = name.filter(|_| is_outermost && scene.is_batch()) {
        let pool = pool_of_processes(scene, job);
        return format!("{pool}\n{shares}");
    }
    let work = Work { name, is_outermost: runs_thread || is_task };
    let loops = Loops::of(scene, is_outermost);
    let InProcess { before, call, needs } = InProcess::of(loops.awaited_on(), work.word());
    let comment = match loops {
        Loops { own: None, given_by: None, others: true } => {
            "  # in its own thread, not on the event loop"
        }
        Loops { own: None, given_by: None, others: false } => "  # sends them and the result",
        _ => "",
    };
    let of_own = work.comment("computes").filter(|_| work.is_outermost || loops.own.is_some());
    let lines =
        [Some(format!("{before}result = {call}{comment}")), of_own, needs.map(str::to_owned)];
    let lines = lines.into_iter().flatten().chain([shares.to_owned()]);
    lines.collect::<Vec<_>>().join("\n")
}

/// What stands in the place of the pool of a batch that runs nothing but `job`.
fn pool_of_processes(scene: &Scene, job: &str) -> String {
    let (module, pool, threads) = if scene.gil.threads.iter().any(is_carrier) {
        ("multiprocessing", "Pool", "ThreadPool")
    } else {
        ("concurrent.futures", "ProcessPoolExecutor", "ThreadPoolExecutor")
    };
    format!(
        "from {module} import {pool}\n\
         pool = {pool}()  # in the place of the {threads} that runs {job}"
    )
}

/// The event loops that have to go on while the function runs elsewhere.
struct Loops {
    /// A thread that was in the function runs this one, and so calls it there.
    own: Option<Library>,
    /// This one gave the function to a thread, and would have to wait in its place.
    given_by: Option<Library>,
    /// Whether another thread runs one.
    others: bool,
}

impl Loops {
    /// Only the outermost function of a thread was given to it. What others call may wait.
    fn of(scene: &Scene, is_outermost: bool) -> Self {
        let threads = |places: &[usize]| -> Vec<_> {
            places.iter().map(|&place| scene.thread(place)).collect()
        };
        let culprits = threads(&scene.culprits);
        let own = Library::run_by(culprits.iter().copied());
        let by_name = culprits.iter().find_map(|it| Library::that_gives_work_to(&it.name));
        let given_by = Library::run_by(threads(&scene.victims)).or(by_name);
        let others = Library::run_by(&scene.gil.threads).is_some();
        Self { own, given_by: given_by.filter(|_| is_outermost), others }
    }

    fn awaited_on(&self) -> Option<Library> {
        self.own.or(self.given_by)
    }
}
