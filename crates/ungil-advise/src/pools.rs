//! The pools of threads that are known, and what gives each of them another number of threads.

use crate::functions::is_in;
use crate::servers::Server;
use ungil_trace::report::ThreadReport;

/// A pool that is not made by a program's own `ThreadPoolExecutor(...)`.
struct Known {
    /// The file in which its threads begin, behind those of [`STARTERS`].
    begins_in: &'static str,
    names: Names,
    /// Python that gives it `{n}` threads. Where the command of its server started the program, it is
    /// that with its option, see [`Server::with_threads`].
    line: &'static str,
    /// Where that line has to be, or what else may be meant, if it is no call at the program's start.
    place: Option<&'static str>,
    /// The same two of fewer than [`LIMIT`] threads: a limiter of the program's own may be what keeps
    /// them few, which the default one does not change.
    few: Option<(&'static str, &'static str)>,
}

/// What its threads are called.
enum Names {
    /// Nothing else calls threads so.
    Only(&'static str),
    /// Others may, but hardly where these commands started the program.
    Under(&'static str, &'static [&'static str]),
    /// Others may, but hardly where a thread was seen in this file, which makes such pools.
    Beside(&'static str, &'static str),
    Any,
}

/// The files that start a thread and hand it its work, whatever that is.
const STARTERS: [&str; 2] = ["threading.py", "concurrent/futures/thread.py"];

/// What else may keep those few, and what to change then.
const FEW: &str = "as the limiter=... of these calls; without one: \
                   current_default_thread_limiter().total_tokens = {n} inside the running loop";
const IN_LOOP: Option<&str> = Some("inside the running loop");
/// The most threads of AnyIO and of trio, unless the program says otherwise.
const LIMIT: usize = 40;
/// A pool that says nothing more of itself.
const PLAIN: Known = Known { begins_in: "", names: Names::Any, line: "", place: None, few: None };

/// What serves others with the threads of another package, as the folder of its frames, and what
/// gives it so many of them.
const THROUGH: [(&str, &str, &str); 1] = [(
    "cheroot/workers/threadpool.py",
    "/cherrypy/",
    "cherrypy.config.update({\"server.thread_pool\": {n}})",
)];

/// From the sources of each.
const POOLS: [Known; 13] = [
    Known {
        begins_in: "anyio/_backends/_asyncio.py",
        names: Names::Only("AnyIO worker thread"),
        line: "anyio.to_thread.current_default_thread_limiter().total_tokens = {n}",
        place: IN_LOOP,
        few: Some(("anyio.CapacityLimiter({n})", FEW)),
    },
    Known {
        begins_in: "trio/_core/_thread_cache.py",
        names: Names::Only("Trio thread"),
        line: "trio.to_thread.current_default_thread_limiter().total_tokens = {n}",
        place: IN_LOOP,
        few: Some(("trio.CapacityLimiter({n})", FEW)),
    },
    Known {
        begins_in: "gunicorn/workers/gthread.py",
        names: Names::Under("ThreadPoolExecutor-0_", &["gunicorn"]),
        line: "cfg.set(\"threads\", {n})",
        place: Some("in load_config() of gunicorn's application"),
        ..PLAIN
    },
    Known {
        begins_in: "waitress/task.py",
        names: Names::Only("waitress-"),
        line: "waitress.serve(app, threads={n})",
        ..PLAIN
    },
    Known {
        begins_in: "cheroot/workers/threadpool.py",
        names: Names::Only("CP Server Thread-"),
        line: "cheroot.wsgi.Server(..., numthreads={n})",
        ..PLAIN
    },
    Known {
        begins_in: "dramatiq/worker.py",
        names: Names::Under("Thread-", &["dramatiq"]),
        line: "dramatiq.Worker(broker, worker_threads={n})",
        ..PLAIN
    },
    Known {
        begins_in: "celery/concurrency/base.py",
        names: Names::Under("ThreadPoolExecutor-0_", &["celery"]),
        line: "app.Worker(pool=\"threads\", concurrency={n})",
        ..PLAIN
    },
    Known {
        begins_in: "huey/consumer.py",
        names: Names::Under("Worker-", &["huey_consumer"]),
        line: "huey.create_consumer(workers={n})",
        ..PLAIN
    },
    Known {
        begins_in: "apscheduler/executors/base.py",
        line: "apscheduler.executors.pool.ThreadPoolExecutor({n})",
        ..PLAIN
    },
    Known {
        begins_in: "multiprocessing/pool.py",
        line: "multiprocessing.pool.ThreadPool({n})",
        ..PLAIN
    },
    Known {
        begins_in: "twisted/_threads/_threadworker.py",
        names: Names::Only("PoolThread-twisted.internet.reactor-"),
        line: "reactor.suggestThreadPoolSize({n})",
        place: Some("for the pool of the reactor"),
        ..PLAIN
    },
    Known {
        begins_in: "dask/local.py",
        names: Names::Beside("ThreadPoolExecutor-", "dask/threaded.py"),
        line: "dask.config.set(num_workers={n})",
        place: Some("or num_workers={n} of compute(), or scheduler=\"processes\""),
        ..PLAIN
    },
    // The default executor of a loop: its threads begin in what they are given to run.
    Known {
        names: Names::Only("asyncio_"),
        line: "loop.set_default_executor(ThreadPoolExecutor(max_workers={n}))",
        place: IN_LOOP,
        ..PLAIN
    },
];

/// What gives the pool of these threads more than `count` of them. `command` started the program, of
/// which `all` are threads.
pub fn more_threads(
    threads: &[&ThreadReport],
    count: usize,
    command: &[String],
    all: &[ThreadReport],
) -> String {
    let condition = "if what they wait for can serve more at once";
    let Some(pool) = of(threads, command, all) else {
        return format!(
            "ThreadPoolExecutor(max_workers=...)  # more than {count}, {condition}; or: \
             ungil.fanout.fanout(function, items)"
        );
    };
    // What may be run as it stands has a number.
    let may_run = pool.few.is_some() || pool.line.contains(" = ");
    let number = if may_run { (count * 5 / 2).to_string() } else { "N".into() };
    let (line, place) = pool.told(threads, &number, command);
    let place = place.map_or_else(String::new, |place| format!("{place}, "));
    format!("{line}  # more than {count}, {place}{condition}")
}

/// What gives the pool of these threads only so many.
pub fn fewer_threads(
    threads: &[&ThreadReport],
    count: usize,
    command: &[String],
    all: &[ThreadReport],
) -> String {
    let Some(pool) = of(threads, command, all) else {
        return format!(
            "ThreadPoolExecutor(max_workers={count})  # or: ungil.fanout.fanout(function, items, \
             limit={count})"
        );
    };
    let (line, place) = pool.told(threads, &count.to_string(), command);
    let place = place.map_or_else(String::new, |place| format!("  # {place}"));
    format!("{line}{place}")
}

impl Known {
    /// The line for so many threads, and where it has to be.
    fn told(
        &self,
        threads: &[&ThreadReport],
        number: &str,
        command: &[String],
    ) -> (String, Option<String>) {
        let few = self.few.filter(|_| threads.len() < LIMIT);
        let filled = |text: &str| text.replace("{n}", number);
        match few {
            Some((line, place)) => (filled(line), Some(filled(place))),
            None => match self.of_command(number, command) {
                Some(line) => (line, None),
                None => (filled(self.line(threads)), self.place.map(filled)),
            },
        }
    }

    /// The option of the server's command, if that started the program.
    fn of_command(&self, number: &str, command: &[String]) -> Option<String> {
        let server = Server::of(command).filter(|it| self.begins_in.starts_with(it.package()));
        server.and_then(|server| server.with_threads(number))
    }

    /// A server that another package runs is told in the words of that one.
    fn line(&self, threads: &[&ThreadReport]) -> &'static str {
        let is_through =
            |folder: &str| frames(threads.iter().copied()).any(|it| it.contains(folder));
        let through = THROUGH
            .iter()
            .find(|(begins_in, folder, _)| *begins_in == self.begins_in && is_through(folder));
        through.map_or(self.line, |(_, _, line)| line)
    }

    fn has_name(&self, name: &str, command: &[String], all: &[ThreadReport]) -> bool {
        match self.names {
            Names::Only(begin) => name.starts_with(begin),
            Names::Under(begin, commands) => {
                let server = Server::of(command);
                name.starts_with(begin) && server.is_some_and(|it| commands.contains(&it.command))
            }
            Names::Beside(begin, file) => {
                name.starts_with(begin) && frames(all).any(|frame| is_in(frame, file))
            }
            Names::Any => false,
        }
    }
}

/// The pool that these are threads of, by where they begin; where no look shows that, by their names.
fn of(
    threads: &[&ThreadReport],
    command: &[String],
    all: &[ThreadReport],
) -> Option<&'static Known> {
    let stacks = threads.iter().flat_map(|thread| &thread.off_gil).map(|off| &off.stack);
    let begins: Vec<_> = stacks.filter_map(|stack| begin(stack)).collect();
    let is_begun = |pool: &&Known| begins.iter().any(|frame| is_in(frame, pool.begins_in));
    let is_called = |pool: &&Known| {
        // Work that was seen to begin elsewhere is that of another pool.
        let may_be = begins.is_empty() || matches!(pool.names, Names::Only(_));
        may_be && threads.iter().all(|thread| pool.has_name(&thread.name, command, all))
    };
    POOLS.iter().find(is_begun).or_else(|| POOLS.iter().find(is_called))
}

/// All frames in which threads were seen off the GIL.
fn frames<'a>(
    threads: impl IntoIterator<Item = &'a ThreadReport>,
) -> impl Iterator<Item = &'a String> {
    threads.into_iter().flat_map(|thread| &thread.off_gil).flat_map(|off| &off.stack)
}

/// The outermost frame that says what the thread was started for.
fn begin(stack: &[String]) -> Option<&String> {
    stack.iter().rfind(|frame| !STARTERS.iter().any(|file| is_in(frame, file)))
}
