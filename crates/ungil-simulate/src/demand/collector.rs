//! From records to demands, one record at a time.

use super::deliveries;
use super::gil::Gil;
use super::launches;
use super::links::{Follows, Link};
use super::pools;
use super::races::{self, Races};
use super::seat::{Seat, Settled};
use super::starters::{self, Times};
use super::steady::{Steady, middle};
use super::successors;
use super::supply;
use super::switches::Switches;
use super::wakes::{self, Slept};
use super::{Burst, Demand, Machine, Thread};
use crate::coldness::Coldness;
use crate::delays::{Delays, Seen};
use crate::figures::{Figures, ThreadFigures, Total};
use crate::lengths::{Lengths, scaled};
use crate::naps::SLACK_NS;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use ungil_core::park::Cause;
use ungil_core::schedule::{Policy, Settings};
use ungil_trace::Record;
use ungil_trace::analysis::weight;
use ungil_trace::record::{Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals};

/// How long a thread that is woken usually takes to have the GIL, where the trace does not tell.
const WAKE_UP_NS: u32 = 30_000;
/// How soon bytecode lets go of the GIL, where the trace does not tell.
const ANSWER_NS: u64 = 10_000;
/// Threads that were asked for the GIL less often than once in so many long uses tell nothing about it.
const SELDOM: usize = 20;
/// So many delays are needed for a distribution of them.
pub(super) const ENOUGH: usize = 10;

/// Takes in the records of a trace, in their order.
#[derive(Debug, Default)]
pub struct Collector {
    processes: HashMap<ProcessId, Known>,
    threads: HashMap<ThreadId, Named>,
    gils: Vec<Gil>,
    gil_of: HashMap<(ProcessId, u8), usize>,
    /// When each thread's sleeps for locks ended, and which thread ended them.
    slept: HashMap<ThreadId, Vec<(u64, ThreadId)>>,
    last_ns: u64,
}

#[derive(Debug)]
struct Known {
    process: Process,
    began_ns: u64,
    ended_ns: Option<u64>,
    totals: ProcessTotals,
}

#[derive(Debug)]
struct Named {
    process: ProcessId,
    tid: u32,
    name: String,
    ended: Option<(u64, ThreadTotals)>,
    /// How many GILs it used.
    gils: u64,
}

