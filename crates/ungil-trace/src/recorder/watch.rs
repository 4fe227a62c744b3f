//! Decides when a process is looked at from outside: for the stack of a thread that keeps the
//! GIL while another one waits, and for the names of new threads.

use super::process::Traced;
use super::times::Times;
use crate::record::Record;
use crate::stacks::{Answer, Sample, StackError, StackSampler};
use std::collections::HashMap;

/// Between two looks for names: with hundreds of threads one costs milliseconds.
const NAMES_EVERY_NS: u64 = 50_000_000;
/// The longest pause between looks that found no name (a thread that Python does not know).
const NAMES_PATIENCE_NS: u64 = 2_000_000_000;

/// What is looked for, process by process.
pub struct Watch {
    /// `None` if no thread could be started for it.
    sampler: Option<StackSampler>,
    blame_after_ns: u64,
    processes: HashMap<u32, State>,
    reported: bool,
}

#[derive(Default)]
struct State {
    /// Beginning of the hold that was looked at last, by the clock of the process.
    hold_ticks: u64,
    /// Age at which that hold is looked at again.
    next_age_ns: u64,
    names_at_ns: u64,
    names_pause_ns: u64,
}

impl Watch {
    /// Holds longer than `blame_after_ns` are to have a stack.
    pub fn new(blame_after_ns: u64) -> Self {
        let sampler = StackSampler::start().ok();
        Self { sampler, blame_after_ns, processes: HashMap::new(), reported: false }
    }

    /// Asks for what is worth knowing now, and says whether the next look should come soon: a
    /// thread has held for long, and another one may begin to wait for it. Never blocks.
    pub fn look(&mut self, traced: &mut [Traced], times: &mut Times, now: u64) -> bool {
        let Some(sampler) = &self.sampler else { return false };
        let mut soon = false;
        for traced in traced {
            let state = self.processes.entry(traced.pid).or_default();
            let moment = traced.now();
            if moment.held_since_ticks != state.hold_ticks {
                // Half the time, so that a hold which is just long enough has its sample.
                let first_age_ns = self.blame_after_ns / 2;
                (state.hold_ticks, state.next_age_ns) = (moment.held_since_ticks, first_age_ns);
            }
            let age = traced.held_since_ns(&moment, times).map(|since| now.saturating_sub(since));
            if let Some(age) = age
                && age >= state.next_age_ns
            {
                if moment.is_waited_for {
                    state.next_age_ns = age.saturating_mul(4);
                    sampler.request_stack(traced.pid);
                } else {
                    soon |= moment.threads > 1;
                }
            }
            if now >= state.names_at_ns && traced.threads_mut().any(|thread| !thread.named) {
                state.names_pause_ns =
                    (state.names_pause_ns * 2).clamp(NAMES_EVERY_NS, NAMES_PATIENCE_NS);
                state.names_at_ns = now + state.names_pause_ns;
                sampler.request_names(traced.pid);
            }
        }
        soon
    }

    /// Turns the answers that have come into records.
    pub fn collect(&mut self, traced: &mut [Traced], mut give: impl FnMut(Record)) {
        let Some(sampler) = &self.sampler else { return };
        for answer in sampler.answers() {
            match answer {
                Answer::Sample { pid, sample } => {
                    let Some(traced) = traced.iter_mut().find(|traced| traced.pid == pid) else {
                        continue;
                    };
                    if name_threads(traced, &sample, &mut give)
                        && let Some(state) = self.processes.get_mut(&pid)
                    {
                        state.names_pause_ns = 0;
                    }
                    give_stack(traced, sample, &mut give);
                }
                Answer::Failed { error: StackError::Gone | StackError::NotReady(_), .. } => {}
                Answer::Failed { error, .. } if !self.reported => {
                    self.reported = true;
                    let text =
                        format!("thread names and the code of long holds are missing: {error}");
                    give(Record::Note { text });
                }
                Answer::Failed { .. } => {}
            }
        }
    }

    /// The process is gone.
    pub fn forget(&mut self, pid: u32) {
        if self.processes.remove(&pid).is_some()
            && let Some(sampler) = &self.sampler
        {
            sampler.forget(pid);
        }
    }
}

/// Whether a thread got its name.
fn name_threads(traced: &mut Traced, sample: &Sample, give: &mut impl FnMut(Record)) -> bool {
    let mut any = false;
    for thread in traced.threads_mut().filter(|thread| !thread.named) {
        if let Some(known) = sample.names.iter().find(|known| known.ident == thread.ident) {
            (thread.named, any) = (true, true);
            give(Record::ThreadNamed { thread: thread.id, name: known.name.clone() });
        }
    }
    any
}

fn give_stack(traced: &mut Traced, sample: Sample, give: &mut impl FnMut(Record)) {
    let Some(holder) = sample.holder.filter(|holder| !holder.frames.is_empty()) else { return };
    if let Some(thread) = traced.threads_mut().find(|thread| thread.ident == holder.ident) {
        let (thread, at_ns, frames) = (thread.id, sample.at_ns, holder.frames);
        give(Record::Stack { thread, at_ns, frames });
    }
}
