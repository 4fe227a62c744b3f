//! An image that a process has loaded: its program or a library.

use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use framehop::Module as UnwoundModule;
use std::sync::Arc;
use ungil_attach::image::Image;
use ungil_attach::memory::Memory;
use ungil_attach::process::{Mapping, Process};

use crate::methods::Methods;
use crate::plumbing::is_evaluation;
use crate::symbols::Symbols;
use crate::tables::{Headers, Tables};

/// What the kernel calls its own image in a process.
const VDSO: &[u8] = b"[vdso]";
/// So much of a file has to be what is in memory for it to be the one: headers, and the build id.
const COMPARED: usize = 4096;
/// No symbols are read from a vDSO larger than this.
const MOST_VDSO_BYTES: u64 = 1 << 20;

/// An image.
pub struct Module {
    /// Its file, as the process names it.
    pub library: String,
    /// Its addresses.
    pub range: Range<u64>,
    bias: u64,
    tables: Option<Tables>,
    symbols: Symbols,
    methods: Methods,
    /// The evaluation loop.
    evaluation: Option<Range<u64>>,
}

/// What a function is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// By its library; empty if that has no symbol for it.
    pub symbol: String,
    /// By Python; empty if Python does not call it, or that is not known.
    pub method: String,
}

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// What it is called.
    pub name: Name,
    /// Its library; empty for code that was made while the program ran.
    pub library: String,
    /// Whether Python can import that library.
    pub is_extensions: bool,
}

impl Function {
    /// Whether Python code can have called it, as far as that is known.
    pub fn is_for_python(&self, interpreter: &str) -> bool {
        !self.name.method.is_empty() || (self.is_extensions && self.library != interpreter)
    }
}

impl Module {
    /// The image that begins with `first`. `None` if there is none.
    pub fn read(process: Process, memory: &Memory, first: &Mapping) -> io::Result<Option<Self>> {
        let Some(headers) = Headers::read(memory, first.start)? else { return Ok(None) };
        let range = headers.whole();
        let symbols = if first.path == VDSO {
            let length = range.end.saturating_sub(range.start).min(MOST_VDSO_BYTES);
            let mut image = vec![0; usize::try_from(length).unwrap_or(0)];
            let length = memory.up_to(first.start, &mut image)?;
            Symbols::of(&image[..length])
        } else {
            let length = usize::try_from(first.end - first.start).unwrap_or(COMPARED);
            let beginning = memory.bytes(first.start, length.min(COMPARED))?;
            Symbols::of_file(&file_of(process, &first.path), &beginning)
        };
        Ok(Some(Self {
            library: String::from_utf8_lossy(without_mark(&first.path)).into_owned(),
            range,
            bias: headers.bias,
            tables: Tables::read(memory, &headers)?,
            symbols,
            methods: Methods::read(memory, &headers),
            evaluation: evaluation_in(memory, first),
        }))
    }

    /// Whether the unwinder knows how the function at this address is left.
    pub fn can_unwind(&self, address: u64) -> bool {
        self.function_at(address).is_some()
    }

    /// Whether the function at this address runs Python code.
    pub fn runs_python_at(&self, address: u64) -> bool {
        self.evaluation.as_ref().is_some_and(|it| it.contains(&address))
            || is_evaluation(&self.name_at(address).symbol)
    }

    /// The function at this address.
    pub fn function_called_at(&self, address: u64) -> Function {
        let (name, library) = (self.name_at(address), self.library.clone());
        Function { name, library, is_extensions: self.symbols.is_extension() }
    }

    /// What the function at this address is called.
    fn name_at(&self, address: u64) -> Name {
        let begin = self.function_at(address).map(|it| it.start);
        let symbol = self.symbols.name_at(address.wrapping_sub(self.bias), begin);
        let method = begin.and_then(|it| self.methods.name_of(it.wrapping_add(self.bias)));
        let method = method.map(str::to_owned).unwrap_or_default();
        Name { symbol: symbol.unwrap_or_default(), method }
    }

