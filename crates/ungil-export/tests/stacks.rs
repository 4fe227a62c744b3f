//! What was seen of a holder is in every format: Python code, above it the native code that it
//! called, and the looks at holds that are too short to be sampled for their length.

use serde_json::Value;
use ungil_core::{Event, Kind};
use ungil_export::{Cell, Collapsed, Firefox, Rows, Speedscope, Weight};
use ungil_trace::Record;
use ungil_trace::record::{Doing, Frame, NativeFrame, Process, ProcessId, ProcessTotals, ThreadId};

const MS: u64 = 1_000_000;
const LIBRARY: &str = "/usr/lib/libpython3.13.so";

fn records(events: Vec<Record>) -> Vec<Record> {
    let mut records = vec![Record::ProcessStarted(Process {
        process: ProcessId(0),
        pid: 100,
        parent_pid: 1,
        at_ns: 0,
        argv: vec!["python".to_owned(), "app.py".to_owned()],
        python: "3.13.0".to_owned(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })];
    records.extend((0..2).map(|number| Record::ThreadStarted {
        thread: ThreadId(number),
        process: ProcessId(0),
        tid: 100 + number,
        at_ns: 0,
        name: ["holder", "waiter"][number as usize].to_owned(),
    }));
    records.extend(events);
    let totals = ProcessTotals::default();
    records.push(Record::ProcessEnded { process: ProcessId(0), at_ns: 10_000 * MS, totals });
    records
}

fn event(thread: u32, at_ns: u64, kind: Kind) -> Record {
    let event = Event { at_ns, kind, gil: 0, seq: 0 };
    Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event }
}

fn frame(function: &str, line: u32) -> Frame {
    Frame { function: function.to_owned(), file: "/srv/app.py".to_owned(), line }
}

fn native(symbol: &str, method: &str, library: &str) -> NativeFrame {
    let (symbol, method, library) = (symbol.into(), method.into(), library.into());
    NativeFrame { symbol, method, library, by_ctypes: false }
}

fn stack(at_ns: u64, frames: Vec<Frame>, native: Option<Vec<NativeFrame>>) -> Record {
    Record::Stack { thread: ThreadId(0), at_ns, frames, native }
}

fn look(at_ns: u64) -> Record {
    let doing = Doing::Held { waiters: 1 };
    Record::Look { thread: ThreadId(0), at_ns, doing, frames: Vec::new() }
}

/// The holder keeps the GIL for 40 ms in `match`, while the other one waits for 30 of them.
fn long() -> Vec<Record> {
    let called = vec![
        native("sre_ucs1_match", "", LIBRARY),
        native("pattern_match", "re.Pattern.match", LIBRARY),
    ];
    records(vec![
        event(0, 0, Kind::Acquire),
        event(1, 10 * MS, Kind::Wait),
        stack(20 * MS, vec![frame("parse", 7), frame("main", 3)], Some(called)),
        stack(25 * MS, vec![frame("parse", 8), frame("main", 3)], Some(Vec::new())),
        stack(30 * MS, vec![frame("parse", 9)], Some(vec![native("", "", "")])),
        event(0, 40 * MS, Kind::ReleaseForced),
        event(1, 40 * MS, Kind::Acquire),
        event(1, 41 * MS, Kind::ReleaseVoluntary),
    ])
}

/// 10 holds of 5 ms, for each of which the other thread waits for 5 ms.
fn short(looks: &[(u64, u32)]) -> Vec<Record> {
    let mut events = vec![event(0, 0, Kind::Acquire)];
    for number in 0..10 {
        let at_ns = number * 10 * MS;
        events.push(event(1, at_ns, Kind::Wait));
        for &(looked_ns, line) in looks.iter().filter(|(it, _)| it / (10 * MS) == number) {
            events.push(look(looked_ns));
            events.push(stack(looked_ns, vec![frame("spin", line)], None));
        }
        events.push(event(0, at_ns + 5 * MS, Kind::ReleaseForced));
        events.push(event(1, at_ns + 5 * MS, Kind::Acquire));
        events.push(event(0, at_ns + 5 * MS, Kind::Wait));
        events.push(event(1, at_ns + 10 * MS, Kind::ReleaseVoluntary));
        events.push(event(0, at_ns + 10 * MS, Kind::Acquire));
    }
    records(events)
}

