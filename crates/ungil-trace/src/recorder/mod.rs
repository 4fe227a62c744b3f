//! The recorder: lives in the parent, drains the rings of every traced process, and feeds the
//! trace file and the analysis while the program runs.

mod session;
mod leftover;
mod whole;
mod snapshots;
mod snapshot_files;
mod socket;
mod flight;
mod table_file;
mod now;
mod live;
mod pace;
mod sink;
mod order;
mod parks;
mod calibration;
mod times;
mod kernel_counts;
mod used_before;
#[cfg(feature = "stacks")]
mod calls;
#[cfg(feature = "stacks")]
mod chances;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod gap;
mod follower;
mod throttling;
mod processors;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod thread;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod moment;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod traced;
#[cfg(feature = "stacks")]
mod looks;
#[cfg(feature = "stacks")]
mod names;
#[cfg(feature = "stacks")]
mod watch;
#[cfg(not(feature = "stacks"))]
#[path = "no_watch.rs"]
mod watch;
mod questions;
mod heirs;
mod recording;

pub use flight::{FlightOptions, MOST_BYTES};
pub use leftover::{Removed, remove_dead_sessions};
pub use live::Look;
pub use now::{ProcessNow, ThreadNow, now_as_others_record_it};
pub use session::NoPlace;
pub use sink::Outcome;
pub use snapshots::{Ask, Exchange, Written};
pub use socket::{AskError, ask_for_snapshot};

use crate::analysis::Least;
use crate::clock::{self, Reading};
use crate::perfetto::{Overwrite, Writer};
use crate::report::JudgedReport;
use flight::Flight;
use live::{Asked, Live};
use pace::{DAYS, MINUTES};
use recording::{Recording, Shared};
use session::Session;
use sink::Sink;
use socket::Answering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use times::Times;
use ungil_control::files;
use ungil_core::request::Request;
use watch::Watch;
use whole::Whole;

/// What to record, and where to.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The trace file, if one is written.
    pub path: Option<PathBuf>,
    /// Whether `path` may exist.
    pub overwrite: Overwrite,
    /// Holds longer than this get a stack, in ns.
    pub blame_after_ns: u64,
    /// Whether programs that a traced program starts are traced too.
    pub follow_children: bool,
    /// The hook library.
    pub hook: PathBuf,
    /// Whether times may be taken from the counter of the processor, where that is what the kernel
    /// makes `CLOCK_MONOTONIC` from. Reading it costs the program less.
    pub counter: bool,
    /// Whether long holds get their native frames too. To see them a thread is stopped for some tens
    /// of microseconds.
    pub native: bool,
    /// From where on holds and waits are judged one by one, if they are.
    pub judged: Option<Least>,
    /// Keep the last seconds only, and write snapshots of them: `path` is what these are called
    /// after.
    pub flight: Option<FlightOptions>,
}

/// What to look at.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Holds longer than this get a stack, in ns.
    pub blame_after_ns: u64,
    /// Whether children that a process forks join too.
    pub follow_children: bool,
    /// The hook library.
    pub hook: PathBuf,
    /// As in [`RecorderOptions`].
    pub counter: bool,
}

/// How far the recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecorderStatus {
    /// Events recorded.
    pub events: u64,
    /// Processes seen.
    pub processes: u64,
    /// Threads seen.
    pub threads: u64,
}

/// Why there can be no recording.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The trace file cannot be written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// There is no place for the session.
    #[error(transparent)]
    Session(#[from] NoPlace),
}

/// A recording, first being prepared, then running on a thread of its own.
pub struct Recorder {
    options: RecorderOptions,
    session: Arc<Session>,
    /// Where the recorded processes put their tables: the session, or another one that they see.
    tables: Arc<Session>,
    shared: Arc<Shared>,
    /// What the counter and the clock said before anything was recorded, if the counter is used.
    beginning: Option<Reading>,
    /// Whether processes join while they run.
    is_joined: bool,
    /// The process that made it. A child that is forked from it has none of its threads.
    made_by: u32,
    /// Where to ask for a look, if there is no file.
    asked: Option<Asked>,
    state: State,
}

enum State {
    Prepared(Box<Sink>),
    Running(JoinHandle<Outcome>),
    Over,
}

impl Recorder {
    /// Opens the trace file and the session. Sessions of recorders that were killed are removed.
    pub fn create(options: RecorderOptions) -> Result<Self, CreateError> {
        let shared = Arc::<Shared>::default();
        remove_dead_sessions();
        let session = Session::create()?;
        let sink = options.sink(&session, &shared)?;
        Ok(Self::with(options, session, shared, sink))
    }

    /// Opens a session for somebody who looks now and then: there is no file.
    pub fn live(options: LiveOptions) -> Result<Self, CreateError> {
        let LiveOptions { blame_after_ns, follow_children, hook, counter } = options;
        remove_dead_sessions();
        let session = Session::create()?;
        let asked = Asked::default();
        let live = Live::new(blame_after_ns, asked.clone());
        let options = RecorderOptions {
            path: None,
            overwrite: Overwrite::Refuse,
            blame_after_ns,
            follow_children,
            hook,
            counter,
            native: false,
            judged: None,
            flight: None,
        };
        let sink = Sink::Live(Box::new(live));
        let mut recorder = Self::with(options, session, Arc::default(), sink);
        recorder.asked = Some(asked);
        Ok(recorder)
    }

