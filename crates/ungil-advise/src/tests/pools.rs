//! Pools of threads and of connections that are exhausted, or busy.

use super::story::{MS, Story, Told, first, off, texts};
use crate::{Cause, Sure};

pub(super) const WORKER: &str = "_worker ~concurrent/futures/thread.py";

#[test]
fn a_pool_is_exhausted_if_none_of_its_threads_waits_for_work() {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    for thread in 1..3 {
        let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
        off(&mut story, thread, 150 * MS, ("recvfrom", "socket"), &stack);
    }
    let told = story.end(1_510 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::ExhaustedPool));
    assert_eq!(advice.subject.thread_group.as_deref(), Some("pool_*"));
    assert_eq!(advice.subject.function.as_deref(), Some("query (app.py:7)"));
    assert!(advice.text.contains("20 looks"), "{}", advice.text);
    assert_eq!(told.advised.advice.len(), 1, "the line is told once");
}

#[test]
fn a_pool_with_a_thread_that_waits_for_work_is_not_exhausted() {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
    off(&mut story, 1, 150 * MS, ("recvfrom", "socket"), &stack);
    off(&mut story, 2, 150 * MS, ("futex", ""), &[WORKER]);
    let told = story.end(1_510 * MS);
    let causes: Vec<_> = told.advised.advice.iter().map(|it| it.cause).collect();
    assert_eq!(causes, [Some(Cause::Network)]);
}

/// What is told of a pool of two that waits for the network in all its work, after `more` happened.
fn busy_pool(names: &[&'static str], more: impl FnOnce(&mut Story)) -> Option<Cause> {
    let names = [&["MainThread"], names].concat();
    let mut story = Story::of(&names);
    for thread in 1..u32::try_from(names.len()).unwrap() {
        let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
        off(&mut story, thread, 150 * MS, ("recvfrom", "socket"), &stack);
    }
    more(&mut story);
    first(&story.end(1_510 * MS)).cause
}

#[test]
fn a_pool_that_finds_its_queue_empty_again_and_again_is_not_exhausted() {
    let sleeps = |count: u64, same: bool| {
        move |story: &mut Story| {
            for (number, thread) in (0..count).flat_map(|it| [(it, 1), (it, 2)]) {
                let at_ns = number * 100 * MS + u64::from(thread) * MS;
                // Threads that wait for an event do so at a lock of their own.
                let lock = if same { 9 } else { 9 + thread };
                story.slept_at((at_ns, at_ns + MS / 10), thread, 0, lock);
            }
        }
    };
    assert_eq!(busy_pool(&["pool_0", "pool_1"], sleeps(10, true)), Some(Cause::Network));
    assert_eq!(busy_pool(&["pool_0", "pool_1"], sleeps(1, true)), Some(Cause::ExhaustedPool));
    assert_eq!(busy_pool(&["pool_0", "pool_1"], sleeps(10, false)), Some(Cause::ExhaustedPool));
}

#[test]
fn the_pool_of_an_event_loop_is_exhausted_when_it_has_all_its_threads() {
    let few = |story: &mut Story| story.may_use(2, None);
    assert_eq!(busy_pool(&["asyncio_0", "asyncio_1"], few), Some(Cause::Network));
    let names = ["asyncio_0", "asyncio_1", "asyncio_2", "asyncio_3", "asyncio_4", "asyncio_5"];
    assert_eq!(busy_pool(&names, few), Some(Cause::ExhaustedPool));
}

#[test]
fn threads_that_did_one_thing_and_ended_are_no_pool() {
    let (mut story, count) = (Story::of(&["MainThread", "x", "x", "x", "x", "x"]), 5);
    for thread in 1..=count {
        let at_ns = u64::from(thread) * 200 * MS;
        story.acquire(at_ns, thread);
        let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
        story.release(at_ns + MS / 10, thread);
        story.off(at_ns + MS, thread, ("recvfrom", "socket"), &stack);
        story.acquire(at_ns + 100 * MS, thread);
        story.release(at_ns + 101 * MS, thread);
        story.ends(at_ns + 102 * MS, thread);
    }
    let told = story.end(1_510 * MS);
    let causes = told.advised.advice.iter().map(|it| it.cause);
    assert!(causes.into_iter().all(|it| it != Some(Cause::ExhaustedPool)), "{:?}", texts(&told));
}

#[test]
fn a_pool_of_which_all_threads_wait_for_a_lock_is_not_told_to_get_more_of_them() {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    let stack = ["add app.py", "run ~concurrent/futures/thread.py", WORKER];
    (1..3).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &stack));
    let told = story.end(1_510 * MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", texts(&told)) };
    assert_eq!((advice.cause, &advice.action.code), (Some(Cause::Lock), &None));
    let begins = "it is not the GIL: the pool pool waits for a lock: its 2 threads never waited for \
                  work in 3.02 s, summed over them; instead they waited for a lock (futex) at add";
    assert!(advice.text.starts_with(begins), "{}", advice.text);
    assert!(advice.text.contains("; more threads would wait for it, too; "), "{}", advice.text);
}

