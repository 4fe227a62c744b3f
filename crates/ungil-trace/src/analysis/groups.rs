//! What was counted, by groups: threads whose names are alike, in processes whose command lines are.
//!
//! Two runs of one program have neither pids nor tids in common, and a pool may have had other
//! numbers. So each number in a name or a command line counts as `*`, and what is equal then is one
//! group: `ThreadPoolExecutor-0_3` and `ThreadPoolExecutor-0_7` are `ThreadPoolExecutor-*_*`.

use super::gil::Gil;
use super::length::{Lengths, seconds};
use super::process::{Process, Startup, Thread};
use super::seat::Seat;
use super::tally::Tally;
use crate::record::ThreadId;
use crate::report::{GilMeasures, GroupMeasures, OtherThreads, ProcessMeasures};
use std::collections::BTreeMap;

/// Characters of a command line that tell processes apart.
const LONGEST_COMMAND: usize = 4_096;

/// `text` with `*` for each number in it.
pub(super) fn pattern_of(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    let mut in_number = false;
    for character in text.chars() {
        let is_digit = character.is_ascii_digit();
        if !is_digit {
            pattern.push(character);
        } else if !in_number {
            pattern.push('*');
        }
        in_number = is_digit;
    }
    pattern
}

/// The pattern of a command line. Folders are left out: what is compared lies in two of them as often
/// as not.
pub(super) fn command_pattern(argv: &[String]) -> String {
    let mut line = String::new();
    for (index, word) in argv.iter().enumerate() {
        let is_path = index == 0 || word.starts_with('/') || word.starts_with("./");
        let name = word.rsplit('/').next().filter(|name| is_path && !name.is_empty());
        if index > 0 {
            line.push(' ');
        }
        line.push_str(name.unwrap_or(word));
        if line.len() > LONGEST_COMMAND {
            break;
        }
    }
    let line: String = line.chars().take(LONGEST_COMMAND).collect();
    pattern_of(&line)
}

/// The measures of a process as they grow.
#[derive(Debug)]
struct Command {
    argv: Vec<String>,
    pids: Vec<u32>,
    busy_ns: u64,
    gils: BTreeMap<u8, Lock>,
}

#[derive(Debug, Default)]
struct Lock {
    held_s: f64,
    contended_ns: u64,
    handoffs: u64,
    groups: BTreeMap<String, Group>,
    others: OtherThreads,
}

#[derive(Debug, Default)]
struct Group {
    sums: GroupMeasures,
    waits: Lengths,
    has_several_names: bool,
}

impl Tally {
    /// The measures of all processes up to `now_ns`, by their command lines.
    /// What became known of names later is taken from `known`.
    pub(super) fn grouped_until(&self, now_ns: u64, known: &Self) -> Vec<ProcessMeasures> {
        let mut commands: BTreeMap<String, Command> = BTreeMap::new();
        for process in self.processes.iter() {
            let end_ns = process.ended_ns.unwrap_or(now_ns).min(now_ns).max(process.known.at_ns);
            let command = commands.entry(command_pattern(&process.known.argv));
            let command = command.or_insert_with(|| Command {
                argv: process.known.argv.clone(),
                pids: Vec::new(),
                busy_ns: 0,
                gils: BTreeMap::new(),
            });
            command.pids.push(process.known.pid);
            command.busy_ns += busy_ns(process, end_ns);
            for gil in &process.gils {
                let lock = command.gils.entry(gil.number).or_default();
                self.add_gil(lock, process, gil, end_ns, known);
            }
            self.add_lock_waits(command, process, known);
        }
        commands.into_iter().map(|(pattern, command)| command.measures(pattern)).collect()
    }

