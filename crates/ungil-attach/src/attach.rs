//! A process is asked: a thread of it is borrowed, loads the hook if it must, and serves the request.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use ungil_core::request::{Answer, Asking, Request};
use ungil_core::{CPYTHON_FUNCTION, HOOK_FILE, PYPY_FUNCTIONS};

use crate::Asked;
use crate::borrowed::{Borrowed, Call};
use crate::image::Image;
use crate::memory::Memory;
use crate::place::Places;
use crate::process::{Mapping, Process};
use crate::refusal::{Refusal, forbidden, lost, refuse_early};

/// For so long a safe place is looked for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// The function of the hook that serves requests.
const SERVE: &[u8] = b"ungil_attach_v1";

/// See [`crate::ask`].
pub fn ask(pid: u32, hook: &Path, request: &Request) -> Result<Asked, Refusal> {
    let process = Process { pid };
    refuse_early(process)?;
    let memory = Memory::of(process).map_err(|error| forbidden(process, error))?;
    let mappings = process.mappings().map_err(lost(process))?;
    let loader = Loader::of(process, &memory, &mappings)?;
    // Only the hook knows for sure, but nothing is loaded into a process of which this is clear.
    if loader.function_in(&mappings)?.is_none() && !may_have_python(&memory, &mappings) {
        return Err(Refusal::NoPython);
    }
    let end = Instant::now() + PATIENCE;
    let stopped = Cell::new(Duration::ZERO);
    let places = Places::of(process, &memory, mappings, &loader.libc).map_err(lost(process))?;
    let mut places = places.ok_or(Refusal::Foreign)?;
    loop {
        for thread in process.threads().map_err(lost(process))? {
            if !places.is_promising(thread) {
                continue;
            }
            let borrowed = match Borrowed::try_borrow(thread, &memory, &places, &stopped) {
                Ok(borrowed) => borrowed,
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
                Err(error) => return Err(forbidden(process, error)),
            };
            if let Some(mut borrowed) = borrowed {
                let answer = loader.serve(&mut borrowed, hook, request);
                drop(borrowed);
                return Ok(Asked { answer: answer?, stopped: stopped.get() });
            }
        }
        if process.is_stopped() {
            return Err(Refusal::Stopped(pid));
        }
        if Instant::now() >= end {
            return Err(Refusal::NoPlace(PATIENCE.as_secs()));
        }
        sleep(PAUSE);
        places.look_again().map_err(lost(process))?;
    }
}

/// Whether an image of the process has what the hook knows a Python by, or cannot be looked into.
fn may_have_python(memory: &Memory, mappings: &[Mapping]) -> bool {
    let images = mappings.iter().filter(|it| it.inode != 0 && it.offset == 0);
    let [pypy, other_pypy] = PYPY_FUNCTIONS;
    let pythons = [CPYTHON_FUNCTION, pypy, other_pypy];
    let mut looked = Vec::new();
    for mapping in images {
        if looked.contains(&mapping.inode) {
            continue;
        }
        looked.push(mapping.inode);
        // A file that is mapped for another reason, such as the locale, begins otherwise.
        let mut magic = [0; 4];
        if memory.read(mapping.start, &mut magic).is_err() || magic != *b"\x7fELF" {
            continue;
        }
        let Ok(Some(image)) = Image::at(memory, mapping) else { return true };
        if pythons.iter().any(|name| !matches!(image.symbol(name.to_bytes()), Ok(None))) {
            return true;
        }
    }
    false
}

/// What is needed to load a library into a process.
struct Loader<'a> {
    process: Process,
    memory: &'a Memory,
    libc: Mapping,
    /// `dlopen`, or what stands for it.
    open: u64,
    /// `syscall`.
    system_call: u64,
}

impl<'a> Loader<'a> {
    fn of(process: Process, memory: &'a Memory, mappings: &[Mapping]) -> Result<Self, Refusal> {
        let libc = mappings.iter().find(|it| is_libc(it)).ok_or(Refusal::NoLoader)?;
        let find = |mapping: &Mapping, name: &[u8]| -> Result<Option<u64>, Refusal> {
            let image = Image::at(memory, mapping).map_err(lost(process))?;
            let Some(image) = image else { return Ok(None) };
            Ok(image.symbol(name).map_err(lost(process))?.map(|symbol| symbol.address))
        };
        let mut open = find(libc, b"dlopen")?;
        // Before glibc 2.34 it is in a library of its own, which programs need not have loaded.
        if let (None, Some(libdl)) = (open, mappings.iter().find(|it| is_libdl(it))) {
            open = find(libdl, b"dlopen")?;
        }
        if open.is_none() {
            open = find(libc, b"__libc_dlopen_mode")?;
        }
        let system_call = find(libc, b"syscall")?;
        let (Some(open), Some(system_call)) = (open, system_call) else {
            return Err(Refusal::NoLoader);
        };
        Ok(Self { process, memory, libc: libc.clone(), open, system_call })
    }