/// What is written for more threads of a pool of two, of which these are the outermost frames.
fn more_threads(command: &str, names: &[&'static str; 2], begin: &[&str]) -> String {
    let names = [&["MainThread"], &names[..]].concat();
    let mut story = Story::of(&names).started_by(command);
    let stack = [&["query app.py"], begin, &["_bootstrap ~threading.py"]].concat();
    (1..3).for_each(|it| off(&mut story, it, 150 * MS, ("recvfrom", "socket"), &stack));
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::ExhaustedPool), "{:?}", texts(&told));
    first(&told).action.code.clone().unwrap()
}

#[test]
fn each_pool_is_given_more_threads_in_its_own_way() {
    const EXECUTOR: [&str; 2] = ["ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"];
    const ANYIO: [&str; 2] = ["AnyIO worker thread", "AnyIO worker thread"];
    const PLAIN: [&str; 2] = ["Thread-4", "Thread-5"];
    let executor = |file| {
        let inner = format!("handle /x/site-packages/{file}");
        vec![inner, "run ~concurrent/futures/thread.py".into(), WORKER.into()]
    };
    let package = |frame: &str| vec![frame.replace(' ', " /x/site-packages/")];
    for (command, names, begin, line) in [
        (
            "uvicorn app:app",
            &ANYIO,
            package("WorkerThread.run anyio/_backends/_asyncio.py"),
            "anyio.CapacityLimiter(5)  # more than 2, as the limiter=... of these calls; without one: \
             current_default_thread_limiter().total_tokens = 5 inside the running loop, if ",
        ),
        (
            "python app.py",
            &PLAIN,
            package("WorkerThread._work trio/_core/_thread_cache.py"),
            "trio.CapacityLimiter(5)  # more than 2, as the limiter=... of these calls; without one: ",
        ),
        (
            "gunicorn app:app",
            &EXECUTOR,
            executor("gunicorn/workers/gthread.py"),
            "gunicorn --threads N  # more than 2, if ",
        ),
        (
            "celery -A app worker -P threads",
            &EXECUTOR,
            executor("celery/concurrency/base.py"),
            "celery worker --pool threads --concurrency N  # more than 2, if ",
        ),
        // A pool of the program's own, under a server that has threads, too.
        (
            "gunicorn app:app",
            &EXECUTOR,
            vec!["run ~concurrent/futures/thread.py".into(), WORKER.into()],
            "ThreadPoolExecutor(max_workers=...)  # more than 2, if ",
        ),
        (
            "python app.py",
            &PLAIN,
            package("handler_thread waitress/task.py"),
            "waitress.serve(app, threads=N)  # more than 2, if ",
        ),
        (
            "/venv/bin/waitress-serve app:app",
            &PLAIN,
            package("handler_thread waitress/task.py"),
            "waitress-serve --threads=N  # more than 2, if ",
        ),
        (
            "python app.py",
            &PLAIN,
            package("WorkerThread.run cheroot/workers/threadpool.py"),
            "cheroot.wsgi.Server(..., numthreads=N)  # more than 2, if ",
        ),
        (
            "dramatiq app",
            &PLAIN,
            package("WorkerThread.run dramatiq/worker.py"),
            "dramatiq --threads N  # more than 2, if ",
        ),
        (
            "huey_consumer.py app.huey",
            &PLAIN,
            package("Consumer._create_process.<locals>._run huey/consumer.py"),
            "huey_consumer --workers N  # more than 2, if ",
        ),
        (
            "python app.py",
            &PLAIN,
            vec!["worker ~multiprocessing/pool.py".to_owned()],
            "multiprocessing.pool.ThreadPool(N)  # more than 2, if ",
        ),
    ] {
        let begin: Vec<_> = begin.iter().map(String::as_str).collect();
        let code = more_threads(command, names, &begin);
        assert!(code.starts_with(line), "{code}");
    }
}

