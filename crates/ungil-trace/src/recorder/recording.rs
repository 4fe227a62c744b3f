//! The thread that records: what it does in one round, and how long it pauses then.

use super::heirs::{heirs, outlived};
use super::pace::Pace;
use super::questions::{Question, Questions};
use super::session::Session;
use super::sink::{Outcome, Sink};
use super::snapshots::Exchange;
use super::times::Times;
use super::traced::Traced;
use super::watch::Watch;
use crate::clock::now_ns;
use crate::prompt::be_prompt;
use crate::record::{NOTHING_RECORDED, ProcessId, Record, ThreadId};
use crate::signals::block_all;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ungil_control::hookable::{self, Hookable};

/// Between two rounds while a ring was found more than an eighth full.
const BUSY_PERIOD: Duration = Duration::from_micros(500);
/// Between two flushes of the file.
const FLUSH_NS: u64 = 250_000_000;
/// How long processes that end right after the program are waited for (multiprocessing's resource
/// tracker does).
const GRACE: Duration = Duration::from_millis(100);
/// How long processes that joined while they ran are waited for to leave. One does at its next
/// release of a GIL.
const LEAVE: Duration = Duration::from_millis(100);
/// Between two looks at whether they have left.
const LEAVE_PERIOD: Duration = Duration::from_millis(1);
/// How long the names of their threads are waited for: to look into a process the first time takes
/// some tenths of a second.
const NAMES: Duration = Duration::from_secs(2);
/// An event that was seen in one round is given out in the next one at the latest, what a sample or
/// the kernel told of it in the one after that.
const ROUNDS: u32 = 3;
/// Holds longer than this are followed where they are judged.
const JUDGED_NS: u64 = 3_000_000;
/// Threads of a process of which the kernel is asked in every round, at most.
const COUNTED_THREADS: usize = 8;
/// Kernel counters are read with every flush, of this many threads a process at most.
const OUTSIDE_THREADS: usize = 64;

/// What the recording thread tells, and is told, while it runs.
#[derive(Debug, Default)]
pub struct Shared {
    /// To stop.
    pub stop: AtomicBool,
    /// Events recorded.
    pub events: AtomicU64,
    /// Processes seen.
    pub processes: AtomicU64,
    /// Threads seen.
    pub threads: AtomicU64,
    /// Who wants to know what was judged.
    pub questions: Questions,
    /// Asks for snapshots.
    exchange: Arc<Exchange>,
}

impl Shared {
    /// Through what snapshots are asked for, and told.
    pub fn exchange(&self) -> Arc<Exchange> {
        self.exchange.clone()
    }
}

/// The recording thread's own state.
pub struct Recording {
    session: Arc<Session>,
    shared: Arc<Shared>,
    executable: PathBuf,
    /// Whether the processes joined while they ran, and are to leave at the end.
    is_joined: bool,
    sink: Sink,
    /// Whether the kernel is asked in every round what it did with threads, so that little is
    /// unknown of how it ran them in a hold.
    counts_often: bool,
    /// Questions for what was judged, each with the rounds after which it can be answered.
    questions: Vec<(Question, u32)>,
    watch: Watch,
    pace: Pace,
    /// Holds longer than this are followed.
    follow_after_ns: u64,
    times: Times,
    processes: Vec<Traced>,
    /// Table files that were opened, or are not worth opening.
    known: HashSet<OsString>,
    next_process: ProcessId,
    next_thread: ThreadId,
    /// Whether there was no memory for events of a process that is gone.
    lacked_memory: bool,
    discovered_ns: u64,
    flushed_ns: u64,
}

impl Recording {
    /// Records into `sink` what the programs of `session` do, of which `executable` is the first.
    /// `watch` comes with its pace and the length from which on holds are long.
    pub fn new(
        sink: Sink,
        executable: PathBuf,
        is_joined: bool,
        (watch, pace, blame_after_ns): (Watch, Pace, u64),
        times: Times,
        session: Arc<Session>,
        shared: Arc<Shared>,
    ) -> Self {
        let judges = sink.judges();
        Self {
            session,
            shared,
            executable,
            is_joined,
            counts_often: judges,
            sink,
            questions: Vec::new(),
            watch,
            pace,
            // Early enough that little of a hold that gets a row of its own is missed.
            follow_after_ns: if judges { JUDGED_NS } else { blame_after_ns / 4 },
            times,
            processes: Vec::new(),
            known: HashSet::new(),
            next_process: ProcessId(0),
            next_thread: ThreadId(0),
            lacked_memory: false,
            discovered_ns: 0,
            flushed_ns: 0,
        }
    }

