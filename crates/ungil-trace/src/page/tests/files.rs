//! Pages as files.

use super::read::{begun, does};
use crate::page::{Options, PageError, write};
use crate::perfetto::{Overwrite, Writer};
use std::fs;
use std::path::Path;
use ungil_core::Kind;

const SHELL: &str = "<title>ungil</title><!-- ungil:summary --><!-- ungil:blocks -->";

fn trace_at(path: &Path) {
    let mut writer = Writer::create(path, Overwrite::Replace).unwrap();
    let mut records = begun(1);
    records.extend([does(0, 10, Kind::Acquire), does(0, 20, Kind::ReleaseVoluntary)]);
    for record in records {
        writer.write(&record, None).unwrap();
    }
    writer.finish().unwrap();
}

fn options<'a>(trace: &'a Path, page: &'a Path) -> Options<'a> {
    Options { trace, page, shell: SHELL, blame_after_ns: 20_000_000, part: None, most_bytes: None }
}

#[test]
fn a_page_appears_when_it_is_complete_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (folder.path().join("<b>.pftrace"), folder.path().join("page.html"));
    trace_at(&trace);
    fs::write(&page, "an older one").unwrap();
    let (report, advised) = write(&options(&trace, &page), None, |_| true).unwrap();
    assert_eq!((report.processes.len(), advised), (1, None));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<title>ungil: &lt;b&gt;.pftrace</title><script"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_page_that_cannot_be_written_or_is_not_wanted_any_more_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.pftrace");
    trace_at(&trace);
    let page = folder.path().join("none/page.html");
    assert!(matches!(write(&options(&trace, &page), None, |_| true), Err(PageError::Write(_))));
    let page = folder.path().join("page.html");
    assert!(matches!(write(&options(&trace, &page), None, |_| false), Err(PageError::Stopped)));
    let damaged = Options { shell: "<html>", ..options(&trace, &page) };
    assert!(matches!(write(&damaged, None, |_| true), Err(PageError::Shell)));
    let missing = folder.path().join("b.pftrace");
    assert!(matches!(write(&options(&missing, &page), None, |_| true), Err(PageError::Read(_))));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
