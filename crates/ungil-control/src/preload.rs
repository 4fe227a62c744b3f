//! `LD_PRELOAD` with the stub in it, which opens the hook where that fits.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use ungil_core::{STUB_FILE, brings_hook};

/// The value of `LD_PRELOAD` that loads the stub beside `hook`, and then what `others`, the value in
/// force, loads.
///
/// The loader splits the value at spaces and colons, so a stub whose path has one goes through a
/// link in the folder that `links` names. `InvalidInput` if that has one as well.
pub fn preload(
    hook: &Path,
    others: Option<&OsStr>,
    links: impl FnOnce() -> io::Result<PathBuf>,
) -> io::Result<OsString> {
    let stub = hook.with_file_name(STUB_FILE);
    let stub = if is_split(&stub) { linked(&stub, &links()?)? } else { stub };
    let mut value = stub.into_os_string().into_vec();
    let others = others.unwrap_or_default().as_bytes().split(|byte| b" :".contains(byte));
    // Two hooks, of two installations, would get in each other's way.
    for other in others.filter(|path| !path.is_empty() && !is_ours(path)) {
        value.push(b':');
        value.extend_from_slice(other);
    }
    Ok(OsString::from_vec(value))
}

/// A folder for links that outlive this process, because the programs it starts do. It is the
/// same one for the same hook, and writable by nobody but the current user.
pub fn lasting_links(hook: &Path) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    hook.hash(&mut hasher);
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let name = format!("ungil-hook-{user}-{:016x}", hasher.finish());
    let shared_memory = PathBuf::from("/dev/shm");
    let place = if shared_memory.is_dir() { shared_memory } else { env::temp_dir() };
    let folder = place.join(name);
    match DirBuilder::new().mode(0o755).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Anybody could have made it before us, to have us load a library of theirs.
    let found = fs::symlink_metadata(&folder)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        return Ok(folder);
    }
    let why = format!("{} belongs to somebody else; remove it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// A link to `stub` in `folder`. The stub follows it when it looks for the hook.
fn linked(stub: &Path, folder: &Path) -> io::Result<PathBuf> {
    let link = folder.join(STUB_FILE);
    if is_split(&link) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "LD_PRELOAD cannot name {}: it has a space or a colon, and so has {}; \
                 set TMPDIR to a directory without",
                stub.display(),
                folder.display()
            ),
        ));
    }
    match symlink(stub, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(link),
    }
}

fn is_split(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte))
}

fn is_ours(path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path)).file_name().is_some_and(|name| brings_hook(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_links() -> io::Result<PathBuf> {
        panic!("no link is needed")
    }

    fn preloaded(others: &str) -> OsString {
        preload(Path::new("/x/libungil_hook.so"), Some(OsStr::new(others)), no_links).unwrap()
    }

    #[test]
    fn what_others_preload_is_kept_behind_the_stub() {
        assert_eq!(preloaded(""), "/x/libungil_preload.so");
        assert_eq!(preloaded("/y.so"), "/x/libungil_preload.so:/y.so");
        assert_eq!(preloaded("y.so /z.so:"), "/x/libungil_preload.so:y.so:/z.so");
    }

    #[test]
    fn a_stub_is_preloaded_once_also_if_another_one_was() {
        for others in ["/x/libungil_preload.so", "/older/libungil_preload.so", "/libungil_hook.so"]
        {
            assert_eq!(preloaded(others), "/x/libungil_preload.so");
            assert_eq!(preloaded(&format!("/y.so:{others}")), "/x/libungil_preload.so:/y.so");
        }
    }

    #[test]
    fn a_stub_whose_path_has_a_space_is_preloaded_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let hook = Path::new("/with space/libungil_hook.so");
        for _ in 0..2 {
            let value = preload(hook, None, || Ok(folder.path().to_path_buf())).unwrap();
            assert_eq!(fs::read_link(&value).unwrap(), hook.with_file_name(STUB_FILE));
            assert!(!value.to_string_lossy().contains(' '));
        }
        let error = preload(hook, None, || Ok("/a folder".into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_lasting_folder_is_found_again_and_is_not_shared() {
        let hook = tempfile::tempdir().unwrap();
        let folder = lasting_links(hook.path()).unwrap();
        assert_eq!(lasting_links(hook.path()).unwrap(), folder);
        fs::remove_dir(&folder).unwrap();
        symlink(hook.path(), &folder).unwrap();
        let error = lasting_links(hook.path()).unwrap_err();
        fs::remove_file(&folder).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
