//! What could help where threads wait for the GIL.

use super::pools::WORKER;
use super::story::{MS, PID, PYTHON, Story, Told};
use crate::{Kind, Measure, Sure};
use ungil_trace::report::Evidence;

#[test]
fn against_a_convoy_a_policy_comes_first_and_everything_has_its_command_or_code() {
    let told = Story::convoy().end(2_000 * MS);
    let first = &told.advised.advice[0];
    assert_eq!(first.kind, Kind::Policy);
    let shell = "ungil run --policy interactive -- /usr/bin/python3 app.py 'it'\"'\"'s'";
    assert_eq!(first.action.shell.as_deref(), Some(shell));
    let gain = first.gain.as_ref().unwrap();
    assert_eq!(gain.measure, Measure::WaitAfterBlockingCall);
    assert!((gain.before - 5.02).abs() < 0.1, "{}", gain.before);
    assert!(gain.after < 0.5 * gain.before && gain.low <= gain.after && gain.after <= gain.high);
    for advice in told.advised.advice.iter().filter(|it| it.kind != Kind::NotTheGil) {
        assert!(advice.action.shell.is_some() || advice.action.code.is_some(), "{advice:?}");
        assert!(advice.gain.is_some() && !advice.evidence.is_empty());
    }
}

#[test]
fn where_most_calls_return_at_once_the_gain_is_told_for_a_thousand_of_them() {
    let told = Story::convoy_with(&[], 20).end(2_000 * MS);
    let advice = &told.advised.advice[0];
    let gain = advice.gain.as_ref().unwrap();
    assert_eq!(gain.measure, Measure::WaitAfterThousandBlockingCalls);
    assert!((gain.before - 5_020.0 / 21.0).abs() < 5.0, "{}", gain.before);
    assert!(
        advice.text.contains("the sum of the waits after 1,000 blocking calls"),
        "{}",
        advice.text
    );
}

#[test]
fn a_prediction_from_a_trace_with_lost_events_is_not_sure_and_says_so() {
    let mut story = Story::convoy();
    story.lost(1, 7);
    let told = story.end(2_000 * MS);
    let confidence = &told.of(Kind::Policy).unwrap().confidence;
    assert_eq!(confidence.level, Sure::Medium);
    assert!(confidence.because.ends_with("; 7 events were lost"), "{}", confidence.because);
}

#[test]
fn evidence_names_the_finding_whose_wait_it_is() {
    let told = Story::convoy().end(2_000 * MS);
    let evidence = &told.of(Kind::Policy).unwrap().evidence;
    let cost = evidence.iter().find(|it| it.pointer.as_deref() == Some("/findings/0/cost_s"));
    assert_eq!(cost.unwrap().what, "wait time of this finding");
}

#[test]
fn what_saves_as_much_and_asks_for_more_comes_later() {
    let told = Story::convoy().end(2_000 * MS);
    let kinds: Vec<_> = told.kinds();
    assert_eq!(kinds[..2], [Kind::Policy, Kind::Priority]);
    let place = |kind| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(place(Kind::ToAProcess) < place(Kind::FreeThreaded));
}

#[test]
fn a_thread_that_computes_can_come_last_by_its_name() {
    let told = Story::convoy().end(2_000 * MS);
    let advice = told.of(Kind::Priority).unwrap();
    let shell = advice.action.shell.as_deref().unwrap();
    assert!(shell.starts_with("ungil run --policy priority --priority builder=low -- "), "{shell}");
    assert!(advice.action.code.as_deref().unwrap().contains("gil.priority(\"low\")"));
    assert_eq!(advice.subject.threads, [101]);
}

#[test]
fn a_level_that_a_thread_gives_itself_is_advised_with_the_command_under_which_it_counts() {
    let lines = "# start it with: ungil run --policy priority -- /usr/bin/python3 app.py \
                 'it'\"'\"'s'\nfrom ungil import gil\ngil.priority(\"low\")  # in the thread itself";
    for name in ["builder", "Thread=7"] {
        let told = late_behind(name, 99).end(1_000 * MS);
        let action = &told.of(Kind::Priority).unwrap().action;
        assert_eq!(action.code.as_deref(), Some(lines), "{name}");
        // Such a name is no pattern: what is shown where there is no command has all.
        assert_eq!(action.shell.is_some(), name == "builder", "{name}");
    }
}

