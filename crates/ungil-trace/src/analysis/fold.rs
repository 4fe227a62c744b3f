//! Forgetting: of threads and processes that have ended, only those that mattered keep details.

use super::gil::{Gil, OTHERS};
use super::judged;
use super::length::seconds;
use super::process::{Process, Thread};
use super::tally::Tally;
use crate::record::{ProcessId, ProcessTotals, ThreadId, ThreadTotals};
use std::collections::BTreeMap;

/// How many ended threads, and how many ended processes, keep their details.
pub(super) const KEPT: usize = 1_000;
/// How many more may pile up, so that forgetting is done for many at a time.
pub(super) const PILE: usize = 250;

/// A thread to be folded.
#[derive(Clone, Debug)]
struct Folded {
    seat: u32,
    tid: u32,
    name: String,
    totals: ThreadTotals,
}

/// Splits off all but the [`KEPT`] heaviest.
fn lightest<T>(ended: &mut Vec<T>, weight: impl Fn(&T) -> u64) -> Vec<T> {
    ended.sort_by_cached_key(|item| std::cmp::Reverse(weight(item)));
    ended.split_off(KEPT.min(ended.len()))
}

impl Tally {
    /// Folds ended threads if too many have piled up.
    pub(super) fn fold_threads(&mut self) {
        if self.ended_threads.len() <= KEPT + PILE {
            return;
        }
        let (threads, processes) = (&self.threads, &self.processes);
        let weight_of = |thread: &Thread| {
            let process = processes.get(thread.process.0)?;
            let seats = thread.chairs.iter();
            Some(seats.fold(0, |sum: u64, chair| {
                let seat = &process.gils[chair.place].seats[chair.seat as usize];
                sum.saturating_add(seat.weight_ns())
            }))
        };
        let folded = lightest(&mut self.ended_threads, |id: &ThreadId| {
            threads.get(id.0).and_then(weight_of).unwrap_or(0)
        });
        let mut by_gil: BTreeMap<(ProcessId, usize), Vec<Folded>> = BTreeMap::new();
        for thread in folded.iter().filter_map(|id| self.threads.remove(id.0)) {
            for chair in &thread.chairs {
                by_gil.entry((thread.process, chair.place)).or_default().push(Folded {
                    seat: chair.seat,
                    tid: thread.tid,
                    name: thread.name.clone(),
                    totals: thread.totals.unwrap_or_default(),
                });
            }
        }
        for ((process, place), folded) in by_gil {
            if let Some(process) = self.processes.get_mut(process.0) {
                process.gils[place].fold(&folded);
            }
        }
    }

    /// Ends a process and its threads, and folds ended processes if too many have piled up.
    pub(super) fn end_process(&mut self, id: ProcessId, at_ns: u64, totals: ProcessTotals) {
        let is_early = self.is_early(at_ns);
        let Some(process) = self.processes.get_mut(id.0) else { return };
        if process.ended_ns.is_some() {
            return;
        }
        if is_early && !process.has_counted() {
            let live = std::mem::take(&mut process.live);
            for thread in live {
                self.had_ended(thread);
            }
            self.processes.remove(id.0);
            return;
        }
        process.ended_ns = Some(at_ns.max(process.known.at_ns));
        process.totals = totals;
        let live = std::mem::take(&mut process.live);
        self.saw(at_ns);
        for thread in live {
            self.end_thread(thread, at_ns, None);
        }
        self.ended_processes.push(id);
        if self.ended_processes.len() > KEPT + PILE {
            self.fold_processes();
        }
    }

    fn fold_processes(&mut self) {
        let processes = &self.processes;
        let folded = lightest(&mut self.ended_processes, |id: &ProcessId| {
            processes.get(id.0).map_or(0, Process::weight_ns)
        });
        for mut process in folded.iter().filter_map(|id| self.processes.remove(id.0)) {
            judged::take(&mut process, &self.threads, &mut self.judged_before);
            for gil in &mut process.gils {
                let place = (process.known.process, gil.number);
                self.ended_before.extend(gil.ended.take().map(|ended| (place, ended)));
            }
            let others = &mut self.other_processes;
            others.processes += 1;
            for gil in &process.gils {
                others.held_s += gil.others.held_s;
                others.waited_s += gil.others.waited_s;
                for seat in &gil.seats {
                    others.held_s += seconds(seat.holds.sum.total_ns);
                    others.waited_s += seconds(seat.waits.sum.total_ns);
                }
            }
        }
        let (threads, processes) = (&mut self.threads, &self.processes);
        self.ended_threads.retain(|id| {
            let process = threads.get(id.0).map(|thread| thread.process);
            let kept = process.is_some_and(|process| processes.get(process.0).is_some());
            if !kept {
                threads.remove(id.0);
            }
            kept
        });
    }
}

impl Gil {
    /// Sums threads that have ended into [`OTHERS`] and frees their seats.
    fn fold(&mut self, folded: &[Folded]) {
        // The history names seats, which change owners now.
        self.settle_all();
        for Folded { seat, tid, name, totals } in folded {
            let seat = std::mem::take(&mut self.seats[*seat as usize]);
            self.seats[OTHERS].blame.absorb(&seat.blame);
            let others = &mut self.others;
            others.threads += 1;
            others.cpu_s += seconds(totals.cpu_ns);
            others.held_s += seconds(seat.holds.sum.total_ns);
            others.waited_s += seconds(seat.waits.sum.total_ns);
            others.holds = others.holds.saturating_add(seat.holds.sum.count);
            others.waits = others.waits.saturating_add(seat.waits.sum.count);
            others.voluntary = others.voluntary.saturating_add(seat.voluntary);
            others.forced = others.forced.saturating_add(seat.forced);
            others.drop_requests = others.drop_requests.saturating_add(seat.drop_requests);
            others.lost_events = others.lost_events.saturating_add(totals.lost_events);
            if let Some((judged, thread)) = self.judged.as_mut().zip(seat.thread) {
                judged.fold(thread, *tid, name);
            }
            let kept = self.long_holds.kept.iter_mut();
            for hold in kept.filter(|hold| Some(hold.thread) == seat.thread) {
                hold.identity = Some((*tid, name.clone()));
            }
        }
        for seat in &mut self.seats {
            for gone in folded {
                seat.blame.move_culprit(gone.seat as usize, OTHERS);
            }
        }
        self.free_seats.extend(folded.iter().map(|gone| gone.seat));
    }
}
