//! Native code that keeps the GIL, the garbage collector among it.

use super::story::{MS, PYTHON, Story, Told};
use crate::{Kind, Sure};
use ungil_trace::report::Evidence;

/// A thread keeps the GIL for 200 ms at a time, three times.
pub(super) fn keeps(libraries: &[&str]) -> Story {
    keeps_in(libraries, &[])
}

/// The same, where that is seen in these functions.
fn keeps_in(libraries: &[&str], symbols: &[&str]) -> Story {
    keeps_in_library(libraries, PYTHON, symbols)
}

/// The same, of this library.
fn keeps_in_library(libraries: &[&str], library: &str, symbols: &[&str]) -> Story {
    let mut story = Story::of(&["MainThread", "native"]);
    story.libraries(libraries);
    for round in 0..3 {
        let at_ns = round * 400 * MS;
        story.acquire(at_ns, 1);
        story.wait(at_ns + MS, 0);
        story.ask(at_ns + 6 * MS, 0);
        if !symbols.is_empty() {
            story.native_in(library, at_ns + 50 * MS, 1, symbols);
        }
        story.forced(at_ns + 200 * MS, 1);
        story.acquire(at_ns + 200 * MS + 10_000, 0);
        story.release(at_ns + 201 * MS, 0);
    }
    story
}

#[test]
fn compiled_code_is_told_to_let_go_only_where_it_is_the_users_own() {
    let told = keeps(&["/srv/app/_fast.so"]).end(1_200 * MS);
    let advice = told.of(Kind::LetGo).unwrap();
    assert!(advice.text.starts_with("release the GIL in your own _fast.so"), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("Py_BEGIN_ALLOW_THREADS"));
    assert!(advice.confidence.level >= Sure::Medium);
    assert!(keeps(&[]).end(1_200 * MS).of(Kind::LetGo).is_none());
}

#[test]
fn only_the_library_that_keeps_the_gil_is_told_to_let_go_of_it_and_never_ungils_own() {
    let own = ["/srv/ungil/python/ungil/_native.abi3.so", "/srv/app/_fast.so", "/srv/app/_slow.so"];
    let told = |libraries: &[&str], mut story: Story| {
        story.libraries(libraries);
        let advice = story.end(1_200 * MS).of(Kind::LetGo)?.text.clone();
        let rest = advice.strip_prefix("release the GIL in your own ")?;
        rest.split([' ', ',']).next().map(str::to_owned)
    };
    assert_eq!(told(&own[..1], keeps(&[])), None);
    assert_eq!(told(&own, keeps(&[])).as_deref(), Some("_fast.so"));
    assert_eq!(told(&own, keeps_in(&[], &["sre_match"])), None);
    let of_slow = keeps_in_library(&[], own[2], &["slow"]);
    assert_eq!(told(&own, of_slow).as_deref(), Some("_slow.so"));
}

#[test]
fn numba_is_told_to_release_the_gil_around_what_it_compiled_for_the_user() {
    let dispatcher = "/x/site-packages/numba/_dispatcher.cpython-311-x86_64-linux-gnu.so";
    let told = keeps_in_library(&[], dispatcher, &["Dispatcher_call"]).end(1_200 * MS);
    let advice = told.of(Kind::LetGo).unwrap();
    assert!(advice.text.starts_with("have numba release the GIL"), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().starts_with("@njit(nogil=True)"));
    assert_eq!(told.kinds()[..2], [Kind::LetGo, Kind::ToAProcess], "an option asks less");
}

/// How many remedies that say who has the GIL next were tried.
pub(super) fn scheduled(told: &Told) -> usize {
    let of_scheduling = [Kind::Policy, Kind::Priority, Kind::SwitchInterval];
    let all = told.advised.advice.iter().chain(&told.advised.rejected);
    all.filter(|it| of_scheduling.contains(&it.kind)).count()
}

#[test]
fn time_in_which_the_kernel_did_not_run_who_kept_the_gil_calls_for_no_schedule() {
    let told = |ran_ms| {
        let mut story = Story::of(&["MainThread", "native"]);
        for round in 0..12 {
            let at_ns = round * 600 * MS;
            story.acquire(at_ns, 1);
            story.wait(at_ns + MS, 0);
            story.ask(at_ns + 6 * MS, 0);
            story.ran_of_hold(at_ns, 1, ran_ms * MS);
            story.forced(at_ns + 400 * MS, 1);
            story.acquire(at_ns + 400 * MS + 10_000, 0);
            story.release(at_ns + 401 * MS, 0);
        }
        let told = story.end(7_200 * MS);
        assert_eq!(scheduled(&told), 0, "{:?}", told.kinds());
        assert!(told.kinds().contains(&Kind::ToAProcess), "{:?}", told.kinds());
        told.report.findings.into_iter().find(crate::scene::is_about_waits).unwrap().evidence
    };
    assert!(matches!(told(150), Evidence::Convoy { .. }));
    assert!(matches!(told(250), Evidence::NativeHold { .. }));
}

