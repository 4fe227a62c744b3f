//! One loaded ELF image and the table through which it calls other images.
//!
//! The dynamic linker has mapped and relocated every image before any code of it runs, so the
//! in-memory headers are all that is needed; no file is read.

#![expect(clippy::cast_possible_truncation, reason = "addresses of 64-bit ELF are of 64 bits")]

use crate::redirection::{self, Redirections};
use crate::symbols::Symbols;
use libc::{Elf64_Phdr, Elf64_Rela, c_int, c_void, dl_phdr_info};
use std::ffi::CStr;
use std::ops::{ControlFlow, Range};
use std::ptr::null;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ungil_core::table::store_text;

/// Entry of the dynamic section (`Elf64_Dyn`, which the libc crate does not define).
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// Dynamic section tags of the System V ABI, and GNU's for its own hash table.
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// Relocations that fill a slot with the address of a function: the PLT's, and those of images
/// built with `-fno-plt`.
#[cfg(target_arch = "x86_64")]
const FUNCTION_SLOTS: [u64; 2] = [7, 6]; // R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT
#[cfg(target_arch = "aarch64")]
const FUNCTION_SLOTS: [u64; 2] = [1026, 1025]; // R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT

/// How often images have been added to this process and taken away.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Since its start.
    pub added: u64,
    /// By `dlclose`.
    pub removed: u64,
}

/// A loaded image. It must not be used once the image may have been unloaded.
#[derive(Clone)]
pub struct Image {
    base: usize,
    symbols: Symbols,
    relocations: [(usize, usize); 2],
    /// The pages that the dynamic linker made read-only after it relocated the image.
    read_only: Range<usize>,
}