fn collapsed(records: &[Record], weight: Weight) -> String {
    let mut collapsed = Collapsed::new(weight, 0, u64::MAX);
    for record in records {
        collapsed.push(record);
    }
    let mut out = Vec::new();
    collapsed.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn firefox(records: &[Record]) -> Value {
    let mut firefox = Firefox::new(1_000, 0, u64::MAX);
    for record in records {
        firefox.push(record);
    }
    let mut out = Vec::new();
    firefox.write(0, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The stack of a sample of the holder, innermost first: function, file or library, line.
fn functions(profile: &Value, sample: usize) -> Vec<(String, String, Option<u64>)> {
    let threads = profile["threads"].as_array().unwrap();
    let holder = threads.iter().find(|it| it["tid"] == "100" || it["tid"] == 100).unwrap();
    let text = |string: &Value| holder["stringArray"][number(string)].as_str().unwrap().to_owned();
    let (stacks, frames) = (&holder["stackTable"], &holder["frameTable"]);
    let (functions, resources) = (&holder["funcTable"], &holder["resourceTable"]);
    let mut found = Vec::new();
    let mut stack = holder["samples"]["stack"][sample].clone();
    while !stack.is_null() {
        let frame = number(&stacks["frame"][number(&stack)]);
        let function = number(&frames["func"][frame]);
        let (file, resource) = (&functions["fileName"][function], &functions["resource"][function]);
        assert_eq!(functions["isJS"][function].as_bool().unwrap(), !file.is_null());
        let place = match (file.is_null(), resource.as_i64().unwrap()) {
            (false, -1) => text(file),
            (true, -1) => String::new(),
            (true, _) => {
                let resource = number(resource);
                assert_eq!(resources["type"][resource], 1);
                let library = &profile["libs"][number(&resources["lib"][resource])];
                assert_eq!(library["name"].as_str().unwrap(), text(&resources["name"][resource]));
                library["path"].as_str().unwrap().to_owned()
            }
            (false, _) => panic!("a function is in a file or in a library"),
        };
        found.push((text(&functions["name"][function]), place, frames["line"][frame].as_u64()));
        stack = stacks["prefix"][number(&stack)].clone();
    }
    found
}

#[test]
fn native_frames_stand_above_the_line_that_called_them() {
    let lines = collapsed(&long(), Weight::Waited);
    let expected = [
        "holder;main (/srv/app.py:3);parse (/srv/app.py:7);\
         re.Pattern.match [libpython3.13.so];sre_ucs1_match [libpython3.13.so] 12500",
        "holder;main (/srv/app.py:3);parse (/srv/app.py:8) 5000",
        "holder;parse (/srv/app.py:9);? [no library] 12500",
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn speedscope_has_the_library_of_a_native_function_as_its_file() {
    let mut speedscope = Speedscope::new("t".into(), "ungil".into(), 0, u64::MAX);
    for record in &long() {
        speedscope.push(record);
    }
    let mut out = Vec::new();
    speedscope.write(&mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let find = |name: &str| frames.iter().find(|frame| frame["name"] == name).unwrap();
    assert_eq!(find("re.Pattern.match")["file"], LIBRARY);
    assert_eq!(find("re.Pattern.match").get("line"), None);
    assert_eq!((&find("main")["file"], &find("main")["line"]), (&"/srv/app.py".into(), &3.into()));
}

#[test]
fn a_native_frame_in_sql_has_its_library_and_no_line() {
    let mut frames: Vec<Vec<Cell>> = Vec::new();
    let mut rows = Rows::new(0, u64::MAX);
    let mut take = |(table, rows): (&str, Vec<Vec<Cell>>)| {
        if table == "frames" {
            frames.extend(rows);
        }
        Ok::<_, ()>(())
    };
    for record in &long() {
        rows.push(record, &mut take).unwrap();
    }
    rows.finish(&mut take).unwrap();
    let text = |text: &str| Cell::Text(text.to_owned());
    let first = |depth, function, file, line, origin| {
        vec![Cell::Number(0), Cell::Number(depth), text(function), text(file), line, text(origin)]
    };
    let line = Cell::Number(7);
    assert_eq!(frames[0], first(0, "sre_ucs1_match", LIBRARY, Cell::Null, "native"));
    assert_eq!(frames[1], first(1, "re.Pattern.match", LIBRARY, Cell::Null, "native"));
    assert_eq!(frames[2], first(2, "parse", "/srv/app.py", line, "user"));
}

#[test]
fn firefox_knows_files_lines_and_libraries() {
    let profile = firefox(&long());
    let text = str::to_owned;
    // The first sample only gives the track its place.
    assert_eq!(
        functions(&profile, 1),
        [
            (text("sre_ucs1_match"), text(LIBRARY), None),
            (text("re.Pattern.match"), text(LIBRARY), None),
            (text("parse"), text("/srv/app.py"), Some(7)),
            (text("main"), text("/srv/app.py"), Some(3)),
        ]
    );
    assert_eq!(
        functions(&profile, 3),
        [(text("?"), String::new(), None), (text("parse"), text("/srv/app.py"), Some(9))]
    );
    assert_eq!(profile["libs"].as_array().unwrap().len(), 2);
}

#[test]
fn one_function_of_firefox_has_all_its_lines() {
    let profile = firefox(&long());
    let holder = &profile["threads"][0];
    let strings = holder["stringArray"].as_array().unwrap();
    let parse = strings.iter().position(|it| it == "parse").unwrap();
    let names = holder["funcTable"]["name"].as_array().unwrap();
    assert_eq!(names.iter().filter(|name| number(name) == parse).count(), 1);
}

#[test]
fn looks_stand_for_the_short_holds_around_them() {
    let seen = short(&[(12 * MS, 1), (52 * MS, 2)]);
    let expected = "holder;spin (/srv/app.py:1) 10000\nholder;spin (/srv/app.py:2) 40000\n";
    let of_holder = |text: String| -> String {
        text.split_inclusive('\n').filter(|it| it.starts_with("holder")).collect()
    };
    assert_eq!(of_holder(collapsed(&seen, Weight::Waited)), expected);
    let unseen = collapsed(&short(&[]), Weight::Waited);
    assert_eq!(of_holder(unseen), "holder;(no stack) 50000\n");
}

#[test]
fn a_look_that_is_told_late_counts_too() {
    let mut records = short(&[]);
    let end = records.len() - 1;
    records.insert(end, look(42 * MS));
    records.insert(end + 1, stack(42 * MS, vec![frame("spin", 1)], None));
    let lines = collapsed(&records, Weight::Waited);
    assert!(lines.contains("holder;spin (/srv/app.py:1) 50000\n"), "{lines}");
}

#[test]
fn a_name_that_looks_like_the_label_of_a_frame_changes_nothing() {
    let mut records = long();
    let name = "parse (/srv/app.py:7)".to_owned();
    records.insert(3, Record::ThreadNamed { thread: ThreadId(0), name: name.clone() });
    let profile = firefox(&records);
    assert_eq!(functions(&profile, 1)[2].0, "parse");
    let waiter = profile["threads"].as_array().unwrap().iter().find(|it| it["tid"] == "101");
    let waiter = waiter.or_else(|| profile["threads"].as_array().unwrap().get(1)).unwrap();
    let culprits = waiter["stringArray"].as_array().unwrap();
    assert!(culprits.iter().any(|it| it.as_str() == Some(&name)));
}