#[test]
fn a_server_that_a_program_starts_itself_is_given_more_threads_in_python() {
    const EXECUTOR: [&str; 2] = ["ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"];
    const PLAIN: [&str; 2] = ["Thread-4", "Thread-5"];
    for (names, begin, line) in [
        (
            &EXECUTOR,
            "handle /x/site-packages/gunicorn/workers/gthread.py",
            "cfg.set(\"threads\", N)  # more than 2, in load_config() of gunicorn's application, if ",
        ),
        (
            &EXECUTOR,
            "handle /x/site-packages/celery/concurrency/base.py",
            "app.Worker(pool=\"threads\", concurrency=N)  # more than 2, if ",
        ),
        (
            &PLAIN,
            "WorkerThread.run /x/site-packages/dramatiq/worker.py",
            "dramatiq.Worker(broker, worker_threads=N)  # more than 2, if ",
        ),
        (
            &PLAIN,
            "Consumer._create_process.<locals>._run /x/site-packages/huey/consumer.py",
            "huey.create_consumer(workers=N)  # more than 2, if ",
        ),
    ] {
        let executor = ["run ~concurrent/futures/thread.py", WORKER];
        let begin = [&[begin], &executor[if *names == EXECUTOR { 0 } else { 2 }..]].concat();
        let code = more_threads("python app.py", names, &begin);
        assert!(code.starts_with(line), "{code}");
    }
}

#[test]
fn a_pool_whose_threads_have_no_name_is_called_by_their_class() {
    let mut story = Story::of(&["MainThread", "Thread-4", "Thread-5"]);
    let run = "WorkerThread.run /x/site-packages/dramatiq/worker.py";
    let stack = ["query app.py", run, "_bootstrap ~threading.py"];
    (1..3).for_each(|it| off(&mut story, it, 150 * MS, ("recvfrom", "socket"), &stack));
    let told = story.end(1_510 * MS);
    let begins =
        "it is not the GIL: the pool of WorkerThreads of dramatiq is exhausted: its 2 threads";
    assert!(first(&told).text.starts_with(begins), "{}", first(&told).text);
}

#[test]
fn a_pool_that_a_package_makes_for_itself_is_given_more_threads_in_the_words_of_that_package() {
    const REACTOR: [&str; 2] =
        ["PoolThread-twisted.internet.reactor-0", "PoolThread-twisted.internet.reactor-1"];
    let line = "cherrypy.config.update({\"server.thread_pool\": N})  # more than 2, if ";
    let begin = [
        "Tree.__call__ /x/site-packages/cherrypy/_cptree.py",
        "HTTPRequest.respond /x/site-packages/cheroot/server.py",
        "WorkerThread.run /x/site-packages/cheroot/workers/threadpool.py",
    ];
    let code = more_threads("python app.py", &["Thread-4", "Thread-5"], &begin);
    assert!(code.starts_with(line), "{code}");
    let line = "reactor.suggestThreadPoolSize(N)  # more than 2, for the pool of the reactor, if ";
    let begin =
        ["ThreadWorker.__init__.<locals>.work /x/site-packages/twisted/_threads/_threadworker.py"];
    let code = more_threads("python app.py", &REACTOR, &begin);
    assert!(code.starts_with(line), "{code}");
    let line = "dask.config.set(num_workers=N)  # more than 2, or num_workers=N of compute(), or ";
    let begin = [
        "batch_execute_tasks /x/site-packages/dask/local.py",
        "run ~concurrent/futures/thread.py",
        WORKER,
    ];
    let names = ["ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"];
    let code = more_threads("python app.py", &names, &begin);
    assert!(code.starts_with(line), "{code}");
}

