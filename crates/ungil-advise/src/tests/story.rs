//! A small language in which tests tell what the threads of one process did.

use crate::{Advice, Advised, Kind, advise};
use ungil_core::park::{Cause as ParkCause, Ending};
use ungil_core::table::GilState;
use ungil_core::{Event, Kind as Happened};
use ungil_simulate::Demand;
use ungil_trace::Record;
use ungil_trace::analysis::Analysis;
use ungil_trace::record::{
    Doing, Frame, NativeFrame, Park, Process, ProcessId, ProcessTotals, Processors, ThreadId,
    ThreadTotals,
};
use ungil_trace::report::Report;

pub const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;
pub const PID: u32 = 100;
/// The library of the interpreter.
pub const PYTHON: &str = "/usr/lib/libpython3.13.so.1.0";

/// The frame of an event loop of asyncio.
pub const ASYNCIO: &str = "_run_once ~asyncio/base_events.py";

/// What happened; times are in ns since the start of the process.
pub struct Story {
    records: Vec<Record>,
    /// What each thread tells at its end; `None` if it has ended.
    totals: Vec<Option<ThreadTotals>>,
    gil_state: GilState,
}

impl Story {
    /// A process with threads of these names, of which the first is the main one.
    pub fn of(names: &[&'static str]) -> Self {
        let process = Process {
            process: ProcessId(0),
            pid: PID,
            parent_pid: 1,
            at_ns: START,
            argv: ["/usr/bin/python3", "app.py", "it's"].map(str::to_owned).into(),
            python: "3.13.0".to_owned(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        };
        let mut story = Self {
            records: vec![Record::ProcessStarted(process)],
            totals: Vec::new(),
            gil_state: GilState::Always,
        };
        for name in names {
            story.starts(0, name);
        }
        story
    }

    /// One more thread of this name.
    pub fn starts(&mut self, at_ns: u64, name: &str) {
        let number = u32::try_from(self.totals.len()).unwrap();
        self.records.push(Record::ThreadStarted {
            thread: ThreadId(number),
            process: ProcessId(0),
            tid: PID + number,
            at_ns: START + at_ns,
            name: name.to_owned(),
        });
        self.totals.push(Some(ThreadTotals::default()));
    }

    /// The same, started by this command.
    pub fn started_by(mut self, command: &str) -> Self {
        if let Some(Record::ProcessStarted(process)) = self.records.first_mut() {
            process.argv = command.split(' ').map(str::to_owned).collect();
        }
        self
    }

    fn event(&mut self, at_ns: u64, thread: u32, kind: Happened) {
        let event = Event { at_ns: START + at_ns, kind, gil: 0, seq: 0 };
        let (process, thread) = (ProcessId(0), ThreadId(thread));
        self.records.push(Record::Gil { process, thread, event });
    }

    pub fn acquire(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Happened::Acquire);
    }

    pub fn release(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Happened::ReleaseVoluntary);
    }

