//! What a thread did off the GIL, told by the system call it slept in and its Python stack.
//!
//! A call alone does not tell: a worker without work and a thread that wants a lock sleep in the
//! same one (`futex`). The innermost frames do, as long as they are code of Python's own.

use super::known_functions::{
    IDLE, LOCKS, LOOKERS, LOOKS_FOR_RESULT, NATIVE_LOOP, PIPES, POLLERS, READERS, SELECTOR, TAKERS,
    THREADS, WAITERS, is_file, is_one_of, name,
};
use crate::record::{Frame, NO_DESCRIPTOR};
use crate::report::What;

/// Calls that wait until one of some descriptors is ready.
const POLLS: [&str; 9] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "io_getevents",
    "io_uring_enter",
];
/// Calls that wait for a peer, whatever their descriptor.
const NETWORK: [&str; 9] = [
    "accept", "accept4", "connect", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg",
    "sendmmsg",
];
/// Calls that wait for a file system, whatever their descriptor.
const DISK: [&str; 19] = [
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "sync",
    "msync",
    "openat",
    "open",
    "unlink",
    "unlinkat",
    "rename",
    "renameat2",
    "getdents64",
    "newfstatat",
    "statx",
    "fallocate",
    "ftruncate",
    "sendfile",
    "copy_file_range",
];
const READS: [&str; 8] =
    ["read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev"];

/// What a thread did, and whether it kept an event loop from going on.
pub(super) fn what(call: &str, on: &str, frames: &[Frame]) -> (What, bool) {
    let call = sleeps_in(call, frames);
    let what = of_call(call, on);
    let Some(innermost) = frames.first() else { return (what, false) };
    let below_loop = frames.iter().any(is_loop);
    if POLLS.contains(&call)
        && (is_one_of(innermost, &POLLERS) || below_loop && polls_as_loop(frames))
    {
        return (What::Idle, false);
    }
    let what = match what {
        What::Computing | What::Unknown => what,
        _ if takes_work(frames) || looks_for_work(what, frames) => What::Idle,
        What::Lock if waits_for_work(frames) => What::Idle,
        What::Lock if is_one_of(innermost, &[LOCKS]) => What::Lock,
        What::Lock if THREADS.iter().any(|file| is_file(innermost, file)) => What::Thread,
        What::Descriptor | What::Network if reads_work(call, frames) => What::Idle,
        What::Descriptor if POLLS.contains(&call) => of_poll(frames),
        What::Sleep if is_one_of(innermost, &[LOOKS_FOR_RESULT]) => What::Thread,
        What::Network if call.starts_with("accept") => What::Idle,
        other => other,
    };
    (what, below_loop && what != What::Idle && !leaves_loop(frames))
}

/// The call that it sleeps in, although the look may have found it awake: its innermost function
/// leaves it no other.
fn sleeps_in<'a>(call: &'a str, frames: &[Frame]) -> &'a str {
    let Some(innermost) = frames.first().filter(|_| matches!(call, "computing" | "")) else {
        return call;
    };
    if polls_by_itself(innermost) {
        "poll"
    } else if is_one_of(innermost, &READERS) {
        "read"
    } else if is_one_of(innermost, &WAITERS) {
        "futex"
    } else {
        call
    }
}

/// What the system call alone says.
fn of_call(call: &str, on: &str) -> What {
    match call {
        "computing" => What::Computing,
        "futex" | "futex_waitv" | "semtimedop" | "fcntl" | "flock" => What::Lock,
        "nanosleep" | "clock_nanosleep" => What::Sleep,
        "wait4" | "waitid" => What::Process,
        call if NETWORK.contains(&call) => What::Network,
        call if DISK.contains(&call) => What::Disk,
        call if READS.contains(&call) => match on {
            "socket" => What::Network,
            "file" => What::Disk,
            _ => What::Descriptor,
        },
        call if POLLS.contains(&call) => match on {
            NO_DESCRIPTOR => What::Sleep,
            "socket" => What::Network,
            _ => What::Descriptor,
        },
        _ => What::Unknown,
    }
}

