//! Keeps the last seconds, and decides when they become a trace.

use super::snapshot_files::SnapshotFiles;
use super::snapshots::{Ask, Exchange, Written};
use super::socket::Answering;
use crate::analysis::Analysis;
use crate::clock::now_ns;
use crate::flight::{Cause, Condition, Kept, Limit, Snapshot, Stall, Stalls};
use crate::perfetto::{Overwrite, Writer};
use crate::record::Record;
use crate::signals::block_all;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// How much memory the records may take: with the recorder itself it is 64 MiB at most.
pub const MOST_BYTES: usize = 40 << 20;
/// A snapshot is taken so long after a stall: what it did to other threads is then in it.
const SETTLE_NS: u64 = 100_000_000;
/// Stalls that are closer together share a snapshot, if that still has at least this part of the
/// seconds before the first of them.
const SHARED_PART: u64 = 2;
/// And those that are only told share a word, but not for longer than this.
const TOLD_TOGETHER_NS: u64 = 1_000_000_000;

/// What a flight recorder keeps, and when it writes it.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// How much of the past, in ns.
    pub last_ns: u64,
    /// What makes it write a snapshot.
    pub conditions: Vec<Condition>,
    /// How many of its own snapshots it leaves at most; the oldest ones go.
    pub max_files: Option<usize>,
    /// Whether a stall is written to a file, or only told.
    pub writes_stalls: bool,
    /// How much memory the records may take.
    pub most_bytes: usize,
}

impl FlightOptions {
    /// How long a hold may be that nobody waits for, if that is limited.
    pub fn hold_ns(&self) -> Option<u64> {
        self.shortest(|condition| condition.limit == Limit::Hold)
    }

    /// From when on a hold is worth a stack: in time for every condition.
    pub fn blame_after_ns(&self, asked_ns: u64) -> u64 {
        self.shortest(|_| true).map_or(asked_ns, |limit_ns| limit_ns.min(asked_ns))
    }

    /// How far apart the snapshots of stalls are, at least.
    fn rest_ns(&self) -> u64 {
        let part_ns = self.last_ns / SHARED_PART;
        if self.writes_stalls { part_ns } else { part_ns.min(TOLD_TOGETHER_NS) }
    }

    fn shortest(&self, which: impl Fn(&Condition) -> bool) -> Option<u64> {
        let these = self.conditions.iter().filter(|condition| which(condition));
        these.map(|condition| condition.over_ns).min()
    }
}

/// Keeps the last seconds.
pub struct Flight {
    options: FlightOptions,
    kept: Kept,
    stalls: Stalls,
    /// Stalls that are not in a snapshot yet.
    pending: Option<Pending>,
    taken_ns: u64,
    exchange: Arc<Exchange>,
    answering: Option<Answering>,
    jobs: Option<Sender<Job>>,
    /// How many jobs are not done.
    unwritten: Arc<AtomicUsize>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    worst: Stall,
    count: u64,
    seen_ns: u64,
}

/// A snapshot to be written.
struct Job {
    snapshot: Snapshot,
    stalls: u64,
    ask: Option<Ask>,
    at_ns: u64,
}

impl Flight {
    /// Writes snapshots beside `path`, under names that are made of its own. Fails if the system
    /// refuses a thread.
    pub fn new(
        path: &Path,
        options: FlightOptions,
        blame_after_ns: u64,
        exchange: Arc<Exchange>,
    ) -> io::Result<Self> {
        let (jobs, work) = channel();
        let unwritten = Arc::<AtomicUsize>::default();
        let desk = Desk {
            files: SnapshotFiles::new(path, options.max_files),
            options: options.clone(),
            blame_after_ns,
            exchange: exchange.clone(),
            unwritten: unwritten.clone(),
        };
        let thread = Builder::new().name("ungil-snapshots".into());
        let worker = thread.spawn(move || desk.write(&work))?;
        let begun_ns = now_ns();
        Ok(Self {
            kept: Kept::new(options.last_ns, options.most_bytes, begun_ns),
            stalls: Stalls::new(&options.conditions),
            options,
            pending: None,
            taken_ns: 0,
            exchange,
            answering: None,
            jobs: Some(jobs),
            unwritten,
            worker: Some(worker),
        })
    }

    /// Also takes snapshots that other processes ask for.
    pub fn answering(mut self, answering: Option<Answering>) -> Self {
        self.answering = answering;
        self
    }