impl Collector {
    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        if let Some(at_ns) = record.at_ns() {
            self.last_ns = self.last_ns.max(at_ns);
        }
        match record {
            Record::ProcessStarted(process) => {
                let known = Known {
                    process: process.clone(),
                    began_ns: process.at_ns,
                    ended_ns: None,
                    totals: ProcessTotals::default(),
                };
                self.processes.insert(process.process, known);
            }
            Record::ProcessEnded { process, at_ns, totals } => {
                if let Some(known) = self.processes.get_mut(process) {
                    (known.ended_ns, known.totals) = (Some(*at_ns), *totals);
                }
            }
            Record::ThreadStarted { thread, process, tid, name, .. } => {
                let named = Named {
                    process: *process,
                    tid: *tid,
                    name: name.clone(),
                    ended: None,
                    gils: 0,
                };
                self.threads.insert(*thread, named);
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(named) = self.threads.get_mut(thread) {
                    named.name.clone_from(name);
                }
            }
            Record::ThreadEnded { thread, at_ns, totals } => {
                if let Some(named) = self.threads.get_mut(thread) {
                    named.ended = Some((*at_ns, *totals));
                    for gil in self.gils.iter_mut().filter(|gil| gil.process == named.process) {
                        gil.ended(*thread, *at_ns);
                    }
                }
            }
            Record::Gil { process, thread, event } => {
                let key = (*process, event.gil);
                let index = *self.gil_of.entry(key).or_insert_with(|| {
                    self.gils.push(Gil::new(*process, event.gil));
                    self.gils.len() - 1
                });
                self.gils[index].event(*thread, *event);
            }
            Record::KernelCount { thread, count } => {
                if let Some(named) = self.threads.get(thread) {
                    for gil in self.gils.iter_mut().filter(|gil| gil.process == named.process) {
                        if let Some(seat) = gil.seat_of(*thread) {
                            seat.counted(*count);
                        }
                    }
                }
            }
            Record::Parked { thread, park, .. } if park.cause == Cause::OffGil => {
                if let Some(waker) = park.waker.filter(|waker| waker != thread) {
                    self.slept.entry(*thread).or_default().push((park.until_ns, waker));
                }
            }
            Record::Snapshot { from_ns } => {
                self.gils.iter_mut().for_each(|gil| gil.begin_anew(*from_ns));
                self.processes.values_mut().for_each(|known| known.began_ns = *from_ns);
            }
            _ => {}
        }
    }

    /// What was wanted, one for each GIL; the one for which threads waited longest comes first.
    pub fn finish(mut self) -> Vec<Demand> {
        for gil in &self.gils {
            for seat in &gil.seats {
                if let Some(named) = self.threads.get_mut(&seat.thread) {
                    named.gils += 1;
                }
            }
        }
        let gils = std::mem::take(&mut self.gils);
        let mut demands: Vec<_> = gils.into_iter().filter_map(|gil| self.demand(gil)).collect();
        demands.sort_by_key(|demand| {
            let Figures { duration_s, threads, .. } = &demand.recorded;
            let waited_s = threads.iter().map(|thread| thread.waited_s).sum();
            let held_s = threads.iter().map(|thread| thread.held_s).sum();
            std::cmp::Reverse(weight(waited_s, held_s, *duration_s))
        });
        demands
    }

    /// The sleeps of the threads at these places that one of them ended, counted from a moment before.
    fn slept_of(&self, seats: &[Seat], from_ns: u64) -> Vec<Vec<Slept>> {
        let places: HashMap<_, _> = seats.iter().map(|it| it.thread).zip(0..).collect();
        let slept = seats.iter().map(|seat| {
            let all = self.slept.get(&seat.thread).into_iter().flatten();
            let known = all.filter(|(until_ns, _)| *until_ns >= from_ns);
            let told = known.filter_map(|(until_ns, waker)| {
                Some(Slept { until_ns: until_ns - from_ns, by: *places.get(waker)? })
            });
            told.collect()
        });
        slept.collect()
    }

    fn is_told(&self, seat: &Seat) -> bool {
        seat.begins_ns.is_some() && self.threads.contains_key(&seat.thread)
    }

    fn demand(&self, mut gil: Gil) -> Option<Demand> {
        let known = self.processes.get(&gil.process)?;
        let (began_ns, ended_ns) = (known.began_ns, known.ended_ns.unwrap_or(self.last_ns));
        let lasts_ns = ended_ns.saturating_sub(began_ns).max(1);
        let settings = settings(&known.totals);
        for seat in &mut gil.seats {
            seat.ends(ended_ns);
        }
        let mut settled: Vec<_> = gil.seats.iter_mut().map(|seat| seat.settle(settings)).collect();
        resolve_links(&gil.seats, &mut settled, |seat| self.is_told(seat));
        let told = (0..gil.seats.len()).filter(|seat| self.is_told(&gil.seats[*seat]));
        let place_of: HashMap<_, _> = told.enumerate().map(|(place, seat)| (seat, place)).collect();
        let (seats, mut settled): (Vec<_>, Vec<_>) = std::mem::take(&mut gil.seats)
            .into_iter()
            .zip(settled)
            .filter(|(seat, _)| self.is_told(seat))
            .unzip();
        // The process has a second thread from when on?
        let mut begins: Vec<_> = seats.iter().filter_map(|seat| seat.begins_ns).collect();
        begins.sort_unstable();
        let in_company_ns = begins.get(1).copied().unwrap_or(began_ns);
        let middle = middle(&(in_company_ns..ended_ns));
        forget_rare_requests(&mut settled);
        let all_answers = Seen::merged(settled.iter().map(|settled| &settled.answers));
        let all_answers = Arc::new(or_usual(&all_answers, ANSWER_NS));
        let woken_after_ns = races::Seen::median_ns(settled.iter().map(|settled| &settled.races));
        let woken_after_ns = woken_after_ns.unwrap_or_else(|| WAKE_UP_NS.into());
        let naps = races::Seen::naps(settled.iter().map(|settled| &settled.races));
        let all_races = settled.iter_mut().map(|settled| std::mem::take(&mut settled.races));
        let all_races = Races::of_each(all_races.collect(), &place_of, naps, WAKE_UP_NS);
        let all_switches =
            Seen::merged(settled.iter().flat_map(|settled| settled.switches.values()));
        let all_switches = Arc::new(or_usual(&all_switches, woken_after_ns));
        let mut lost_events = 0;
        let (mut total, mut rows, mut threads) = (Total::default(), Vec::new(), Vec::new());
        let mut waits = Lengths::default();
        let mut returns = Lengths::default();
        let mut gone_at_ns = Vec::new();
        let mut times = Vec::new();
        let slept = self.slept_of(&seats, began_ns);
        for ((seat, settled), races) in seats.into_iter().zip(settled).zip(all_races) {
            let Settled { bursts, wanted_at_ns, began_at_ns, answers, switches, .. } = settled;
            let named = self.threads.get(&seat.thread)?;
            lost_events += named.ended.map_or(0, |(_, totals)| totals.lost_events);
            waits.merge(&seat.waits);
            returns.merge(&seat.returns);
            let gone_ns = named.ended.map_or(ended_ns, |(at_ns, _)| at_ns);
            let steady = Steady::of(&bursts, &wanted_at_ns, gone_ns, &middle);
            let mut thread = thread(&seat, named, known, settled.follows, bursts, steady);
            thread.unanswered = settled.unanswered.into();
            thread.answers = enough(&answers).map_or_else(|| all_answers.clone(), Arc::new);
            thread.races = races.into();
            thread.switches = Switches::of(switches, &place_of, &all_switches);
            let away_ns: u64 = thread.bursts.iter().map(|burst| burst.away_ns).sum();
            let ran_ns = (seat.held_ns - seat.not_run_ns) + scaled(away_ns, thread.away_ran);
            total.add(seat.held_ns, ran_ns);
            rows.push(ThreadFigures {
                tid: thread.tid,
                name: thread.name.clone(),
                waits: seat.waits.summary(),
                returns: seat.returns.summary(),
                waited_s: seat.waits.total_ns() as f64 / 1e9,
                held_s: seat.held_ns as f64 / 1e9,
                ran_s: ran_ns as f64 / 1e9,
            });
            threads.push(thread);
            let is_gone = threads[threads.len() - 1].steady.uses.is_empty();
            let its = Times { wanted_at_ns, began_at_ns, gone_ns }.since(began_ns);
            gone_at_ns.push(is_gone.then_some(its.gone_ns));
            times.push(its);
        }
        let middle = middle.start.saturating_sub(began_ns)..middle.end.saturating_sub(began_ns);
        starters::find(&mut threads, &times);
        launches::find(&mut threads, &times);
        supply::find(&mut threads, &times);
        wakes::find(&mut threads, &times, &slept);
        deliveries::find(&mut threads, &times);
        let pools = pools::find(&threads, &times, &middle);
        successors::find(&mut threads, &gone_at_ns, &times, &middle);
        // What of the time until a request is not the switch interval is the timer's lateness.
        let until_asked = enough(&gil.until_asked).filter(|_| settings.policy == Policy::Stock);
        let lateness = until_asked.map(|until| until.less(settings.quantum_ns));
        let lateness = lateness.unwrap_or_else(|| Delays::fixed(SLACK_NS + woken_after_ns));
        let machine = Machine { lateness, naps, coldness: Coldness::default() };
        let recorded =
            Figures::new(lasts_ns, total, gil.handoffs, gil.forced, [&waits, &returns], rows);
        Some(Demand {
            pid: known.process.pid,
            argv: known.process.argv.clone(),
            gil: gil.number,
            settings,
            processors: known.process.processors.map(Into::into),
            lasts_ns,
            threads,
            recorded,
            lost_events,
            machine,
            pools: pools.into_iter().map(Arc::new).collect(),
            reproduced: OnceLock::new(),
        })
    }
}

