//! Functions of Python's own and of well-known packages that tell what a thread is there for, by
//! their file and name: what a system call alone does not say.

use crate::record::Frame;

/// The functions in which a thread waits for something to do, as file and function: the loops of
/// pools and servers, and of the threads and processes that serve pools or watch over others.
pub(super) const IDLE: [(&str, &str); 34] = [
    ("concurrent/futures/thread.py", "_worker"),
    ("concurrent/futures/process.py", "_process_worker"),
    ("concurrent/futures/process.py", "wait_result_broken_or_wakeup"),
    ("concurrent/futures/process.py", "_queue_management_worker"),
    ("loky/process_executor.py", "_process_worker"),
    ("loky/process_executor.py", "wait_result_broken_or_wakeup"),
    ("multiprocessing/pool.py", "worker"),
    ("multiprocessing/pool.py", "_handle_tasks"),
    ("multiprocessing/pool.py", "_handle_results"),
    ("multiprocessing/pool.py", "_handle_workers"),
    ("multiprocessing/forkserver.py", "main"),
    ("multiprocessing/resource_tracker.py", "main"),
    ("loky/backend/resource_tracker.py", "main"),
    ("multiprocessing/managers.py", "serve_client"),
    ("multiprocessing/managers.py", "serve_forever"),
    ("tqdm/_monitor.py", "run"),
    ("socketserver.py", "serve_forever"),
    ("asyncio/base_events.py", "_run_once"),
    ("anyio/_backends/_asyncio.py", "run"),
    ("trio/_core/_thread_cache.py", "_work"),
    ("twisted/_threads/_threadworker.py", "work"),
    ("waitress/task.py", "handler_thread"),
    ("waitress/wasyncore.py", "poll"),
    ("asyncore.py", "poll"),
    ("asyncore.py", "poll2"),
    ("cheroot/workers/threadpool.py", "run"),
    ("gunicorn/arbiter.py", "wait_for_signals"),
    ("kombu/asynchronous/hub.py", "create_loop"),
    ("celery/worker/loops.py", "synloop"),
    ("ipykernel/heartbeat.py", "run"),
    ("pyftpdlib/ioloop.py", "poll"),
    ("watchdog/observers/inotify_c.py", "_check_inotify_fd"),
    ("watchdog/observers/api.py", "dispatch_events"),
    ("watchdog/utils/delayed_queue.py", "get"),
];
/// The same of functions in whose thread other things may be done, too: what sleeps there has to be
/// the function itself, and not what it calls. Most of them look now and then.
pub(super) const LOOKERS: [(&str, &str); 20] = [
    ("gunicorn/workers/gthread.py", "wait_for_and_dispatch_events"),
    ("gunicorn/workers/gthread.py", "run"),
    ("gunicorn/workers/sync.py", "wait"),
    ("gunicorn/arbiter.py", "sleep"),
    ("gunicorn/arbiter.py", "stop"),
    ("dramatiq/worker.py", "run"),
    ("dramatiq/middleware/time_limit.py", "run"),
    ("dramatiq/cli.py", "worker_process"),
    ("dramatiq/cli.py", "watch_logs"),
    ("huey/consumer.py", "loop"),
    ("huey/consumer.py", "sleep"),
    ("huey/consumer.py", "sleep_for_interval"),
    ("apscheduler/schedulers/blocking.py", "_main_loop"),
    ("celery/utils/timer2.py", "run"),
    ("celery/utils/timer2.py", "_next_entry"),
    ("celery/worker/autoscale.py", "body"),
    ("celery/beat.py", "start"),
    ("billiard/pool.py", "body"),
    ("streamlit/watcher/polling_path_watcher.py", "task"),
    ("ipykernel/parentpoller.py", "run"),
];
/// Functions that take the next piece of work from where it is kept. All that they wait for is work.
pub(super) const TAKERS: [(&str, &str); 8] = [
    ("huey/storage.py", "dequeue"),
    ("dramatiq/brokers/stub.py", "__next__"),
    ("dramatiq/brokers/redis.py", "__next__"),
    ("dramatiq/brokers/rabbitmq.py", "__next__"),
    ("kombu/transport/virtual/base.py", "drain_events"),
    ("billiard/pool.py", "_recv"),
    ("billiard/pool.py", "_poll_result"),
    ("gevent/_threading.py", "get"),
];
/// The files through which such a function reads what is to be done from a pipe or a socket.
pub(super) const PIPES: [&str; 4] = [
    "multiprocessing/connection.py",
    "multiprocessing/queues.py",
    "loky/backend/queues.py",
    "selectors.py",
];
/// Files of Python's own through which a thread waits for another one.
pub(super) const THREADS: [&str; 3] = ["threading.py", "queue.py", "concurrent/futures/_base.py"];
/// A function of these that waits for a lock that another thread has, all the same.
pub(super) const LOCKS: (&str, &str) = ("threading.py", "__enter__");
/// A function that sleeps again and again until others have a result, as file and function.
pub(super) const LOOKS_FOR_RESULT: (&str, &str) = ("joblib/parallel.py", "_retrieve");