/// A poll whose descriptors are not known: a socket with a timeout polls inside `socket.py` or
/// `ssl.py`; a selector that a server loops over has nothing to do.
fn of_poll(frames: &[Frame]) -> What {
    let mut stdlib = frames.iter().take_while(|frame| !frame.is_of_the_user());
    if waits_for_work(frames) {
        What::Idle
    } else if stdlib.any(|frame| is_file(frame, "socket.py") || is_file(frame, "ssl.py")) {
        What::Network
    } else if frames.iter().take(3).any(|frame| is_file(frame, "subprocess.py")) {
        What::Process
    } else {
        What::Descriptor
    }
}

/// Whether the innermost frames, up to the user's own code, are those of a worker without work.
fn waits_for_work(frames: &[Frame]) -> bool {
    frames.iter().take_while(|frame| !frame.is_of_the_user()).any(|frame| is_one_of(frame, &IDLE))
}

/// Whether the innermost frames, up to the user's own code, are those of a worker that takes work.
fn takes_work(frames: &[Frame]) -> bool {
    frames.iter().take_while(|frame| !frame.is_of_the_user()).any(|frame| is_one_of(frame, &TAKERS))
}

/// Whether a function of a package sleeps itself until there may be something to do.
fn looks_for_work(what: What, frames: &[Frame]) -> bool {
    let is_wait = |frame: &&Frame| THREADS.iter().chain(&PIPES).any(|file| is_file(frame, file));
    let caller = frames.iter().find(|frame| !is_wait(frame));
    let may_look = matches!(what, What::Lock | What::Sleep | What::Descriptor | What::Network);
    may_look && caller.is_some_and(|frame| is_one_of(frame, &LOOKERS))
}

/// Whether a worker reads its next work, or waits for some to read. A function of Python's own that
/// it was given to run may read for itself; that is its work.
fn reads_work(call: &str, frames: &[Frame]) -> bool {
    let is_pipe = |frame: &&Frame| PIPES.iter().any(|file| is_file(frame, file));
    let caller = frames.iter().find(|frame| !is_pipe(frame));
    (matches!(call, "read" | "recvfrom" | "recvmsg") || POLLS.contains(&call))
        && caller.is_some_and(|frame| is_one_of(frame, &IDLE))
}

/// Whether a function that polls is known: nothing else has to tell what it is.
pub(super) fn polls_by_itself(frame: &Frame) -> bool {
    is_one_of(frame, &[SELECTOR]) || is_one_of(frame, &POLLERS)
}

/// Whether a frame is one from which an event loop calls what is to be done.
pub(super) fn is_loop(frame: &Frame) -> bool {
    let of = |file, functions: &[&str]| is_file(frame, file) && functions.contains(&name(frame));
    of("asyncio/base_events.py", &["_run_once", "run_forever", "run_until_complete"])
        || of("asyncio/runners.py", &["run"])
        || of("trio/_core/_run.py", &["unrolled_run"])
        || of("gevent/hub.py", &["run"])
        || of("twisted/internet/base.py", &["mainLoop"])
        || (frame.file.contains("/uvloop/") && name(frame) == "run")
        || frame.file == NATIVE_LOOP.0
}

/// Whether it is a loop that polls: the innermost frame is its own, or a selector that it called.
fn polls_as_loop(frames: &[Frame]) -> bool {
    let Some(innermost) = frames.first() else { return false };
    let by_selector = is_one_of(innermost, &[SELECTOR])
        && frames.get(1).is_some_and(|caller| is_file(caller, "asyncio/base_events.py"));
    let by_itself = ["asyncio/base_events.py", "asyncio/runners.py", "gevent/hub.py"]
        .iter()
        .any(|file| is_file(innermost, file))
        || innermost.file.contains("/uvloop/")
        || innermost.file.contains("/trio/_core/");
    by_selector || by_itself
}

