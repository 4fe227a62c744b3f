//! A trace as rows of tables, for SQL. `docs/sql.md` describes each table and its columns.

use crate::known::{End, KnownProcess, KnownThread};
use crate::parts::{Part, Parts};
use crate::stacks::StackFrame;
use crate::stretches::{Hold, Stretch, Stretches, Wait};
use ungil_core::park::{Cause, Ending};
use ungil_core::schedule::Policy;
use ungil_trace::Record;
use ungil_trace::origin::Origin;
use ungil_trace::record::{Park, Process, ThreadId};

/// Rows of one batch.
const BATCH: usize = 10_000;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Not known.
    Null,
    /// A number, or a time in ns.
    Number(i64),
    /// A text.
    Text(String),
}

/// Rows of the table of that name.
pub type Batch = (&'static str, Vec<Vec<Cell>>);

/// Turns records into rows.
#[derive(Debug)]
pub struct Rows {
    stretches: Stretches,
    made: Made,
}

#[derive(Debug, Default)]
struct Made {
    holds: Vec<Vec<Cell>>,
    samples: Vec<Vec<Cell>>,
    waits: Vec<Vec<Cell>>,
    lock_waits: Vec<Vec<Cell>>,
    parts: Parts,
    hold_id: i64,
    wait_id: i64,
    lock_wait_id: i64,
}

impl Rows {
    /// Of what happens from `from_ns` on and before `to_ns`.
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        Self { stretches: Stretches::new(from_ns, to_ns), made: Made::default() }
    }

    /// Takes in one record, and hands over rows when there are many.
    pub fn push<E>(
        &mut self,
        record: &Record,
        take: &mut impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { stretches, made } = self;
        stretches.push(record, &mut |stretches, stretch| made.add(stretches, &stretch));
        if let Record::Parked { thread, park } = record
            && park.cause == Cause::OffGil
        {
            made.add_lock_wait(stretches, *thread, park);
        }
        let tables = [&made.holds, &made.samples, &made.waits, &made.lock_waits];
        if tables.iter().any(|rows| rows.len() >= BATCH) {
            made.hand_over(take)?;
        }
        Ok(())
    }

    /// Hands over the rest.
    pub fn finish<E>(mut self, take: &mut impl FnMut(Batch) -> Result<(), E>) -> Result<(), E> {
        let Self { stretches, made } = &mut self;
        stretches.finish(&mut |stretches, stretch| made.add(stretches, &stretch));
        made.sample_rest(stretches);
        made.hand_over(take)?;
        take(("processes", processes(stretches)))?;
        take(("threads", threads(stretches)))?;
        take(("frames", frames(stretches)))
    }
}

impl Made {
    fn add(&mut self, stretches: &Stretches, stretch: &Stretch) {
        let since = |ns: u64| number(ns.saturating_sub(stretches.started_ns()));
        let hold = match stretch {
            Stretch::Hold(hold) => Some((self.hold_id + 1, hold.begin_ns)),
            _ => None,
        };
        let Self { parts, samples, .. } = self;
        parts.push(stretch, &mut |part| {
            // Before the hold are those that nobody had looked at so far.
            let id = hold.filter(|(_, begin_ns)| part.at_ns >= *begin_ns).map(|(id, _)| id);
            samples.extend(sample(&part, id, since(part.at_ns)));
        });
        match stretch {
            Stretch::Hold(hold) => {
                self.hold_id += 1;
                let &Hold { process, gil, thread, begin_ns, end_ns, .. } = hold;
                self.holds.push(vec![
                    Cell::Number(self.hold_id),
                    number(process.0),
                    number(gil),
                    number(thread.0),
                    since(begin_ns),
                    since(end_ns),
                    match hold.end {
                        End::Voluntary => number(0u32),
                        End::Forced => number(1u32),
                        End::Unseen => Cell::Null,
                    },
                    number(hold.waited_ns),
                    number(hold.waiters_max),
                    hold.asked_ns.map_or(Cell::Null, since),
                    hold.cpu_ns.map_or(Cell::Null, number),
                ]);
            }
            Stretch::Look(_) => {}
            Stretch::Wait(wait) => {
                self.wait_id += 1;
                let &Wait { process, gil, thread, begin_ns, end_ns, .. } = wait;
                self.waits.push(vec![
                    Cell::Number(self.wait_id),
                    number(process.0),
                    number(gil),
                    number(thread.0),
                    since(begin_ns),
                    since(end_ns),
                    number(u32::from(wait.acquired)),
                    wait.culprit.map_or(Cell::Null, |culprit| number(culprit.0)),
                    number(wait.drop_requests),
                ]);
            }
        }
    }