    /// Until it is told to stop, and a little longer if processes are about to end.
    pub fn run(mut self) -> Outcome {
        block_all();
        if self.counts_often {
            be_prompt();
        }
        while !self.shared.stop.load(Relaxed) {
            let pause = self.work();
            thread::park_timeout(pause);
        }
        self.discovered_ns = 0;
        self.work();
        let staying = if self.is_joined { self.part() } else { self.await_ends() };
        let outcome = self.finish();
        Outcome { staying, ..outcome }
    }

    /// Goes on for a moment if processes are about to end, or to begin.
    fn await_ends(&mut self) -> Vec<u32> {
        let end = Instant::now() + GRACE;
        let mut was_empty = false;
        loop {
            // One that forks and ends while they are listed hides its child. So they are listed
            // once more.
            let is_empty = self.processes.is_empty() && heirs(self.session.directory()).is_empty();
            if is_empty && was_empty || Instant::now() >= end {
                return Vec::new();
            }
            was_empty = is_empty;
            self.discovered_ns = 0;
            thread::park_timeout(self.work());
        }
    }

    /// Asks every process to leave, and returns those that have not, the recorder's own excepted.
    fn part(&mut self) -> Vec<u32> {
        self.await_names();
        let end = Instant::now() + LEAVE;
        self.processes.iter().for_each(Traced::ask_to_leave);
        loop {
            let others = self.processes.iter().filter(|it| it.pid != std::process::id());
            let staying: Vec<u32> =
                others.filter(|it| !it.has_left() && !it.is_gone()).map(|it| it.pid).collect();
            if staying.is_empty() || Instant::now() >= end {
                return staying;
            }
            thread::park_timeout(LEAVE_PERIOD);
        }
    }

    /// Goes on until the threads of processes that were recorded for a short while have their names.
    fn await_names(&mut self) {
        let end = Instant::now() + NAMES;
        while Instant::now() < end
            && self.processes.iter_mut().any(|it| !it.is_gone() && self.watch.owes_names(it))
        {
            thread::park_timeout(self.work());
        }
    }

    /// Does all that is to be done at this moment and says how long to pause after it.
    fn work(&mut self) -> Duration {
        let now = now_ns();
        let questions = self.shared.questions.take();
        self.questions.extend(questions.into_iter().map(|question| (question, ROUNDS)));
        if now.saturating_sub(self.discovered_ns) >= self.pace.discover_ns {
            self.discovered_ns = now;
            self.discover();
        }
        // Stacks first: they were taken before the events that this round gives out.
        let (watch, sink) = (&mut self.watch, &mut self.sink);
        watch.collect(&mut self.processes, &mut self.times, |record| sink.put(&record));
        let fullest = self.round();
        self.times.read();
        let soon = self.watch.look(&mut self.processes, &mut self.times, now);
        // What this tells of a hold that has ended comes before its release, which is given out in
        // the next round at the earliest.
        let mut follows = false;
        for traced in &mut self.processes {
            let (times, sink) = (&mut self.times, &mut self.sink);
            follows |=
                traced.follow_holders(times, now, self.follow_after_ns, |record| sink.put(&record));
        }
        let Self { sink, processes, times, .. } = self;
        sink.tick(now, |at_ns| last_words(processes, times, at_ns));
        if let Sink::Live(live) = &mut self.sink {
            let (processes, times) = (&self.processes, &mut self.times);
            live.answer(|| processes.iter().map(|it| it.process_now(times)).collect());
        }
        if now.saturating_sub(self.flushed_ns) >= FLUSH_NS {
            self.flushed_ns = now;
            self.sink.flush();
            let tick = self.times.tick();
            for traced in &mut self.processes {
                traced.sample_outside(OUTSIDE_THREADS);
                if let Some(tick) = tick {
                    traced.tell_tick(tick);
                }
            }
        }
        if self.counts_often {
            for traced in &mut self.processes {
                traced.count_active(COUNTED_THREADS);
            }
        }
        if !self.questions.is_empty() {
            self.answer();
            return BUSY_PERIOD;
        }
        match fullest {
            fullest if fullest > 0.125 => BUSY_PERIOD,
            _ if soon || (follows && self.counts_often) => self.pace.watch,
            _ => self.pace.round,
        }
    }

    /// Answers the questions of which all holds and waits are known.
    fn answer(&mut self) {
        for (_, rounds) in &mut self.questions {
            *rounds = rounds.saturating_sub(1);
        }
        let sink = &mut self.sink;
        for (question, _) in self.questions.extract_if(.., |(_, rounds)| *rounds == 0) {
            let _ = question.send(sink.take_judged());
        }
    }

