//! A small language in which tests tell what happened to the GILs of a process.

use crate::analysis::Analysis;
use crate::record::{
    Frame, KernelCount, NativeFrame, Park, Process, ProcessId, ProcessTotals, Processors, Record,
    ThreadId, ThreadTotals,
};
use crate::report::{GilReport, Report, ThreadReport, Who};
use ungil_core::park::{Cause, Ending};
use ungil_core::{Event, Kind};

pub const MS: u64 = 1_000_000;
/// Blame time and start of every scenario.
pub const BLAME_AFTER: u64 = 20 * MS;
pub const START: u64 = 1_000 * MS;
pub const PID: u32 = 100;

/// One process; times are in ns since its start. Thread `n` has tid `PID + n` and name `t<n>`.
pub struct Scenario {
    pub analysis: Analysis,
}

/// A sleep from one time to another, for the lock of that number.
pub fn parked(thread: u32, times: (u64, u64), (cause, lock): (Cause, u32), waker: u32) -> Record {
    let park = Park {
        since_ns: START + times.0,
        until_ns: START + times.1,
        cause,
        of: if cause == Cause::Pause { String::new() } else { "dict".to_owned() },
        lock,
        ending: Ending::Woken,
        waker: Some(ThreadId(waker)),
        stack: 0,
        waker_stack: 0,
    };
    Record::Parked { thread: ThreadId(thread), park }
}

/// A sleep for lock 8 of the program off the GIL, which ended in this way.
pub fn off_gil(thread: u32, times: (u64, u64), waker: u32, ending: Ending) -> Record {
    match parked(thread, times, (Cause::OffGil, 8), waker) {
        Record::Parked { thread, park } => Record::Parked { thread, park: Park { ending, ..park } },
        other => other,
    }
}

impl Scenario {
    /// A process with so many threads that start with it.
    pub fn new(threads: u32) -> Self {
        Self::with_blame_after(threads, BLAME_AFTER)
    }

    pub fn with_blame_after(threads: u32, blame_after_ns: u64) -> Self {
        Self::of(&process(0), threads, blame_after_ns)
    }

    /// The same where the process may use so many processors.
    pub fn on(processors: u32, threads: u32) -> Self {
        let Record::ProcessStarted(process) = process(0) else { unreachable!() };
        let processors = Some(Processors { allowed: processors, limit_thousandths: None });
        Self::of(&Record::ProcessStarted(Process { processors, ..process }), threads, BLAME_AFTER)
    }

    fn of(process: &Record, threads: u32, blame_after_ns: u64) -> Self {
        let mut scenario = Self { analysis: Analysis::new(blame_after_ns) };
        scenario.analysis.push(process);
        (0..threads).for_each(|thread| scenario.start(thread, 0));
        scenario
    }

    pub fn start(&mut self, thread: u32, at_ns: u64) {
        self.analysis.push(&thread_of(0, thread, START + at_ns));
    }

    pub fn event(&mut self, at_ns: u64, thread: u32, kind: Kind) -> Option<ThreadId> {
        self.analysis.push(&event(0, thread, START + at_ns, kind))
    }

    pub fn wait(&mut self, at_ns: u64, thread: u32) {
        assert_eq!(self.event(at_ns, thread, Kind::Wait), None);
    }

    pub fn acquire(&mut self, at_ns: u64, thread: u32) -> Option<ThreadId> {
        self.event(at_ns, thread, Kind::Acquire)
    }