/// What the dynamic symbol of an image stands for.
#[derive(Clone, Copy)]
pub struct Symbol {
    /// Where it is.
    pub address: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// The first image for which `look` returns something, with what it returned. The program itself
/// comes first, then libraries in the order in which they were loaded.
///
/// No image can be added or removed meanwhile.
pub fn find<T>(mut look: impl FnMut(Image) -> Option<T>) -> Option<T> {
    let mut found = None;
    each(|info| {
        found = Image::new(info).and_then(&mut look);
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// The program itself.
pub fn program() -> Option<Image> {
    let mut found = None;
    each(|info| {
        found = Image::new(info);
        ControlFlow::Break(())
    });
    found
}

/// Stores the file of the extension module that was loaded last, if there is one: an image that
/// defines the function by which an import begins (`PyInit_` and the name of its file).
pub fn last_extension(words: &[AtomicU64]) {
    each(|info| {
        // SAFETY: the linker's own description has the file of the image, NUL-terminated.
        let file = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let name = name.split(|&byte| byte == b'.').next().unwrap_or_default();
        let (mut function, prefix) = ([0; 256], b"PyInit_");
        let length = prefix.len() + name.len();
        if !name.is_empty() && length < function.len() {
            function[..prefix.len()].copy_from_slice(prefix);
            function[prefix.len()..length].copy_from_slice(name);
            if let Ok(function) = CStr::from_bytes_until_nul(&function)
                && Image::new(info).is_some_and(|image| image.symbol(function).is_some())
            {
                store_text(words, &file[file.len().saturating_sub(words.len() * 8 - 1)..]);
            }
        }
        ControlFlow::Continue(())
    });
}

/// How often images have come and gone so far. Cheap: it looks at one image.
pub fn changes() -> Changes {
    let mut changes = Changes::default();
    each(|info| {
        changes = Changes { added: info.dlpi_adds, removed: info.dlpi_subs };
        ControlFlow::Break(())
    });
    changes
}

/// Calls `look` for the images of this process until it breaks off.
///
/// The dynamic linker keeps other threads from adding and removing images meanwhile. It does so
/// by a lock that is held for moments only, also while an image runs its constructors.
fn each(mut look: impl FnMut(&dl_phdr_info) -> ControlFlow<()>) {
    unsafe extern "C" fn call<F: FnMut(&dl_phdr_info) -> ControlFlow<()>>(
        info: *mut dl_phdr_info,
        _: usize,
        look: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid info.
        let info = unsafe { &*info };
        // SAFETY: it passes the pointer that it was given, which is that of an `F` that nobody else
        // refers to.
        let look = unsafe { &mut *look.cast::<F>() };
        c_int::from(look(info).is_break())
    }
    fn with_type<F: FnMut(&dl_phdr_info) -> ControlFlow<()>>(look: &mut F) {
        // SAFETY: `call` has the required signature, and `look` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(call::<F>), std::ptr::from_mut(look).cast()) };
    }
    with_type(&mut look);
}

impl Image {
    /// The image that the dynamic linker describes so, if it has dynamic symbols.
    fn new(info: &dl_phdr_info) -> Option<Self> {
        let base = info.dlpi_addr as usize;
        // SAFETY: the linker's own description of a loaded image.
        let headers: &[Elf64_Phdr] =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let part = |kind| headers.iter().find(|header| header.p_type == kind);
        let at = |header: &Elf64_Phdr| base.wrapping_add(header.p_vaddr as usize);
        let mut entry = at(part(libc::PT_DYNAMIC)?) as *const Dynamic;
        let (mut jmprel, mut jmprel_size, mut rela, mut rela_size) = (0, 0, 0, 0);
        let mut symbols = Symbols { entries: null(), names: null(), gnu: null(), sysv: null() };
        loop {
            // SAFETY: the dynamic section is an array that ends with DT_NULL.
            let Dynamic { tag, value } = unsafe { entry.read() };
            let value = value as usize;
            match tag {
                DT_NULL => break,
                DT_PLTRELSZ => jmprel_size = value,
                DT_RELASZ => rela_size = value,
                DT_JMPREL => jmprel = absolute(base, value),
                DT_RELA => rela = absolute(base, value),
                DT_SYMTAB => symbols.entries = absolute(base, value) as *const _,
                DT_STRTAB => symbols.names = absolute(base, value) as *const _,
                DT_GNU_HASH => symbols.gnu = absolute(base, value) as *const _,
                DT_HASH => symbols.sysv = absolute(base, value) as *const _,
                _ => {}
            }
            // SAFETY: not yet at the end of the array.
            entry = unsafe { entry.add(1) };
        }
        let read_only = part(libc::PT_GNU_RELRO).map_or(0..0, |header| {
            // The linker protects whole pages only: the last one may hold writable data too.
            redirection::page_of(at(header))
                ..redirection::page_of(at(header).wrapping_add(header.p_memsz as usize))
        });
        let relocations = [(jmprel, jmprel_size), (rela, rela_size)];
        let is_usable = !symbols.entries.is_null() && !symbols.names.is_null();
        is_usable.then_some(Self { base, symbols, relocations, read_only })
    }

    /// What this image calls `name`, if it defines it.
    pub fn symbol(&self, name: &CStr) -> Option<Symbol> {
        self.symbols.defined(name).map(|symbol| Symbol {
            address: self.base.wrapping_add(symbol.st_value as usize),
            size: symbol.st_size as usize,
        })
    }

    /// Whether this image calls the function `name` of another one.
    pub fn calls(&self, name: &CStr) -> bool {
        self.slots(name).next().is_some()
    }

    /// Whether this image's calls of the function `name` go to `replacement`.
    pub fn leads(&self, name: &CStr, replacement: *const c_void) -> bool {
        self.slots(name).any(|slot| {
            // SAFETY: a relocation slot is an aligned, mapped pointer.
            unsafe { AtomicUsize::from_ptr(slot as *mut usize) }.load(Ordering::Relaxed)
                == replacement as usize
        })
    }

    /// Makes this image's calls of the function `name` go to `replacement`. Calls that other
    /// images make are not touched.
    pub fn redirect(&self, name: &CStr, replacement: *const c_void) {
        for slot in self.slots(name) {
            redirection::MADE.make(slot, replacement as usize, self.read_only.contains(&slot));
        }
    }

    /// Prepares the same for a later moment. Where `later` has no room it is done now.
    pub fn redirect_later(&self, name: &CStr, replacement: *const c_void, later: &Redirections) {
        for slot in self.slots(name) {
            let is_protected = self.read_only.contains(&slot);
            if !later.add(slot, replacement as usize, is_protected) {
                redirection::MADE.make(slot, replacement as usize, is_protected);
            }
        }
    }

    /// The addresses that hold where the function `name` is.
    fn slots(&self, name: &CStr) -> impl Iterator<Item = usize> {
        let tables = self.relocations.into_iter().filter(|&(start, _)| start != 0);
        tables
            .flat_map(|(start, bytes)| {
                let count = bytes / size_of::<Elf64_Rela>();
                // SAFETY: the dynamic section says that `bytes` of relocations begin at `start`.
                unsafe { std::slice::from_raw_parts(start as *const Elf64_Rela, count) }
            })
            .filter(move |relocation| {
                FUNCTION_SLOTS.contains(&(relocation.r_info & 0xffff_ffff))
                    && self.symbols.name((relocation.r_info >> 32) as usize) == Some(name)
            })
            .map(|relocation| self.base.wrapping_add(relocation.r_offset as usize))
    }
}

/// glibc relocates the pointers of the dynamic section in place, other linkers leave offsets.
fn absolute(base: usize, value: usize) -> usize {
    if value < base { base + value } else { value }
}
