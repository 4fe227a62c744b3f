//! What could help where threads wait for the GIL.

use super::story::{MS, PID, Story, Told};
use crate::{Kind, Measure, Sure};

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

/// A thread that is so often 5 ms late, behind one that computes.
pub(super) fn late(rounds: u64) -> Story {
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