/// Makes links lead to threads and their bursts, which are of seats and pieces so far. Nobody can be
/// told to follow a thread that never blocks, or one of which nothing is told.
fn resolve_links(seats: &[Seat], settled: &mut [Settled], is_told: impl Fn(&Seat) -> bool) {
    let mut places = 0u32..;
    let leaders: Vec<_> = seats
        .iter()
        .zip(settled.iter_mut())
        .map(|(seat, settled)| {
            let place = if is_told(seat) { places.next() } else { None };
            place.filter(|_| !seat.never_blocks()).zip(Some(std::mem::take(&mut settled.burst_of)))
        })
        .collect();
    for settled in settled {
        let follows = settled.follows != Follows::Nobody;
        for burst in &mut settled.bursts {
            burst.after = burst.after.filter(|_| follows).and_then(|link| {
                let (thread, burst_of) = leaders.get(link.thread as usize)?.as_ref()?;
                let burst = *burst_of.get(link.burst as usize)?;
                Some(Link { thread: *thread, burst, ..link })
            });
        }
    }
}

fn settings(totals: &ProcessTotals) -> Settings {
    let policy = u32::try_from(totals.policy).ok().and_then(Policy::from_number);
    let policy = policy.unwrap_or_default();
    let quantum_ns = match totals.switch_interval_ns {
        0 => policy.quantum_ns(),
        ns => ns,
    };
    Settings { policy, quantum_ns }
}

