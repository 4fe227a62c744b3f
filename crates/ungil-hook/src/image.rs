//! One loaded ELF image and the table through which it calls other images.
//!
//! The dynamic linker has mapped and relocated every image before any constructor runs, so the
//! in-memory dynamic section is all that is needed; no file is read.

#![expect(clippy::cast_possible_truncation, reason = "addresses of 64-bit ELF are of 64 bits")]

use libc::{Elf64_Rela, Elf64_Sym, c_char, c_int, c_void};
use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Entry of the dynamic section (`Elf64_Dyn`, which the libc crate does not define).
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// The public part of glibc's `struct link_map` (`<link.h>`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
}

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// `dladdr1` flags of glibc's `<dlfcn.h>`.
const RTLD_DL_SYMENT: c_int = 1;
const RTLD_DL_LINKMAP: c_int = 2;

/// Dynamic section tags of the System V ABI.
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// Relocations that fill a slot with the address of a function: the PLT's, and those of images
/// built with `-fno-plt`.
#[cfg(target_arch = "x86_64")]
const FUNCTION_SLOTS: [u64; 2] = [7, 6]; // R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT
#[cfg(target_arch = "aarch64")]
const FUNCTION_SLOTS: [u64; 2] = [1026, 1025]; // R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT

/// The address of the dynamic symbol `name` in the default search order.
pub fn symbol(name: &CStr) -> Option<*const c_void> {
    // SAFETY: `name` is NUL-terminated; the default handle is always valid.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}

/// Size in bytes of the object that the dynamic symbol at `address` names.
pub fn size_of_symbol(address: *const c_void) -> Option<usize> {
    let extra: *mut c_void = look_up(address, RTLD_DL_SYMENT)?;
    // SAFETY: for RTLD_DL_SYMENT dladdr1 stores a pointer to a symbol of a loaded image, or null,
    // which `look_up` has turned into None.
    usize::try_from(unsafe { (*extra.cast::<Elf64_Sym>()).st_size }).ok()
}

fn look_up(address: *const c_void, flags: c_int) -> Option<*mut c_void> {
    // SAFETY: all fields of Dl_info are pointers, for which null is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut extra = std::ptr::null_mut();
    // SAFETY: both out-pointers are valid for the call; any address may be asked for.
    let found = unsafe { dladdr1(address, &raw mut info, &raw mut extra, flags) };
    (found != 0 && !extra.is_null()).then_some(extra)
}

/// A loaded image.
pub struct Image {
    base: usize,
    symbols: *const Elf64_Sym,
    strings: *const c_char,
    tables: [(usize, usize); 2],
}

impl Image {
    /// The image that contains `address`.
    pub fn containing(address: *const c_void) -> Option<Self> {
        let map: *const LinkMap = look_up(address, RTLD_DL_LINKMAP)?.cast();
        // SAFETY: for RTLD_DL_LINKMAP dladdr1 stores the link map of a loaded image, which stays
        // as long as the image does, and an interpreter is never unloaded.
        let (base, mut entry) = unsafe { ((*map).base, (*map).dynamic) };
        let (mut jmprel, mut jmprel_size, mut rela, mut rela_size) = (0, 0, 0, 0);
        let (mut symbols, mut strings) = (0, 0);
        loop {
            // SAFETY: the dynamic section is an array that ends with DT_NULL.
            let (tag, value) = unsafe { ((*entry).tag, usize::try_from((*entry).value).ok()?) };
            match tag {
                DT_NULL => break,
                DT_PLTRELSZ => jmprel_size = value,
                DT_RELASZ => rela_size = value,
                DT_JMPREL => jmprel = absolute(base, value),
                DT_RELA => rela = absolute(base, value),
                DT_SYMTAB => symbols = absolute(base, value),
                DT_STRTAB => strings = absolute(base, value),
                _ => {}
            }
            // SAFETY: not yet at the end of the array.
            entry = unsafe { entry.add(1) };
        }
        (symbols != 0 && strings != 0).then_some(Self {
            base,
            symbols: symbols as *const Elf64_Sym,
            strings: strings as *const c_char,
            tables: [(jmprel, jmprel_size), (rela, rela_size)],
        })
    }

    /// Whether this image calls the function `name` of another one.
    pub fn calls(&self, name: &CStr) -> bool {
        self.slots(name).next().is_some()
    }

    /// Makes this image's calls of the function `name` go to `replacement`. Calls that other
    /// images make are not touched.
    pub fn redirect(&self, name: &CStr, replacement: *const c_void) {
        let read_only = read_only_pages(self.base);
        for slot in self.slots(name) {
            write_slot(slot, replacement as usize, read_only.contains(&slot));
        }
    }

    /// Prepares the same for a later moment. Where `later` has no room it is done now.
    pub fn redirect_later(&self, name: &CStr, replacement: *const c_void, later: &Later) {
        let read_only = read_only_pages(self.base);
        for slot in self.slots(name) {
            let is_protected = read_only.contains(&slot);
            if !later.add(slot, replacement as usize, is_protected) {
                write_slot(slot, replacement as usize, is_protected);
            }
        }
    }

    /// The addresses that hold where the function `name` is.
    fn slots(&self, name: &CStr) -> impl Iterator<Item = usize> {
        let tables = self.tables.into_iter().filter(|&(start, _)| start != 0);
        tables
            .flat_map(|(start, bytes)| {
                let count = bytes / size_of::<Elf64_Rela>();
                // SAFETY: the dynamic section says that `bytes` of relocations begin at `start`.
                unsafe { std::slice::from_raw_parts(start as *const Elf64_Rela, count) }
            })
            .filter(move |relocation| {
                FUNCTION_SLOTS.contains(&(relocation.r_info & 0xffff_ffff))
                    && self.symbol_name(relocation.r_info >> 32) == Some(name)
            })
            .map(|relocation| self.base.wrapping_add(relocation.r_offset as usize))
    }

    fn symbol_name(&self, index: u64) -> Option<&CStr> {
        let index = usize::try_from(index).ok().filter(|&index| index != 0)?;
        // SAFETY: relocations refer to entries of the image's own symbol table, whose names lie
        // in its string table.
        Some(unsafe {
            let name = (*self.symbols.add(index)).st_name as usize;
            CStr::from_ptr(self.strings.add(name))
        })
    }
}

/// glibc relocates the pointers of the dynamic section in place, other linkers leave offsets.
fn absolute(base: usize, value: usize) -> usize {
    if value < base { base + value } else { value }
}

/// The pages that the dynamic linker made read-only after it relocated the image at `base`
/// (`PT_GNU_RELRO`); empty if there are none.
fn read_only_pages(base: usize) -> Range<usize> {
    struct Search {
        base: usize,
        found: Range<usize>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid info and the pointer that it was given.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if usize::try_from(info.dlpi_addr) != Ok(search.base) {
            return 0;
        }
        // SAFETY: the linker's own description of a loaded image.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        if let Some(relro) = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO) {
            let start = search.base.wrapping_add(relro.p_vaddr as usize);
            let end = start.wrapping_add(relro.p_memsz as usize);
            // The linker protects whole pages only: the last one may hold writable data too.
            search.found = page_of(start)..page_of(end);
        }
        1
    }
    let mut search = Search { base, found: 0..0 };
    // SAFETY: `look` has the required signature and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// Redirections that have been prepared and may be made in a hooked call.
pub struct Later {
    prepared: [Redirection; 8],
    count: AtomicUsize,
}

struct Redirection {
    slot: AtomicUsize,
    to: AtomicUsize,
    is_protected: AtomicBool,
}

impl Redirection {
    const fn none() -> Self {
        Self {
            slot: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            is_protected: AtomicBool::new(false),
        }
    }
}

impl Later {
    pub const fn new() -> Self {
        Self { prepared: [const { Redirection::none() }; 8], count: AtomicUsize::new(0) }
    }

    /// Makes them, and says whether that was possible. For one thread at a time.
    pub fn redirect(&self) -> bool {
        self.prepared[..self.count.load(Ordering::Acquire)].iter().all(|redirection| {
            let Redirection { slot, to, is_protected } = redirection;
            let (slot, to) = (slot.load(Ordering::Relaxed), to.load(Ordering::Relaxed));
            write_slot(slot, to, is_protected.load(Ordering::Relaxed))
        })
    }

    /// `false` if there is no room.
    fn add(&self, slot: usize, to: usize, is_protected: bool) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let Some(free) = self.prepared.get(count) else { return false };
        free.slot.store(slot, Ordering::Relaxed);
        free.to.store(to, Ordering::Relaxed);
        free.is_protected.store(is_protected, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
        true
    }
}

/// Stores `value` at the address `slot`, and says whether that was possible; a protected page is
/// made writable meanwhile.
fn write_slot(slot: usize, value: usize, is_protected: bool) -> bool {
    let page = page_of(slot) as *mut c_void;
    let protect = |protection| {
        // SAFETY: the page belongs to the relocated data of a loaded image, never to code.
        !is_protected || unsafe { libc::mprotect(page, page_size(), protection) } == 0
    };
    if !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return false;
    }
    // SAFETY: a relocation slot is an aligned, mapped, now writable pointer; other threads only
    // load it as a whole word, in their calls.
    unsafe { AtomicUsize::from_ptr(slot as *mut usize) }.store(value, Ordering::Release);
    protect(libc::PROT_READ);
    true
}

/// The page that contains `address`.
fn page_of(address: usize) -> usize {
    address & !(page_size() - 1)
}

fn page_size() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