#[test]
fn the_function_that_goes_to_a_process_is_the_innermost_that_is_always_there() {
    let told = Story::convoy().end(2_000 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert_eq!(advice.subject.function.as_deref(), Some("square (app.py:7)"));
    assert!(advice.action.code.as_deref().unwrap().contains("submit(square, *arguments)"));
    assert_eq!(advice.confidence.level.max(Sure::Medium), advice.confidence.level);
    let mut story = Story::convoy();
    for at_ms in 0..200 {
        story.held((1_996 + at_ms) * MS, 1, &["build_report app.py"]);
    }
    let told = story.end(2_300 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert_eq!(advice.subject.function.as_deref(), Some("build_report (app.py:7)"));
}

#[test]
fn all_threads_that_were_seen_in_a_function_are_rid_of_it() {
    // A server with a thread for each connection: most is waited for the first, and much for the rest.
    let names = ["MainThread", "handler-1", "handler-2", "handler-3", "handler-4", "handler-5"];
    let mut story = Story::of(&names);
    let turns = (0..400).zip([1, 2, 1, 3, 1, 4, 1, 5].into_iter().cycle());
    for (round, thread) in turns {
        let at_ns = round * 10 * MS;
        story.acquire(at_ns, thread);
        story.wait(at_ns + MS, 0);
        story.ask(at_ns + 6 * MS, 0);
        story.held(at_ns + 6 * MS, thread, &["answer app.py", "handle app.py"]);
        story.forced(at_ns + 6 * MS + 10_000, thread);
        story.acquire(at_ns + 6 * MS + 20_000, 0);
        story.release(at_ns + 6 * MS + 200_000, 0);
    }
    let told = story.end(4_000 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert!(advice.text.starts_with("run answer (app.py:7) in a process"), "{}", advice.text);
    let caused = advice.evidence.iter().find(|it| it.what.starts_with("share of the waits"));
    assert!(caused.unwrap().value > 0.95, "{}", advice.text);
    assert_eq!(advice.subject.threads.len(), 5);
}

#[test]
fn of_what_a_thread_object_runs_a_function_goes_to_a_process() {
    let mut story = Story::convoy();
    for at_ms in 0..400 {
        story.held((1_996 + at_ms) * MS, 1, &["Worker.run app.py", "_bootstrap ~threading.py"]);
    }
    let told = story.end(2_500 * MS);
    let code = told.of(Kind::ToAProcess).unwrap().action.code.as_deref().unwrap();
    assert!(code.contains("submit(function, *arguments)"), "{code}");
    assert!(code.contains("# function: what computes in Worker.run"), "{code}");
}

#[test]
fn of_a_task_that_is_no_function_any_more_a_function_goes_to_a_process() {
    let code = |file: &'static str| {
        let mut story = Story::convoy();
        let worker = if file == "huey" { "_run ~huey/consumer.py" } else { WORKER };
        for at_ms in 0..400 {
            story.held((1_996 + at_ms) * MS, 1, &["resize app.py", worker]);
        }
        story.release(2_400 * MS, 1);
        story.off(2_450 * MS, 1, ("futex", ""), &[worker]);
        story.acquire(2_600 * MS, 1);
        let told = story.end(2_700 * MS);
        told.of(Kind::ToAProcess).unwrap().action.code.clone().unwrap()
    };
    let (of_task, of_function) = (code("huey"), code("pool"));
    assert!(of_task.contains("submit(function, *arguments)"), "{of_task}");
    assert!(of_task.contains("# function: what computes in resize"), "{of_task}");
    assert!(of_function.contains("submit(resize, *arguments)"), "{of_function}");
}

#[test]
fn threads_of_a_pool_that_do_the_same_all_come_last() {
    let names = ["MainThread", "pool_0", "pool_1", "pool_2", "pool_3"];
    let mut story = Story::of(&names);
    // The last one holds as long as the others, and the main thread waits for it less often.
    let turns = (0..400).zip([1, 2, 3, 1, 2, 3, 4].into_iter().cycle());
    for (round, thread) in turns {
        let at_ns = round * 10 * MS;
        let held_ns = if thread == 4 { 9 } else { 6 } * MS;
        story.acquire(at_ns, thread);
        if thread != 4 {
            story.wait(at_ns + MS, 0);
            story.ask(at_ns + held_ns, 0);
        }
        story.forced(at_ns + held_ns + 10_000, thread);
        story.acquire(at_ns + held_ns + 20_000, 0);
        story.release(at_ns + held_ns + 200_000, 0);
    }
    let told = story.end(4_000 * MS);
    let advice = told.of(Kind::Priority).unwrap();
    assert!(advice.text.starts_with("give threads pool_* low priority"), "{}", advice.text);
    assert_eq!(advice.subject.threads.len(), 4);
}

#[test]
fn what_a_package_calls_back_goes_to_a_process_with_the_function_that_called_the_package() {
    let mut story = Story::convoy();
    for at_ms in 0..400 {
        let apply = "apply /x/site-packages/pandas/core/groupby/groupby.py";
        let stack = ["summarise app.py", apply, "build_report app.py:12", "run ~threading.py"];
        story.held((1_996 + at_ms) * MS, 1, &stack);
    }
    let told = story.end(2_500 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert!(advice.text.starts_with("run build_report (app.py"), "{}", advice.text);
    let code = advice.action.code.as_deref().unwrap();
    assert!(code.contains("submit(build_report, *arguments)"), "{code}");
}

#[test]
fn a_function_that_mostly_imports_is_told_to_do_so_before_the_threads_start() {
    let told = |modules: &[&str]| {
        let mut story = Story::convoy();
        for (at_ms, module) in (0..600).zip(modules.iter().cycle()) {
            let module = format!("<module> /x/site-packages/{module}/__init__.py");
            let stack = [
                "_compile ~re/__init__.py",
                &module,
                "_find_and_load <frozen importlib._bootstrap>",
                "handle app.py:5",
            ];
            story.held((1_996 + at_ms) * MS, 1, &stack);
        }
        story.end(2_700 * MS)
    };
    let one = told(&["pandas"]);
    assert!(one.of(Kind::ToAProcess).is_none(), "{:?}", one.kinds());
    let advice = one.of(Kind::EarlyImports).unwrap();
    let begins =
        "import pandas before the threads start: imports in handle (app.py:5) held the GIL";
    assert!(advice.text.starts_with(begins), "{}", advice.text);
    assert_eq!(
        advice.action.code.as_deref(),
        Some("import pandas  # at the top of the program, before its threads start")
    );
    let many = told(&["sympy", "a", "a/b", "pandas", "dash"]);
    let advice = many.of(Kind::EarlyImports).unwrap();
    assert!(advice.text.starts_with("import a.b, dash and 2 more before"), "{}", advice.text);
    assert_eq!(advice.action.code.as_deref().unwrap().lines().last(), Some("import sympy"));
}

#[test]
fn a_server_can_be_given_more_processes() {
    let command = "/venv/bin/python /venv/bin/celery -A app worker -P threads";
    let told = Story::convoy().started_by(command).end(2_000 * MS);
    let code = told.of(Kind::ToAProcess).unwrap().action.code.clone().unwrap();
    assert!(code.contains("submit(square, *arguments)"), "{code}");
    let last = code.lines().last().unwrap();
    assert!(last.starts_with("# or run celery with --pool prefork --concurrency N: "), "{last}");
}

/// A thread that is so often 5 ms late, behind one that computes.
fn late(rounds: u64) -> Story {
    late_behind("builder", rounds)
}

/// The same, behind one of this name.
fn late_behind(name: &'static str, rounds: u64) -> Story {
    let mut story = Story::of(&["MainThread", name]);
    story.acquire(0, 1);
    for round in 1..=rounds {
        let at_ns = round * 10 * MS;
        story.wait(at_ns, 0);
        story.ask(at_ns + 5 * MS, 0);
        story.forced(at_ns + 5 * MS + 10_000, 1);
        story.acquire(at_ns + 5 * MS + 20_000, 0);
        story.release(at_ns + 5 * MS + 200_000, 0);
        story.acquire(at_ns + 5 * MS + 220_000, 1);
    }
    story
}

#[test]
fn without_a_look_no_function_is_named() {
    let told = late(99).end(1_000 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert_eq!((&advice.subject.function, &advice.action.code), (&None, &None));
    assert!(advice.text.starts_with("run the work of thread builder in a process of its own"));
}

#[test]
fn what_rests_on_a_few_waits_is_not_sure_and_says_so() {
    let because = |rounds: u64| {
        let told = late(rounds).end((rounds + 1) * 10 * MS);
        let confidence = told.of(Kind::Policy).unwrap().confidence.clone();
        (confidence.level, confidence.because)
    };
    let (level, said) = because(8);
    assert_eq!(level, Sure::Medium);
    assert!(said.ends_with("; only 8 such waits were recorded"), "{said}");
    let (level, said) = because(200);
    assert_eq!(level, Sure::High);
    assert!(!said.contains("only"), "{said}");
}

#[test]
fn what_may_gain_nothing_is_not_sure_and_says_so() {
    let names = ["MainThread", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"];
    let mut story = Story::of(&names);
    story.may_use(1, None);
    let told = story.take_turns(5).advised;
    let all: Vec<_> = told.advice.into_iter().chain(told.rejected).collect();
    let (unsure, sure): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|advice| advice.gain.as_ref().is_some_and(|gain| gain.high >= gain.before));
    let reason = "; its range reaches what was recorded";
    assert!(!unsure.is_empty() && !sure.is_empty());
    for advice in unsure {
        assert_ne!(advice.confidence.level, Sure::High, "{advice:?}");
        assert!(advice.confidence.because.contains(reason), "{advice:?}");
    }
    for advice in sure {
        assert!(!advice.confidence.because.contains(reason), "{advice:?}");
    }
}

/// Five threads compute in turns, and others do nothing but to begin.
fn five_compute(names: &[&'static str], command: &str) -> Told {
    five_compute_for(names, command, &[])
}

/// The same, while the main thread waits for them there.
fn five_compute_for(names: &[&'static str], command: &str, main: &[&str]) -> Told {
    let mut story = Story::of(names).started_by(command);
    story.acquire(0, 0);
    story.release(500, 0);
    story.off(800, 0, ("futex", ""), main);
    story.take_turns(5)
}

#[test]
fn of_many_threads_that_fill_the_gil_few_would_do() {
    let names = ["MainThread", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"];
    let told = five_compute(&names, "python app.py");
    let advice = told.of(Kind::FewerThreads).unwrap();
    assert_eq!(advice.subject.thread_group.as_deref(), Some("worker-*"));
    assert!(advice.text.starts_with("together, 5 threads worker-* hold"), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("max_workers=1"), "{}", advice.text);
    assert!(told.of(Kind::ToAProcess).is_none(), "no look tells what those five did");
}

#[test]
fn helpers_that_are_called_like_the_threads_of_a_pool_are_none_of_these() {
    let names = [
        "MainThread",
        "Thread-4",
        "Thread-5",
        "Thread-6",
        "Thread-7",
        "Thread-8",
        "Thread-1",
        "Thread-2",
    ];
    let told = five_compute(&names, "/venv/bin/python /venv/bin/dramatiq app");
    let advice = told.of(Kind::FewerThreads).unwrap();
    assert!(advice.text.starts_with("together, 5 threads Thread-* hold"), "{}", advice.text);
    assert_eq!(advice.action.code.as_deref(), Some("dramatiq --threads 1"));
}

#[test]
fn fewer_threads_of_a_pool_that_its_threads_are_called_after_are_told_in_its_own_way() {
    let mut names = ["AnyIO worker thread"; 6];
    names[0] = "MainThread";
    let told = five_compute(&names, "uvicorn app:app");
    let line = "anyio.CapacityLimiter(1)  # as the limiter=... of these calls; without one: \
                current_default_thread_limiter().total_tokens = 1 inside the running loop";
    assert_eq!(told.of(Kind::FewerThreads).unwrap().action.code.as_deref(), Some(line));
}

#[test]
fn fewer_threads_of_a_scheduler_that_another_thread_was_seen_in_are_told_in_its_own_way() {
    let mut names = ["ThreadPoolExecutor-0_0"; 6];
    names[0] = "MainThread";
    let code = |frame| {
        let main = ["wait ~threading.py", frame, "main app.py"];
        let told = five_compute_for(&names, "python app.py", &main);
        told.of(Kind::FewerThreads).unwrap().action.code.clone().unwrap()
    };
    let line = "dask.config.set(num_workers=1)  # or num_workers=1 of compute(), or \
                scheduler=\"processes\"";
    assert_eq!(code("get /x/site-packages/dask/threaded.py"), line);
    assert!(code("get /x/site-packages/other/threaded.py").starts_with("ThreadPoolExecutor(max_w"));
}

/// A thread keeps the GIL for 200 ms at a time, three times.
fn keeps(libraries: &[&str]) -> Story {
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

#[test]
fn a_generator_expression_is_told_of_as_the_function_that_it_is_part_of() {
    let mut story = Story::convoy();
    for at_ms in 0..400 {
        let stack = ["total.<locals>.<genexpr> app.py", "total app.py", "main app.py"];
        story.held((1_996 + at_ms) * MS, 1, &stack);
    }
    let told = story.end(2_500 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert!(advice.text.starts_with("run total (app.py"), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("submit(total, *arguments)"));
}

#[test]
fn a_switch_interval_is_no_advice_to_a_program_under_a_policy() {
    let told = Story::convoy().end(2_000 * MS);
    let advice = told.of(Kind::SwitchInterval).unwrap();
    assert!(advice.action.code.as_deref().unwrap().contains("sys.setswitchinterval(5e-5)"));
}

#[test]
fn advice_without_a_prediction_says_why_and_is_not_ranked_by_it() {
    let told = Story::convoy().end(2_000 * MS);
    let advised = crate::advise(&told.report, &[]);
    assert!(advised.advice.iter().all(|it| it.gain.is_none()));
    assert_eq!(advised.advice[0].kind, Kind::Policy);
    let because = &advised.advice[0].confidence.because;
    assert!(because.starts_with("nothing is predicted: "), "{because}");
}

#[test]
fn nothing_is_predicted_from_a_simulation_that_has_next_to_none_of_the_recorded_waits() {
    let Told { report, mut demands, .. } = Story::convoy().end(2_000 * MS);
    let mut advised = |times: f64| {
        let recorded = &mut demands[0].recorded.threads;
        let main = recorded.iter().position(|it| it.tid == PID).unwrap();
        let mean_us = recorded[main].returns.mean_us;
        recorded[main].returns.mean_us *= times;
        let advised = crate::advise(&report, &demands);
        demands[0].recorded.threads[main].returns.mean_us = mean_us;
        advised
    };
    let of = |advised: &crate::Advised, kind| {
        advised.advice.iter().find(|it| it.kind == kind).cloned().unwrap()
    };
    for times in [3.0, 1.0 / 6.0] {
        let near = of(&advised(times), Kind::Policy);
        assert!(near.gain.is_some() && near.confidence.level == Sure::Low, "{near:?}");
    }
    let far = advised(6.0);
    assert!(far.advice.iter().all(|it| it.gain.is_none()), "{:?}", far.advice);
    let because = of(&far, Kind::Policy).confidence.because;
    let begins = "nothing is predicted: the simulation does not reproduce the recording: it gives";
    assert!(because.starts_with(begins), "{because}");
}

#[test]
fn a_lock_remains_without_a_gil_where_the_users_own_code_takes_it() {
    let contends = |stack: &[&str]| {
        let mut story = Story::convoy_of(&["waiter"]);
        for round in 0..10 {
            let at_ns = (2_010 + 151 * round) * MS;
            story.acquire(at_ns, 2);
            story.release(at_ns + MS / 2, 2);
            story.off(at_ns + 75 * MS, 2, ("futex", ""), stack);
        }
        story.acquire(3_520 * MS, 2);
        let told = story.end(3_530 * MS);
        let text = &told.of(Kind::FreeThreaded).unwrap().text;
        text.rsplit("; ").next().unwrap().to_owned()
    };
    let (chat, of_package) = ("chat app.py:11", "/x/site-packages/websockets/sync/messages.py");
    let remains = "the lock at chat (app.py:11) remains";
    assert_eq!(contends(&[chat]), remains);
    assert_eq!(contends(&["Condition.__enter__ ~threading.py", chat]), remains);
    let acquire = format!("Lock.acquire {of_package}");
    assert_eq!(contends(&[&acquire, chat]), remains);
    let unknown = "the trace does not show which locks are contended then";
    let waits = format!("Assembler.get_next_frame {of_package}");
    assert_eq!(contends(&[&waits, chat]), unknown);
    assert_eq!(contends(&["Condition.__enter__ ~threading.py", &waits, chat]), unknown);
}
