//! A free-threaded build of Python.

use super::fewer_collections::are_what_to_end;
use super::{Ward, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::functions::{only_takes_lock, short};
use crate::supply::{left_by_others, usable};
use ungil_simulate::{Gil, Rules};
use ungil_trace::analysis::words;
use ungil_trace::report::{OffGil, What};

/// A lock that fewer looks have found may be one that a thread waits for once.
const LEAST_LOOKS: u64 = 3;
/// The build that is not experimental.
const PYTHON: &str = "python3.14t";

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    if scene.process.free_threaded.is_some() || are_what_to_end(ward) {
        return None;
    }
    let rests_on = format!(
        "{}, packages that work without a GIL, and no locks but the recorded ones",
        assumed_processors(ward)
    );
    let (gain, confidence) = ward.predicted_side_by_side(|_| Rules::of(Gil::Free), &rests_on);
    // Where it is told what threads wait, that is none.
    let becomes = if ward.is_of_duration() { becomes(gain.as_ref()) } else { String::new() };
    let threads = scene.gil.threads.iter().enumerate();
    let locks = threads.flat_map(|(place, thread)| {
        let places = thread.off_gil.iter().enumerate();
        let locks = places.filter(|(_, it)| {
            it.what == What::Lock && is_users_lock(it) && it.gaps + it.samples >= LEAST_LOOKS
        });
        locks.map(move |(number, it)| (place, number, it))
    });
    let worst = locks.max_by(|(_, _, a), (_, _, b)| a.total_s.total_cmp(&b.total_s));
    let mut evidence = ward.evidence();
    let contends = match worst {
        Some((place, number, lock)) => {
            let key = scene.place.thread_key(place, &format!("off_gil/{number}/total_s"));
            evidence.push(Evidence::at(
                "time that threads waited for that lock",
                lock.total_s,
                Unit::Seconds,
                key,
            ));
            let frame = lock.user_frame.as_deref().unwrap_or_default();
            format!("; the lock at {} remains", short(frame))
        }
        None => "; the trace does not show which locks are contended then".to_owned(),
    };
    let wanting = scene.gil.wanting_busy_mean;
    let key = scene.place.gil_key("wanting_busy_mean");
    evidence.push(Evidence::at("threads that wanted to run", wanting, Unit::Count, key));
    let is_interpreter =
        |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let action = match scene.argv.split_first() {
        Some((first, rest)) if is_interpreter(first) => {
            let words = std::iter::once(PYTHON.to_owned()).chain(rest.iter().cloned());
            Action::command(words.collect())
        }
        _ => Action::default(),
    };
    Some(Advice {
        kind: Kind::FreeThreaded,
        cause: None,
        text: format!(
            "run it on a free-threaded Python ({PYTHON}){}, where no thread waits for a \
             GIL{contends}{becomes}",
            scene.of_which(ward.report)
        ),
        subject: scene.subject(&scene.culprits),
        action,
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// Whether it is a lock that the user's own code takes. Packages wait by locks for what comes next: a
/// message, a result, something to do.
fn is_users_lock(off: &OffGil) -> bool {
    let Some(user) = &off.user_frame else { return false };
    match &off.stack[..] {
        [innermost, ..] if innermost == user => true,
        [innermost, caller, ..] => caller == user && only_takes_lock(innermost),
        _ => false,
    }
}

/// What a prediction without a GIL takes for granted of processors.
fn assumed_processors(ward: &Ward) -> String {
    let scene = &ward.scene;
    if let Some(usable) = usable(scene.process).filter(|_| knows_processors(ward)) {
        let usable = words::processors(usable);
        return format!("it assumes that its threads have the {usable} that the program may use");
    }
    match leaves_out_processors(ward) {
        Some(usable) => format!(
            "it leaves out that threads then wait for one of the {} that the program may use, and \
             assumes a processor for each thread",
            words::processors(usable),
        ),
        None => "it assumes a processor for each thread".to_owned(),
    }
}

/// Whether the prediction has only so many processors as there are.
fn knows_processors(ward: &Ward) -> bool {
    ward.is_of_duration() || ward.scene.only_computes()
}

/// How many processors the program may use, if its other processes leave fewer than threads wanted
/// to run, and the prediction leaves that out.
pub(super) fn leaves_out_processors(ward: &Ward) -> Option<f64> {
    let scene = &ward.scene;
    let left = left_by_others(ward.report, scene.process).filter(|_| !knows_processors(ward));
    left.filter(|&left| left < scene.gil.wanting_busy_mean).and_then(|_| usable(scene.process))
}