#[test]
fn no_schedule_is_advised_to_who_waits_for_native_code_alone() {
    let told = keeps(&[]).end(1_200 * MS);
    assert!(told.of(Kind::ToAProcess).is_some());
    assert_eq!(scheduled(&told), 0, "{:?}", told.kinds());
    // Beside as much of a convoy there is something to schedule.
    let mut story = keeps(&[]);
    for round in 0..110 {
        let at_ns = 1_200 * MS + round * 6 * MS;
        story.acquire(at_ns, 1);
        story.wait(at_ns, 0);
        story.ask(at_ns + 5 * MS, 0);
        story.forced(at_ns + 5 * MS + 1_000, 1);
        story.acquire(at_ns + 5 * MS + 10_000, 0);
        story.release(at_ns + 5 * MS + 20_000, 0);
    }
    let told = story.end(1_900 * MS);
    assert!(scheduled(&told) > 0, "{:?}", told.kinds());
}

#[test]
fn a_garbage_collector_that_keeps_the_gil_gets_less_to_do_and_no_process() {
    let collects = ["gc_collect_main", "_Py_HandlePending"];
    let told = keeps_in(&[], &collects).end(1_200 * MS);
    assert!(told.kinds().contains(&Kind::FewerCollections), "{:?}", told.kinds());
    let advice = told.of(Kind::FewerCollections).unwrap();
    assert!(advice.text.contains("it kept the GIL for 582 ms in 3 holds"), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("gc.freeze()"));
    assert_eq!(advice.subject.function.as_deref(), Some("fill (app.py:7)"));
    let gain = advice.gain.as_ref().unwrap();
    assert!(gain.after < 0.5 * gain.before, "{gain:?}");
    assert!(told.of(Kind::ToAProcess).is_none() && told.of(Kind::FreeThreaded).is_none());
    let other = keeps_in(&[], &["sre_match", "_Py_HandlePending"]).end(1_200 * MS);
    assert!(other.of(Kind::FewerCollections).is_none() && other.of(Kind::ToAProcess).is_some());
}

/// A thread that collects garbage for 150 ms so often; for so much longer the kernel does not run it.
fn collects(rounds: u64, not_run_ms: u64) -> Told {
    let mut story = Story::of(&["MainThread", "native"]);
    for round in 0..rounds {
        let at_ns = round * 600 * MS;
        let length_ns = (150 + not_run_ms) * MS;
        story.acquire(at_ns, 1);
        story.wait(at_ns + MS, 0);
        story.ask(at_ns + 6 * MS, 0);
        story.native(at_ns + 50 * MS, 1, &["gc_collect_main"]);
        story.ran_of_hold(at_ns, 1, 150 * MS);
        story.forced(at_ns + length_ns, 1);
        story.acquire(at_ns + length_ns + 10_000, 0);
        story.release(at_ns + length_ns + MS, 0);
    }
    story.end(rounds * 600 * MS)
}

#[test]
fn a_thread_that_the_kernel_does_not_run_in_collections_gains_as_much_from_fewer() {
    let becomes = |not_run_ms| {
        let told = collects(5, not_run_ms);
        let gain = told.of(Kind::FewerCollections).unwrap().gain.clone().unwrap();
        gain.after / gain.before
    };
    assert!(becomes(0) < 0.1 && becomes(150) < 0.1, "{} {}", becomes(0), becomes(150));
}

#[test]
fn collections_are_told_of_where_it_is_costlier_that_threads_are_late_behind_the_same_thread() {
    let told = collects(12, 250);
    let of_waits = told.report.findings.iter().find(|it| crate::scene::is_about_waits(it)).unwrap();
    assert!(matches!(of_waits.evidence, Evidence::Convoy { .. }), "{of_waits:?}");
    assert!(told.kinds().contains(&Kind::FewerCollections), "{:?}", told.kinds());
    // Another process would collect its own objects.
    assert!(told.of(Kind::ToAProcess).is_none(), "{:?}", told.kinds());
}

/// A thread that always keeps the GIL for 200 ms, in so many of ten holds to collect garbage.
fn always_keeps(collecting: u64) -> Told {
    let mut story = Story::of(&["MainThread", "native"]);
    for round in 0..40 {
        let at_ns = round * 201 * MS;
        story.acquire(at_ns, 1);
        story.wait(at_ns + MS, 0);
        story.ask(at_ns + 6 * MS, 0);
        let is_collection = round % 10 < collecting;
        story.native(at_ns + 50 * MS, 1, &[if is_collection { "gc_collect_main" } else { "sort" }]);
        story.ran_of_hold(at_ns, 1, 200 * MS);
        story.forced(at_ns + 200 * MS, 1);
        story.acquire(at_ns + 200 * MS + 10_000, 0);
        story.release(at_ns + 200 * MS + 500_000, 0);
    }
    story.end(8_040 * MS)
}

#[test]
fn collections_that_are_most_of_the_work_are_worth_less_of_them_whatever_others_then_wait_for() {
    let told = always_keeps(7);
    let advice = told.of(Kind::FewerCollections).unwrap();
    let gain = advice.gain.as_ref().unwrap();
    assert!(gain.after > 0.8 * gain.before, "{gain:?}");
    assert!(
        advice.text.contains("it kept the GIL for 5.43 s in 40 holds, 68 % of the time that its")
    );
    assert!(always_keeps(3).of(Kind::FewerCollections).is_none());
}
