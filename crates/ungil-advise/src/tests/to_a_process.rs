//! What goes to another process, and what is better done otherwise.

use super::pools::WORKER;
use super::remedies::late;
use super::story::{MS, Story};
use crate::{Kind, Sure};

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

#[test]
fn without_a_look_no_function_is_named() {
    let told = late(99).end(1_000 * MS);
    let advice = told.of(Kind::ToAProcess).unwrap();
    assert_eq!((&advice.subject.function, &advice.action.code), (&None, &None));
    assert!(advice.text.starts_with("run the work of thread builder in a process of its own"));
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
