//! The hook library in this process: the one that was preloaded, or else the one beside this
//! module, which is loaded on first use and changes nothing before [`Hook::install`].

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use ungil_core::HOOK_FILE;
use ungil_core::request::{Answer, Request};
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_core::table::{ABI, Slot, Status, Table};

use crate::loader;

/// The functions that the hook library exports to this module.
pub struct Hook {
    install: extern "C" fn() -> c_int,
    request: unsafe extern "C" fn(*const Request) -> c_int,
    table: extern "C" fn() -> *const u8,
    slot: extern "C" fn() -> c_int,
    now: extern "C" fn() -> u64,
    policy: unsafe extern "C" fn(*mut u64) -> u32,
    set_policy: extern "C" fn(u32, u64) -> c_int,
    level: extern "C" fn() -> c_int,
    set_level: extern "C" fn(u32) -> c_int,
}

impl Hook {
    /// The hook library in this process, or a sentence that says why it cannot be loaded.
    pub fn get() -> Result<&'static Self, &'static str> {
        static HOOK: OnceLock<Result<Hook, String>> = OnceLock::new();
        HOOK.get_or_init(Self::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Self, String> {
        let library = library()?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the field has the signature with which the hook crate defines the
                // function; the number in the name changes when that does. The hook is never
                // unloaded.
                let found = unsafe { loader::function(library, $name) };
                found.ok_or_else(|| {
                    let name = $name.to_string_lossy();
                    format!(
                        "the hook library belongs to another version of ungil: it has no {name}"
                    )
                })
            }};
        }
        Ok(Self {
            install: function!(c"ungil_install_v1")?,
            request: function!(c"ungil_request_v1")?,
            table: function!(c"ungil_table_v1")?,
            slot: function!(c"ungil_slot_v1")?,
            now: function!(c"ungil_now_v1")?,
            policy: function!(c"ungil_policy_v1")?,
            set_policy: function!(c"ungil_set_policy_v1")?,
            level: function!(c"ungil_level_v1")?,
            set_level: function!(c"ungil_set_level_v1")?,
        })
    }

    /// Has this process do what `request` says.
    pub fn request(&self, request: &Request) -> Result<(), String> {
        // SAFETY: it is valid for reading.
        let answer = unsafe { (self.request)(request) };
        match Answer::from_number(answer) {
            Some(Answer::Done) => Ok(()),
            Some(answer) => Err(answer.to_string()),
            None => Err("the hook library belongs to another version of ungil".into()),
        }
    }

    /// Hooks the interpreter of this process, if it is not hooked yet. The calling thread must
    /// hold the GIL.
    pub fn install(&self) -> Result<(), &'static str> {
        match (self.install)() {
            0 => Ok(()),
            1 => {
                Err("this is a free-threaded Python: `ungil trace` shows what its threads wait for")
            }
            2 => Err("this is PyPy, whose GIL does not use the C library"),
            4 => Err("the hook found no Python in this process"),
            5 => Err("there is not enough memory for the counters of the GIL"),
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

    /// Now, in ticks of the clock of [`Self::table`].
    pub fn now_ticks(&self) -> u64 {
        (self.now)()
    }

    /// The policy in force and its quantum, or `None` where the GIL cannot be scheduled.
    pub fn settings(&self) -> Option<Settings> {
        self.level()?;
        let mut quantum_ns = 0;
        // SAFETY: `quantum_ns` is valid for writing.
        let policy = unsafe { (self.policy)(&raw mut quantum_ns) };
        Some(Settings { policy: Policy::from_number(policy)?, quantum_ns })
    }

    /// Changes the policy; its own quantum is meant by `None`. `false` where the GIL cannot be
    /// scheduled.
    #[must_use]
    pub fn set_policy(&self, policy: Policy, quantum_ns: Option<u64>) -> bool {
        (self.set_policy)(policy as u32, quantum_ns.unwrap_or(0)) == 0
    }

    /// The level of the calling thread, or `None` where the GIL cannot be scheduled: the hook is
    /// not installed, or this interpreter's GIL is not made of what it knows.
    pub fn level(&self) -> Option<Level> {
        Level::from_number(u32::try_from((self.level)()).ok()?)
    }

    /// Gives the calling thread a level.
    pub fn set_level(&self, level: Level) {
        (self.set_level)(level as u32);
    }
}

/// A handle of the hook library for the loader. One that was preloaded is in the default search
/// order, whichever installation of ungil it belongs to; there must not be a second.
fn library() -> Result<*mut c_void, String> {
    if loader::symbol(libc::RTLD_DEFAULT, c"ungil_install_v1").is_some() {
        return Ok(libc::RTLD_DEFAULT);
    }
    let path = path().map_err(|error| error.to_string())?;
    let name = CString::new(path.into_os_string().into_vec())
        .map_err(|_| "the path of the hook library contains a NUL".to_owned())?;
    // SAFETY: the name ends with a zero. Constructors of the library run; they are ours and do
    // nothing in a running interpreter.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(format!("the hook library cannot be loaded: {}", loader_error()));
    }
    Ok(library)
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
    Ok(folder.join(HOOK_FILE))
}

/// What the loader says about the last failure.
fn loader_error() -> String {
    // SAFETY: returns null or a C string that lives until the next call into the loader from
    // this thread.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: it is a C string, and no call into the loader comes between.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