fn thread(
    seat: &Seat,
    named: &Named,
    known: &Known,
    follows: Follows,
    bursts: Vec<Burst>,
    steady: Steady,
) -> Thread {
    let began_ns = known.began_ns;
    let begins_ns = seat.begins_ns.unwrap_or(began_ns).max(began_ns);
    let away_ns: u64 = bursts.iter().fold(0, |sum: u64, burst| sum.saturating_add(burst.away_ns));
    // Its CPU time is that of all its life, at all GILs.
    let away_ran = match named.ended {
        Some((_, totals)) if away_ns > 0 && named.gils == 1 => {
            let held_ns = seat.held_ns.saturating_sub(seat.not_run_ns);
            (totals.cpu_ns.saturating_sub(held_ns) as f64 / away_ns as f64).min(1.0)
        }
        _ => 0.0,
    };
    Thread {
        tid: named.tid,
        name: named.name.clone(),
        main: named.tid == known.process.pid,
        begins_ns: begins_ns.saturating_sub(began_ns),
        bursts: bursts.into(),
        unanswered: [].into(),
        successor: None,
        starter: None,
        started: None,
        launches: [].into(),
        is_launched: false,
        begun_by: None,
        wakes: [].into(),
        deliveries: None,
        lives_on: None,
        steady,
        follows,
        away_ran,
        answers: Arc::new(Delays::fixed(ANSWER_NS)),
        races: Races::always(WAKE_UP_NS).into(),
        switches: Switches::always(Arc::new(Delays::fixed(WAKE_UP_NS.into()))),
    }
}

/// What happened where threads were seldom asked for the GIL was unusual: a long call, or a processor
/// that was taken.
fn forget_rare_requests(settled: &mut [Settled]) {
    let answers: usize = settled.iter().map(|settled| settled.answers.count()).sum();
    let computed: usize = settled.iter().map(|settled| settled.computed).sum();
    if answers * SELDOM <= computed {
        for settled in settled {
            (settled.answers, settled.switches) = (Seen::default(), HashMap::new());
        }
    }
}

/// The distribution of what was seen, if that is enough for one.
pub(super) fn enough(seen: &Seen) -> Option<Delays> {
    if seen.count() < ENOUGH { None } else { seen.distribution() }
}

fn or_usual(seen: &Seen, usual_ns: u64) -> Delays {
    enough(seen).unwrap_or_else(|| Delays::fixed(usual_ns))
}
