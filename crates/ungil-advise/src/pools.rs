//! The pools of threads that are known, and what gives each of them another number of threads.

use crate::functions::is_in;
use crate::servers::Server;
use ungil_trace::report::ThreadReport;

/// A pool that is not made by a program's own `ThreadPoolExecutor(...)`.
struct Known {
    /// The file in which its threads begin, behind those of [`STARTERS`].
    begins_in: &'static str,
    names: Names,
    /// Python that gives it `{n}` threads, or the command of its server that does.
    line: &'static str,
    /// Where that line has to be, if that is no call at the program's start.
    place: Option<&'static str>,
}

/// What its threads are called.
enum Names {
    /// Nothing else calls threads so.
    Only(&'static str),
    /// Others may, but hardly where these commands started the program.
    Under(&'static str, &'static [&'static str]),
    Any,
}

/// The files that start a thread and hand it its work, whatever that is.
const STARTERS: [&str; 2] = ["threading.py", "concurrent/futures/thread.py"];

const IN_LOOP: Option<&str> = Some("inside the running loop");

/// From the sources of each.
const POOLS: [Known; 11] = [
    Known {
        begins_in: "anyio/_backends/_asyncio.py",
        names: Names::Only("AnyIO worker thread"),
        line: "anyio.to_thread.current_default_thread_limiter().total_tokens = {n}",
        place: IN_LOOP,
    },
    Known {
        begins_in: "trio/_core/_thread_cache.py",
        names: Names::Only("Trio thread"),
        line: "trio.to_thread.current_default_thread_limiter().total_tokens = {n}",
        place: IN_LOOP,
    },
    Known {
        begins_in: "gunicorn/workers/gthread.py",
        names: Names::Under("ThreadPoolExecutor-0_", &["gunicorn"]),
        line: "gunicorn --threads {n}",
        place: None,
    },
    Known {
        begins_in: "waitress/task.py",
        names: Names::Only("waitress-"),
        line: "waitress.serve(app, threads={n})",
        place: None,
    },
    Known {
        begins_in: "cheroot/workers/threadpool.py",
        names: Names::Only("CP Server Thread-"),
        line: "cheroot.wsgi.Server(..., numthreads={n})",
        place: None,
    },
    Known {
        begins_in: "dramatiq/worker.py",
        names: Names::Under("Thread-", &["dramatiq"]),
        line: "dramatiq --threads {n}",
        place: None,
    },
    Known {
        begins_in: "celery/concurrency/base.py",
        names: Names::Under("ThreadPoolExecutor-0_", &["celery"]),
        line: "celery worker --pool threads --concurrency {n}",
        place: None,
    },
    Known {
        begins_in: "huey/consumer.py",
        names: Names::Under("Worker-", &["huey_consumer"]),
        line: "huey_consumer --workers {n}",
        place: None,
    },
    Known {
        begins_in: "apscheduler/executors/base.py",
        names: Names::Any,
        line: "apscheduler.executors.pool.ThreadPoolExecutor({n})",
        place: None,
    },
    Known {
        begins_in: "multiprocessing/pool.py",
        names: Names::Any,
        line: "multiprocessing.pool.ThreadPool({n})",
        place: None,
    },
    // The default executor of a loop: its threads begin in what they are given to run.
    Known {
        begins_in: "",
        names: Names::Only("asyncio_"),
        line: "loop.set_default_executor(ThreadPoolExecutor(max_workers={n}))",
        place: IN_LOOP,
    },
];

/// What gives the pool of these threads more than `count` of them. `command` started the program.
pub fn more_threads(threads: &[&ThreadReport], count: usize, command: &[String]) -> String {
    let condition = "if what they wait for can serve more at once";
    let Some(pool) = of(threads, command) else {
        return format!(
            "ThreadPoolExecutor(max_workers=...)  # more than {count}, {condition}; or: \
             ungil.fanout.fanout(function, items)"
        );
    };
    // An assignment may be run as it stands. 40 are the most of AnyIO and of trio unless it is made.
    let number = if pool.line.contains(" = ") { (count * 5 / 2).to_string() } else { "N".into() };
    let place = pool.place.map_or_else(String::new, |place| format!("{place}, "));
    format!("{}  # more than {count}, {place}{condition}", pool.line(&number, command))
}

/// What gives the pool of these threads only so many.
pub fn fewer_threads(threads: &[&ThreadReport], count: usize, command: &[String]) -> String {
    let Some(pool) = of(threads, command) else {
        return format!(
            "ThreadPoolExecutor(max_workers={count})  # or: ungil.fanout.fanout(function, items, \
             limit={count})"
        );
    };
    let place = pool.place.map_or_else(String::new, |place| format!("  # {place}"));
    format!("{}{place}", pool.line(&count.to_string(), command))
}

impl Known {
    /// A server that was started by its command is told in its options.
    fn line(&self, number: &str, command: &[String]) -> String {
        let server = Server::of(command).filter(|it| self.begins_in.starts_with(it.package()));
        let line = server.and_then(|server| server.with_threads(number));
        line.unwrap_or_else(|| self.line.replace("{n}", number))
    }

    fn has_name(&self, name: &str, command: &[String]) -> bool {
        match self.names {
            Names::Only(begin) => name.starts_with(begin),
            Names::Under(begin, commands) => {
                let server = Server::of(command);
                name.starts_with(begin) && server.is_some_and(|it| commands.contains(&it.command))
            }
            Names::Any => false,
        }
    }
}

/// The pool that these are threads of, by where they begin; where no look shows that, by their names.
fn of(threads: &[&ThreadReport], command: &[String]) -> Option<&'static Known> {
    let stacks = threads.iter().flat_map(|thread| &thread.off_gil).map(|off| &off.stack);
    let begins: Vec<_> = stacks.filter_map(|stack| begin(stack)).collect();
    let is_begun = |pool: &&Known| begins.iter().any(|frame| is_in(frame, pool.begins_in));
    let is_called = |pool: &&Known| {
        // Work that was seen to begin elsewhere is that of another pool.
        let may_be = begins.is_empty() || matches!(pool.names, Names::Only(_));
        may_be && threads.iter().all(|thread| pool.has_name(&thread.name, command))
    };
    POOLS.iter().find(is_begun).or_else(|| POOLS.iter().find(is_called))
}

/// The outermost frame that says what the thread was started for.
fn begin(stack: &[String]) -> Option<&String> {
    stack.iter().rfind(|frame| !STARTERS.iter().any(|file| is_in(frame, file)))
}