/// Functions in which a loop polls for something to do, and does nothing else off the GIL, as file
/// and function. One that a look finds there while it wakes up, or is not asleep yet, waits all the
/// same. The loop of uvloop is native code, which is seen as the function that runs it, or by how it
/// sleeps.
pub(super) const POLLERS: [(&str, &str); 19] = [
    NATIVE_LOOP,
    ("asyncio/base_events.py", "_run_once"),
    ("asyncio/runners.py", "run"),
    ("uvloop/__init__.py", "run"),
    ("uvicorn/_compat.py", "asyncio_run"),
    ("aiohttp/web.py", "run_app"),
    ("tornado/platform/asyncio.py", "start"),
    ("gevent/hub.py", "run"),
    ("eventlet/hubs/poll.py", "do_poll"),
    ("eventlet/hubs/epolls.py", "do_poll"),
    ("eventlet/hubs/selects.py", "wait"),
    ("twisted/internet/epollreactor.py", "doPoll"),
    ("twisted/internet/pollreactor.py", "doPoll"),
    ("twisted/internet/selectreactor.py", "doSelect"),
    ("trio/_core/_io_epoll.py", "get_events"),
    ("waitress/wasyncore.py", "poll"),
    ("waitress/wasyncore.py", "poll2"),
    ("asyncore.py", "poll"),
    ("asyncore.py", "poll2"),
];
/// The frame of a loop in native code ([`native_loop`](super::native_loop)), as file and function.
pub const NATIVE_LOOP: (&str, &str) = ("<event loop in native code>", "run_forever");
/// The same of a poll for whatever its caller waits for.
pub(super) const SELECTOR: (&str, &str) = ("selectors.py", "select");
/// And of one that does nothing off the GIL but read from a pipe or a socket.
pub(super) const READERS: [(&str, &str); 2] =
    [("multiprocessing/connection.py", "_recv"), ("billiard/connection.py", "_recv")];
/// And of functions that do nothing off the GIL but wait for a lock.
pub(super) const WAITERS: [(&str, &str); 7] = [
    ("threading.py", "wait"),
    ("threading.py", "join"),
    ("threading.py", "_wait_for_tstate_lock"),
    ("queue.py", "get"),
    ("queue.py", "put"),
    ("concurrent/futures/thread.py", "_worker"),
    ("trio/_core/_thread_cache.py", "_work"),
];

/// The name of a frame's function: from 3.11 on frames have qualified names (`Future.result`).
pub(super) fn name(frame: &Frame) -> &str {
    frame.function.rsplit('.').next().unwrap_or_default()
}

/// Whether a frame is in one of these functions, given as file and function.
pub(super) fn is_one_of(frame: &Frame, functions: &[(&str, &str)]) -> bool {
    functions.iter().any(|(file, function)| name(frame) == *function && is_file(frame, file))
}

/// Whether a frame is in a file of this name, in any folder.
pub(super) fn is_file(frame: &Frame, name: &str) -> bool {
    let before = frame.file.strip_suffix(name);
    before.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}