#[test]
fn a_pool_of_as_many_threads_as_a_limiter_gives_by_default_is_that_of_the_default_one() {
    let mut story = Story::of(&[&["MainThread"], &["AnyIO worker thread"; 40][..]].concat());
    let stack = ["query app.py", "WorkerThread.run /x/site-packages/anyio/_backends/_asyncio.py"];
    (1..41).for_each(|it| off(&mut story, it, 150 * MS, ("recvfrom", "socket"), &stack));
    let told = story.end(1_510 * MS);
    let line = "anyio.to_thread.current_default_thread_limiter().total_tokens = 100  # more than 40, \
                inside the running loop, if ";
    assert!(first(&told).action.code.as_deref().unwrap().starts_with(line), "{:?}", texts(&told));
}

/// A pool of two threads that is idle for so long at the start and at the end, and has work for 1.5 s
/// in between; its second thread may be idle again and again in that time.
fn is_unused_for(idle_ns: u64, has_free: bool) -> Told {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    for thread in 1..3 {
        let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
        story.acquire(0, thread);
        story.release(MS, thread);
        story.off(idle_ns / 2, thread, ("futex", ""), &[WORKER]);
        for round in 0..10 {
            let at_ns = idle_ns + round * 151 * MS;
            story.acquire(at_ns, thread);
            story.release(at_ns + MS / 2, thread);
            if has_free && thread == 2 && round % 2 == 0 {
                story.off(at_ns + 75 * MS, thread, ("futex", ""), &[WORKER]);
            } else {
                story.off(at_ns + 75 * MS, thread, ("recvfrom", "socket"), &stack);
            }
        }
        story.acquire(idle_ns + 1_510 * MS, thread);
        story.release(idle_ns + 1_511 * MS, thread);
        story.off(idle_ns + 1_600 * MS, thread, ("futex", ""), &[WORKER]);
        story.acquire(2 * idle_ns + 1_511 * MS, thread);
    }
    story.end(2 * idle_ns + 1_512 * MS)
}

#[test]
fn a_pool_without_work_at_the_start_and_at_the_end_is_judged_by_what_is_between() {
    let told = is_unused_for(500 * MS, false);
    let says = "the pool pool is exhausted: its 2 threads never waited for work in 3.02 s while the \
                pool had work, summed over them; instead they waited for the network";
    assert!(first(&told).text.contains(says), "{:?}", texts(&told));
    let unused = first(&told).evidence.iter().find(|it| it.what.starts_with("part of it before"));
    assert!(unused.is_some_and(|it| (it.value - 2.0).abs() < 0.01), "{:?}", first(&told).evidence);
}

#[test]
fn a_pool_that_is_free_between_pieces_of_work_or_nearly_all_the_time_is_not_exhausted() {
    for told in [is_unused_for(500 * MS, true), is_unused_for(5_000 * MS, false)] {
        let is_pool = |it: &crate::Advice| it.cause == Some(Cause::ExhaustedPool);
        assert!(!told.advised.advice.iter().any(is_pool), "{:?}", texts(&told));
    }
}

#[test]
fn a_client_that_waits_for_the_results_of_a_pool_is_no_pool() {
    let mut story = Story::of(&["MainThread", "client"]);
    let map = ["wait ~threading.py", "Pool.map ~multiprocessing/pool.py", "main app.py"];
    for thread in 0..2 {
        off(&mut story, thread, 150 * MS, ("futex", ""), &map);
    }
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Unknown), "{:?}", texts(&told));
}

#[test]
fn a_process_of_a_pool_is_no_pool_of_one_thread() {
    let mut story = Story::of(&["MainThread"]);
    let stack =
        ["query app.py", "mapstar ~multiprocessing/pool.py", "worker ~multiprocessing/pool.py"];
    off(&mut story, 0, 150 * MS, ("recvfrom", "socket"), &stack);
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Network), "{:?}", texts(&told));
}