    /// Adds what of a wait for a lock lies in the part.
    fn add_lock_wait(&mut self, stretches: &Stretches, thread: ThreadId, park: &Park) {
        let part_ns = stretches.part_ns();
        let begin_ns = park.since_ns.max(part_ns.start);
        let end_ns = park.until_ns.min(part_ns.end);
        let Some(known) = stretches.threads.get(&thread.0).filter(|_| begin_ns < end_ns) else {
            return;
        };
        let since = |ns: u64| number(ns.saturating_sub(stretches.started_ns()));
        self.lock_wait_id += 1;
        self.lock_waits.push(vec![
            Cell::Number(self.lock_wait_id),
            number(known.process.0),
            number(park.lock),
            number(thread.0),
            since(begin_ns),
            since(end_ns),
            park.waker.map_or(Cell::Null, |waker| number(waker.0)),
            number(u32::from(park.ending == Ending::LetGo)),
        ]);
    }

    /// Adds what nobody looked at any more.
    fn sample_rest(&mut self, stretches: &Stretches) {
        let Self { parts, samples, .. } = self;
        parts.finish(&mut |part| {
            let at_ns = number(part.at_ns.saturating_sub(stretches.started_ns()));
            samples.extend(sample(&part, None, at_ns));
        });
    }

    fn hand_over<E>(&mut self, take: &mut impl FnMut(Batch) -> Result<(), E>) -> Result<(), E> {
        for (table, rows) in [
            ("holds", &mut self.holds),
            ("samples", &mut self.samples),
            ("waits", &mut self.waits),
            ("lock_waits", &mut self.lock_waits),
        ] {
            if !rows.is_empty() {
                take((table, std::mem::take(rows)))?;
            }
        }
        Ok(())
    }
}

/// A row for what a thread was seen to do, in that hold or, without one, in several short ones.
fn sample(part: &Part, hold_id: Option<i64>, at_ns: Cell) -> Option<Vec<Cell>> {
    Some(vec![
        hold_id.map_or(Cell::Null, Cell::Number),
        number(part.thread.0),
        at_ns,
        number(part.stack?.0),
        number(part.held_ns),
        number(part.waited_ns),
    ])
}

fn processes(stretches: &Stretches) -> Vec<Vec<Cell>> {
    let since = |ns: u64| number(ns.saturating_sub(stretches.started_ns()));
    let mut known: Vec<_> = stretches.processes.iter().collect();
    known.sort_unstable_by_key(|(id, _)| **id);
    let row = |(id, known): (&u32, &KnownProcess)| {
        let Process { pid, parent_pid, argv, python, .. } = &known.process;
        let interval_ns = known.totals.switch_interval_ns;
        let policy = u32::try_from(known.totals.policy).ok().filter(|_| interval_ns > 0);
        vec![
            number(*id),
            number(*pid),
            number(*parent_pid),
            Cell::Text(argv.join(" ")),
            Cell::Text(python.clone()),
            since(known.process.at_ns),
            known.ended_ns.map_or(Cell::Null, since),
            policy
                .and_then(Policy::from_number)
                .map_or(Cell::Null, |policy| Cell::Text(policy.name().to_owned())),
            if interval_ns > 0 { number(interval_ns) } else { Cell::Null },
            known.process.not_recorded.clone().map_or(Cell::Null, Cell::Text),
        ]
    };
    known.into_iter().map(row).collect()
}

fn threads(stretches: &Stretches) -> Vec<Vec<Cell>> {
    let since = |ns: u64| number(ns.saturating_sub(stretches.started_ns()));
    let mut known: Vec<_> = stretches.threads.iter().collect();
    known.sort_unstable_by_key(|(id, _)| **id);
    let row = |(id, known): (&u32, &KnownThread)| {
        vec![
            number(*id),
            number(known.process.0),
            number(known.tid),
            Cell::Text(known.name.clone()),
            since(known.started_ns),
            known.ended_ns.map_or(Cell::Null, since),
            known.totals.map_or(Cell::Null, |totals| number(totals.cpu_ns)),
            known.totals.map_or(Cell::Null, |totals| number(totals.lost_events)),
        ]
    };
    known.into_iter().map(row).collect()
}

fn frames(stretches: &Stretches) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for (stack, frames) in stretches.stacks.all().iter().enumerate() {
        for (depth, frame) in frames.iter().enumerate() {
            let function = match frame {
                StackFrame::Native(frame) => frame.function().unwrap_or_default(),
                _ => frame.function(),
            };
            rows.push(vec![
                number(stack as u64),
                number(depth as u64),
                Cell::Text(function.to_owned()),
                Cell::Text(frame.file().to_owned()),
                if frame.line() > 0 { number(frame.line()) } else { Cell::Null },
                Cell::Text(origin(frame)),
            ]);
        }
    }
    rows
}

fn origin(frame: &StackFrame) -> String {
    let origin = match frame {
        StackFrame::Native(_) => return "native".to_owned(),
        StackFrame::Label(_) => Origin::User,
        StackFrame::Python(frame) => frame.origin(),
    };
    match origin {
        Origin::Python => "python".to_owned(),
        Origin::Package(name) => format!("package {name}").trim_end().to_owned(),
        Origin::User => "user".to_owned(),
    }
}

fn number(number: impl Into<u64>) -> Cell {
    Cell::Number(i64::try_from(number.into()).unwrap_or(i64::MAX))
}
