//! Decides when a process is looked at from outside: for the stack of a thread that keeps the
//! GIL while another one waits, and for the names of new threads.

use super::looks::Looks;
use super::moment::Running;
use super::names::Names;
use super::pace::Pace;
use super::thread::Thread;
use super::times::Times;
use super::traced::Traced;
use crate::clock::now_ns;
use crate::record::{Doing, NativeFrame, Record, ThreadId};
use crate::stacks::{Answer, Holder, NativeStack, Sample, StackError, StackSampler, ThreadNames};
use std::collections::HashMap;

/// The shortest time between two samples of one hold: with a deep stack one costs a millisecond.
const SAMPLES_EVERY_NS: u64 = 5_000_000;
/// From some age on a hold is sampled whenever it has grown by this part: a hold of 400 ms has some
/// 20 samples at the usual blame time, one of an hour a hundred.
const GROWTH: u64 = 8;

/// What is looked for, process by process.
pub struct Watch {
    /// `None` if no thread could be started for it.
    sampler: Option<StackSampler>,
    /// Whether native frames are wanted, for which threads are stopped.
    native: bool,
    blame_after_ns: u64,
    /// A hold as long as this is looked at although nobody waits for it.
    unwaited_ns: Option<u64>,
    processes: HashMap<u32, State>,
    looks: Looks,
    /// Holds that ended before there was a stack of them, each with a moment of it.
    missed: Vec<(ThreadId, u64)>,
    reported: bool,
    /// Whether was told why native frames are missing.
    natives_reported: bool,
}

#[derive(Default)]
struct State {
    /// The hold that was looked at last, by GIL.
    holds: HashMap<u8, Watched>,
    names: Names,
}

/// A hold, and what was seen of it.
#[derive(Clone, Copy)]
struct Watched {
    hold: Running,
    /// Age at which it is looked at again.
    next_age_ns: u64,
    /// Age at which a look at it is due again while nobody waits for it.
    next_look_age_ns: u64,
    /// When its stack was asked for, until it has come.
    asked_ns: Option<u64>,
}

impl Watch {
    /// Holds longer than `blame_after_ns` are to have a stack if somebody waits meanwhile, and those
    /// longer than `unwaited_ns` in any case; with `native`, the native frames of their threads too.
    pub fn new(blame_after_ns: u64, unwaited_ns: Option<u64>, native: bool, pace: Pace) -> Self {
        Self {
            sampler: StackSampler::start().ok(),
            native,
            blame_after_ns,
            unwaited_ns: unwaited_ns.map(|ns| ns / 2),
            processes: HashMap::new(),
            looks: Looks::new(pace),
            missed: Vec::new(),
            reported: false,
            natives_reported: false,
        }
    }

    /// Asks for what is worth knowing now, and says whether the next look should come soon: a
    /// thread has held for long, and another one may begin to wait for it. Never blocks.
    pub fn look(&mut self, traced: &mut [Traced], times: &mut Times, now: u64) -> bool {
        let Some(sampler) = &self.sampler else { return false };
        let mut soon = false;
        for traced in traced {
            let state = self.processes.entry(traced.pid).or_default();
            let moment = traced.now(times);
            let mut is_due = false;
            state.forget_ended(&moment.holds, &mut self.missed);
            for hold in moment.holds {
                // Half the time, so that a hold which is just long enough has its sample.
                let first_age_ns = self.blame_after_ns / 2;
                let fresh = Watched {
                    hold,
                    next_age_ns: first_age_ns,
                    next_look_age_ns: first_age_ns,
                    asked_ns: None,
                };
                let watched = state.holds.entry(hold.gil).or_insert(fresh);
                let age_ns = now.saturating_sub(hold.since_ns);
                is_due |= age_ns >= watched.next_look_age_ns;
                if age_ns < watched.next_age_ns {
                    continue;
                }
                if hold.is_waited_for || self.unwaited_ns.is_some_and(|ns| age_ns >= ns) {
                    watched.next_age_ns = next_age_ns(age_ns, first_age_ns);
                    watched.asked_ns.get_or_insert(now);
                    let native = self.native.then_some(hold.tid);
                    sampler.request_stack(traced.pid, traced.runtime(), native);
                } else {
                    soon |= moment.threads > 1;
                }
            }
            if let Some(last) = last_without_name(traced)
                && state.names.are_due(last, now)
            {
                state.names.are_asked_for(last, now);
                sampler.request_names(traced.pid, traced.runtime());
            }
            if self.looks.look(traced, sampler, now, is_due) && is_due {
                state.were_looked_at(now);
            }
        }
        soon
    }