    pub fn ask(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Kind::DropRequest);
    }

    pub fn release(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Kind::ReleaseVoluntary);
    }

    pub fn forced(&mut self, at_ns: u64, thread: u32) {
        self.event(at_ns, thread, Kind::ReleaseForced);
    }

    /// A whole hold.
    pub fn hold(&mut self, from_ns: u64, to_ns: u64, thread: u32) {
        self.acquire(from_ns, thread);
        self.release(to_ns, thread);
    }

    /// Thread 0 gets the GIL, and thread 1, which waits, asks for it after 6 ms: so far in vain.
    pub fn is_asked_in_vain(&mut self, from_ns: u64) {
        self.acquire(from_ns, 0);
        self.wait(from_ns + MS, 1);
        self.ask(from_ns + 6 * MS, 1);
    }

    pub fn stack(&mut self, at_ns: u64, thread: u32, function: &str) {
        self.stack_in(at_ns, thread, &[(function, "app.py")]);
    }

    /// Functions with their files, innermost first.
    pub fn stack_in(&mut self, at_ns: u64, thread: u32, frames: &[(&str, &str)]) {
        let frame = |&(function, file): &(&str, &str)| Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line: 7,
        };
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        let frames = frames.iter().map(frame).collect();
        self.analysis.push(&Record::Stack { thread, at_ns, frames, native: None });
    }

    /// A Python function that is in native functions, innermost first, each with its library.
    pub fn native_stack(
        &mut self,
        at_ns: u64,
        thread: u32,
        function: &str,
        native: &[(&str, &str)],
    ) {
        let frame = |&(symbol, library): &(&str, &str)| NativeFrame {
            symbol: symbol.to_owned(),
            library: library.to_owned(),
            ..NativeFrame::default()
        };
        let native = Some(native.iter().map(frame).collect());
        let frames =
            vec![Frame { function: function.to_owned(), file: "app.py".to_owned(), line: 7 }];
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.analysis.push(&Record::Stack { thread, at_ns, frames, native });
    }

    /// A thread was stopped to be looked at.
    pub fn stopped(&mut self, at_ns: u64, thread: u32, stood_ns: u64) {
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.analysis.push(&Record::Stopped { thread, at_ns, stood_ns });
    }

    pub fn no_stack(&mut self, at_ns: u64, thread: u32, why: &str) {
        let (thread, at_ns, why) = (ThreadId(thread), START + at_ns, why.to_owned());
        self.analysis.push(&Record::NoStack { thread, at_ns, why });
    }

    /// The holder ran for so long in its hold from `from_ns` on, and blocked or not.
    pub fn ran(&mut self, from_ns: u64, thread: u32, cpu_ns: u64, blocked: bool) {
        let kind = if blocked { Kind::RanAndBlocked } else { Kind::Ran };
        self.event(from_ns + cpu_ns, thread, kind);
    }

    /// What the kernel has counted for a thread that sleeps.
    pub fn kernel_counted(&mut self, at_ns: u64, thread: u32, delayed_ns: u64) {
        self.counted(at_ns, thread, delayed_ns, false);
    }

    /// The same of one that runs, or wants to.
    pub fn kernel_counted_of_one_that_runs(&mut self, at_ns: u64, thread: u32, delayed_ns: u64) {
        self.counted(at_ns, thread, delayed_ns, true);
    }

    fn counted(&mut self, at_ns: u64, thread: u32, delayed_ns: u64, runnable: bool) {
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        let count = KernelCount { at_ns, ran_ns: 0, delayed_ns, runnable };
        self.analysis.push(&Record::KernelCount { thread, count });
    }

    /// A thread slept for a lock, in a process that may have no GIL.
    pub fn park(
        &mut self,
        thread: u32,
        times: (u64, u64),
        (cause, lock): (Cause, u32),
        waker: u32,
    ) {
        self.analysis.push(&parked(thread, times, (cause, lock), waker));
    }

    /// How often a CPU limit stopped the process, and for how long.
    pub fn throttled(&mut self, times: u64, stopped_ns: u64) {
        let process = ProcessId(0);
        self.analysis.push(&Record::Throttled { process, at_ns: START, times, stopped_ns });
    }

    pub fn end_thread(&mut self, at_ns: u64, thread: u32, totals: ThreadTotals) {
        let (thread, at_ns) = (ThreadId(thread), START + at_ns);
        self.analysis.push(&Record::ThreadEnded { thread, at_ns, totals });
    }

    /// Ends the process and reports.
    pub fn end(mut self, at_ns: u64) -> Report {
        self.analysis.push(&process_end(0, START + at_ns));
        self.analysis.report()
    }
}

pub fn process(id: u32) -> Record {
    Record::ProcessStarted(Process {
        process: ProcessId(id),
        pid: PID + id,
        parent_pid: 1,
        at_ns: START,
        argv: vec!["python".to_owned(), format!("app{id}.py")],
        python: "3.13.0".to_owned(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })
}

pub fn process_end(id: u32, at_ns: u64) -> Record {
    let totals = ProcessTotals {
        switch_interval_ns: 5 * MS,
        clock_error_ns: 60,
        ..ProcessTotals::default()
    };
    Record::ProcessEnded { process: ProcessId(id), at_ns, totals }
}

pub fn thread_of(process: u32, thread: u32, at_ns: u64) -> Record {
    Record::ThreadStarted {
        thread: ThreadId(thread),
        process: ProcessId(process),
        tid: PID + thread,
        at_ns,
        name: format!("t{thread}"),
    }
}

pub fn event(gil: u8, thread: u32, at_ns: u64, kind: Kind) -> Record {
    let event = Event { at_ns, kind, gil, seq: 0 };
    Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event }
}

/// The only GIL of the only process.
pub fn gil(report: &Report) -> &GilReport {
    &report.processes[0].gils[0]
}

/// Thread `n` of the scenario at the only GIL.
pub fn thread(report: &Report, n: u32) -> &ThreadReport {
    let found = gil(report).threads.iter().find(|thread| thread.tid == PID + n);
    found.unwrap_or_else(|| panic!("thread {n} is not in the report"))
}

/// What thread `victim` waited while `culprit` held, in ms.
pub fn blamed_ms(report: &Report, victim: u32, culprit: Who) -> f64 {
    let victim = Who::Thread(PID + victim);
    let rows = gil(report).blame.iter();
    rows.filter(|row| row.victim == victim && row.culprit == culprit)
        .map(|row| row.waited_s * 1e3)
        .sum()
}

/// Thread `n` as a party to a wait.
pub fn who(n: u32) -> Who {
    Who::Thread(PID + n)
}

pub fn assert_close(measured: f64, expected: f64) {
    assert!((measured - expected).abs() < 1e-6, "{measured} should be {expected}");
}