/// Whether a loop has not begun or is over: it waits for the threads of its executor to end.
fn leaves_loop(frames: &[Frame]) -> bool {
    frames
        .iter()
        .take_while(|frame| !is_loop(frame))
        .any(|frame| name(frame) == "shutdown" && is_file(frame, "concurrent/futures/thread.py"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "/usr/lib/python3.11/";

    /// Frames written `function file`, innermost first; files of Python's own begin with a tilde.
    fn frames(stack: &[&str]) -> Vec<Frame> {
        let frame = |text: &&str| {
            let (function, file) = text.split_once(' ').unwrap();
            let (function, file) = (function.to_owned(), file.replace('~', LIB));
            Frame { function, file, line: 1 }
        };
        stack.iter().map(frame).collect()
    }

    /// How a thread waits until it is woken.
    const WAITS: [&str; 2] = ["Condition.wait ~threading.py", "Event.wait ~threading.py"];

    const LOOP: [&str; 4] = [
        "_run ~asyncio/events.py",
        "_run_once ~asyncio/base_events.py",
        "run_forever ~asyncio/base_events.py",
        "main app.py",
    ];

    fn on_loop(call: &str, on: &str, inner: &[&str]) -> (What, bool) {
        let stack: Vec<_> = inner.iter().chain(&LOOP).copied().collect();
        what(call, on, &frames(&stack))
    }

    #[test]
    fn a_worker_without_work_is_idle_and_one_that_wants_a_lock_is_not() {
        let idle = ["_worker ~concurrent/futures/thread.py", "run ~threading.py"];
        assert_eq!(what("futex", "", &frames(&idle)), (What::Idle, false));
        let work = ["add app.py", "run ~concurrent/futures/thread.py", idle[0], idle[1]];
        assert_eq!(what("futex", "", &frames(&work)), (What::Lock, false));
        let get = ["wait ~threading.py", "get ~queue.py", "work app.py"];
        assert_eq!(what("futex", "", &frames(&get)), (What::Thread, false));
        let condition = ["Condition.__enter__ ~threading.py", "put ~queue.py", "work app.py"];
        assert_eq!(what("futex", "", &frames(&condition)), (What::Lock, false));
        let queue = ["wait ~threading.py", "handler_thread /x/site-packages/waitress/task.py"];
        assert_eq!(what("futex", "", &frames(&queue)), (What::Idle, false));
        let reactor = [
            "wait ~threading.py",
            "Queue.get ~queue.py",
            "ThreadWorker.__init__.<locals>.work /x/site-packages/twisted/_threads/_threadworker.py",
        ];
        assert_eq!(what("futex", "", &frames(&reactor)), (What::Idle, false));
    }

    #[test]
    fn who_selects_from_nothing_sleeps() {
        assert_eq!(what("select", "nothing", &frames(&["nap app.py"])), (What::Sleep, false));
        assert_eq!(what("select", "", &frames(&["nap app.py"])), (What::Descriptor, false));
    }

    #[test]
    fn an_event_loop_that_polls_is_idle_and_a_call_in_its_callback_blocks_it() {
        let selects = ["select ~selectors.py", "_run_once ~asyncio/base_events.py", "main app.py"];
        assert_eq!(what("epoll_wait", "", &frames(&selects)), (What::Idle, false));
        assert_eq!(on_loop("clock_nanosleep", "", &["handle app.py"]), (What::Sleep, true));
        let read = ["readinto ~socket.py", "begin ~http/client.py", "handle app.py"];
        assert_eq!(on_loop("recvfrom", "socket", &read), (What::Network, true));
        assert_eq!(on_loop("poll", "", &read), (What::Network, true));
        assert_eq!(on_loop("futex", "", &["handle app.py"]), (What::Lock, true));
        assert_eq!(on_loop("computing", "", &["handle app.py"]), (What::Computing, true));
        let uvloop = ["run ~asyncio/runners.py", "main app.py"];
        assert_eq!(what("epoll_pwait", "", &frames(&uvloop)), (What::Idle, false));
        let under = ["handle app.py", "run ~asyncio/runners.py"];
        assert_eq!(what("fsync", "", &frames(&under)), (What::Disk, true));
    }

    #[test]
    fn what_serves_a_pool_of_processes_is_idle_until_there_is_something_to_do() {
        let recv = "Connection._recv ~multiprocessing/connection.py";
        let bytes = "_ConnectionBase.recv_bytes ~multiprocessing/connection.py";
        let wait = "wait ~multiprocessing/connection.py";
        let select = "_PollLikeSelector.select ~selectors.py";
        let epoll = "EpollSelector.select ~selectors.py";
        let get = "SimpleQueue.get ~multiprocessing/queues.py";
        let loky = "/x/site-packages/joblib/externals/loky/";
        let manager = format!(
            "_ExecutorManagerThread.wait_result_broken_or_wakeup {loky}process_executor.py"
        );
        let tracker = format!("main {loky}backend/resource_tracker.py");
        let loky_worker = format!("_process_worker {loky}process_executor.py");
        let started = "<module> <string>";
        for (call, stack) in [
            (
                "read",
                vec![recv, "Pool._handle_results ~multiprocessing/pool.py", "run ~threading.py"],
            ),
            ("poll", vec![select, wait, "Pool._handle_workers ~multiprocessing/pool.py"]),
            ("read", vec![recv, bytes, get, "worker ~multiprocessing/pool.py", "<module> app.py"]),
            ("read", vec![recv, bytes, get, "_process_worker ~concurrent/futures/process.py"]),
            ("computing", vec![recv, bytes, get, "_process_worker ~concurrent/futures/process.py"]),
            ("read", vec![recv, bytes, get, &loky_worker, started]),
            ("poll", vec![select, wait, &manager, "run ~threading.py"]),
            ("read", vec!["main ~multiprocessing/resource_tracker.py", started]),
            ("read", vec![&tracker, started]),
            ("epoll_wait", vec![epoll, "main ~multiprocessing/forkserver.py", started]),
            ("futex", vec!["wait ~threading.py", "TMonitor.run /x/site-packages/tqdm/_monitor.py"]),
            ("read", vec![recv, bytes, "Server.serve_client ~multiprocessing/managers.py"]),
        ] {
            let on = if call == "read" { "pipe" } else { "" };
            assert_eq!(what(call, on, &frames(&stack)), (What::Idle, false), "{stack:?}");
        }
        let socket = [recv, bytes, "Server.serve_client ~multiprocessing/managers.py"];
        assert_eq!(what("read", "socket", &frames(&socket)).0, What::Idle);
        let work = [recv, bytes, "work app.py", "worker ~multiprocessing/pool.py"];
        assert_eq!(what("read", "pipe", &frames(&work)).0, What::Descriptor);
        let builtin = ["mapstar ~multiprocessing/pool.py", "worker ~multiprocessing/pool.py"];
        assert_eq!(what("read", "pipe", &frames(&builtin)).0, What::Descriptor);
        let put = ["_send ~multiprocessing/connection.py", "worker ~multiprocessing/pool.py"];
        assert_eq!(what("write", "pipe", &frames(&put)).0, What::Descriptor);
    }

    #[test]
    fn what_serves_the_processes_of_celery_is_idle_until_there_is_something_to_do() {
        let in_package = |text: &&str| text.replace(' ', " /x/site-packages/");
        let worker = [
            "SimpleQueue.get_payload billiard/queues.py",
            "Worker._make_recv_method.<locals>._recv billiard/pool.py",
            "Worker.workloop billiard/pool.py",
        ];
        let recv = [&["Connection._recv billiard/connection.py"][..], &worker].concat();
        let enter = [&["SemLock.__enter__ billiard/synchronize.py"][..], &worker].concat();
        let results = [
            "_poll billiard/connection.py",
            "Pool._setup_queues.<locals>._poll_result billiard/pool.py",
            "ResultHandler.body billiard/pool.py",
        ];
        for (call, on, stack) in [
            ("read", "pipe", &recv[..]),
            ("computing", "", &recv),
            ("futex", "", &enter),
            ("poll", "", &results),
            ("clock_nanosleep", "", &["TimeoutHandler.body billiard/pool.py"]),
        ] {
            let stack: Vec<_> = stack.iter().map(in_package).collect();
            let stack: Vec<_> = stack.iter().map(String::as_str).collect();
            assert_eq!(what(call, on, &frames(&stack)), (What::Idle, false), "{stack:?}");
        }
        // What a task reads for itself is its work.
        let task = in_package(&recv[0]);
        let workloop = in_package(&worker[2]);
        let stack = [task.as_str(), "task app.py", &workloop];
        assert_eq!(what("read", "pipe", &frames(&stack)).0, What::Descriptor);
    }

    #[test]
    fn a_package_that_looks_now_and_then_for_something_to_do_is_idle_meanwhile() {
        let in_package = |text: &str| text.replace(' ', " /x/site-packages/");
        for (call, inner, looker) in [
            (
                "epoll_wait",
                &["EpollSelector.select ~selectors.py"][..],
                "ThreadWorker.run gunicorn/workers/gthread.py",
            ),
            ("select", &[], "SyncWorker.wait gunicorn/workers/sync.py"),
            ("clock_nanosleep", &[], "_CtypesTimeoutManager.run dramatiq/middleware/time_limit.py"),
            ("clock_nanosleep", &[], "worker_process dramatiq/cli.py"),
            (
                "futex",
                &["Condition.wait ~threading.py", "PriorityQueue.get ~queue.py"],
                "WorkerThread.run dramatiq/worker.py",
            ),
            ("futex", &WAITS, "Consumer.loop huey/consumer.py"),
            ("futex", &WAITS, "BlockingScheduler._main_loop apscheduler/schedulers/blocking.py"),
            ("clock_nanosleep", &[], "Timer.run celery/utils/timer2.py"),
            ("clock_nanosleep", &[], "ParentPollerUnix.run ipykernel/parentpoller.py"),
        ] {
            let looker = in_package(looker);
            let stack: Vec<_> = inner.iter().copied().chain([&looker[..]]).collect();
            assert_eq!(what(call, "", &frames(&stack)), (What::Idle, false), "{stack:?}");
            // What it calls is something else, and so is the user's code.
            let other = in_package("get redis/client.py");
            for callee in ["task app.py", &other] {
                let stack: Vec<_> = inner.iter().copied().chain([callee, &looker]).collect();
                assert_ne!(what(call, "", &frames(&stack)).0, What::Idle, "{stack:?}");
            }
        }
    }

    #[test]
    fn servers_watchers_and_pools_of_packages_are_idle_while_they_wait_for_something_to_do() {
        let in_package = |text: &str| text.replace(' ', " /x/site-packages/");
        for (call, stack) in [
            ("epoll_wait", &["_BasePollEpoll.poll pyftpdlib/ioloop.py"][..]),
            ("poll", &["InotifyFD._check_inotify_fd watchdog/observers/inotify_c.py"]),
            ("futex", &["DelayedQueue.get watchdog/utils/delayed_queue.py"]),
            (
                "futex",
                &["acquire_with_timeout gevent/_threading.py", "Queue.get gevent/_threading.py"],
            ),
        ] {
            let stack: Vec<_> = stack.iter().map(|frame| in_package(frame)).collect();
            let stack: Vec<_> = stack.iter().map(String::as_str).chain(["serve app.py"]).collect();
            assert_eq!(what(call, "", &frames(&stack)), (What::Idle, false), "{stack:?}");
        }
    }

    #[test]
    fn what_takes_the_next_piece_of_work_waits_for_work_whatever_it_is_taken_from() {
        let loop_ = "Worker.loop /x/site-packages/huey/consumer.py";
        let takes = [
            "SocketIO.readinto ~socket.py",
            "Redis.brpop /x/site-packages/redis/client.py",
            "RedisStorage.dequeue /x/site-packages/huey/storage.py",
            loop_,
        ];
        assert_eq!(what("recvfrom", "socket", &frames(&takes)).0, What::Idle);
        let stores = [takes[0], takes[1], "put_data /x/site-packages/huey/storage.py", loop_];
        assert_eq!(what("recvfrom", "socket", &frames(&stores)).0, What::Network);
        let task = [takes[0], "task app.py", takes[2]];
        assert_eq!(what("recvfrom", "socket", &frames(&task)).0, What::Network);
    }

    #[test]
    fn a_client_that_sleeps_until_there_is_a_result_waits_for_others() {
        let sleeps = ["Parallel._retrieve /x/site-packages/joblib/parallel.py", "main app.py"];
        assert_eq!(what("clock_nanosleep", "", &frames(&sleeps)), (What::Thread, false));
    }

    #[test]
    fn a_loop_that_a_look_finds_awake_in_its_own_poll_waits_all_the_same() {
        let gevent = ["Hub.run /x/site-packages/gevent/hub.py"];
        let eventlet = [
            "Hub.do_poll /x/site-packages/eventlet/hubs/epolls.py",
            "Hub.wait /x/site-packages/eventlet/hubs/poll.py",
            "BaseHub.run /x/site-packages/eventlet/hubs/hub.py",
        ];
        let twisted = [
            "EPollReactor.doPoll /x/site-packages/twisted/internet/epollreactor.py",
            "ReactorBase.mainLoop /x/site-packages/twisted/internet/base.py",
            "main app.py",
        ];
        let trio = [
            "EpollIOManager.get_events /x/site-packages/trio/_core/_io_epoll.py",
            "unrolled_run /x/site-packages/trio/_core/_run.py",
        ];
        let asyncio = ["EpollSelector.select ~selectors.py", LOOP[1], LOOP[2], "main app.py"];
        let uvloop = ["Runner.run ~asyncio/runners.py", "main app.py"];
        let older_uvloop = ["run /x/site-packages/uvloop/__init__.py", "main app.py"];
        let uvicorn = ["asyncio_run /x/site-packages/uvicorn/_compat.py", "<module> bin/uvicorn"];
        let server = ["select ~selectors.py", "BaseServer.serve_forever ~socketserver.py"];
        let natives: [&[&str]; 4] = [&gevent, &uvloop, &older_uvloop, &uvicorn];
        let others: [&[&str]; 5] = [&eventlet, &twisted, &trio, &asyncio, &server];
        for stack in natives.into_iter().chain(others) {
            for call in ["epoll_wait", "computing", ""] {
                assert_eq!(what(call, "", &frames(stack)), (What::Idle, false), "{call} {stack:?}");
            }
        }
        // A selector that a callback of the loop waits for blocks it, whether it is awake or not.
        let own = ["select ~selectors.py", "wait ~multiprocessing/connection.py", "handle app.py"];
        assert_eq!(on_loop("computing", "", &own), (What::Descriptor, true));
        assert_eq!(
            on_loop("computing", "", &["main.<locals>.run app.py"]),
            (What::Computing, true)
        );
    }

    #[test]
    fn a_thread_that_a_look_finds_awake_where_it_can_only_wait_for_a_lock_does_that() {
        let worker = ["_worker ~concurrent/futures/thread.py", "run ~threading.py"];
        let trio = [
            "WorkerThread._work /x/site-packages/trio/_core/_thread_cache.py",
            "run ~threading.py",
        ];
        for call in ["futex", "computing"] {
            assert_eq!(what(call, "", &frames(&worker)), (What::Idle, false));
            assert_eq!(what(call, "", &frames(&trio)), (What::Idle, false));
        }
        let get = ["Condition.wait ~threading.py", "Queue.get ~queue.py", "work app.py"];
        assert_eq!(what("computing", "", &frames(&get)), (What::Thread, false));
        // What the thread was to run may compute.
        assert_eq!(what("computing", "", &frames(&worker[1..])), (What::Computing, false));
    }

    #[test]
    fn a_descriptor_tells_the_network_from_the_disk() {
        let main = frames(&["main app.py"]);
        assert_eq!(what("read", "socket", &main).0, What::Network);
        assert_eq!(what("read", "file", &main).0, What::Disk);
        assert_eq!(what("read", "pipe", &main).0, What::Descriptor);
        assert_eq!(what("write", "", &main).0, What::Descriptor);
        assert_eq!(what("fdatasync", "", &main).0, What::Disk);
        assert_eq!(what("accept4", "socket", &main).0, What::Idle);
        assert_eq!(what("wait4", "", &main).0, What::Process);
        assert_eq!(what("ioctl", "", &main).0, What::Unknown);
    }

    #[test]
    fn qualified_names_of_functions_are_known_as_plain_ones() {
        let base = "BaseEventLoop._run_once ~asyncio/base_events.py";
        let stack = frames(&["handle app.py", "Handle._run ~asyncio/events.py", base]);
        assert_eq!(what("clock_nanosleep", "", &stack), (What::Sleep, true));
        let worker = "ThreadedTaskDispatcher.handler_thread /x/site-packages/waitress/task.py";
        let stack = frames(&["Condition.wait ~threading.py", worker]);
        assert_eq!(what("futex", "", &stack), (What::Idle, false));
    }

    #[test]
    fn without_a_stack_the_call_alone_counts() {
        assert_eq!(what("futex", "", &[]), (What::Lock, false));
        assert_eq!(what("", "", &[]), (What::Unknown, false));
    }
}