    /// Has the thread serve the request, and load the hook before if it must.
    fn serve(
        &self,
        thread: &mut Borrowed<'_>,
        hook: &Path,
        request: &Request,
    ) -> Result<Answer, Refusal> {
        if self.function()?.is_none() {
            self.load(thread, hook)?;
        }
        let serve =
            self.function()?.ok_or_else(|| Refusal::NotLoaded("its loader refused it".into()))?;
        let mut asking = Asking::new(request);
        self.call(thread, serve, &mut asking.0, |place| [place, 0, 0])?;
        asking.answer().ok_or(Refusal::Silent)
    }

    /// The function of the hook in the process, if it is loaded.
    fn function(&self) -> Result<Option<u64>, Refusal> {
        self.function_in(&self.process.mappings().map_err(lost(self.process))?)
    }

    /// The same, of what the process has mapped.
    fn function_in(&self, mappings: &[Mapping]) -> Result<Option<u64>, Refusal> {
        let lost = lost(self.process);
        let Some(hook) = mappings.iter().find(|it| it.is_hook()) else { return Ok(None) };
        let image = Image::at(self.memory, hook).map_err(&lost)?;
        let symbol = image.map(|image| image.symbol(SERVE)).transpose().map_err(&lost)?;
        match symbol.flatten() {
            Some(symbol) => Ok(Some(symbol.address)),
            None => {
                Err(Refusal::NotLoaded("it has loaded the hook of another version of ungil".into()))
            }
        }
    }

    /// Has the thread load the hook: from its file, or where the process does not see that or may
    /// not read it, from memory that it is given.
    fn load(&self, thread: &mut Borrowed<'_>, hook: &Path) -> Result<(), Refusal> {
        if self.process.shares_files() {
            self.open(thread, hook.as_os_str().as_encoded_bytes())?;
            if self.function()?.is_some() {
                return Ok(());
            }
        }
        let library = fs::read(hook).map_err(|error| Refusal::System("the hook", error))?;
        let mut name = HOOK_FILE.as_bytes().to_vec();
        name.push(0);
        // The descriptor is not told: it is the one that is new.
        let before = self.descriptors();
        let create = libc::SYS_memfd_create.cast_unsigned();
        self.call(thread, self.system_call, &mut name, |name| [create, name, 0])?;
        let Some(file) = self.descriptors().into_iter().find(|it| !before.contains(it)) else {
            return Err(Refusal::NotLoaded("the process cannot get memory for it".into()));
        };
        let written = fs::write(self.process.opened(file), library);
        let loaded = match written {
            Ok(()) => self.open(thread, format!("/proc/self/fd/{file}").as_bytes()),
            Err(error) => Err(Refusal::NotLoaded(error.to_string())),
        };
        let close = libc::SYS_close.cast_unsigned();
        self.call(thread, self.system_call, &mut [], |_| [close, file.into(), 0])?;
        loaded
    }

    fn open(&self, thread: &mut Borrowed<'_>, path: &[u8]) -> Result<(), Refusal> {
        let mut path = path.to_vec();
        path.push(0);
        let mode = (libc::RTLD_NOW | libc::RTLD_LOCAL).cast_unsigned();
        self.call(thread, self.open, &mut path, |path| [path, mode.into(), 0])
    }

    /// Its descriptors that are the hook's.
    fn descriptors(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.process.folder().join("fd")).into_iter().flatten();
        let numbers = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
        let is_hooks = |number: &u32| {
            fs::read_link(self.process.opened(*number))
                .is_ok_and(|path| path.to_string_lossy().contains(HOOK_FILE))
        };
        numbers.filter(is_hooks).collect()
    }

    fn call(
        &self,
        thread: &mut Borrowed<'_>,
        function: u64,
        place: &mut [u8],
        arguments: impl FnOnce(u64) -> [u64; 3],
    ) -> Result<(), Refusal> {
        match thread.call(function, place, arguments).map_err(lost(self.process))? {
            Call::Returned => Ok(()),
            Call::Crashed => Err(Refusal::NotLoaded("it would have crashed".into())),
            Call::Unfinished => Err(Refusal::Silent),
            Call::Gone => Err(Refusal::Gone),
        }
    }
}

fn is_libc(mapping: &Mapping) -> bool {
    let name = mapping.file_name();
    name.starts_with(b"libc.so") || name.starts_with(b"libc-2.") || name.starts_with(b"ld-musl-")
}

fn is_libdl(mapping: &Mapping) -> bool {
    let name = mapping.file_name();
    name.starts_with(b"libdl.so") || name.starts_with(b"libdl-2.")
}