#[test]
fn the_threads_of_a_thread_pool_of_multiprocessing_are_a_pool() {
    let mut story = Story::of(&["MainThread", "Thread-1 (worker)", "Thread-2 (worker)"]);
    let worker = "worker ~multiprocessing/pool.py";
    let stack = ["query app.py", "mapstar ~multiprocessing/pool.py", worker, "run ~threading.py"];
    for thread in 1..3 {
        off(&mut story, thread, 150 * MS, ("recvfrom", "socket"), &stack);
    }
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::ExhaustedPool), "{:?}", texts(&told));
}

/// Two threads of a pool compute without the GIL for 1.5 s, of which the kernel ran each so long.
fn computes(ran_ns: u64) -> Told {
    computes_on(None, ran_ns)
}

/// The same where the program may use so many processors, and thousandths by its limit.
fn computes_on(processors: Option<(u32, Option<u32>)>, ran_ns: u64) -> Told {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    for thread in 1..3 {
        let stack = ["work app.py", "run ~concurrent/futures/thread.py", WORKER];
        off(&mut story, thread, 150 * MS, ("computing", ""), &stack);
        story.ran(thread, ran_ns);
    }
    if let Some((allowed, limit_thousandths)) = processors {
        story.may_use(allowed, limit_thousandths);
    }
    story.end(1_510 * MS)
}

#[test]
fn a_pool_that_keeps_all_processors_busy_is_told_so() {
    for (processors, named) in [((2, None), "2"), ((8, Some(2_100)), "2.1")] {
        let told = computes_on(Some(processors), 1_500 * MS);
        let advice = first(&told);
        let says = format!(
            "they kept 2.0 processors busy on average, and the program may use {named} processors, \
             so more threads would not help"
        );
        assert!(advice.text.contains(&says), "{}", advice.text);
        assert_eq!((advice.cause, advice.confidence.level), (Some(Cause::Computing), Sure::High));
    }
}

#[test]
fn a_pool_that_leaves_processors_is_told_that_more_threads_can_do_more() {
    let told = computes_on(Some((8, None)), 1_500 * MS);
    let advice = first(&told);
    let says = "they kept 2.0 processors busy on average, and the program may use 8 processors, so \
                more threads can do more, if other programs leave the rest";
    assert!(advice.text.contains(says), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::Medium);
    let usable = advice.evidence.iter().find(|it| it.what.starts_with("processors"));
    assert!(usable.is_some_and(|it| (it.value - 8.0).abs() < 1e-9), "{:?}", advice.evidence);
}

#[test]
fn a_pool_that_computes_is_not_told_to_get_more_threads() {
    let told = computes(1_500 * MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", texts(&told)) };
    assert_eq!((advice.cause, &advice.action.code), (Some(Cause::Computing), &None));
    let begins = "it is not the GIL: the pool pool computes: its 2 threads never waited for work in \
                  3.02 s, summed over them; instead they ran without the GIL";
    assert!(advice.text.starts_with(begins), "{}", advice.text);
    let says = "they kept 2.0 processors busy on average, so more threads help only if more than \
                these are free";
    assert!(advice.text.contains(says), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::Medium);
}

#[test]
fn where_a_pool_that_computes_lacks_processors_more_threads_are_no_help() {
    let told = computes(700 * MS);
    let advice = first(&told);
    let says = "they got a processor for only 1.4 of 3.02 s in which they wanted one, so more threads \
                would not help";
    assert!(advice.text.contains(says), "{}", advice.text);
    assert_eq!((advice.cause, advice.confidence.level), (Some(Cause::Computing), Sure::High));
}

#[test]
fn of_pools_that_wait_for_each_other_the_one_at_which_the_work_stands_still_is_told() {
    let names = ["MainThread", "inner_0", "outer_0", "outer_1"];
    let worker = ["run ~concurrent/futures/thread.py", WORKER];
    let fetches = ["fetch app.py", worker[0], worker[1]];
    let result = ["Condition.wait ~threading.py", "Future.result ~concurrent/futures/_base.py"];
    let waits = [&result[..], &["handle app.py"], &worker].concat();
    let mut story = Story::of(&names);
    off(&mut story, 1, 150 * MS, ("recvfrom", "socket"), &fetches);
    (2..4).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &waits));
    let told = story.end(1_510 * MS);
    assert!(first(&told).text.contains("the pool inner is exhausted"), "{:?}", texts(&told));
    let one = "its only thread never waited for work in 1.51 s; instead it waited for the network";
    assert!(first(&told).text.contains(one), "{:?}", texts(&told));
    assert_eq!(first(&told).confidence.level, Sure::High);
    let evidence = &first(&told).evidence;
    assert!(evidence.iter().any(|it| it.what == "another thread waited for a result"));

    // Where nobody is seen at that work, it is not sure that more threads help.
    let mut story = Story::of(&names);
    off(&mut story, 1, 150 * MS, ("futex", ""), &[WORKER]);
    (2..4).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &waits));
    let told = story.end(1_510 * MS);
    assert!(first(&told).text.contains("the pool outer is exhausted"), "{:?}", texts(&told));
    assert_eq!(first(&told).confidence.level, Sure::Medium);
}

