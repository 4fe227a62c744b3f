//! The files that structures are written to: one without a name, or one that takes the place of
//! another when it is whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A new file in memory, without a name.
///
/// # Errors
/// [`Error::Io`].
pub fn anonymous() -> Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a name that ends with a zero.
    let file = unsafe { libc::memfd_create(c"ungil-frozen".as_ptr(), flags) };
    if file < 0 {
        return Err(Error::io("making a file in memory")(io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, which nobody else has.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// Keeps an anonymous file as it is, whoever has it.
///
/// # Errors
/// [`Error::Io`].
pub fn seal(file: &File) -> Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
    // SAFETY: an open descriptor; the seals are its argument.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
        return Err(Error::io("sealing a file in memory")(io::Error::last_os_error()));
    }
    Ok(())
}

/// Two random words.
///
/// # Errors
/// [`Error::Io`].
pub fn random() -> Result<[u64; 2]> {
    let mut words = [0_u64; 2];
    let size = size_of_val(&words);
    // SAFETY: so many bytes can be written there.
    let filled = unsafe { libc::getrandom(words.as_mut_ptr().cast(), size, 0) };
    if filled.cast_unsigned() != size {
        return Err(Error::io("asking for random bytes")(io::Error::last_os_error()));
    }
    Ok(words)
}

/// A file that takes the place of another one when it is whole, and else is removed.
pub struct Replacing {
    file: File,
    /// Where it is until then; empty afterwards.
    temporary: PathBuf,
    path: PathBuf,
}

impl Replacing {
    /// A new file beside `path`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(path: &Path) -> Result<Self> {
        let making = "making a file beside the path";
        let name = path.file_name().ok_or_else(|| {
            Error::io(making)(io::Error::new(io::ErrorKind::IsADirectory, "the path names no file"))
        })?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{:016x}.tmp", random()?[0]));
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary);
        let file = file.map_err(Error::io(making))?;
        Ok(Self { file, temporary, path: path.to_owned() })
    }

    /// The file, to write to.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(Error::io("opening a file twice"))
    }

    /// Puts the file, which is whole, where it belongs, so that a crash of the machine leaves either it
    /// or what was there.
    ///
    /// # Errors
    /// [`Error::Io`]; what was there is there then.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync_all().map_err(Error::io("writing a file to its disk"))?;
        fs::rename(&self.temporary, &self.path).map_err(Error::io("renaming the new file"))?;
        self.temporary = PathBuf::new();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")));
        folder
            .and_then(|folder| folder.sync_all())
            .map_err(Error::io("writing a folder to its disk"))
    }
}

impl Drop for Replacing {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // There is nobody to tell.
            drop(fs::remove_file(&self.temporary));
        }
    }
}