    fn with(options: RecorderOptions, session: Session, shared: Arc<Shared>, sink: Sink) -> Self {
        let session = Arc::new(session);
        Self {
            tables: session.clone(),
            session,
            beginning: if options.counter { clock::read_both() } else { None },
            is_joined: false,
            made_by: std::process::id(),
            options,
            shared,
            asked: None,
            state: State::Prepared(Box::new(sink)),
        }
    }

    /// Who holds and who waits now, and what was counted since the last call; `None` if nothing is
    /// recorded, or into a file.
    pub fn look(&self) -> Option<Look> {
        let (State::Running(worker), Some(asked)) = (&self.state, &self.asked) else { return None };
        let look = asked.ask();
        worker.thread().unpark();
        // It comes with the next round: in milliseconds, if the kernel runs that thread.
        look.recv().ok()
    }

    /// The environment variables that make a program join; `preload` is the `LD_PRELOAD` in
    /// force, which is kept.
    pub fn environment(&self, preload: Option<&OsStr>) -> io::Result<Vec<(OsString, OsString)>> {
        let Self { options, session, .. } = self;
        let tick = self.beginning.and_then(times::tick_since);
        session.environment(&options.hook, preload, options.follow_children, tick)
    }

    /// What process `pid`, which runs, is asked, so that it joins. Those that join are asked to leave
    /// at the end. Before the start of the recording.
    pub fn request(&mut self, pid: u32) -> Result<Request, CreateError> {
        self.is_joined = true;
        if let Some(elsewhere) = self.session.elsewhere(pid)? {
            self.session.is_for(pid)?;
            self.tables = Arc::new(elsewhere);
        }
        let tick = self.beginning.and_then(times::tick_since);
        Ok(self.tables.request(self.options.follow_children, tick)?)
    }

    /// Begins to record; `executable` is the program that is about to be started. A second call
    /// does nothing. Fails if the system refuses a thread; then there is no recording.
    pub fn start(&mut self, executable: PathBuf) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Prepared(sink) => {
                let Self { options, .. } = self;
                let pace = if options.flight.is_some() { DAYS } else { MINUTES };
                let (blame_ns, hold_ns) = (options.blame_after_ns(), options.hold_ns());
                let watch = Watch::new(blame_ns, hold_ns, options.native, pace);
                let work = Recording::new(
                    *sink,
                    executable,
                    self.is_joined,
                    (watch, pace, blame_ns),
                    Times::new(self.beginning),
                    self.tables.clone(),
                    self.shared.clone(),
                );
                let thread = Builder::new().name("ungil-recorder".into());
                self.state = State::Running(thread.spawn(move || work.run())?);
                if self.options.flight.is_some() {
                    self.shared.exchange().open();
                }
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Through what snapshots are asked for, and told; of a flight recorder.
    pub fn exchange(&self) -> Arc<Exchange> {
        self.shared.exchange()
    }

    /// How far it is.
    pub fn status(&self) -> RecorderStatus {
        RecorderStatus {
            events: self.shared.events.load(Relaxed),
            processes: self.shared.processes.load(Relaxed),
            threads: self.shared.threads.load(Relaxed),
        }
    }

    /// What was judged since the last call: all holds and waits that had ended when it was made.
    /// `None` if the recorder is not running.
    pub fn judged(&self) -> Option<JudgedReport> {
        let State::Running(worker) = &self.state else { return None };
        let answer = self.shared.questions.ask();
        worker.thread().unpark();
        answer.recv().ok()
    }

    /// Reads what is left, finishes the file and sums up. `None` if it was not running.
    pub fn stop(&mut self) -> Option<Outcome> {
        let state = std::mem::replace(&mut self.state, State::Over);
        if self.made_by != std::process::id() {
            // Its threads and its files are the parent's.
            std::mem::forget((state, self.session.clone(), self.tables.clone()));
            return None;
        }
        let State::Running(worker) = state else { return None };
        self.shared.stop.store(true, Relaxed);
        worker.thread().unpark();
        let outcome = worker.join().ok();
        // Not left to `drop`: the caller may end by the signal that killed the program.
        self.tables.remove();
        self.session.remove();
        // A process that is killed cannot remove its own.
        files::remove_stale();
        outcome
    }
}

impl RecorderOptions {
    fn sink(&self, session: &Session, shared: &Shared) -> io::Result<Sink> {
        let blame_after_ns = self.blame_after_ns();
        Ok(match &self.flight {
            None => {
                let create = |path| Writer::create(path, self.overwrite);
                let writer = self.path.as_deref().map(create).transpose()?;
                Sink::Whole(Box::new(Whole::new(writer, blame_after_ns, self.judged)))
            }
            Some(options) => {
                let exchange = shared.exchange();
                // Where there can be no socket, nobody else can ask.
                let answering = Answering::at(session, exchange.clone()).ok();
                let options = options.clone();
                // Snapshots are named after it.
                let path = self.path.as_deref().ok_or(io::ErrorKind::InvalidInput)?;
                let flight = Flight::new(path, options, blame_after_ns, exchange)?;
                Sink::Flight(Box::new(flight.answering(answering)))
            }
        })
    }

    fn blame_after_ns(&self) -> u64 {
        let asked_ns = self.blame_after_ns;
        self.flight.as_ref().map_or(asked_ns, |flight| flight.blame_after_ns(asked_ns))
    }

    /// How long a hold may be that nobody waits for, if that matters.
    fn hold_ns(&self) -> Option<u64> {
        self.flight.as_ref().and_then(FlightOptions::hold_ns)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
