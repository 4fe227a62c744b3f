//! The hook library in this process: found beside this module and loaded on first use.
//!
//! Loading it changes nothing until [`Hook::install`]. If it was preloaded, the loader recognises
//! the file and hands out the instance that is there.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use ungil_core::table::{ABI, Slot, Status, Table};

/// Name of the hook library's file.
const FILE: &str = "libungil_hook.so";

/// The functions that the hook library exports to this module.
pub struct Hook {
    install: extern "C" fn() -> i32,
    table: extern "C" fn() -> *const u8,
    slot: extern "C" fn() -> i32,
}

impl Hook {
    /// The hook library in this process, or a sentence that says why it cannot be loaded.
    pub fn get() -> Result<&'static Self, &'static str> {
        static HOOK: OnceLock<Result<Hook, String>> = OnceLock::new();
        HOOK.get_or_init(Self::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Self, String> {
        let path = path().map_err(|error| error.to_string())?;
        let name = CString::new(path.into_os_string().into_vec())
            .map_err(|_| "the path of the hook library contains a NUL".to_owned())?;
        // SAFETY: `name` is a C string. Constructors of the library run; they are ours and do
        // nothing before `ungil_install_v1`.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(format!("the hook library cannot be loaded: {}", loader_error()));
        }
        let (install, table, slot) = (
            symbol(library, c"ungil_install_v1")?,
            symbol(library, c"ungil_table_v1")?,
            symbol(library, c"ungil_slot_v1")?,
        );
        // SAFETY: the hook crate defines `extern "C" fn ungil_install_v1() -> i32`; the number
        // in the name changes when the signature does. The library is never unloaded.
        let install =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(install) };
        // SAFETY: as above, for `extern "C" fn ungil_table_v1() -> *const u8`.
        let table =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *const u8>(table) };
        // SAFETY: as above, for `extern "C" fn ungil_slot_v1() -> i32`.
        let slot = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(slot) };
        Ok(Self { install, table, slot })
    }

    /// Hooks the interpreter of this process, if it is not hooked yet. The calling thread must
    /// hold the GIL.
    pub fn install(&self) -> Result<(), &'static str> {
        match (self.install)() {
            0 => Ok(()),
            1 => Err("this is a free-threaded Python, which has no GIL"),
            2 => Err("this is PyPy, whose GIL does not use the C library"),
            4 => Err("the hook finds no Python in this process"),
            5 => Err("there is no memory for the counters of the GIL"),
            _ => Err("this build of Python does not call the C library where the hook expects it"),
        }
    }

    /// The table of this process, or `None` if its GIL is not recorded.
    pub fn table(&self) -> Option<Table<'static>> {
        let start = (self.table)();
        if start.is_null() {
            return None;
        }
        // SAFETY: the hook returns the start of a mapping of `TABLE_BYTES` that began as zeroes
        // and that it touches through `Table` only. It unmaps it in the child of a fork, before
        // any code of this module runs there; nothing here keeps a `Table` over a fork.
        let table = unsafe { Table::at(start) };
        let header = table.header();
        let is_hooked = header.status.load(Ordering::Relaxed) == Status::Hooked as u32;
        (header.abi.load(Ordering::Relaxed) == ABI && is_hooked).then_some(table)
    }

    /// The slot of the calling thread in `table`, or `None` if there is none left for it.
    pub fn slot(&self, table: Table<'static>) -> Option<&'static Slot> {
        table.slots().get(usize::try_from((self.slot)()).ok()?)
    }
}

/// Where the hook library is installed: in the folder of this module.
pub fn path() -> io::Result<PathBuf> {
    let lost = |what| io::Error::new(io::ErrorKind::NotFound, what);
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    let here = path as fn() -> io::Result<PathBuf> as *const c_void;
    // SAFETY: `here` is an address and `found` a place for the result.
    if unsafe { libc::dladdr(here, found.as_mut_ptr()) } == 0 {
        return Err(lost("the loader does not know the file of ungil's extension module"));
    }
    // SAFETY: dladdr returned non-zero, so it has filled in every field.
    let file = unsafe { found.assume_init() }.dli_fname;
    // SAFETY: it is a C string that lives as long as this library.
    let file = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(file) }.to_bytes()));
    let folder = std::path::absolute(file)?;
    let folder = folder.parent().ok_or_else(|| lost("ungil's extension module has no folder"))?;
    Ok(folder.join(FILE))
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: `library` comes from dlopen and was not closed; `name` is a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        let name = name.to_string_lossy();
        return Err(format!("the hook library is of another version: it has no {name}"));
    }
    Ok(address)
}

/// What the loader says about the last failure.
fn loader_error() -> String {
    // SAFETY: returns null or a C string that lives until the next call into the loader from
    // this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
