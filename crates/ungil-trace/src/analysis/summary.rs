//! The report of what is known so far.

use super::gil::{Gil, OTHERS};
use super::late_waits::LATE;
use super::length::seconds;
use super::order::weight;
use super::park_stacks::ParkStacks;
use super::process::{Process, Startup, Thread};
use super::run_time::RunTime;
use super::samples::line_of;
use super::seat::Seat;
use super::tally::Tally;
use crate::origin::module_of;
use crate::record::{Frame, NOTHING_RECORDED, ProcessTotals, ThreadId};
use crate::report::{
    BlameReport, Blocking, ContextSwitches, Descheduled, Finding, FreeThreaded, Gaps, GilReport,
    LockReport, LongHoldReport, ParkedAt, ParkedThread, ParksReport, ProcessReport, Report, SCHEMA,
    StoppedReport, ThreadReport, Throttled, Who, Window, lost_share,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use ungil_core::schedule::Policy;
use ungil_core::table::GilState;

/// Rows of blame listed per GIL; the rest is summed for each victim.
const BLAME_ROWS: usize = 4_096;
/// The interpreter's default, for a process that did not tell its own.
const SWITCH_INTERVAL_NS: u64 = 5_000_000;
/// What a report of one process is made with.
struct View<'a> {
    tally: &'a Tally,
    /// Where names, policies and switch intervals come from: they may have become known later.
    known: &'a Tally,
    process: &'a Process,
    started_ns: u64,
    end_ns: u64,
}

impl Tally {
    /// The report, of what these processes and findings say.
    pub(super) fn report(&self, processes: Vec<ProcessReport>, findings: Vec<Finding>) -> Report {
        let mut pythons = processes
            .iter()
            .map(|process| process.python.as_str())
            .filter(|python| !python.is_empty());
        let python = pythons.next().unwrap_or_default().to_owned();
        let begin_ns = self.floor_ns.unwrap_or(self.started_ns());
        Report {
            schema: SCHEMA,
            python,
            duration_s: seconds(self.now_ns.saturating_sub(begin_ns)),
            lost_events: self.lost_events,
            lost_share: lost_share(self.lost_events, &processes),
            other_processes: Some(self.other_processes).filter(|others| others.processes > 0),
            findings,
            processes,
            notes: self.notes.iter().filter(|note| !is_reason(note)).cloned().collect(),
            started_at: self.wall_clock.and_then(|clock| clock.iso(self.started_ns())),
            part: None,
        }
    }

    /// The processes, those whose threads waited most first, if the trace had ended at `now_ns`. Of
    /// those that hardly waited, the one that held most after its start-up comes first.
    /// What became known of them later is taken from `known`.
    pub(super) fn processes_until(&self, now_ns: u64, known: &Self) -> Vec<ProcessReport> {
        let report = |process: &Process| {
            let end_ns = process.ended_ns.unwrap_or(now_ns).min(now_ns).max(process.known.at_ns);
            let started_ns = self.started_ns();
            View { tally: self, known, process, started_ns, end_ns }.process()
        };
        let mut processes: Vec<_> = self.processes.iter().map(report).collect();
        processes.sort_by_key(|process| {
            let threads = process.parks.iter().flat_map(|parks| &parks.threads);
            let parked_s: f64 = threads.map(ParkedThread::waited_s).sum();
            let held_s: f64 = process.gils.iter().map(|gil| gil.held_s).sum();
            let startup_s: f64 = process.gils.iter().map(|gil| gil.startup_held_s).sum();
            let gils = process.gils.iter();
            let wanted_s: f64 = gils.map(|gil| gil.wanting_mean * process.duration_s).sum();
            let waits_s = parked_s + wanted_s - held_s;
            std::cmp::Reverse(weight(waits_s, held_s - startup_s, process.duration_s))
        });
        processes
    }

    /// Start of the trace.
    fn started_ns(&self) -> u64 {
        self.started_ns.unwrap_or(self.now_ns)
    }

    /// The time in which a process was recorded.
    pub(super) fn life_of(&self, process: &ProcessReport) -> Window {
        let started_ns = self.started_ns().saturating_add(whole_ns(process.started_s));
        self.window(started_ns, started_ns.saturating_add(whole_ns(process.duration_s)))
    }