    /// Whether a process has threads without a name for which nobody has asked, or the answer has yet
    /// to come. The next look asks.
    pub fn owes_names(&mut self, traced: &mut Traced) -> bool {
        if self.sampler.is_none() {
            return false;
        }
        let state = self.processes.entry(traced.pid).or_default();
        last_without_name(traced).is_some_and(|last| state.names.are_owed(last))
    }

    /// Turns the answers that have come into records.
    pub fn collect(
        &mut self,
        traced: &mut [Traced],
        times: &mut Times,
        mut give: impl FnMut(Record),
    ) {
        let Some(sampler) = &self.sampler else { return };
        for answer in sampler.answers() {
            let (Answer::Sample { pid, .. }
            | Answer::Everyone { pid, .. }
            | Answer::NotEveryone { pid }
            | Answer::Failed { pid, .. }) = &answer;
            let Some(traced) = traced.iter_mut().find(|traced| traced.pid == *pid) else {
                continue;
            };
            let state = self.processes.entry(traced.pid).or_default();
            match answer {
                Answer::Sample { sample, .. } => {
                    if let Some(names) = &sample.names {
                        state.names.have_come(name_threads(traced, times, names, &mut give));
                    }
                    if let Some(files) = sample.libraries {
                        let (process, at_ns) = (traced.id, sample.at_ns);
                        give(Record::Libraries { process, at_ns, files });
                    }
                    let Sample { begun_ns, at_ns, holders, mut natives, no_natives, .. } = sample;
                    if let Some(why) = no_natives.filter(|_| !self.natives_reported) {
                        self.natives_reported = true;
                        let text = format!("the native functions of long holds are missing: {why}");
                        give(Record::Note { text });
                    }
                    give_stops(traced, &natives, &mut give);
                    let waiters = self.looks.take_waiters(traced.pid);
                    for holder in holders {
                        if let Some(thread) = state.thread_of(traced, &holder, begun_ns) {
                            // Of a hold that nobody waits for a look is enough.
                            let is_sample = waiters != Some(0) || state.is_asked_for(thread.id);
                            if let Some(waiters) = waiters {
                                let (doing, frames) =
                                    (Doing::Held { waiters }, holder.frames.clone());
                                let thread = thread.id;
                                give(Record::Look { thread, at_ns, doing, frames });
                            }
                            if !is_sample {
                                continue;
                            }
                            let native = natives.iter_mut().find(|it| it.tid == thread.tid);
                            let native = native.and_then(|it| it.frames.take());
                            state.give_stack(&thread, holder, native, at_ns, &mut give);
                        }
                    }
                }
                Answer::Everyone { everyone, cpu_ns, .. } => {
                    self.looks.everyone(traced, everyone, cpu_ns, &mut give);
                }
                Answer::NotEveryone { pid } => self.looks.failed(pid, now_ns()),
                Answer::Failed { error, .. } => {
                    state.names.have_failed(matches!(error, StackError::NotReady(_)));
                    if let Some(text) = note_of(&error).filter(|_| !self.reported) {
                        self.reported = true;
                        give(Record::Note { text });
                    }
                    state.give_failure(&error, &mut give);
                }
            }
        }
        let mut lives =
            |id| traced.iter_mut().any(|traced| traced.threads_mut().any(|thread| thread.id == id));
        for (thread, at_ns) in self.missed.extract_if(.., |missed| lives(missed.0)) {
            let why = "it ended before its stack was read".to_owned();
            give(Record::NoStack { thread, at_ns, why });
        }
    }

    /// The process is gone.
    pub fn forget(&mut self, pid: u32) {
        self.looks.forget(pid);
        if self.processes.remove(&pid).is_some()
            && let Some(sampler) = &self.sampler
        {
            sampler.forget(pid);
        }
    }
}