    /// Opens the tables that have appeared in the session directory.
    fn discover(&mut self) {
        for path in new_files(self.session.directory(), &self.known) {
            let opened = Traced::open(path.clone(), self.next_process, &mut self.times);
            let Some((mut traced, process)) = opened else { continue };
            self.known.extend(path.file_name().map(OsStr::to_owned));
            self.next_process.0 += 1;
            self.shared.processes.fetch_add(1, Relaxed);
            for other in &mut self.processes {
                other.meets(&mut traced);
            }
            self.sink.put(&Record::ProcessStarted(process));
            self.processes.push(traced);
        }
    }

    /// Reads every ring once, says goodbye to processes that are gone, and returns how full the
    /// fullest ring was, from 0 to 1.
    fn round(&mut self) -> f64 {
        let mut fullest: f64 = 0.0;
        let mut gone = Vec::new();
        for (index, traced) in self.processes.iter_mut().enumerate() {
            let sink = &mut self.sink;
            let round =
                traced.round(&mut self.times, &mut self.next_thread, |record| sink.put(&record));
            self.shared.events.fetch_add(round.events, Relaxed);
            fullest = fullest.max(round.fullest);
            if round.events == 0 && traced.is_gone() {
                gone.push(index);
            }
        }
        self.shared.threads.store(u64::from(self.next_thread.0), Relaxed);
        let gone = gone.into_iter().rev().map(|index| self.processes.swap_remove(index)).collect();
        self.finish_processes(gone);
        fullest
    }

    fn finish_processes(&mut self, processes: Vec<Traced>) {
        for traced in processes {
            let sink = &mut self.sink;
            self.watch.forget(traced.pid);
            // A later process with this id may use the name again.
            self.known.remove(traced.path.file_name().unwrap_or_default());
            self.lacked_memory |= traced.lacks_memory();
            traced.finish(&mut self.times, &mut self.next_thread, |record| sink.put(&record));
        }
    }

    fn finish(mut self) -> Outcome {
        let processes = std::mem::take(&mut self.processes);
        // One that is gone may still be here, if there was too much left to read.
        if !self.is_joined {
            let running = processes.iter().filter(|it| !it.is_gone()).map(|it| it.pid);
            for text in outlived(&running.collect::<Vec<_>>(), &heirs(self.session.directory())) {
                self.sink.put(&Record::Note { text });
            }
        }
        if self.next_process.0 == 0 {
            let text = format!("{NOTHING_RECORDED}{}", self.why_nothing());
            self.sink.put(&Record::Note { text });
        } else if self.is_joined && self.next_thread.0 == 0 {
            let why = if processes.iter().any(Traced::is_stopped) {
                "the process is stopped, and goes on when it gets SIGCONT"
            } else {
                "no thread acquired or released the GIL meanwhile: all of them were blocked, or \
                 one held it throughout"
            };
            self.sink.put(&Record::Note { text: format!("{NOTHING_RECORDED}{why}") });
        }
        self.finish_processes(processes);
        if self.lacked_memory {
            self.sink.put(&Record::Note { text: no_memory(self.session.folder()) });
        }
        if let Some(text) = self.times.complaint() {
            self.sink.put(&Record::Note { text });
        }
        self.sink.finish()
    }

    fn why_nothing(&self) -> String {
        let program = self.executable.display();
        match hookable::program(&self.executable) {
            Hookable::No(why) => why,
            Hookable::NotPython { preloadable: true } => {
                format!(
                    "{program} is not a Python and loaded none, and it started no Python that \
                     loaded the hook"
                )
            }
            Hookable::NotPython { preloadable: false } => {
                format!(
                    "{program} is statically linked, so it could not load the hook, and it \
                     started no Python that loaded the hook"
                )
            }
            Hookable::Yes | Hookable::FreeThreaded(_) | Hookable::NotScheduled(_) => {
                format!(
                    "the hook in {program} did not answer; `ungil doctor` tells whether it can, \
                     and a limit on file size or memory (ulimit) may prevent it"
                )
            }
        }
    }
}

/// What would be told if the recording ended at `at_ns`.
fn last_words(processes: &[Traced], times: &mut Times, at_ns: u64) -> Vec<Record> {
    let mut words = Vec::new();
    for traced in processes {
        traced.last_words(at_ns, times, |record| words.push(record));
    }
    words
}

/// That events were lost for want of memory, in a sentence without a final dot.
fn no_memory(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "{folder} was full, so events were lost, or threads were not recorded: make room there, or \
         make it larger (mount -o remount,size=256m {folder}; docker run --shm-size=256m)"
    )
}

/// Files in `directory` whose names are not in `known`.
fn new_files(directory: &Path, known: &HashSet<OsString>) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| !known.contains(&entry.file_name()))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect()
}