    /// Takes in one record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        self.kept.push(record);
        if let Some(stall) = self.stalls.push(record) {
            self.stalled(stall, stall.until_ns);
        }
    }

    fn stalled(&mut self, stall: Stall, seen_ns: u64) {
        let fresh = Pending { worst: stall, count: 0, seen_ns };
        let pending = self.pending.get_or_insert(fresh);
        pending.count += 1;
        if stall.length_ns() > pending.worst.length_ns() {
            pending.worst = stall;
        }
    }

    /// Takes the snapshots that are due.
    pub fn tick(&mut self, now_ns: u64, mut last_words: impl FnMut(u64) -> Vec<Record>) {
        self.kept.tick(now_ns, || last_words(now_ns));
        for stall in self.stalls.going_on(now_ns) {
            self.stalled(stall, now_ns);
        }
        if let Some(answering) = &self.answering {
            answering.look();
        }
        for ask in self.exchange.asks() {
            self.take(now_ns, None, Some(ask), &mut last_words);
        }
        // One that is still being written holds on to what it is made of.
        let rests = now_ns.saturating_sub(self.taken_ns) < self.options.rest_ns()
            || self.unwritten.load(Relaxed) > 0;
        let is_due =
            |pending: &mut Pending| !rests && now_ns >= pending.seen_ns.saturating_add(SETTLE_NS);
        if let Some(pending) = self.pending.take_if(is_due) {
            self.taken_ns = now_ns;
            self.take(now_ns, Some(pending), None, &mut last_words);
        }
    }

    fn take(
        &mut self,
        now_ns: u64,
        pending: Option<Pending>,
        ask: Option<Ask>,
        last_words: &mut impl FnMut(u64) -> Vec<Record>,
    ) {
        let frozen = self.kept.freeze();
        let at_ns = now_ns.max(frozen.latest_ns);
        let snapshot = Snapshot {
            frozen,
            last_words: last_words(at_ns),
            stall: pending.map(|pending| pending.worst),
        };
        let stalls = pending.map_or(0, |pending| pending.count);
        if let Some(jobs) = &self.jobs {
            self.unwritten.fetch_add(1, Relaxed);
            // The thread ends no sooner than this does.
            let _ = jobs.send(Job { snapshot, stalls, ask, at_ns });
        }
    }

    /// Writes what is still to be written: all processes have ended.
    pub fn finish(mut self) {
        let now_ns = now_ns();
        for ask in self.exchange.asks() {
            self.take(now_ns, None, Some(ask), &mut |_| Vec::new());
        }
        if let Some(pending) = self.pending.take() {
            self.take(now_ns, Some(pending), None, &mut |_| Vec::new());
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.worker.take().map(JoinHandle::join);
        self.exchange.end();
    }
}

/// Where snapshots are written, one after the other, while the recording goes on.
struct Desk {
    files: SnapshotFiles,
    options: FlightOptions,
    blame_after_ns: u64,
    exchange: Arc<Exchange>,
    unwritten: Arc<AtomicUsize>,
}

impl Desk {
    fn write(mut self, jobs: &Receiver<Job>) {
        block_all();
        while let Ok(Job { snapshot, stalls, ask, at_ns }) = jobs.recv() {
            let kept_ns = at_ns.saturating_sub(snapshot.frozen.from_ns());
            let is_short = snapshot.frozen.has_forgotten && kept_ns < self.options.last_ns;
            let mut written = Written {
                path: None,
                error: None,
                asked: ask.is_some(),
                cause: None,
                stalls,
                kept_s: kept_ns as f64 / 1e9,
                last_s: self.options.last_ns as f64 / 1e9,
                is_short,
            };
            let (to, answer) = ask.map_or((None, None), |ask| (ask.path, ask.answer));
            if written.asked || self.options.writes_stalls {
                match self.write_file(&snapshot, to.as_deref(), &written) {
                    Ok((path, cause)) => (written.path, written.cause) = (Some(path), cause),
                    Err(error) => written.error = Some(error.to_string()),
                }
            } else {
                let mut analysis = Analysis::new(self.blame_after_ns);
                written.cause = snapshot.tell(|record| analysis.push(record));
            }
            // Before the answer, for memory is what this is short of.
            drop(snapshot);
            if let Some(answer) = answer {
                // Who asked may have gone.
                let _ = answer.send(written.clone());
            }
            self.exchange.tell(written);
            self.unwritten.fetch_sub(1, Relaxed);
        }
    }

    fn write_file(
        &mut self,
        snapshot: &Snapshot,
        to: Option<&Path>,
        about: &Written,
    ) -> io::Result<(PathBuf, Option<Cause>)> {
        let mut writer = match to {
            Some(path) => Writer::create(path, Overwrite::Refuse)?,
            None => self.files.create()?,
        };
        let mut analysis = Analysis::new(self.blame_after_ns);
        let mut error = None;
        let cause = snapshot.tell(|record| {
            let culprit = analysis.push(record);
            if error.is_none() {
                error = writer.write(record, culprit).err();
            }
            culprit
        });
        for text in notes(about, cause.as_ref()) {
            error = error.or(writer.write(&Record::Note { text }, None).err());
        }
        if let Some(error) = error {
            return Err(error);
        }
        let path = writer.path().to_owned();
        writer.finish()?;
        if to.is_none() {
            self.files.keep(&path);
        }
        Ok((path, cause))
    }
}

/// What the report of a snapshot has to say of it.
fn notes(about: &Written, cause: Option<&Cause>) -> Vec<String> {
    let why = match cause {
        None => "somebody asked for it".to_owned(),
        Some(Cause { condition, thread, length_ns, .. }) => {
            let did = match condition.limit {
                Limit::Wait => "waited",
                Limit::Hold => "held",
            };
            let ms = |ns: u64| ns as f64 / 1e6;
            format!(
                "{thread} {did} {:.1} ms, longer than the limit of {} ms",
                ms(*length_ns),
                ms(condition.over_ns)
            )
        }
    };
    let mut notes = vec![format!("this is a snapshot of the last {:.1} s: {why}", about.kept_s)];
    if about.is_short {
        notes.push(format!(
            "the memory of the recorder held {:.1} s, not the requested {} s",
            about.kept_s, about.last_s
        ));
    }
    notes
}