    /// This time as a report says it.
    pub(super) fn window(&self, start_ns: u64, end_ns: u64) -> Window {
        let since_start = |ns: u64| seconds(ns.saturating_sub(self.started_ns()));
        Window {
            start_s: since_start(start_ns),
            end_s: since_start(end_ns),
            started_at: self.wall_clock.and_then(|clock| clock.iso(start_ns)),
        }
    }
}

/// Whether a note is what the verdict says.
fn is_reason(note: &str) -> bool {
    note.starts_with(NOTHING_RECORDED)
}

impl View<'_> {
    fn process(&self) -> ProcessReport {
        let Process { known, .. } = self.process;
        let totals = self.totals();
        let mut gils: Vec<GilReport> = self.process.gils.iter().map(|gil| self.gil(gil)).collect();
        gils.sort_by_key(|gil| gil.gil);
        ProcessReport {
            pid: known.pid,
            parent_pid: known.parent_pid,
            argv: known.argv.clone(),
            python: known.python.clone(),
            started_s: self.since_start(known.at_ns),
            duration_s: self.duration_s(),
            not_recorded: known.not_recorded.clone().or_else(|| self.nothing_to_record()),
            free_threaded: self.free_threaded(),
            parks: self.parks(),
            lock_waits: self.lock_waits(),
            locks: self.locks(),
            policy: Some(totals.policy)
                .filter(|_| totals.switch_interval_ns > 0)
                .and_then(|number| Policy::from_number(u32::try_from(number).ok()?))
                .map(Policy::name),
            switch_interval_ms: Some(totals.switch_interval_ns)
                .filter(|&ns| ns > 0)
                .map(|ns| ns as f64 / 1e6),
            unrecorded_threads: totals.unrecorded_threads,
            throttled: self.throttled(),
            processors: known.processors.map(Into::into),
            libraries: self.process.libraries.clone(),
            stopped: self.stopped(),
            clock_error_us: self.process.ended_ns.map(|_| totals.clock_error_ns as f64 / 1e3),
            gils,
            startup_s: self.startup_s(),
        }
    }

    fn startup_s(&self) -> Option<f64> {
        match self.process.startup {
            Startup::Until { at_ns } => {
                let at_ns = at_ns.min(self.end_ns);
                Some(seconds(at_ns.saturating_sub(self.process.known.at_ns)))
            }
            Startup::Alone { .. } | Startup::Before => None,
        }
    }

    /// The latest totals of the process: a window ends long before they are known.
    fn totals(&self) -> ProcessTotals {
        let known = self.known.processes.get(self.process.known.process.0);
        known.map_or(self.process.totals, |process| process.totals)
    }

    fn gil_state(&self) -> GilState {
        let number = u32::try_from(self.totals().gil_state).ok();
        number.and_then(GilState::from_number).unwrap_or_default()
    }

    fn nothing_to_record(&self) -> Option<String> {
        (self.gil_state() == GilState::Off)
            .then(|| "this Python is free-threaded, and its GIL was off".to_owned())
    }

    fn parks(&self) -> Option<ParksReport> {
        let parks = self.process.parks.as_ref()?;
        // A stack may be told after the window in which threads slept in it.
        let known = self.known.processes.get(self.process.known.process.0);
        let stacks = &known.unwrap_or(self.process).park_stacks;
        Some(parks.report(stacks, |id| self.identity(id)))
    }

    /// What its threads waited for off the GIL.
    fn lock_waits(&self) -> Vec<ParkedAt> {
        let (locks, stacks) = (self.process.locks.as_ref(), ParkStacks::default());
        locks.map_or_else(Vec::new, |locks| locks.rows(&stacks, |id| self.identity(id)))
    }

    /// The locks that its threads took in turn.
    fn locks(&self) -> Vec<LockReport> {
        let contended = self.process.locks.as_ref().map(|locks| locks.contended());
        contended.map_or_else(Vec::new, |it| self.process.behind_locks.report(&it))
    }

    fn free_threaded(&self) -> Option<FreeThreaded> {
        let gil = match self.gil_state() {
            GilState::Always => return None,
            GilState::Unknown => None,
            GilState::Off => Some("off"),
            GilState::On => Some("on"),
            GilState::SwitchedOn => Some("switched on"),
        };
        let on_ns = Some(self.totals().gil_on_ns).filter(|&on_ns| on_ns > 0);
        let known = self.known.processes.get(self.process.known.process.0);
        let switched = known.and_then(|process| process.switched_on.as_ref());
        let switched = switched.filter(|_| self.gil_state() == GilState::SwitchedOn);
        let frame = switched.and_then(|it| {
            let users = Frame::innermost_of_the_user(&it.frames);
            users.or(it.frames.first()).map(line_of)
        });
        let library = switched.map(|it| it.library.clone()).filter(|it| !it.is_empty());
        Some(FreeThreaded {
            gil,
            gil_on_s: on_ns.map(|on_ns| self.since_start(on_ns)),
            module: library.as_deref().and_then(module_of),
            library,
            frame,
        })
    }

    /// Kernel thread id, name, and whether it is the main thread.
    fn identity(&self, id: ThreadId) -> Option<(u32, String, bool)> {
        let thread = self.tally.threads.get(id.0)?;
        Some((thread.tid, self.name(Some(id), thread), thread.tid == self.process.known.pid))
    }

    fn gil(&self, gil: &Gil) -> GilReport {
        let gil = self.completed(gil);
        let mut threads: Vec<ThreadReport> = gil
            .seats
            .iter()
            .filter_map(|seat| Some(self.thread(seat, self.thread_of(seat)?)))
            .collect();
        let weight = |thread: &ThreadReport| (thread.waited_s + thread.held_s, thread.waited_s);
        threads.sort_by(|a, b| {
            let ((a, a_waited), (b, b_waited)) = (weight(a), weight(b));
            b.total_cmp(&a).then(b_waited.total_cmp(&a_waited))
        });
        let others = Some(gil.others).filter(|others| others.threads > 0);
        let sum = |of: fn(&ThreadReport) -> f64| threads.iter().map(of).sum::<f64>();
        let count =
            |of: fn(&ThreadReport) -> u64| threads.iter().map(of).fold(0, u64::saturating_add);
        let held_s = gil.others.held_s + sum(|thread| thread.held_s);
        let waited_s = gil.others.waited_s + sum(|thread| thread.waited_s);
        let startup_held_s = seconds(gil.startup_ns);
        // Two sums of the same holds may differ by the last bit of one of them.
        let busy_held_s = (held_s - startup_held_s).max(0.0);
        let per_s = |sum_s: f64, of_s: f64| if of_s > 0.0 { sum_s / of_s } else { 0.0 };
        let duration_s = self.duration_s();
        let busy_s = duration_s - self.startup_s().unwrap_or(0.0);
        // Where events were lost, the thread of which most is not known tells how much is missing.
        let unknown_ns = gil.seats.iter().map(|seat| seat.blame.unknown_held_ns()).max();
        let contended_ns = gil.contended_ns.saturating_add(unknown_ns.unwrap_or(0));
        GilReport {
            gil: gil.number,
            held_s,
            startup_held_s,
            contended_s: seconds(contended_ns),
            handoffs: gil.handoffs,
            voluntary: count(|thread| thread.voluntary).saturating_add(gil.others.voluntary),
            forced: count(|thread| thread.forced).saturating_add(gil.others.forced),
            wanting_mean: per_s(held_s + waited_s, duration_s),
            wanting_busy_mean: per_s(busy_held_s + waited_s, busy_s),
            blame: self.blame(&gil),
            long_holds: self.long_holds(&gil),
            long_holds_count: gil.long_holds.count,
            threads,
            others,
        }
    }

    /// The GIL with everything ended that still goes on.
    fn completed<'g>(&self, gil: &'g Gil) -> Cow<'g, Gil> {
        if self.process.live.is_empty() {
            return Cow::Borrowed(gil);
        }
        let mut gil = gil.clone();
        for index in 0..gil.seats.len() {
            if self.thread_of(&gil.seats[index]).is_some_and(|thread| thread.ended_ns.is_none()) {
                let index = u32::try_from(index).expect("seats are numbered in 32 bits");
                gil.leave(index, self.end_ns, self.tally.blame_after_ns);
            }
        }
        Cow::Owned(gil)
    }

    fn thread_of(&self, seat: &Seat) -> Option<&Thread> {
        self.tally.threads.get(seat.thread?.0)
    }

    /// The latest name of a thread.
    fn name(&self, id: Option<ThreadId>, thread: &Thread) -> String {
        let known = id.and_then(|id| self.known.threads.get(id.0));
        known.unwrap_or(thread).name.clone()
    }

    fn thread(&self, seat: &Seat, thread: &Thread) -> ThreadReport {
        let totals = thread.totals.as_ref();
        let interval_ns = match self.totals().switch_interval_ns {
            0 => SWITCH_INTERVAL_NS,
            interval_ns => interval_ns,
        };
        let late = seat.blocking_waits.at_least(LATE * interval_ns as f64);
        ThreadReport {
            tid: thread.tid,
            name: self.name(seat.thread, thread),
            main: thread.tid == self.process.known.pid,
            started_s: self.since_start(thread.started_ns),
            ended_s: thread.ended_ns.map(|ended_ns| self.since_start(ended_ns)),
            cpu_s: totals.map(|totals| seconds(totals.cpu_ns)),
            held_s: seconds(seat.holds.sum.total_ns),
            startup_held_s: seconds(seat.startup_ns),
            waited_s: seconds(seat.waits.sum.total_ns),
            holds: seat.holds.report(),
            waits: seat.waits.report(),
            gaps: Gaps {
                mean_ms: seat.gaps.mean_ns() / 1e6,
                max_ms: seat.gaps.max_ns as f64 / 1e6,
            },
            voluntary: seat.voluntary,
            forced: seat.forced,
            drop_requests: seat.drop_requests,
            blocking: Blocking {
                calls: seat.blocking_calls,
                waited_s: seconds(seat.blocking_waits.total_ns),
                late: late.count,
                late_s: seconds(late.total_ns),
                late_p50_ms: late.median_ns / 1e6,
            },
            unanswered: seat.unanswered.report(),
            kept: seat.kept.report(),
            descheduled: Descheduled {
                not_run_s: seconds(seat.descheduled.sum.total_ns),
                max_ms: seat.descheduled.sum.max_ns as f64 / 1e6,
                waited_s: seconds(seat.descheduled.waited_ns),
            },
            held_in: seat.looks.as_ref().map_or_else(Vec::new, |looks| looks.held_in()),
            event_loop: seat.looks.as_ref().and_then(|looks| looks.event_loop()),
            off_gil: seat.looks.as_ref().map_or_else(Vec::new, |looks| looks.off_gil()),
            context_switches: totals.map(|totals| ContextSwitches {
                voluntary: totals.voluntary_switches,
                involuntary: totals.involuntary_switches,
            }),
            lost_events: totals.map_or(0, |totals| totals.lost_events),
        }
    }

    /// All pairs of victim and culprit, longest first; beyond [`BLAME_ROWS`] one row a victim.
    fn blame(&self, gil: &Gil) -> Vec<BlameReport> {
        let mut pairs: Vec<(Party, Party, u64)> = Vec::new();
        for (victim, seat) in gil.seats.iter().enumerate() {
            let victim = Party::Seat(victim);
            let by_seat = seat.blame.by_seat.iter().enumerate();
            pairs.extend(by_seat.map(|(culprit, &ns)| (victim, Party::Seat(culprit), ns)));
            pairs.push((victim, Party::Nobody, seat.blame.nobody_ns));
            pairs.push((victim, Party::Unknown, seat.blame.unknown_ns));
        }
        pairs.retain(|&(_, _, ns)| ns > 0);
        pairs.sort_by_key(|&(_, _, ns)| std::cmp::Reverse(ns));
        if pairs.len() > BLAME_ROWS {
            let mut rest: BTreeMap<(Party, Party), u64> = BTreeMap::new();
            let is_summed = |pair: &(Party, Party, u64)| pair.1 == Party::Seat(OTHERS);
            let (summed, single): (Vec<_>, Vec<_>) = pairs.into_iter().partition(is_summed);
            let (listed, unlisted) = single.split_at(BLAME_ROWS.min(single.len()));
            for &(victim, _, ns) in summed.iter().chain(unlisted) {
                let sum = rest.entry((victim, Party::Seat(OTHERS))).or_default();
                *sum = sum.saturating_add(ns);
            }
            pairs = listed.to_vec();
            pairs.extend(rest.into_iter().map(|((victim, culprit), ns)| (victim, culprit, ns)));
        }
        let row = |(victim, culprit, ns): (Party, Party, u64)| {
            let ((victim, victim_name), (culprit, culprit_name)) =
                (self.who(gil, victim), self.who(gil, culprit));
            BlameReport { victim, victim_name, culprit, culprit_name, waited_s: seconds(ns) }
        };
        pairs.into_iter().map(row).collect()
    }

    fn who(&self, gil: &Gil, party: Party) -> (Who, Option<String>) {
        match party {
            Party::Nobody => (Who::Nobody, None),
            Party::Unknown => (Who::Unknown, None),
            Party::Seat(seat) => match self.thread_of(&gil.seats[seat]) {
                Some(thread) => {
                    let name = self.name(gil.seats[seat].thread, thread);
                    (Who::Thread(thread.tid), Some(name))
                }
                None => (Who::Others, None),
            },
        }
    }

    fn long_holds(&self, gil: &Gil) -> Vec<LongHoldReport> {
        let mut holds: Vec<_> = gil.long_holds.kept.iter().collect();
        holds.sort_by_key(|hold| std::cmp::Reverse(hold.rank()));
        let identity = |thread_id: ThreadId| {
            let thread = self.tally.threads.get(thread_id.0);
            thread.map(|it| (it.tid, self.name(Some(thread_id), it)))
        };
        holds
            .into_iter()
            .map(|hold| {
                let identity = hold.identity.clone().or_else(|| identity(hold.thread));
                let (tid, name) = identity.unwrap_or_default();
                let contended = hold.waiters_max > 0;
                let stack = hold.samples.most_frequent();
                let length_ns = hold.end_ns - hold.start_ns;
                let run_time = hold.run_time.with_stops(hold.samples.stood_ns(), length_ns);
                let RunTime { cpu_ns, not_run_ns, .. } = run_time;
                // It may have been stopped for less than is known to be the most.
                let awake_ns = cpu_ns.unwrap_or(0).saturating_add(not_run_ns.unwrap_or(0));
                let rest_ns = length_ns.saturating_sub(awake_ns);
                LongHoldReport {
                    tid,
                    name,
                    start_s: self.since_start(hold.start_ns),
                    duration_ms: length_ns as f64 / 1e6,
                    contended,
                    waiters_max: hold.waiters_max,
                    waited_s: seconds(hold.waited_ns),
                    forced: hold.forced,
                    drop_request_unanswered_ms: hold.unanswered_ns.map(milliseconds),
                    cpu_ms: cpu_ns.map(milliseconds),
                    not_run_ms: not_run_ns.map(milliseconds),
                    stopped_ms: milliseconds(hold.samples.stood_ns().min(rest_ns)),
                    stack: stack.map_or_else(Vec::new, |stack| stack.lines.clone()),
                    user_frame: stack.and_then(|stack| stack.user_line.clone()),
                    samples: hold.samples.count(),
                    stack_samples: stack.map_or(0, |stack| stack.count),
                    native_looks: hold.samples.native_looks(),
                    native: hold.native(run_time),
                    stack_missing: hold.samples.why_none(contended),
                }
            })
            .collect()
    }

    fn stopped(&self) -> Option<StoppedReport> {
        let stops = &self.process.stops;
        (stops.sum.count > 0).then(|| StoppedReport {
            times: stops.sum.count,
            p50_us: stops.quantile_ns(0.5) / 1e3,
            p99_us: stops.quantile_ns(0.99) / 1e3,
            max_us: stops.sum.max_ns as f64 / 1e3,
            total_ms: milliseconds(stops.sum.total_ns),
        })
    }

    fn throttled(&self) -> Option<Throttled> {
        let (times, stopped_ns) = self.process.throttled?;
        let (before, before_ns) = self.process.throttled_before;
        Some(Throttled {
            times: times.saturating_sub(before),
            stopped_s: seconds(stopped_ns.saturating_sub(before_ns)),
        })
    }

    fn since_start(&self, at_ns: u64) -> f64 {
        seconds(at_ns.saturating_sub(self.started_ns))
    }

    fn duration_s(&self) -> f64 {
        seconds(self.end_ns.saturating_sub(self.process.known.at_ns))
    }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// A party to a wait, before it is named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Seat(usize),
    Nobody,
    Unknown,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from f64 saturates, and lengths are not negative"
)]
fn whole_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