    /// What threads waited for locks counts at the first GIL of each. Which locks they took in turn is
    /// taken from `known`, too.
    fn add_lock_waits(&self, command: &mut Command, process: &Process, known: &Self) {
        let known_process = known.processes.get(process.known.process.0).unwrap_or(process);
        let Some((locks, known_locks)) = process.locks.as_ref().zip(known_process.locks.as_ref())
        else {
            return;
        };
        for (id, slept_ns) in locks.slept_for(&known_locks.contended()) {
            let Some(thread) = self.threads.get(id.0) else { continue };
            let gil = thread.chairs.first().map(|chair| process.gils[chair.place].number);
            let pattern = pattern_of(latest_name(Some(id), thread, known));
            let group = gil
                .and_then(|gil| command.gils.get_mut(&gil))
                .and_then(|lock| lock.groups.get_mut(&pattern));
            if let Some(group) = group {
                group.sums.lock_waited_s += seconds(slept_ns);
            }
        }
    }

    fn add_gil(&self, lock: &mut Lock, process: &Process, gil: &Gil, end_ns: u64, known: &Self) {
        let thread_of = |seat: &Seat| self.threads.get(seat.thread?.0);
        let mut gil = gil.clone();
        for index in 0..gil.seats.len() {
            if thread_of(&gil.seats[index]).is_some_and(|thread| thread.ended_ns.is_none())
                && let Ok(index) = u32::try_from(index)
            {
                gil.leave(index, end_ns, self.blame_after_ns);
            }
        }
        // What is held in a start-up that has not ended is its hold as well.
        let startup_s = match process.startup {
            Startup::Until { .. } => seconds(gil.startup_ns),
            Startup::Alone { .. } | Startup::Before => 0.0,
        };
        let held_ns: u64 = gil.seats.iter().map(|seat| seat.holds.sum.total_ns).sum();
        lock.held_s += (seconds(held_ns) + gil.others.held_s - startup_s).max(0.0);
        lock.contended_ns = lock.contended_ns.saturating_add(gil.contended_ns);
        lock.handoffs = lock.handoffs.saturating_add(gil.handoffs);
        lock.add_others(&gil.others);
        for seat in &gil.seats {
            let Some(thread) = thread_of(seat) else { continue };
            let name = latest_name(seat.thread, thread, known);
            lock.groups.entry(pattern_of(name)).or_default().add(seat, thread, name);
        }
    }
}

/// The name that a thread had in the end.
fn latest_name<'a>(id: Option<ThreadId>, thread: &'a Thread, known: &'a Tally) -> &'a str {
    let later = id.and_then(|id| known.threads.get(id.0));
    &later.unwrap_or(thread).name
}

/// What a process lived after its start-up, until `end_ns`.
fn busy_ns(process: &Process, end_ns: u64) -> u64 {
    let begin_ns = match process.startup {
        Startup::Until { at_ns } => at_ns.max(process.known.at_ns),
        Startup::Alone { .. } | Startup::Before => process.known.at_ns,
    };
    end_ns.saturating_sub(begin_ns)
}

impl Lock {
    fn add_others(&mut self, others: &OtherThreads) {
        let mine = &mut self.others;
        mine.threads += others.threads;
        mine.cpu_s += others.cpu_s;
        mine.held_s += others.held_s;
        mine.waited_s += others.waited_s;
        mine.holds = mine.holds.saturating_add(others.holds);
        mine.waits = mine.waits.saturating_add(others.waits);
        mine.voluntary = mine.voluntary.saturating_add(others.voluntary);
        mine.forced = mine.forced.saturating_add(others.forced);
        mine.drop_requests = mine.drop_requests.saturating_add(others.drop_requests);
        mine.lost_events = mine.lost_events.saturating_add(others.lost_events);
    }

