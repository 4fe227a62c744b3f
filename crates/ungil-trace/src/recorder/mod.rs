//! The recorder: lives in the parent, drains the rings of every traced process, and feeds the
//! trace file and the analysis while the program runs.

mod session;
mod leftover;
mod whole;
mod table_file;
mod now;
mod live;
mod sink;
mod order;
mod calibration;
mod times;
mod kernel_counts;
mod follower;
mod throttling;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod thread;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod moment;
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch uses it"))]
mod traced;
#[cfg(feature = "stacks")]
mod watch;
#[cfg(not(feature = "stacks"))]
#[path = "no_watch.rs"]
mod watch;
mod recording;

pub use leftover::{Removed, remove_dead_sessions};
pub use live::Look;
pub use now::{ProcessNow, ThreadNow, now_as_others_record_it};
pub use session::NoPlace;
pub use sink::Outcome;

use crate::clock::{self, Reading};
use crate::perfetto::{Overwrite, Writer};
use live::{Asked, Live};
use recording::{Recording, Shared};
use session::Session;
use sink::Sink;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use times::Times;
use ungil_core::request::Request;
use whole::Whole;

/// A look comes with the next round, which is a matter of milliseconds.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// What to record, and where to.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The trace file.
    pub path: PathBuf,
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
    shared: Arc<Shared>,
    /// What the counter and the clock said before anything was recorded, if the counter is used.
    beginning: Option<Reading>,
    /// Whether processes join while they run.
    is_joined: bool,
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
        let writer = Writer::create(&options.path, options.overwrite)?;
        let whole = Whole::new(writer, options.blame_after_ns);
        Self::with(options, Sink::Whole(Box::new(whole)), None)
    }

    /// Opens a session for somebody who looks now and then: there is no file.
    pub fn live(options: LiveOptions) -> Result<Self, CreateError> {
        let LiveOptions { blame_after_ns, follow_children, hook, counter } = options;
        let asked = Asked::default();
        let live = Live::new(blame_after_ns, asked.clone());
        let (path, overwrite) = (PathBuf::new(), Overwrite::Refuse);
        let options =
            RecorderOptions { path, overwrite, blame_after_ns, follow_children, hook, counter };
        Self::with(options, Sink::Live(Box::new(live)), Some(asked))
    }

    fn with(
        options: RecorderOptions,
        sink: Sink,
        asked: Option<Asked>,
    ) -> Result<Self, CreateError> {
        remove_dead_sessions();
        Ok(Self {
            session: Arc::new(Session::create()?),
            beginning: if options.counter { clock::read_both() } else { None },
            is_joined: false,
            options,
            shared: Arc::default(),
            asked,
            state: State::Prepared(Box::new(sink)),
        })
    }

    /// Who holds and who waits now, and what was counted since the last call; `None` if nothing is
    /// recorded, or into a file.
    pub fn look(&self) -> Option<Look> {
        let (State::Running(worker), Some(asked)) = (&self.state, &self.asked) else { return None };
        let look = asked.ask();
        worker.thread().unpark();
        look.recv_timeout(LOOK_PATIENCE).ok()
    }

    /// The environment variables that make a program join; `preload` is the `LD_PRELOAD` in
    /// force, which is kept.
    pub fn environment(&self, preload: Option<&OsStr>) -> io::Result<Vec<(OsString, OsString)>> {
        let Self { options, session, .. } = self;
        let tick = self.beginning.and_then(times::tick_since);
        session.environment(&options.hook, preload, options.follow_children, tick)
    }

    /// What a process that runs is asked, so that it joins. Those that join are asked to leave at the
    /// end. Before the start of the recording.
    pub fn request(&mut self) -> io::Result<Request> {
        self.is_joined = true;
        let Self { options, session, .. } = self;
        let tick = self.beginning.and_then(times::tick_since);
        session.request(options.follow_children, tick)
    }

    /// Begins to record; `executable` is the program that is about to be started. A second call
    /// does nothing. Fails if the system refuses a thread; then there is no recording.
    pub fn start(&mut self, executable: PathBuf) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Prepared(sink) => {
                let work = Recording::new(
                    *sink,
                    executable,
                    self.is_joined,
                    self.options.blame_after_ns,
                    Times::new(self.beginning),
                    self.session.clone(),
                    self.shared.clone(),
                );
                let thread = Builder::new().name("ungil-recorder".into());
                self.state = State::Running(thread.spawn(move || work.run())?);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// How far it is.
    pub fn status(&self) -> RecorderStatus {
        RecorderStatus {
            events: self.shared.events.load(Relaxed),
            processes: self.shared.processes.load(Relaxed),
            threads: self.shared.threads.load(Relaxed),
        }
    }

    /// Reads what is left, finishes the file and sums up. `None` if it was not running.
    pub fn stop(&mut self) -> Option<Outcome> {
        let State::Running(worker) = std::mem::replace(&mut self.state, State::Over) else {
            return None;
        };
        self.shared.stop.store(true, Relaxed);
        worker.thread().unpark();
        let outcome = worker.join().ok();
        // Not left to `drop`: the caller may end by the signal that killed the program.
        self.session.remove();
        outcome
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
