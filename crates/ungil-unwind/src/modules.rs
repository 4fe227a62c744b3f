//! The images of a process. Each is read when a stack leads into it for the first time.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framehop::{CacheNative, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use ungil_attach::memory::Memory;
use ungil_attach::process::{Mapping, Process};

use crate::module::Module;

/// Between two looks at what is mapped.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Unwinds with what it is told of images.
pub type Unwinding = UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>;
/// What unwinding needs again and again.
pub type Cache = CacheNative<MayAllocateDuringUnwind>;

/// The images.
pub struct Modules {
    process: Process,
    mappings: Vec<Mapping>,
    looked: Option<Instant>,
    /// Those that were read, with the mapping that each begins with; no module if it is no image.
    read: Vec<(Mapping, Option<Module>)>,
    /// Knows those that were read.
    pub unwinding: Unwinding,
    /// For that.
    pub cache: Cache,
}

impl Modules {
    /// Those of a process; nothing is read yet.
    pub fn of(process: Process) -> Self {
        Self {
            process,
            mappings: Vec::new(),
            looked: None,
            read: Vec::new(),
            unwinding: Unwinding::new(),
            cache: Cache::new(),
        }
    }

    /// Looks again at what is mapped, unless it did so lately. Images that are no more are forgotten.
    pub fn look_again(&mut self) -> io::Result<()> {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        self.mappings = self.process.mappings()?;
        self.looked = Some(Instant::now());
        let Self { mappings, read, unwinding, cache, .. } = self;
        read.retain(|(first, module)| {
            let stays = mappings.contains(first);
            if !stays && let Some(module) = module {
                unwinding.remove_module(module.range.start);
                // It remembers by addresses.
                *cache = Cache::new();
            }
            stays
        });
        Ok(())
    }

    /// The image that an address is in, if it is in one.
    pub fn at(&mut self, memory: &Memory, address: u64) -> Option<&Module> {
        let first = self.first_mapping(address)?;
        let known = self.read.iter().position(|(it, _)| it == first);
        let place = known.unwrap_or(self.read.len());
        if known.is_none() {
            let first = first.clone();
            let module = Module::read(self.process, memory, &first).ok().flatten();
            if let Some(unwound) = module.as_ref().and_then(Module::unwound) {
                self.unwinding.add_module(unwound);
            }
            self.read.push((first, module));
        }
        self.read[place].1.as_ref().filter(|it| it.range.contains(&address))
    }

    /// What the image begins with whose code is at `address`.
    fn first_mapping(&self, address: u64) -> Option<&Mapping> {
        let behind = self.mappings.partition_point(|it| it.start <= address);
        let (last, before) = self.mappings[..behind].split_last()?;
        if address >= last.end || !last.is_executable || last.path.is_empty() {
            return None;
        }
        if last.offset == 0 || last.inode == 0 {
            return Some(last);
        }
        let is_same = |it: &&Mapping| it.inode == last.inode && it.path == last.path;
        before.iter().rev().filter(is_same).find(|it| it.offset == 0)
    }

    /// Whether there may be code at an address: of an image, or made while the program runs.
    pub fn is_code(&self, address: u64) -> bool {
        let behind = self.mappings.partition_point(|it| it.start <= address);
        let last = behind.checked_sub(1).map(|it| &self.mappings[it]);
        last.is_some_and(|it| address < it.end && it.is_executable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_found_by_any_address_of_its_code_and_read_once() {
        let own = Process { pid: std::process::id() };
        let memory = Memory::of(own).unwrap();
        let mut modules = Modules::of(own);
        modules.look_again().unwrap();
        let qsort = libc::qsort as *const () as u64;
        let here = an_image_is_found_by_any_address_of_its_code_and_read_once as *const () as u64;
        assert!(modules.at(&memory, qsort).unwrap().library.contains("libc"));
        assert!(modules.at(&memory, here).unwrap().library.contains("ungil"));
        assert!(modules.at(&memory, qsort).is_some());
        assert_eq!(modules.read.len(), 2);
        assert!(modules.is_code(qsort) && !modules.is_code(8));
        let on_the_stack = 0u64;
        assert!(modules.at(&memory, (&raw const on_the_stack) as u64).is_none());
    }
}
