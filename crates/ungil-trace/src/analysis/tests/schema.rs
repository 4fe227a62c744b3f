//! The documented schema against what is written.

use super::scenario::*;
use crate::record::ThreadTotals;
use crate::report::{Evidence, NativeReport, Report};
use serde_json::Value;
use std::collections::BTreeSet;
use ungil_core::park::Cause;

const DOCUMENT: &str = include_str!("../../../../../docs/report-schema.md");

/// Adds all keys of `value` to `keys`.
fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(items) => {
            for (key, item) in items {
                keys.insert(key.clone());
                collect(item, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
        _ => {}
    }
}

/// A report in which no part is missing.
fn rich() -> Report {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(MS, 1);
    scenario.looked_at_all_ways(2 * MS);
    scenario.release(40 * MS, 0);
    scenario.hold(40 * MS, 41 * MS, 1);
    let mut at_ns = 41 * MS;
    for thread in 2..3_000 {
        scenario.start(thread, at_ns);
        scenario.hold(at_ns, at_ns + MS, thread);
        at_ns += MS;
        scenario.end_thread(at_ns, thread, ThreadTotals::default());
    }
    scenario.native_stack(20 * MS, 0, "f", &[("inner", "/a.so"), ("outer", "/b.so")]);
    scenario.stopped(20 * MS, 0, 30_000);
    scenario.park(0, (MS, 2 * MS), (Cause::Object, 1), 1);
    scenario.park(0, (2 * MS, 3 * MS), (Cause::OffGil, 2), 1);
    scenario.throttled(3, 40 * MS);
    for id in 1..2_000 {
        scenario.analysis.push(&process(id));
        scenario.analysis.push(&process_end(id, START + at_ns));
    }
    let totals =
        ThreadTotals { waits: 1, waited_ns: 39 * MS, holds: 1, held_ns: MS, ..<_>::default() };
    scenario.end_thread(at_ns, 1, totals);
    let mut report = scenario.end(at_ns);
    let template = report.findings[0].clone();
    let evidences = [
        Evidence::Convoy {
            calls: 0,
            late: 0,
            late_s: 0.0,
            late_p50_ms: 0.0,
            waited_s: 0.0,
            culprits: Vec::new(),
        },
        Evidence::Hog { held_share: 0.0, victims: 0 },
        Evidence::Unfair { jain: 0.0, best_share: 0.0, worst_share: 0.0, worst_gap_ms: 0.0 },
        Evidence::Descheduled {
            not_run_s: 0.0,
            held_s: 0.0,
            longest_ms: 0.0,
            limited: false,
            waited_s: 0.0,
        },
        Evidence::LateWakeups {
            unheld_s: 0.0,
            waited_s: 0.0,
            handoffs: 0,
            wanting: 0.0,
            used: None,
            are_its_own: false,
        },
        Evidence::NativeHold {
            holds: 0,
            unanswered_s: 0.0,
            longest_ms: 0.0,
            frame: None,
            user_frame: None,
            samples: 0,
            frame_samples: 0,
            native: Some(NativeReport::default()),
        },
        Evidence::Parked {
            cause: "object",
            of: None,
            parks: 0,
            longest_ms: 0.0,
            wakers: Vec::new(),
            frame: None,
            user_frame: None,
            waker_frame: None,
        },
        Evidence::GilSwitchedOn { module: None, library: None, frame: None },
        Evidence::WorldPauses { pauses: 0, stopped_s: 0.0, longest_ms: 0.0, collections: 0 },
        Evidence::NotRecorded {},
    ];
    let with = |evidence| crate::report::Finding { evidence, ..template.clone() };
    report.findings.extend(evidences.map(with));
    report
}

#[test]
fn every_key_and_kind_is_documented() {
    let json = serde_json::to_value(rich()).unwrap();
    let mut keys = BTreeSet::new();
    collect(&json, &mut keys);
    for rare in [
        "held_in",
        "computed_s",
        "on_event_loop",
        "other_processes",
        "involuntary",
        "cpu_s",
        "waiters_max",
        "culprit_name",
        "jain",
    ] {
        assert!(keys.contains(rare), "{rare} is not in the report");
    }
    let kinds = json["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]);
    keys.extend(kinds.map(|kind| kind.as_str().unwrap().to_owned()));
    let missing: Vec<_> =
        keys.iter().filter(|key| !DOCUMENT.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not in docs/report-schema.md: {missing:?}");
}
