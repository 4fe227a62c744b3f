//! The records of traces, made of known pieces.

use super::{MS, US};
use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::record::{Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals};

pub(super) const PROCESS: ProcessId = ProcessId(0);

/// A process with two threads.
pub(super) fn begun() -> Vec<Record> {
    let process = Process {
        process: PROCESS,
        pid: 70,
        parent_pid: 1,
        at_ns: 0,
        argv: vec!["app.py".to_owned()],
        python: "3.13.0".to_owned(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    };
    vec![Record::ProcessStarted(process), started(0, 0), started(1, 0)]
}

pub(super) fn started(number: u32, at_ns: u64) -> Record {
    Record::ThreadStarted {
        thread: ThreadId(number),
        process: PROCESS,
        tid: 70 + number,
        at_ns,
        name: format!("thread-{number}"),
    }
}

pub(super) fn event(records: &mut Vec<Record>, thread: u32, at_ns: u64, kind: Kind) {
    let event = Event { at_ns, kind, gil: 0, seq: 0 };
    records.push(Record::Gil { process: PROCESS, thread: ThreadId(thread), event });
}

/// A thread has the GIL for `ns`.
pub(super) fn uses(records: &mut Vec<Record>, thread: u32, from_ns: u64, ns: u64) {
    event(records, thread, from_ns, Kind::Acquire);
    event(records, thread, from_ns + ns, Kind::ReleaseVoluntary);
}

pub(super) fn ended(mut records: Vec<Record>, at_ns: u64, totals: ThreadTotals) -> Vec<Record> {
    for thread in [ThreadId(0), ThreadId(1)] {
        records.push(Record::ThreadEnded { thread, at_ns, totals });
    }
    let totals = ProcessTotals { switch_interval_ns: 5 * MS, ..ProcessTotals::default() };
    records.push(Record::ProcessEnded { process: PROCESS, at_ns, totals });
    records
}

/// One thread computes, the other comes back from a call each 10 ms, waits a switch interval, and
/// uses the GIL for 0.1 ms.
pub(super) fn convoy() -> Vec<Record> {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    for turn in 0..50 {
        let wants_ns = turn * 10 * MS + MS;
        let asks_ns = wants_ns + 5 * MS + 60 * US;
        event(&mut records, 1, wants_ns, Kind::Wait);
        event(&mut records, 1, asks_ns, Kind::DropRequest);
        event(&mut records, 0, asks_ns + 10 * US, Kind::ReleaseForced);
        event(&mut records, 1, asks_ns + 50 * US, Kind::Acquire);
        event(&mut records, 0, asks_ns + 90 * US, Kind::Wait);
        event(&mut records, 1, asks_ns + 150 * US, Kind::ReleaseVoluntary);
        event(&mut records, 0, asks_ns + 190 * US, Kind::Acquire);
    }
    ended(records, 501 * MS, ThreadTotals::default())
}

/// One thread computes. Others come one after the other, each 1 ms after the end of the one before:
/// it waits a switch interval, and uses the GIL for 0.1 ms.
pub(super) fn line_of_threads() -> Vec<Record> {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    let mut begins_ns = MS;
    for number in 2..82 {
        let thread = ThreadId(number);
        records.push(started(number, begins_ns));
        let asks_ns = begins_ns + 5 * MS + 60 * US;
        event(&mut records, number, begins_ns, Kind::Wait);
        event(&mut records, number, asks_ns, Kind::DropRequest);
        event(&mut records, 0, asks_ns + 10 * US, Kind::ReleaseForced);
        event(&mut records, number, asks_ns + 50 * US, Kind::Acquire);
        event(&mut records, 0, asks_ns + 90 * US, Kind::Wait);
        let ends_ns = asks_ns + 150 * US;
        event(&mut records, number, ends_ns, Kind::ReleaseVoluntary);
        event(&mut records, 0, ends_ns + 40 * US, Kind::Acquire);
        let totals = ThreadTotals::default();
        records.push(Record::ThreadEnded { thread, at_ns: ends_ns, totals });
        begins_ns = ends_ns + MS;
    }
    ended(records, begins_ns, ThreadTotals::default())
}

/// A server with one client, which asks 1 ms after each reply. Its thread accepts the connection in
/// 0.1 ms and starts a thread, which makes the reply in 1 ms, sends it, and ends.
pub(super) fn server() -> Vec<Record> {
    let mut records = begun();
    uses(&mut records, 1, 0, 5 * US);
    let mut at_ns = MS;
    for number in 2..202 {
        uses(&mut records, 1, at_ns, 100 * US);
        let begins_ns = at_ns + 120 * US;
        let thread = ThreadId(number);
        records.push(started(number, begins_ns));
        uses(&mut records, number, begins_ns, 50 * US);
        uses(&mut records, 1, begins_ns + 60 * US, 5 * US);
        uses(&mut records, number, begins_ns + 100 * US, MS);
        let sends_ns = begins_ns + 110 * US + MS;
        uses(&mut records, number, sends_ns, 10 * US);
        let totals = ThreadTotals::default();
        let ends_ns = sends_ns + 20 * US;
        records.push(Record::ThreadEnded { thread, at_ns: ends_ns, totals });
        at_ns = sends_ns + 10 * US + MS;
    }
    ended(records, at_ns, ThreadTotals::default())
}

/// One thread uses the GIL for 50 us and runs for 100 us without it, 20 times; then it sleeps for 1
/// ms, and again. The other wants the GIL in the middle of that, is woken by each release, and has it
/// only when the first one sleeps; but each eighth time it wakes up within 25 us.
pub(super) fn behind() -> Vec<Record> {
    let mut records = begun();
    for round in 0..100 {
        let mut at_ns = round * 5 * MS;
        let mut waits = false;
        for turn in 0..20 {
            event(&mut records, 0, at_ns, Kind::Acquire);
            if turn == 10 {
                event(&mut records, 1, at_ns + 5 * US, Kind::Wait);
                waits = true;
            }
            at_ns += 50 * US;
            event(&mut records, 0, at_ns, Kind::ReleaseVoluntary);
            let wakes_up = turn == 10 && round % 8 == 0;
            if waits && (wakes_up || turn == 19) {
                waits = false;
                at_ns += if wakes_up { 25 * US } else { 3 * US };
                event(&mut records, 1, at_ns, Kind::Acquire);
                at_ns += 400 * US;
                event(&mut records, 1, at_ns, Kind::ReleaseVoluntary);
            }
            at_ns += 100 * US;
        }
    }
    let totals = ThreadTotals { cpu_ns: 300 * MS, ..ThreadTotals::default() };
    ended(records, 500 * MS, totals)
}

/// One thread has the GIL for 1 ms. Two others want it meanwhile, and each has it 45 us after it was let
/// go of, while another one waits, too.
pub(super) fn company() -> Vec<Record> {
    let mut records = begun();
    records.push(started(2, 0));
    for turn in 0..20 {
        let mut at_ns = turn * 5 * MS;
        event(&mut records, 0, at_ns, Kind::Acquire);
        event(&mut records, 1, at_ns + 200 * US, Kind::Wait);
        event(&mut records, 2, at_ns + 300 * US, Kind::Wait);
        at_ns += MS;
        event(&mut records, 0, at_ns, Kind::ReleaseVoluntary);
        event(&mut records, 1, at_ns + 45 * US, Kind::Acquire);
        event(&mut records, 0, at_ns + 80 * US, Kind::Wait);
        at_ns += 145 * US;
        event(&mut records, 1, at_ns, Kind::ReleaseVoluntary);
        at_ns += 45 * US;
        uses(&mut records, 2, at_ns, 100 * US);
        uses(&mut records, 0, at_ns + 120 * US, 50 * US);
    }
    let totals = ThreadTotals::default();
    records.push(Record::ThreadEnded { thread: ThreadId(2), at_ns: 100 * MS, totals });
    ended(records, 100 * MS, totals)
}

/// One thread has the GIL for 104 ms, ten times, mostly in native code. The other wants it 1 ms
/// after that began, asks in vain 5 ms later, and uses it for 0.1 ms.
pub(super) fn native_code() -> Vec<Record> {
    long_holds(104 * MS)
}

/// As [`native_code`], but the kernel did not run the holder once it was asked.
pub(super) fn not_run() -> Vec<Record> {
    long_holds(6 * MS)
}

fn long_holds(run_ns: u64) -> Vec<Record> {
    let mut records = begun();
    for turn in 0..10 {
        let begins_ns = turn * 110 * MS;
        let ends_ns = begins_ns + 104 * MS;
        event(&mut records, 0, begins_ns, Kind::Acquire);
        event(&mut records, 1, begins_ns + MS, Kind::Wait);
        event(&mut records, 1, begins_ns + 6 * MS, Kind::DropRequest);
        event(&mut records, 0, begins_ns + run_ns, Kind::Ran);
        event(&mut records, 0, ends_ns, Kind::ReleaseForced);
        event(&mut records, 1, ends_ns + 40 * US, Kind::Acquire);
        event(&mut records, 1, ends_ns + 140 * US, Kind::ReleaseVoluntary);
    }
    ended(records, 1_100 * MS, ThreadTotals::default())
}

/// One thread brings something each millisecond. Another one does four uses with it, each of 20 us, and
/// sleeps until there is more. A third one comes and goes all the time.
pub(super) fn queue() -> Vec<Record> {
    let mut records = begun();
    records.push(started(2, 0));
    let consumes = (0..4).map(|use_| (0, 60 + use_ * 30, 20));
    let goes_on = (0..4).map(|use_| (2, 52 + use_ * 30, 6));
    let alone = (0..16).map(|use_| (2, 190 + use_ * 50, 6));
    let mut pieces =
        [(1, 0, 10)].into_iter().chain(consumes).chain(goes_on).chain(alone).collect::<Vec<_>>();
    pieces.sort_by_key(|(_, from_us, _)| *from_us);
    for turn in 0..200 {
        for (thread, from_us, us) in &pieces {
            uses(&mut records, *thread, turn * MS + from_us * US, us * US);
        }
    }
    let totals = ThreadTotals::default();
    records.push(Record::ThreadEnded { thread: ThreadId(2), at_ns: 200 * MS, totals });
    ended(records, 200 * MS, totals)
}

/// One thread uses the GIL twice, with that between; the other one, which was away, wants it after
/// the second time.
pub(super) fn second_use(between_ns: u64) -> Vec<Record> {
    let mut records = begun();
    for round in 0..40 {
        let at_ns = round * 20 * MS;
        uses(&mut records, 0, at_ns, 100 * US);
        let second_ns = at_ns + 100 * US + between_ns;
        uses(&mut records, 0, second_ns, 100 * US);
        uses(&mut records, 1, second_ns + 150 * US, MS);
    }
    ended(records, 800 * MS, ThreadTotals::default())
}