    fn measures(self, gil: u8) -> GilMeasures {
        let mut groups: Vec<_> =
            self.groups.into_iter().map(|(pattern, group)| group.measures(pattern)).collect();
        let others = &self.others;
        if others.threads > 0 {
            groups.push(GroupMeasures {
                threads: others.threads,
                held_s: others.held_s,
                waited_s: others.waited_s,
                cpu_s: others.cpu_s,
                cpu_threads: others.threads,
                holds: others.holds,
                waits: others.waits,
                voluntary: others.voluntary,
                forced: others.forced,
                drop_requests: others.drop_requests,
                lost_events: others.lost_events,
                ..GroupMeasures::default()
            });
        }
        GilMeasures {
            gil,
            held_s: self.held_s,
            contended_s: seconds(self.contended_ns),
            handoffs: self.handoffs,
            groups,
        }
    }
}

impl Group {
    fn add(&mut self, seat: &Seat, thread: &Thread, name: &str) {
        let sums = &mut self.sums;
        if sums.threads == 0 {
            sums.name = Some(name.to_owned());
        } else if sums.name.as_deref() != Some(name) {
            self.has_several_names = true;
        }
        sums.threads += 1;
        sums.held_s += seconds(seat.holds.sum.total_ns.saturating_sub(seat.startup_ns));
        sums.waited_s += seconds(seat.waits.sum.total_ns);
        if let Some(totals) = &thread.totals {
            sums.cpu_s += seconds(totals.cpu_ns);
            sums.cpu_threads += 1;
            sums.lost_events = sums.lost_events.saturating_add(totals.lost_events);
        }
        sums.holds = sums.holds.saturating_add(seat.holds.sum.count);
        sums.waits = sums.waits.saturating_add(seat.waits.sum.count);
        sums.voluntary = sums.voluntary.saturating_add(seat.voluntary);
        sums.forced = sums.forced.saturating_add(seat.forced);
        sums.drop_requests = sums.drop_requests.saturating_add(seat.drop_requests);
        let calls = seat.blocking_calls.saturating_sub(seat.startup_calls);
        sums.blocking_calls = sums.blocking_calls.saturating_add(calls);
        sums.blocking_waited_s += seconds(seat.blocking_waits.total_ns);
        sums.not_run_s += seconds(seat.descheduled.sum.total_ns);
        self.waits.merge(&seat.waits);
    }

    fn measures(self, pattern: String) -> GroupMeasures {
        let percentile =
            |q: f64| (self.waits.sum.count > 0).then(|| self.waits.quantile_ns(q) / 1e3);
        GroupMeasures {
            wait_p50_us: percentile(0.5),
            wait_p99_us: percentile(0.99),
            pattern: Some(pattern),
            name: self.sums.name.clone().filter(|_| !self.has_several_names),
            ..self.sums
        }
    }
}

impl Command {
    fn measures(self, pattern: String) -> ProcessMeasures {
        ProcessMeasures {
            pattern,
            argv: self.argv,
            pids: self.pids,
            busy_s: seconds(self.busy_ns),
            gils: self.gils.into_iter().map(|(number, lock)| lock.measures(number)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_differ_in_folders_and_numbers_are_alike() {
        let pattern = |words: &[&str]| {
            command_pattern(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        let mine = pattern(&["/usr/bin/python3.11", "/srv/a/app.py", "--port", "8001"]);
        assert_eq!(mine, "python*.* app.py --port *");
        assert_eq!(mine, pattern(&["venv/bin/python3.13", "/srv/b2/app.py", "--port", "90"]));
        assert_eq!(pattern(&["python", "/srv/"]), "python /srv/");
        assert_eq!(pattern(&[]), "");
    }

    #[test]
    fn names_that_differ_in_their_numbers_are_alike() {
        for (name, pattern) in [
            ("ThreadPoolExecutor-0_13", "ThreadPoolExecutor-*_*"),
            ("Thread-7 (serve)", "Thread-* (serve)"),
            ("MainThread", "MainThread"),
            ("", ""),
            ("42", "*"),
            ("\u{202e}x\u{0660}1", "\u{202e}x\u{0660}*"),
        ] {
            assert_eq!(pattern_of(name), pattern);
        }
    }
}