impl State {
    /// Drops the holds that are over; `missed` gets those whose stack is asked for in vain. (If it
    /// was taken in time and has yet to come, that counts.)
    fn forget_ended(&mut self, running: &[Running], missed: &mut Vec<(ThreadId, u64)>) {
        self.holds.retain(|_, Watched { hold, asked_ns, .. }| {
            let goes_on = running
                .iter()
                .any(|now| (now.thread, now.since_ns) == (hold.thread, hold.since_ns));
            if let Some(asked_ns) = asked_ns.filter(|_| !goes_on) {
                missed.push((hold.thread, asked_ns));
            }
            goes_on
        });
    }

    /// The holds that were due have been looked at. One that goes on for seconds is looked at no more
    /// often than it is sampled.
    fn were_looked_at(&mut self, now: u64) {
        for watched in self.holds.values_mut() {
            let age_ns = now.saturating_sub(watched.hold.since_ns);
            if age_ns >= watched.next_look_age_ns {
                watched.next_look_age_ns = next_age_ns(age_ns, 0);
            }
        }
    }

    /// Whether the stack of a hold of this thread is asked for because the hold is long.
    fn is_asked_for(&self, thread: ThreadId) -> bool {
        let mut holds = self.holds.values();
        holds.any(|watched| watched.hold.thread == thread && watched.asked_ns.is_some())
    }

    /// Whose stack it is. In the main interpreter a thread has its own ident; in another one the
    /// thread counts that has held that GIL since before the sample was begun.
    fn thread_of(&self, traced: &mut Traced, holder: &Holder, begun_ns: u64) -> Option<Thread> {
        let gil = holder.gil.clone().map_or(Some(0), |range| traced.gil_in(range));
        let holds = match gil.filter(|_| !holder.in_main) {
            None => None,
            Some(gil) => {
                let hold = self.holds.get(&gil)?.hold;
                Some((hold.since_ns <= begun_ns).then_some(hold.thread)?)
            }
        };
        let is_it = |thread: &&mut Thread| match holds {
            Some(id) => thread.id == id,
            None => thread.ident == holder.ident,
        };
        traced.threads_mut().find(is_it).cloned()
    }

    /// Gives the stack of a holder, or why it has none.
    fn give_stack(
        &mut self,
        &Thread { id: thread, ident, .. }: &Thread,
        holder: Holder,
        native: Option<Vec<NativeFrame>>,
        at_ns: u64,
        give: &mut impl FnMut(Record),
    ) {
        for watched in self.holds.values_mut().filter(|watched| watched.hold.thread == thread) {
            watched.asked_ns = None;
        }
        let mut frames = holder.frames;
        if ident == holder.ident {
            frames.extend(holder.callers);
        }
        if frames.is_empty() {
            let why = "the thread was not in a Python function".to_owned();
            give(Record::NoStack { thread, at_ns, why });
        } else {
            give(Record::Stack { thread, at_ns, frames, native });
        }
    }

    /// Says of every hold whose stack was asked for why it has not come.
    fn give_failure(&mut self, error: &StackError, give: &mut impl FnMut(Record)) {
        for watched in self.holds.values_mut() {
            if let Some(at_ns) = watched.asked_ns.take() {
                let thread = watched.hold.thread;
                give(Record::NoStack { thread, at_ns, why: error.about_a_hold() });
            }
        }
    }
}

/// Tells how long threads stood still to be looked at.
fn give_stops(traced: &mut Traced, natives: &[NativeStack], give: &mut impl FnMut(Record)) {
    for &NativeStack { tid, at_ns, stood_ns, .. } in natives {
        let thread = traced.threads_mut().find(|it| it.tid == tid).map(|it| it.id);
        if let Some((thread, stood_ns)) = thread.zip(stood_ns) {
            give(Record::Stopped { thread, at_ns, stood_ns });
        }
    }
}

/// At which age a hold that was sampled at `age_ns` is sampled again.
fn next_age_ns(age_ns: u64, first_age_ns: u64) -> u64 {
    let pause_ns = first_age_ns.max(SAMPLES_EVERY_NS).max(age_ns / GROWTH);
    age_ns.saturating_add(pause_ns)
}

/// What the report has to say once if stacks can never be had.
fn note_of(error: &StackError) -> Option<String> {
    match error {
        StackError::Gone | StackError::NotReady(_) => None,
        error => Some(format!("thread names and the code of long holds are missing: {error}")),
    }
}

