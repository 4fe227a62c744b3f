//! A pool of connections of which none is free: threads wait until another one gives its back.

use super::sight::{Seen, Sight, Told, how_often, in_all, line};
use crate::advice::{Advice, Cause, Evidence, Sure, Unit};
use crate::functions::{is_in, is_of, short};
use ungil_trace::analysis::words;
use ungil_trace::report::{OffGil, What};

/// A library with such a pool.
struct Library {
    name: &'static str,
    /// Where a thread takes a connection, as file and function. It waits there only if none is free.
    takes: (&'static str, &'static str),
    code: &'static str,
}

const LIBRARIES: [Library; 5] = [
    Library {
        name: "SQLAlchemy",
        takes: ("sqlalchemy/pool/impl.py", "_do_get"),
        code: "create_engine(url, pool_size=..., max_overflow=...)",
    },
    Library {
        name: "psycopg_pool",
        takes: ("psycopg_pool/pool.py", "wait"),
        code: "ConnectionPool(conninfo, max_size=...)",
    },
    Library {
        name: "redis",
        takes: ("redis/connection.py", "get_connection"),
        code: "BlockingConnectionPool(max_connections=...)",
    },
    Library {
        name: "urllib3",
        takes: ("urllib3/connectionpool.py", "_get_conn"),
        code: "PoolManager(maxsize=..., block=True)",
    },
    Library {
        name: "httpx",
        takes: ("httpcore/_sync/connection_pool.py", "wait_for_connection"),
        code: "httpx.Client(limits=httpx.Limits(max_connections=...))",
    },
];
/// Files through which a thread waits there.
const WAITS: [&str; 3] = ["threading.py", "queue.py", "httpcore/_synchronization.py"];
/// What takes less than this part (of 1) of the time is not what a program waits for.
const PART: f64 = 0.2;
/// What is over in less is no incident.
const LEAST_S: f64 = 0.2;

/// The pool for which threads waited longest.
pub fn find(sight: &Sight) -> Option<Advice> {
    let pools = LIBRARIES.iter().filter_map(|library| Pool::of(sight, library));
    let pool = pools.max_by(|a, b| a.total_s.total_cmp(&b.total_s))?;
    let least_s = LEAST_S.max(PART * sight.busy_s());
    (pool.total_s >= least_s).then(|| pool.advice(sight))
}

/// What threads waited for connections of a library.
struct Pool<'a> {
    library: &'static Library,
    seen: Vec<Seen<'a>>,
    /// The thread that was longest at the line where threads were longest.
    worst: Seen<'a>,
    total_s: f64,
}

impl<'a> Pool<'a> {
    fn of(sight: &Sight<'a>, library: &'static Library) -> Option<Self> {
        let seen: Vec<_> = sight.seen().filter(|seen| waits_in(seen.off, library.takes)).collect();
        let there_s = |at: &Seen| -> f64 {
            let there = seen.iter().filter(|seen| line(seen.off) == line(at.off));
            there.map(|seen| seen.off.total_s).sum()
        };
        let worst = *seen.iter().max_by(|a, b| {
            there_s(a).total_cmp(&there_s(b)).then(a.off.total_s.total_cmp(&b.off.total_s))
        })?;
        let total_s = seen.iter().map(|seen| seen.off.total_s).sum();
        Some(Self { library, seen, worst, total_s })
    }

    fn advice(self, sight: &Sight) -> Advice {
        let Self { library, seen, worst, total_s } = self;
        let mut threads: Vec<usize> = seen.iter().map(|seen| seen.thread).collect();
        threads.dedup();
        let looks: u64 = seen.iter().map(|seen| seen.off.gaps + seen.off.samples).sum();
        let gaps = seen.iter().map(|seen| seen.off.gaps).sum();
        let longest_ms = seen.iter().map(|seen| seen.off.longest_ms).fold(0.0, f64::max);
        let text = format!(
            "a connection pool of {} is exhausted: {} waited for a connection at {} for {}{}",
            library.name,
            words::count(threads.len() as u64, "thread"),
            line(worst.off).map_or_else(String::new, |frame| short(frame)),
            in_all(total_s, threads.len()),
            how_often(gaps, looks - gaps, longest_ms),
        );
        let told = Told {
            text,
            frame: line(worst.off).cloned(),
            code: Some(format!(
                "{}  # more, if the other side can serve more at once; or give each connection \
                 back sooner",
                library.code
            )),
            sure: Sure::High,
            because: "a thread waits there only while all connections of the pool are taken; the \
                      trace does not show which threads had them"
                .to_owned(),
            evidence: vec![
                Evidence::made("time of all threads there, summed", total_s, Unit::Seconds),
                Evidence::made("looks that found a thread there", looks as f64, Unit::Count),
                sight.evidence(worst, "time of the thread that was there longest"),
            ],
        };
        sight.not_the_gil(Cause::ExhaustedPool, &threads, told)
    }
}

/// Whether a thread waited for another one right in this function, given as file and function.
fn waits_in(off: &OffGil, function: (&str, &str)) -> bool {
    let is_wait = |frame: &&String| WAITS.iter().any(|file| is_in(frame, file));
    let caller = off.stack.iter().find(|frame| !is_wait(frame));
    matches!(off.what, What::Thread | What::Lock)
        && off.stack.first().is_some_and(|innermost| is_wait(&innermost))
        && caller.is_some_and(|frame| is_of(frame, function))
}
