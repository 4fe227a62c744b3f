//! `LD_PRELOAD` with the stub in it, which opens the hook where that fits.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use ungil_core::{STUB_FILE, STUB_FOLDER, brings_hook};

/// What glibc's loader of 64 bits may call the platform of an x86-64: what the kernel does, or what
/// it has found the processor to be (sysdeps/x86/cpu-features.c). Each has a folder with a stub, and
/// so has each name of 32 bits, with a library that does nothing.
const PLATFORMS: [&str; 3] = ["x86_64", "haswell", "xeon_phi"];
/// What glibc's loader replaces, and the loader of musl does not.
const PLATFORM_TOKEN: &str = "$PLATFORM";

/// The value of `LD_PRELOAD` that loads the stub of `hook`, and then what `others`, the value in
/// force, loads.
///
/// On x86-64 the loader itself completes the path, so that one of 32 bits finds something that it
/// takes; not if it is `written` somewhere first, where a dollar sign may mean something else. If
/// something else completes it to the folder of all platforms all the same, there is a stub as well.
///
/// The loader splits the value at spaces and colons, so a folder whose path has one is reached
/// through a link in the one that `links` names. `InvalidInput` if that has one as well.
pub fn preload(
    hook: &Path,
    others: Option<&OsStr>,
    written: bool,
    links: impl FnOnce() -> io::Result<PathBuf>,
) -> io::Result<OsString> {
    let folder = hook.with_file_name(STUB_FOLDER);
    let mut stub = if is_split(&folder) { linked(&folder, &links()?)? } else { folder };
    if !written && is_completed(platform()) {
        stub.push(PLATFORM_TOKEN);
    }
    stub.push(STUB_FILE);
    let mut value = stub.into_os_string().into_vec();
    let others = others.unwrap_or_default().as_bytes().split(|byte| b" :".contains(byte));
    // Two hooks, of two installations, would get in each other's way.
    for other in others.filter(|path| !path.is_empty() && !is_ours(path)) {
        value.push(b':');
        value.extend_from_slice(other);
    }
    Ok(OsString::from_vec(value))
}

/// Whether every loader of 64 bits finds a stub if it completes the path, on a machine whose kernel
/// says this of the platform.
fn is_completed(platform: Option<&[u8]>) -> bool {
    cfg!(all(target_arch = "x86_64", target_env = "gnu"))
        && platform.is_some_and(|name| PLATFORMS.iter().any(|it| it.as_bytes() == name))
}

/// What the kernel calls the platform, if it calls it anything.
fn platform() -> Option<&'static [u8]> {
    // SAFETY: getauxval has no preconditions.
    let name = unsafe { libc::getauxval(libc::AT_PLATFORM) } as *const libc::c_char;
    // SAFETY: the kernel has put a NUL-terminated string there, which stays.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes())
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
    let why = format!("{} belongs to another user; remove it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// A link to the folder of stubs in the folder `links`.
fn linked(folder: &Path, links: &Path) -> io::Result<PathBuf> {
    let link = links.join(STUB_FOLDER);
    if is_split(&link) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "LD_PRELOAD cannot name {}: it has a space, a colon or a dollar sign, and so has \
                 {}; set TMPDIR to a directory without",
                folder.display(),
                links.display()
            ),
        ));
    }
    match symlink(folder, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(link),
    }
}

/// Whether the loader would understand the path as something else.
fn is_split(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte))
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

    fn preloaded(others: &str) -> String {
        let hook = Path::new("/x/libungil_hook.so");
        preload(hook, Some(OsStr::new(others)), false, no_links).unwrap().into_string().unwrap()
    }

    /// The stub of `/x/libungil_hook.so` on this machine.
    fn stub() -> &'static str {
        if is_completed(platform()) {
            "/x/preload/$PLATFORM/libungil_preload.so"
        } else {
            "/x/preload/libungil_preload.so"
        }
    }

    #[test]
    fn what_others_preload_is_kept_behind_the_stub() {
        assert_eq!(preloaded(""), stub());
        assert_eq!(preloaded("/y.so"), format!("{}:/y.so", stub()));
        assert_eq!(preloaded("y.so /z.so:"), format!("{}:y.so:/z.so", stub()));
    }

    #[test]
    fn a_stub_is_preloaded_once_also_if_another_one_was() {
        let older = ["/x/libungil_preload.so", "/older/libungil_preload.so", "/libungil_hook.so"];
        for others in older.into_iter().chain([stub()]) {
            assert_eq!(preloaded(others), stub());
            assert_eq!(preloaded(&format!("/y.so:{others}")), format!("{}:/y.so", stub()));
        }
    }

    #[test]
    fn a_stub_whose_path_has_a_space_is_preloaded_through_a_link() {
        for hook in ["/with space/libungil_hook.so", "/with$ORIGIN/libungil_hook.so"] {
            let folder = tempfile::tempdir().unwrap();
            let hook = Path::new(hook);
            let link = folder.path().join(STUB_FOLDER);
            for _ in 0..2 {
                let value = preload(hook, None, false, || Ok(folder.path().to_path_buf())).unwrap();
                assert!(Path::new(&value).starts_with(&link));
                assert_eq!(fs::read_link(&link).unwrap(), hook.with_file_name(STUB_FOLDER));
            }
        }
        let hook = Path::new("/with space/libungil_hook.so");
        let error = preload(hook, None, false, || Ok("/a folder".into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_is_written_somewhere_has_nothing_to_complete() {
        let value = preload(Path::new("/x/libungil_hook.so"), None, true, no_links).unwrap();
        assert_eq!(value, "/x/preload/libungil_preload.so");
    }

    #[test]
    fn a_loader_completes_the_path_only_where_every_name_of_the_platform_is_known() {
        let here = cfg!(all(target_arch = "x86_64", target_env = "gnu"));
        assert_eq!(is_completed(Some(b"x86_64")), here);
        assert!(!is_completed(Some(b"x86_64-v9")));
        assert!(!is_completed(None));
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