#[test]
fn a_pool_of_connections_of_httpx_is_exhausted_if_threads_wait_for_one() {
    let core = "/x/site-packages/httpcore/";
    let stack = [
        "Condition.wait ~threading.py",
        "Event.wait ~threading.py",
        &format!("Event.wait {core}_synchronization.py"),
        &format!("PoolRequest.wait_for_connection {core}_sync/connection_pool.py"),
        &format!("ConnectionPool.handle_request {core}_sync/connection_pool.py"),
        "query app.py",
    ];
    let mut story = Story::of(&["MainThread", "web-0", "web-1"]);
    (1..3).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &stack));
    let told = story.end(1_510 * MS);
    let says =
        "a connection pool of httpx is exhausted: 2 threads waited for a connection at query";
    assert!(first(&told).text.contains(says), "{:?}", texts(&told));

    // More threads would wait for the same connections.
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    let stack = [&stack[..], &["run ~concurrent/futures/thread.py", WORKER]].concat();
    (1..3).for_each(|thread| off(&mut story, thread, 150 * MS, ("futex", ""), &stack));
    let told = story.end(1_510 * MS);
    let of_pools = texts(&told).into_iter().filter(|it| it.contains("pool"));
    assert_eq!(of_pools.count(), 1, "{:?}", texts(&told));
}

/// The frames of a thread that waits for a connection of `SQLAlchemy`, without its own.
const TAKES: [&str; 4] = [
    "Condition.wait ~threading.py",
    "Queue.get /x/site-packages/sqlalchemy/util/queue.py",
    "QueuePool._do_get /x/site-packages/sqlalchemy/pool/impl.py",
    "Pool.connect /x/site-packages/sqlalchemy/pool/base.py",
];

#[test]
fn a_pool_of_connections_is_exhausted_if_threads_wait_for_one() {
    let mut story = Story::of(&["MainThread", "web-0", "web-1"]);
    let stack: Vec<_> = TAKES.into_iter().chain(["query app.py"]).collect();
    for thread in 1..3 {
        off(&mut story, thread, 150 * MS, ("futex", ""), &stack);
    }
    let told = story.end(1_510 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::ExhaustedPool));
    assert_eq!(advice.subject.function.as_deref(), Some("query (app.py:7)"));
    assert_eq!(advice.subject.thread_group.as_deref(), Some("web-*"));
    let expected = "a connection pool of SQLAlchemy is exhausted: 2 threads waited for a \
                    connection at query (app.py:7) for 3.01 s summed over them in 20 looks, the longest 150 ms";
    assert!(advice.text.contains(expected), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("pool_size="));
}

#[test]
fn a_thread_that_waits_for_the_database_does_not_wait_for_a_connection() {
    let mut story = Story::of(&["MainThread", "web-0"]);
    let connects = ["connect psycopg/connection.py", TAKES[2], TAKES[3], "query app.py"];
    off(&mut story, 1, 150 * MS, ("futex", ""), &connects);
    let told = story.end(1_510 * MS);
    assert_ne!(first(&told).cause, Some(Cause::ExhaustedPool));
}