    /// The addresses of the function around this one.
    pub fn function_around(&self, address: u64) -> Option<Range<u64>> {
        let range = self.function_at(address)?;
        Some(range.start.wrapping_add(self.bias)..range.end.wrapping_add(self.bias))
    }

    /// The function around an address, by its addresses in the file.
    fn function_at(&self, address: u64) -> Option<Range<u64>> {
        self.tables.as_ref()?.function_at(address.wrapping_sub(self.bias))
    }

    /// As the unwinder takes it.
    pub fn unwound(&self) -> Option<UnwoundModule<Arc<[u8]>>> {
        let sections = self.tables.as_ref()?.sections();
        Some(UnwoundModule::new(self.library.clone(), self.range.clone(), self.bias, sections))
    }
}

/// Where the evaluation loop is, as the image says in memory: its file may be another one by now.
fn evaluation_in(memory: &Memory, first: &Mapping) -> Option<Range<u64>> {
    let image = Image::at(memory, first).ok().flatten()?;
    let found = image.symbol(b"_PyEval_EvalFrameDefault").ok().flatten()?;
    Some(found.address..found.address.saturating_add(found.size))
}

/// Where a file that a process names is found from outside.
fn file_of(process: Process, path: &[u8]) -> PathBuf {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    process.folder().join("root").join(path.strip_prefix("/").unwrap_or(path))
}

fn without_mark(path: &[u8]) -> &[u8] {
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    #[test]
    fn a_function_of_the_c_library_is_known_by_its_address() {
        let own = Process { pid: std::process::id() };
        let memory = Memory::of(own).unwrap();
        let mappings = own.mappings().unwrap();
        let first = mappings
            .iter()
            .find(|it| it.file_name().starts_with(b"libc.so") && it.offset == 0)
            .unwrap();
        let module = Module::read(own, &memory, first).unwrap().unwrap();
        let address = libc::qsort as *const () as u64 + 1;
        assert!(module.range.contains(&address));
        assert!(module.can_unwind(address));
        assert_eq!(module.name_at(address).symbol, "qsort");
        assert_eq!(module.name_at(module.range.start), Name::default());
        assert!(module.library.ends_with(".so.6"));
    }

    proptest! {
        #[test]
        fn an_image_with_any_bytes_in_it_harms_nobody(
            damage in vec((any::<Index>(), any::<u8>()), 1..40),
            offset in 0u64..0x4000,
        ) {
            let own = Process { pid: std::process::id() };
            let memory = Memory::of(own).unwrap();
            let mappings = own.mappings().unwrap();
            let vdso = mappings.iter().find(|it| it.path == VDSO).unwrap();
            let length = usize::try_from(vdso.end - vdso.start).unwrap();
            let mut image = memory.bytes(vdso.start, length).unwrap();
            for (place, byte) in damage {
                // Most of what is read is at the beginning.
                let end = if byte % 2 == 0 { 1024 } else { length };
                image[place.index(end)] = byte;
            }
            let start = image.as_ptr() as u64;
            let first = Mapping { start, end: start + length as u64, ..vdso.clone() };
            if let Ok(Some(module)) = Module::read(own, &memory, &first) {
                let address = start.wrapping_add(offset);
                let _ = (module.can_unwind(address), module.runs_python_at(address));
                let _ = (module.function_called_at(address), module.unwound().is_some());
            }
        }
    }

    #[test]
    fn what_the_kernel_brings_is_an_image_too() {
        let own = Process { pid: std::process::id() };
        let memory = Memory::of(own).unwrap();
        let mappings = own.mappings().unwrap();
        let first = mappings.iter().find(|it| it.path == VDSO).unwrap();
        let module = Module::read(own, &memory, first).unwrap().unwrap();
        assert_eq!(module.library, "[vdso]");
        assert!(module.unwound().is_some());
    }
}