/// The last thread whose name is not known.
fn last_without_name(traced: &mut Traced) -> Option<ThreadId> {
    traced.threads_mut().filter(|thread| !thread.named).map(|thread| thread.id).max()
}

/// Whether a thread got its name.
fn name_threads(
    traced: &mut Traced,
    times: &mut Times,
    names: &ThreadNames,
    give: &mut impl FnMut(Record),
) -> bool {
    let &ThreadNames { begun_ns, at_ns, ref threads } = names;
    let mut any = false;
    for thread in traced.lived(times, begun_ns, at_ns).filter(|thread| !thread.named) {
        if let Some(known) = threads.iter().find(|known| known.ident == thread.ident) {
            (thread.named, any) = (true, true);
            give(Record::ThreadNamed { thread: thread.id, name: known.name.clone() });
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn running(thread: u32, gil: u8, since_ns: u64) -> Running {
        Running { thread: ThreadId(thread), tid: thread, gil, since_ns, is_waited_for: true }
    }

    /// Holds of threads 0, 1, 2 at GILs 0, 1, 2; the stack of all but the last is asked for.
    fn state() -> State {
        let mut state = State::default();
        for (number, asked_ns) in [(0, Some(20)), (1, Some(30)), (2, None)] {
            let hold = running(number.into(), number, 10);
            let watched = Watched { hold, next_age_ns: 0, next_look_age_ns: 0, asked_ns };
            state.holds.insert(number, watched);
        }
        state
    }

    #[test]
    fn a_hold_that_ends_before_its_stack_has_come_is_missed_once() {
        let (mut state, mut missed) = (state(), Vec::new());
        // Thread 1 has the GIL again, thread 0 still.
        state.forget_ended(&[running(0, 0, 10), running(1, 1, 40)], &mut missed);
        assert_eq!(missed, [(ThreadId(1), 30)]);
        assert_eq!(state.holds.keys().collect::<Vec<_>>(), [&0]);
        state.forget_ended(&[], &mut missed);
        state.forget_ended(&[], &mut missed);
        assert_eq!(missed, [(ThreadId(1), 30), (ThreadId(0), 20)]);
    }

    #[test]
    fn a_failure_is_the_reason_for_every_hold_whose_stack_was_asked_for() {
        let (mut state, mut given) = (state(), Vec::new());
        let error = StackError::Unsupported("Python 9.9 is unknown to the stack reader".into());
        state.give_failure(&error, &mut |record| given.push(record));
        given.sort_by_key(|record| match record {
            Record::NoStack { thread, .. } => thread.0,
            other => panic!("{other:?}"),
        });
        let why = "Python 9.9 is unknown to the stack reader".to_owned();
        let none = |thread, at_ns, why| Record::NoStack { thread: ThreadId(thread), at_ns, why };
        assert_eq!(given, [none(0, 20, why.clone()), none(1, 30, why)]);
        state.give_failure(&error, &mut |record| panic!("a second time: {record:?}"));
    }

    #[test]
    fn a_hold_that_nobody_waits_for_is_looked_at_ever_more_seldom() {
        let mut state = State::default();
        let hold = running(0, 0, 0);
        let fresh = Watched { hold, next_age_ns: 0, next_look_age_ns: 10 * MS, asked_ns: None };
        state.holds.insert(0, fresh);
        let mut looks = 0;
        for round in 1..=3_600 * 20 {
            let now = round * 50 * MS;
            if now >= state.holds[&0].next_look_age_ns {
                state.were_looked_at(now);
                looks += 1;
            }
        }
        assert!((50..100).contains(&looks), "{looks} looks in an hour");
    }

    #[test]
    fn a_long_hold_has_many_samples_and_a_very_long_one_not_very_many() {
        let samples = |length_ms: u64| {
            let ages = std::iter::successors(Some(10 * MS), |&age| Some(next_age_ns(age, 10 * MS)));
            ages.take_while(|&age| age <= length_ms * MS).count()
        };
        assert_eq!([20, 100, 400, 10_000, 3_600_000].map(samples), [2, 9, 21, 48, 98]);
        let close = next_age_ns(MS, 0) - MS;
        assert_eq!(close, SAMPLES_EVERY_NS);
    }
}
