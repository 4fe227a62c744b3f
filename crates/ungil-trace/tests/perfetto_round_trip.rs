//! What is written comes back, whatever was written.

use std::collections::HashMap;
use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ungil_core::park::{Cause, Ending};
use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Overwrite, Writer, read};
use ungil_trace::record::{
    Doing, Frame, KernelCount, NativeFrame, Park, Process, ProcessId, ProcessTotals, Processors,
    ThreadId, ThreadTotals,
};

const PROCESSES: u32 = 2;
const THREADS: u32 = 4;

fn process_of(thread: u32) -> ProcessId {
    ProcessId(thread % PROCESSES)
}

fn introductions() -> impl Strategy<Value = Vec<Record>> {
    let process = (any::<[u32; 2]>(), any::<u64>(), vec(".{0,9}", 0..4), ".{0,9}", any::<bool>());
    let thread = (any::<u32>(), any::<u64>(), ".{0,200}");
    let (processes, threads) = (PROCESSES as usize, THREADS as usize);
    (vec(process, processes), vec(thread, threads)).prop_map(|(processes, threads)| {
        let processes = (0..).zip(processes).map(|(id, (pids, at_ns, argv, python, recorded))| {
            Record::ProcessStarted(Process {
                process: ProcessId(id),
                pid: pids[0],
                parent_pid: pids[1],
                at_ns,
                not_recorded: (!recorded).then(|| format!("{python} has no GIL")),
                ran_before: !recorded,
                processors: recorded.then_some(Processors {
                    allowed: pids[0],
                    limit_thousandths: (pids[1] % 2 == 0).then_some(pids[1]),
                }),
                argv,
                python,
            })
        });
        let threads = (0..).zip(threads).map(|(id, (tid, at_ns, name))| Record::ThreadStarted {
            thread: ThreadId(id),
            process: process_of(id),
            tid,
            at_ns,
            name,
        });
        processes.chain(threads).collect()
    })
}

/// GIL events in any order: most of them fit nothing that came before.
fn gil_event() -> impl Strategy<Value = Record> {
    let at_ns = prop_oneof![any::<u64>(), 0..20u64];
    (0..THREADS, at_ns, 1..=7u8, prop_oneof![Just(0), 0..3u8, any::<u8>()]).prop_map(
        |(thread, at_ns, number, gil)| Record::Gil {
            process: process_of(thread),
            thread: ThreadId(thread),
            event: Event { at_ns, kind: Kind::from_number(number).unwrap(), gil, seq: 0 },
        },
    )
}

fn park() -> impl Strategy<Value = (ThreadId, Park)> {
    let thread = || (0..THREADS).prop_map(ThreadId);
    let kinds = (0usize..Cause::ALL.len(), 0usize..Ending::ALL.len());
    let rest = (".{0,20}", any::<u32>(), option::of(thread()), any::<[u16; 2]>());
    (thread(), any::<[u64; 2]>(), kinds, rest).prop_map(
        |(thread, [a, b], (cause, ending), (of, lock, waker, [stack, waker_stack]))| {
            let park = Park {
                since_ns: a.min(b),
                until_ns: a.max(b),
                cause: Cause::ALL[cause],
                of,
                lock,
                ending: Ending::ALL[ending],
                waker,
                stack,
                waker_stack,
            };
            (thread, park)
        },
    )
}

