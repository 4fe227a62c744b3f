//! Looks at all threads of a process, several times a second: at who holds, while others wait or for
//! long, and at who has been off the GIL for long.
//!
//! A thread that is off the GIL runs no Python code, so one look at a gap that is long says what the
//! whole gap was. A look at a shorter one is a sample, which stands for the time in which that thread
//! could not be told of. The gaps of a thread that sleeps for a millisecond at a time are over before
//! its stack has been read: of these its system call alone is told. Reading the stacks of all threads costs the
//! more the more there are, and is paid by the recorder: it is done as often as takes a small part of
//! one processor, and not at all while all threads are in gaps that have been told of.

use super::calls::{Call, call_of};
use super::chances::Chances;
use super::pace::Pace;
use super::traced::Traced;
use crate::record::{Doing, Record};
use crate::stacks::{Everyone, StackSampler};
use std::collections::HashMap;

/// When which process is looked at.
#[derive(Debug)]
pub struct Looks {
    pace: Pace,
    processes: HashMap<u32, State>,
}

#[derive(Debug, Default)]
struct State {
    next_ns: u64,
    /// How many threads waited when the holder's stack was asked for, until that comes.
    waiters: Option<u32>,
    /// Whether the stacks of all threads are asked for.
    is_asked: bool,
    /// They are not asked for before.
    everyone_ns: u64,
    /// No thread was in a gap that had not been told of.
    all_told_ns: u64,
    chances: Chances,
}

impl Looks {
    pub fn new(pace: Pace) -> Self {
        Self { pace, processes: HashMap::new() }
    }

    /// Looks, if it is time to, and says whether it is. `is_due` says that a hold is worth a look
    /// although nobody waits for it. Never blocks.
    pub fn look(
        &mut self,
        traced: &mut Traced,
        sampler: &StackSampler,
        now: u64,
        is_due: bool,
    ) -> bool {
        let state = self.processes.entry(traced.pid).or_default();
        if now < state.next_ns {
            return false;
        }
        state.next_ns = now + self.pace.look_ns;
        let crowd = traced.look();
        if !crowd.new_gaps {
            state.all_told_ns = now;
        }
        if crowd.waiters > 0 || is_due {
            // What was asked for while others waited has yet to come: that is what it is of.
            state.waiters = Some(crowd.waiters.max(state.waiters.unwrap_or(0)));
            sampler.request_stack(traced.pid, traced.runtime(), None);
        }
        if crowd.new_gaps && !state.is_asked && now >= state.everyone_ns {
            state.is_asked = true;
            sampler.request_everyone(traced.pid, traced.runtime());
        }
        true
    }

    /// How many threads waited when the stack of the holder was asked for that has come now; `None`
    /// if it was asked for only because the hold is long.
    pub fn take_waiters(&mut self, pid: u32) -> Option<u32> {
        self.processes.get_mut(&pid)?.waiters.take()
    }

    /// Tells what threads do that have been off the GIL since before their stacks were read.
    /// Reading the stacks took `cpu_ns`.
    pub fn everyone(
        &mut self,
        traced: &mut Traced,
        stacks: Everyone,
        cpu_ns: u64,
        mut give: impl FnMut(Record),
    ) {
        let Some(state) = self.processes.get_mut(&traced.pid) else { return };
        state.is_asked = false;
        state.everyone_ns = stacks.at_ns.saturating_add(cpu_ns.saturating_mul(self.pace.look_cost));
        let (pid, at_ns, gils) = (traced.pid, stacks.at_ns, traced.gils());
        let mut round = state.chances.begin(at_ns, self.pace.look_ns, state.all_told_ns);
        let mut threads = stacks.threads;
        threads.sort_by_key(|stack| round.turn(stack.ident));
        for stack in threads.into_iter().filter(|stack| !stack.frames.is_empty()) {
            let unseen_ns = round.take(stack.ident);
            let ident = stack.ident;
            let mut is_told = false;
            traced.if_still_off(ident, |thread, tid, is_long, is_still_off| {
                let Some(stands_for_ns) = round.stands_for_ns(unseen_ns, is_long) else {
                    return false;
                };
                let Some(Call { name: call, on }) = call_of(pid, tid, &gils) else { return false };
                let is_off = is_still_off();
                if is_off {
                    let doing = Doing::Off { stands_for_ns, call, on };
                    give(Record::Look { thread, at_ns, doing, frames: stack.frames });
                    is_told = true;
                }
                is_off
            });
            if is_told || unseen_ns.is_none() {
                continue;
            }
            traced.if_in_short_gap(ident, |thread, tid, is_still_off| {
                let Some(call) = call_of(pid, tid, &gils).filter(Call::is_timed) else { return };
                if let Some(stands_for_ns) = round.stands_for_ns(unseen_ns, false)
                    && is_still_off()
                {
                    let Call { name: call, on } = call;
                    let doing = Doing::Off { stands_for_ns, call, on };
                    give(Record::Look { thread, at_ns, doing, frames: Vec::new() });
                }
            });
        }
        state.chances.end(round);
    }

    /// The stacks of all threads could not be read.
    pub fn failed(&mut self, pid: u32, now: u64) {
        if let Some(state) = self.processes.get_mut(&pid) {
            *state = State {
                next_ns: state.next_ns,
                everyone_ns: now + self.pace.look_ns * self.pace.look_cost,
                chances: std::mem::take(&mut state.chances),
                ..State::default()
            };
        }
    }

    /// The process is gone.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }
}
