//! Segments that must not be used, and file systems that have no room.

mod support;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ungil_heap::header::Header;
use ungil_heap::lock::Sleep;
use ungil_heap::{Error, Heap, Result};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ungil-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn heap(&self) -> (PathBuf, Arc<Heap>) {
        let path = self.0.join("heap");
        let heap = Heap::named(&path, 1 << 20, Box::new(Sleep)).unwrap();
        (path, heap)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn open(path: &Path) -> Result<Arc<Heap>> {
    Heap::open(path, Box::new(Sleep))
}

/// The sentence with which a file is refused.
fn refusal(path: &Path) -> String {
    match open(path) {
        Err(Error::Refused(why) | Error::Untrusted(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_named_heap_is_found_by_others_and_is_for_the_user_alone() {
    let folder = Folder::new("named");
    let (path, heap) = folder.heap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(open(&path).unwrap().uuid(), heap.uuid());
    let again = Heap::named(&path, 1 << 20, Box::new(Sleep));
    match again {
        Err(Error::Io { error, .. }) => {
            assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        }
        other => panic!("made twice: {other:?}"),
    }
}

#[test]
fn an_anonymous_heap_is_found_under_proc_and_cannot_be_cut_off() {
    let heap = support::heap(1 << 20);
    let path = format!("/proc/{}/fd/{}", std::process::id(), heap.descriptor());
    assert_eq!(open(path.as_ref()).unwrap().uuid(), heap.uuid());
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    assert!(file.set_len(0).is_err());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_others_can_use_is_refused() {
    let folder = Folder::new("mode");
    let (path, _heap) = folder.heap();
    for mode in [0o660, 0o604, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(refusal(&path).contains(&format!("has mode {mode:o}")));
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    let folder = Folder::new("owner");
    let (path, _heap) = folder.heap();
    // SAFETY: no arguments, no failure.
    let why = if unsafe { libc::geteuid() } == 0 {
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        refusal(&path)
    } else {
        // Only root can give a file away. This one is root's, and written by nobody else.
        match open("/proc/1/environ".as_ref()) {
            Err(Error::Io { error, .. }) => error.to_string(),
            other => panic!("not refused: {other:?}"),
        }
    };
    assert!(why.contains("belongs to user 12345") || why.contains("denied"), "{why}");
}

#[test]
fn another_version_is_refused() {
    let folder = Folder::new("version");
    let (path, _heap) = folder.heap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for place in [std::mem::offset_of!(Header, version), std::mem::offset_of!(Header, magic)] {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, place as u64).unwrap();
        file.write_all_at(&[word[0] ^ 1], place as u64).unwrap();
        assert!(refusal(&path).contains("not a heap of this version"));
        file.write_all_at(&word, place as u64).unwrap();
    }
    open(&path).unwrap();
}

#[test]
fn a_file_that_is_cut_off_or_something_else_is_refused() {
    let folder = Folder::new("cut");
    let (path, heap) = folder.heap();
    // Nothing uses the memory that is about to be gone.
    let length = fs::metadata(&path).unwrap().len();
    for shorter in [length - 1, length / 2, 4096, 5, 0] {
        let copy = folder.0.join("copy");
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(usize::try_from(shorter).unwrap());
        fs::write(&copy, bytes).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(refusal(&copy).contains("cut off"), "{shorter} bytes");
    }
    let longer = folder.0.join("longer");
    let file = File::create(&longer).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    file.write_all_at(&fs::read(&path).unwrap(), 0).unwrap();
    file.set_len(length + 1).unwrap();
    assert!(refusal(&longer).contains("cut off"));
    drop(heap);
    assert!(refusal("/dev/null".as_ref()).contains("not a regular file"));
}

#[test]
fn a_link_is_not_followed() {
    let folder = Folder::new("link");
    let (path, _heap) = folder.heap();
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(open(&link).is_err());
}

#[test]
fn sizes_that_no_heap_has_are_refused() {
    for size in [0, 1000, usize::MAX] {
        let heap = Heap::anonymous(size, Box::new(Sleep));
        assert!(matches!(heap, Err(Error::Refused(_))), "{size}");
    }
}

/// In a child with a file system of its own that is as small as that of a container.
#[test]
fn a_file_system_that_is_full_is_an_error_and_leaves_the_heap_usable() {
    let folder = Folder::new("full");
    // SAFETY: the child uses its own memory, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let work = std::panic::AssertUnwindSafe(|| fill(&folder.0));
        let code = i32::from(std::panic::catch_unwind(work).is_err());
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the integer lives during the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child panicked or was killed by a signal such as SIGBUS");
}

fn fill(folder: &Path) {
    mount(folder);
    let heap = Heap::named(&folder.join("heap"), 64 << 20, Box::new(Sleep)).unwrap();
    let mut had = Vec::new();
    let error = loop {
        match support::take(&heap, 1000) {
            Ok(at) => {
                for word in heap.segment().words(at, 125).unwrap() {
                    word.store(1, std::sync::atomic::Ordering::Relaxed);
                }
                had.push(at);
            }
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("its file system is full"), "{error}");
    assert!(had.len() * 1024 > 5 << 20, "only {} blocks", had.len());
    assert!(support::take(&heap, 32 << 20).is_err());
    let again = had.pop().unwrap();
    support::free(&heap, again, 1000).unwrap();
    assert_eq!(support::take(&heap, 1000).unwrap(), again);
    // A second heap finds no room for itself, which is no SIGBUS either, and leaves nothing.
    let other = folder.join("other");
    fs::write(folder.join("rest"), vec![0; 4 << 20]).unwrap_err();
    assert!(matches!(Heap::named(&other, 64 << 20, Box::new(Sleep)), Err(Error::Full { .. })));
    assert!(!other.exists());
}

/// Mounts 8 MiB of memory on a folder, for this process alone.
fn mount(folder: &Path) {
    // SAFETY: takes integers.
    let mut result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if result != 0 {
        // Without being root, as the root of a namespace of our own.
        // SAFETY: takes integers.
        result = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) };
    }
    assert_eq!(result, 0, "unshare: {}", std::io::Error::last_os_error());
    let name = |text: &str| std::ffi::CString::new(text).unwrap();
    let call = |target: &str, kind: &str, flags, data: &str| {
        let (target, kind, data) = (name(target), name(kind), name(data));
        // SAFETY: the strings live during the call.
        let result = unsafe {
            libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
        };
        assert_eq!(result, 0, "mount: {}", std::io::Error::last_os_error());
    };
    call("/", "none", libc::MS_REC | libc::MS_PRIVATE, "");
    call(folder.to_str().unwrap(), "tmpfs", 0, "size=8m");
}