fn other() -> impl Strategy<Value = Record> {
    let thread = || (0..THREADS).prop_map(ThreadId);
    let frame = (r"[a (\\<>é]{0,9}", r"[a (\\):/]{0,9}", any::<u32>());
    let frame = frame.prop_map(|(function, file, line)| Frame { function, file, line });
    let native = (r"[a (\[<>é=]{0,9}", r"[a.= ]{0,9}", r"[a (\\):/\[]{0,9}");
    let native = native.prop_map(|(symbol, method, library)| NativeFrame {
        symbol,
        method,
        library,
        by_ctypes: false,
    });
    let frames = || vec(frame.clone(), 0..5);
    prop_oneof![
        (0..PROCESSES, any::<u16>(), frames()).prop_map(|(process, number, frames)| {
            Record::ParkStack { process: ProcessId(process), number, frames }
        }),
        (0..PROCESSES, any::<u64>(), ".{0,9}", frames()).prop_map(
            |(process, at_ns, library, frames)| {
                let process = ProcessId(process);
                Record::GilSwitchedOn { process, at_ns, library, frames }
            }
        ),
        ".{0,300}".prop_map(|text| Record::Note { text }),
        any::<u64>().prop_map(|from_ns| Record::Snapshot { from_ns }),
        park().prop_map(|(thread, park)| Record::Parked { thread, park }),
        (thread(), ".{0,20}").prop_map(|(thread, name)| Record::ThreadNamed { thread, name }),
        (thread(), any::<u64>(), frames(), option::of(vec(native, 0..5))).prop_map(
            |(thread, at_ns, frames, native)| Record::Stack { thread, at_ns, frames, native }
        ),
        (thread(), any::<[u64; 2]>()).prop_map(|(thread, [at_ns, stood_ns])| Record::Stopped {
            thread,
            at_ns,
            stood_ns
        }),
        (thread(), any::<[u64; 3]>(), any::<bool>()).prop_map(
            |(thread, [at_ns, ran_ns, delayed_ns], runnable)| {
                let count = KernelCount { at_ns, ran_ns, delayed_ns, runnable };
                Record::KernelCount { thread, count }
            }
        ),
        (0..PROCESSES, any::<[u64; 3]>()).prop_map(|(process, [at_ns, times, stopped_ns])| {
            Record::Throttled { process: ProcessId(process), at_ns, times, stopped_ns }
        }),
        (thread(), any::<u64>(), ".{0,20}").prop_map(|(thread, at_ns, why)| Record::NoStack {
            thread,
            at_ns,
            why
        }),
        (thread(), any::<u64>(), any::<u32>()).prop_map(|(thread, at_ns, waiters)| {
            let doing = Doing::Held { waiters };
            Record::Look { thread, at_ns, doing, frames: Vec::new() }
        }),
        (thread(), any::<u64>(), ".{0,9}", ".{0,9}").prop_map(|(thread, at_ns, call, on)| {
            let frames = vec![Frame { function: call.clone(), file: on.clone(), line: 7 }];
            let doing = Doing::Off { stands_for_ns: at_ns, call, on };
            Record::Look { thread, at_ns, doing, frames }
        }),
        (0..PROCESSES, any::<u64>(), vec(".{0,20}", 0..5)).prop_map(|(process, at_ns, files)| {
            Record::Libraries { process: ProcessId(process), at_ns, files }
        }),
        (0..PROCESSES, any::<[u64; 7]>()).prop_map(
            |(
                process,
                [at_ns, interval, policy, unrecorded, gil_state, gil_on_ns, clock_error],
            )| {
                Record::ProcessEnded {
                    process: ProcessId(process),
                    at_ns,
                    totals: ProcessTotals {
                        switch_interval_ns: interval,
                        policy,
                        unrecorded_threads: unrecorded,
                        // Not written where there is nothing to say.
                        gil_state: gil_state % 5,
                        gil_on_ns: gil_on_ns * (gil_state % 2),
                        clock_error_ns: clock_error,
                    },
                }
            }
        ),
        (thread(), any::<u64>(), any::<[u64; 11]>()).prop_map(|(thread, at_ns, counts)| {
            let [waits, waited_ns, holds, held_ns, voluntary, forced, drops, cpu_ns, v, i, lost] =
                counts;
            let totals = ThreadTotals {
                waits,
                waited_ns,
                holds,
                held_ns,
                voluntary,
                forced,
                drop_requests: drops,
                cpu_ns,
                voluntary_switches: v,
                involuntary_switches: i,
                lost_events: lost,
            };
            Record::ThreadEnded { thread, at_ns, totals }
        }),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let rest = vec(prop_oneof![8 => gil_event(), 1 => other()], 0..200);
    (introductions(), rest).prop_map(|(mut records, rest)| {
        records.extend(rest);
        number(&mut records);
        records
    })
}

/// Numbers events as the reader does.
fn number(records: &mut [Record]) {
    let mut last = HashMap::new();
    for record in records {
        if let Record::Gil { process, event, .. } = record {
            let seq = last.entry((*process, event.gil)).or_insert(0);
            *seq += u32::from(event.kind.changes_holder());
            event.seq = *seq;
        }
    }
}

fn read_all(path: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    read(path, |record| records.push(record)).unwrap();
    records
}

proptest! {
    #[test]
    fn any_records_come_back_as_they_were_written(
        records in records(), flush_every in 1usize..100, culprit in 0..THREADS
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.pftrace");
        let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
        for (index, record) in records.iter().enumerate() {
            let culprit = matches!(record, Record::Gil { .. }).then_some(ThreadId(culprit));
            writer.write(record, culprit).unwrap();
            if index % flush_every == 0 {
                writer.flush().unwrap();
            }
        }
        writer.finish().unwrap();
        prop_assert_eq!(read_all(&path), records);
    }
}
