//! Which files a trace leaves behind, and when.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ungil_trace::Record;
use ungil_trace::perfetto::{Ending, Overwrite, Unfinished, Writer, read, why_cut};
use ungil_trace::record::{Process, ProcessId, ThreadId};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn note(text: &str) -> Record {
    Record::Note { text: text.into() }
}

fn process(id: u32) -> Record {
    Record::ProcessStarted(Process {
        process: ProcessId(id),
        pid: 1,
        parent_pid: 0,
        at_ns: 0,
        argv: vec![],
        python: String::new(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })
}

#[test]
fn a_trace_has_its_name_only_when_it_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a trace.pftrace");
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    writer.write(&note("one"), None).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    assert_eq!(names(directory.path()), ["a trace.pftrace"]);
}

#[test]
fn a_trace_that_is_given_up_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    fs::write(&path, "older").unwrap();
    let mut writer = Writer::create(&path, Overwrite::Replace).unwrap();
    writer.write(&note("one"), None).unwrap();
    writer.flush().unwrap();
    assert_eq!(names(directory.path()).len(), 2);
    drop(writer);
    assert_eq!(names(directory.path()), ["t.pftrace"]);
    assert_eq!(fs::read(&path).unwrap(), b"older");
}

#[test]
fn what_was_flushed_can_be_read_while_recording_goes_on_and_after_its_recorder_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    writer.write(&note("one"), None).unwrap();
    writer.flush().unwrap();
    writer.write(&note("two"), None).unwrap();
    let [unfinished] = &Unfinished::beside(&path)[..] else { panic!("there is one") };
    assert!(unfinished.is_being_written);
    assert_eq!(why_cut(&unfinished.path), "it is still being recorded");

    // What a recorder leaves that is killed.
    let kept = directory.path().join("kept");
    fs::hard_link(&unfinished.path, &kept).unwrap();
    drop(writer);
    fs::rename(&kept, &unfinished.path).unwrap();
    assert!(!Unfinished::beside(&path)[0].is_being_written);
    assert_eq!(why_cut(&unfinished.path), "its recorder was killed");
    let mut records = Vec::new();
    assert_eq!(read(&unfinished.path, |it| records.push(it)).unwrap(), Ending::Cut);
    assert_eq!(records, [note("one")]);
}

#[test]
fn an_existing_file_is_replaced_only_if_that_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    fs::write(&path, "older").unwrap();
    let error = Writer::create(&path, Overwrite::Refuse).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(names(directory.path()), ["t.pftrace"]);
    Writer::create(&path, Overwrite::Replace).unwrap().finish().unwrap();
    read(&path, |_| ()).unwrap();
    assert_eq!(names(directory.path()), ["t.pftrace"]);
}

#[test]
fn a_file_that_appears_while_recording_is_not_replaced_and_no_event_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    writer.write(&note("one"), None).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    let lacking = writer.finish().unwrap_err();
    assert_eq!(lacking.error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
    let mut records = Vec::new();
    assert_eq!(read(&lacking.place, |record| records.push(record)).unwrap(), Ending::Whole);
    assert_eq!(records, [note("one")]);
}

#[test]
fn a_place_where_no_trace_can_be_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing/t.pftrace");
    let error = Writer::create(&missing, Overwrite::Refuse).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for no_file in [directory.path(), Path::new("/dev/null"), Path::new("/"), Path::new("")] {
        let error = Writer::create(no_file, Overwrite::Replace).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}: {error}", no_file.display());
    }
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_directory_without_permission_is_refused_unless_one_is_root() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let result = Writer::create(&directory.path().join("t"), Overwrite::Refuse);
    let may_write = fs::write(directory.path().join("probe"), "").is_ok();
    assert_eq!(result.is_ok(), may_write);
}

#[test]
fn two_traces_can_be_written_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let writers = paths.clone().map(|path| Writer::create(&path, Overwrite::Refuse).unwrap());
    for (mut writer, text) in writers.into_iter().zip(["a", "b"]) {
        writer.write(&note(text), None).unwrap();
        writer.finish().unwrap();
    }
    for (path, text) in paths.iter().zip(["a", "b"]) {
        let mut records = Vec::new();
        read(path, |record| records.push(record)).unwrap();
        assert_eq!(records, [note(text)]);
    }
}

#[test]
fn a_record_that_breaks_the_rules_is_refused_and_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    writer.write(&process(0), None).unwrap();
    let nobody = Record::ThreadNamed { thread: ThreadId(3), name: "x".into() };
    let homeless = Record::ThreadStarted {
        thread: ThreadId(0),
        process: ProcessId(1),
        tid: 1,
        at_ns: 0,
        name: "x".into(),
    };
    let far_ahead = Record::ThreadStarted {
        thread: ThreadId(u32::MAX - 2),
        process: ProcessId(0),
        tid: 1,
        at_ns: 0,
        name: "x".into(),
    };
    for (refused, why) in [
        (far_ahead, "ThreadId(4294967293) does not count up from 0"),
        (nobody, "ThreadId(3) was not introduced"),
        (homeless, "ProcessId(1) was not introduced"),
        (process(0), "ProcessId(0) is introduced twice"),
        (note(&"x".repeat(9 << 20)), "a record has 9437200 bytes of text"),
    ] {
        let error = writer.write(&refused, None).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, why));
    }
    writer.write(&note(&"x".repeat(8 << 20)[16..]), None).unwrap();
    writer.finish().unwrap();
    let mut count = 0;
    read(&path, |_| count += 1).unwrap();
    assert_eq!(count, 2);
}

#[test]
fn the_longest_command_line_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.pftrace");
    let Record::ProcessStarted(mut process) = process(0) else { panic!() };
    // Each word counts 16 bytes more than it has, and so does the version.
    process.argv = vec!["x".repeat((1 << 20) - 16); 7];
    process.argv.extend(vec![String::new(); (1 << 16) - 1]);
    let longest = Record::ProcessStarted(process);
    let mut writer = Writer::create(&path, Overwrite::Refuse).unwrap();
    writer.write(&longest, None).unwrap();
    writer.finish().unwrap();
    let mut records = Vec::new();
    read(&path, |record| records.push(record)).unwrap();
    assert!(records == [longest]);
}