    pub fn forced(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Happened::ReleaseForced);
    }

    pub fn wait(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Happened::Wait);
    }

    pub fn ask(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Happened::DropRequest);
    }

    /// The kernel ran a thread for so long of a hold that began then.
    pub fn ran_of_hold(&mut self, from_ns: u64, thread: u32, cpu_ns: u64) {
        self.event(from_ns + cpu_ns, thread, Happened::Ran);
    }

    /// A look at a thread that holds.
    pub fn held(&mut self, at_ns: u64, thread: u32, stack: &[&str]) {
        self.look(at_ns, thread, Doing::Held { waiters: 1 }, stack);
    }

    /// A look at a thread that has held for long, and nobody waits.
    pub fn computes(&mut self, at_ns: u64, thread: u32, stack: &[&str]) {
        self.look(at_ns, thread, Doing::Held { waiters: 0 }, stack);
    }

    /// A look at a thread in a long gap.
    pub fn off(&mut self, at_ns: u64, thread: u32, (call, on): (&str, &str), stack: &[&str]) {
        let (call, on) = (call.to_owned(), on.to_owned());
        self.look(at_ns, thread, Doing::Off { stands_for_ns: 0, call, on }, stack);
    }

    /// A look at a thread in a short gap, which could not be told of for so long.
    pub fn sampled(&mut self, at_ns: u64, thread: u32, unseen_ns: u64, stack: &[&str]) {
        self.sampled_in(at_ns, thread, unseen_ns, "clock_nanosleep", stack);
    }

    /// The same of another call.
    pub fn sampled_in(
        &mut self,
        at_ns: u64,
        thread: u32,
        unseen_ns: u64,
        call: &str,
        stack: &[&str],
    ) {
        let (call, on) = (call.to_owned(), String::new());
        self.look(at_ns, thread, Doing::Off { stands_for_ns: unseen_ns, call, on }, stack);
    }

    /// Frames written `function file` or `function file:line`, innermost first; `~` is the folder of
    /// the standard library.
    fn look(&mut self, at_ns: u64, thread: u32, doing: Doing, stack: &[&str]) {
        let frame = |text: &&str| {
            let (function, place) = text.split_once(' ').unwrap();
            let (file, line) = place.split_once(':').unwrap_or((place, "7"));
            let file = file.replace('~', "/usr/lib/python3.13/");
            Frame { function: function.to_owned(), file, line: line.parse().unwrap() }
        };
        let frames = stack.iter().map(frame).collect();
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.records.push(Record::Look { thread, at_ns, doing, frames });
    }

    /// The threads run without a GIL, and one sleeps for the lock of a dict until `waker` lets go of
    /// it.
    pub fn parked(&mut self, times: (u64, u64), thread: u32, waker: u32) {
        self.gil_state = GilState::Off;
        self.slept(times, thread, waker, (ParkCause::Object, 7, Ending::Woken));
    }

    /// A thread slept for a lock off the GIL, until that one let go of it.
    pub fn slept_for_lock(&mut self, times: (u64, u64), thread: u32, waker: u32) {
        self.slept(times, thread, waker, (ParkCause::OffGil, 8, Ending::LetGo));
    }

    /// The same until that one gave it a signal.
    pub fn slept_for_signal(&mut self, times: (u64, u64), thread: u32, waker: u32) {
        self.slept_at(times, thread, waker, 9);
    }

    /// The same at this lock.
    pub fn slept_at(&mut self, times: (u64, u64), thread: u32, waker: u32, lock: u32) {
        self.slept(times, thread, waker, (ParkCause::OffGil, lock, Ending::Woken));
    }

    fn slept(
        &mut self,
        (since_ns, until_ns): (u64, u64),
        thread: u32,
        waker: u32,
        (cause, lock, ending): (ParkCause, u32, Ending),
    ) {
        let of = if cause == ParkCause::Object { "dict".to_owned() } else { String::new() };
        let park = Park {
            since_ns: START + since_ns,
            until_ns: START + until_ns,
            cause,
            of,
            lock,
            ending,
            waker: Some(ThreadId(waker)),
            stack: 0,
            waker_stack: 0,
        };
        self.records.push(Record::Parked { thread: ThreadId(thread), park });
    }

    /// A look at a thread that holds, in native functions, innermost first.
    pub fn native(&mut self, at_ns: u64, thread: u32, symbols: &[&str]) {
        self.native_in(PYTHON, at_ns, thread, symbols);
    }

    /// The same, in functions of this library.
    pub fn native_in(&mut self, library: &str, at_ns: u64, thread: u32, symbols: &[&str]) {
        let frame = |symbol: &&str| NativeFrame {
            symbol: (*symbol).to_owned(),
            library: library.to_owned(),
            ..NativeFrame::default()
        };
        let native = Some(symbols.iter().map(frame).collect());
        let frames =
            vec![Frame { function: "fill".to_owned(), file: "app.py".to_owned(), line: 7 }];
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.records.push(Record::Stack { thread, at_ns, frames, native });
    }

    /// Its user's own libraries.
    pub fn libraries(&mut self, files: &[&str]) {
        let files = files.iter().map(|&file| file.to_owned()).collect();
        self.records.push(Record::Libraries { process: ProcessId(0), at_ns: START, files });
    }

    /// The kernel ran a thread for so long in all.
    pub fn ran(&mut self, thread: u32, cpu_ns: u64) {
        self.totals_of(thread).cpu_ns = cpu_ns;
    }

    /// The kernel counted so many sleeps of a thread, and took the processor away so often.
    pub fn switched(&mut self, thread: u32, slept: u64, preempted: u64) {
        let totals = self.totals_of(thread);
        (totals.voluntary_switches, totals.involuntary_switches) = (slept, preempted);
    }

    /// So many events of a thread were lost.
    pub fn lost(&mut self, thread: u32, events: u64) {
        self.totals_of(thread).lost_events = events;
    }

    /// So many processors are there, of which a limit leaves so many thousandths.
    pub fn may_use(&mut self, allowed: u32, limit_thousandths: Option<u32>) {
        let Some(Record::ProcessStarted(process)) = self.records.first_mut() else { return };
        process.processors = Some(Processors { allowed, limit_thousandths });
    }

    /// A CPU limit stopped it for so long.
    pub fn throttled(&mut self, stopped_ns: u64) {
        let process = ProcessId(0);
        self.records.push(Record::Throttled { process, at_ns: START, times: 9, stopped_ns });
    }

    /// A thread that computes and another that does little and often, for two seconds.
    pub fn convoy() -> Self {
        Self::convoy_of(&[])
    }

    /// The same in a process that has other threads, too.
    pub fn convoy_of(others: &[&'static str]) -> Self {
        Self::convoy_with(others, 0)
    }

    /// The same, where each late call is followed by so many that return at once.
    pub fn convoy_with(others: &[&'static str], quick: u64) -> Self {
        let names = [&["MainThread", "builder"], others].concat();
        let mut story = Self::of(&names);
        story.acquire(0, 1);
        for round in 1..200 {
            let at_ns = round * 10 * MS;
            story.wait(at_ns, 0);
            story.ask(at_ns + 5 * MS, 0);
            if round % 10 == 0 {
                story.held(at_ns + 5 * MS, 1, &["square app.py", "build_report app.py"]);
            }
            story.forced(at_ns + 5 * MS + 10_000, 1);
            story.acquire(at_ns + 5 * MS + 20_000, 0);
            for call in 0..quick {
                story.release(at_ns + 5 * MS + 21_000 + 200 * call, 0);
                story.acquire(at_ns + 5 * MS + 21_100 + 200 * call, 0);
            }
            story.wait(at_ns + 5 * MS + 30_000, 1);
            story.release(at_ns + 5 * MS + 200_000, 0);
            story.acquire(at_ns + 5 * MS + 220_000, 1);
        }
        story
    }

    /// A thread ends before the program.
    pub fn ends(&mut self, at_ns: u64, thread: u32) {
        let totals = self.totals[thread as usize].take().unwrap();
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.records.push(Record::ThreadEnded { thread, at_ns, totals });
    }

    fn totals_of(&mut self, thread: u32) -> &mut ThreadTotals {
        self.totals[thread as usize].as_mut().unwrap()
    }

    /// So many threads compute in turns behind the main one, and all others do nothing but to begin.
    pub fn take_turns(mut self, computing: u32) -> Told {
        let mut at_ns = 1_000;
        // Each computes for 5 ms, and wants to go on at once.
        self.acquire(at_ns, 1);
        (2..=computing).for_each(|thread| self.wait(2_000, thread));
        for turn in 0..1_000 {
            let (holder, next) = (1 + turn % computing, 1 + (turn + 1) % computing);
            self.ask(at_ns + 5 * MS, next);
            self.forced(at_ns + 5 * MS + 5_000, holder);
            at_ns += 5 * MS + 10_000;
            self.acquire(at_ns, next);
            self.wait(at_ns + 1_000, holder);
        }
        let all = u32::try_from(self.totals.len()).unwrap();
        for other in computing + 1..all {
            self.acquire(at_ns + MS, other);
            self.release(at_ns + MS + 1_000, other);
        }
        self.acquire(at_ns + 2 * MS, 0);
        self.end(at_ns + 2 * MS)
    }

    /// Ends everything.
    pub fn end(mut self, at_ns: u64) -> Told {
        let at_ns = START + at_ns;
        for (number, totals) in (0..).zip(self.totals) {
            let Some(totals) = totals else { continue };
            self.records.push(Record::ThreadEnded { thread: ThreadId(number), at_ns, totals });
        }
        let totals = ProcessTotals {
            switch_interval_ns: 5 * MS,
            gil_state: self.gil_state as u64,
            ..ProcessTotals::default()
        };
        self.records.push(Record::ProcessEnded { process: ProcessId(0), at_ns, totals });
        let mut analysis = Analysis::new(20 * MS);
        for record in &self.records {
            analysis.push(record);
        }
        let demands = Demand::of(&self.records);
        let report = analysis.report();
        let advised = advise(&report, &demands);
        Told { report, demands, advised }
    }
}

/// What came of a story.
pub struct Told {
    pub report: Report,
    /// What its threads wanted.
    pub demands: Vec<Demand>,
    pub advised: Advised,
}

impl Told {
    /// The advice of a kind, be it rejected.
    pub fn of(&self, kind: Kind) -> Option<&Advice> {
        let all = self.advised.advice.iter().chain(&self.advised.rejected);
        all.into_iter().find(|advice| advice.kind == kind)
    }

    /// The kinds that are advised, in their order.
    pub fn kinds(&self) -> Vec<Kind> {
        self.advised.advice.iter().map(|advice| advice.kind).collect()
    }
}

/// The only advice, which has to say that it is not the GIL.
pub fn first(told: &Told) -> &Advice {
    let first = &told.advised.advice[0];
    assert_eq!(first.kind, Kind::NotTheGil, "{:?}", told.report.findings);
    first
}

/// A thread is off the GIL ten times for so long, in this call and stack.
pub fn off(story: &mut Story, thread: u32, length_ns: u64, call: (&str, &str), stack: &[&str]) {
    for round in 0..10 {
        let at_ns = round * (length_ns + MS);
        story.acquire(at_ns, thread);
        story.release(at_ns + MS / 2, thread);
        story.off(at_ns + length_ns / 2, thread, call, stack);
    }
    story.acquire(10 * (length_ns + MS), thread);
    story.release(10 * (length_ns + MS) + 10, thread);
}

/// All that is told, as a sentence each.
pub fn texts(told: &Told) -> Vec<&str> {
    told.advised.advice.iter().map(|it| it.text.as_str()).collect()
}
