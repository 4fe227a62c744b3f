//! A hold ends: what it counts for, who waited during it, and whether it is kept.

use super::ended::{Ended, EndedHold, counts_waits};
use super::gil::Gil;
use super::hold::{End, Hold};
use super::length::part;
use super::long_holds::LongHold;
use super::run_time::RunTime;
use crate::record::ThreadId;

impl Gil {
    /// The hold that goes on ends: it counts, and is kept or told where somebody wants that.
    pub(super) fn end_hold(&mut self, at_ns: u64, end: End, blame_ns: u64) {
        let Some(mut hold) = self.holder.take() else { return };
        // Where the release was lost nobody knows when it was. A thread of which events are lost uses
        // the GIL so often that it was soon.
        let mut past = hold.past(if end == End::Unseen { hold.since_ns } else { at_ns });
        let (end_ns, length_ns) = (past.end_ns, past.end_ns - past.start_ns);
        hold.samples.end(end_ns);
        if let Some(judged) = self.judged.as_mut().filter(|_| end != End::Unseen) {
            judged.end_hold(&hold, &mut past, &self.seats[hold.seat as usize]);
        }
        self.add_contended(past.contended_ns, end_ns);
        self.history.push(past);
        let seat = &mut self.seats[hold.seat as usize];
        seat.holds.add(length_ns);
        let startup_ns = self.startup_end_ns.min(end_ns).saturating_sub(past.start_ns);
        seat.startup_ns = seat.startup_ns.saturating_add(startup_ns);
        self.startup_ns = self.startup_ns.saturating_add(startup_ns);
        if end == End::Cut {
            seat.cut_holds.add(length_ns);
        }
        let known = hold.run_time(&mut seat.counts, end_ns);
        let run_time = known.with_stops(hold.samples.stood_ns(), length_ns);
        if let Some(thread) = seat.thread.filter(|_| self.ended.is_some()) {
            self.tell_hold(&hold, thread, past.start_ns, end_ns, end, run_time);
        }
        if run_time.not_run_least_ns > 0 {
            let ns = run_time.not_run_least_ns;
            let waited_ns = self.waited_in(&hold, end_ns);
            let descheduled = &mut self.seats[hold.seat as usize].descheduled;
            descheduled.add(ns, part(waited_ns, ns, length_ns));
        }
        if length_ns >= blame_ns {
            if let Some(looks) = &mut self.seats[hold.seat as usize].looks {
                let not_run_ns = run_time.not_run_ns.unwrap_or(run_time.not_run_least_ns);
                let ran_ns =
                    run_time.cpu_ns.unwrap_or_else(|| length_ns.saturating_sub(not_run_ns));
                looks.end_long_hold(hold.since_ns, end_ns, ran_ns);
            }
            self.keep_long_hold(hold, end_ns, end, known, blame_ns);
        }
        if self.history.is_full() {
            self.trim_history();
        }
    }

    fn keep_long_hold(
        &mut self,
        hold: Hold,
        end_ns: u64,
        end: End,
        run_time: RunTime,
        blame_ns: u64,
    ) {
        let unanswered_ns = hold.asked_ns.map(|asked_ns| end_ns.saturating_sub(asked_ns));
        if let Some((asked_ns, ns)) = hold.asked_ns.zip(unanswered_ns)
            && ns >= blame_ns
        {
            let waited_ns =
                self.waited_between(asked_ns, end_ns).saturating_add(hold.gone.unanswered_ns);
            let seat = &mut self.seats[hold.seat as usize];
            seat.unanswered.add(ns, waited_ns);
            let not_own_ns = run_time.not_run_most_ns.saturating_add(hold.samples.stood_ns());
            let kept_ns = ns.saturating_sub(not_own_ns);
            if kept_ns >= blame_ns {
                seat.kept.add(kept_ns, part(waited_ns, kept_ns, ns));
            }
        }
        let Some(thread) = self.seats[hold.seat as usize].thread else { return };
        let waits_in_it = |&&index: &&u32| {
            self.seats[index as usize].wait.is_some_and(|wait| wait.since_ns < end_ns)
        };
        self.long_holds.add(LongHold {
            thread,
            identity: None,
            start_ns: hold.since_ns,
            end_ns,
            // Nobody but a thread that ends stops waiting while somebody else holds.
            waiters_max: hold.gone.waiters + self.waiting.iter().filter(waits_in_it).count() as u64,
            waited_ns: self.waited_in(&hold, end_ns),
            forced: end == End::Forced,
            unanswered_ns,
            run_time,
            samples: hold.samples,
        });
    }

    /// What threads have waited during a hold that ends at `end_ns`, summed.
    fn waited_in(&self, hold: &Hold, end_ns: u64) -> u64 {
        self.waited_between(hold.since_ns, end_ns).saturating_add(hold.gone.waited_ns)
    }

    /// What the threads that wait now have waited in this time, summed.
    fn waited_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let waits = self.waiting.iter().filter_map(|&index| self.seats[index as usize].wait);
        waits.fold(0, |sum: u64, wait| {
            sum.saturating_add(to_ns.saturating_sub(wait.since_ns.max(from_ns)))
        })
    }

    fn tell_hold(
        &mut self,
        hold: &Hold,
        thread: ThreadId,
        start_ns: u64,
        end_ns: u64,
        end: End,
        run_time: RunTime,
    ) {
        let waited_ns =
            if counts_waits(end_ns - start_ns) { self.waited_in(hold, end_ns) } else { 0 };
        if let Some(ended) = &mut self.ended {
            ended.push(Ended::Hold(EndedHold {
                thread,
                start_ns,
                end_ns,
                ending: end.into(),
                not_run_least_ns: run_time.not_run_least_ns,
                not_run_most_ns: run_time.not_run_most_ns,
                cpu_ns: run_time.cpu_ns,
                waited_ns,
            }));
        }
    }
}
