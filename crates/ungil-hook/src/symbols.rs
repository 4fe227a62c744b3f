//! The dynamic symbols of one loaded ELF image, found by name as the dynamic linker finds them.
//!
//! `dlsym` would do for images that every other one can see. One that was opened with
//! `RTLD_LOCAL` it finds only through a handle, and to get a handle is to wait for the linker's
//! lock, which another thread may hold while it waits for this one.

use libc::{Elf64_Sym, c_char};
use std::ffi::CStr;

/// `st_shndx` of a symbol that the image only refers to.
const SHN_UNDEF: u16 = 0;

/// Where an image keeps its symbols, and the tables to find them by. What it lacks is null.
#[derive(Clone, Copy)]
pub struct Symbols {
    /// `DT_SYMTAB`.
    pub entries: *const Elf64_Sym,
    /// `DT_STRTAB`.
    pub names: *const c_char,
    /// `DT_GNU_HASH`.
    pub gnu: *const u32,
    /// `DT_HASH`, which images for very old systems have instead.
    pub sysv: *const u32,
}

impl Symbols {
    /// The symbol `name`, if the image defines it.
    pub fn defined(&self, name: &CStr) -> Option<&Elf64_Sym> {
        let index =
            if self.gnu.is_null() { self.by_sysv_hash(name) } else { self.by_gnu_hash(name) }?;
        // SAFETY: the hash tables hold indices of the symbol table.
        let symbol = unsafe { &*self.entries.wrapping_add(index) };
        (symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0).then_some(symbol)
    }

    /// The name of the symbol with this index; `None` for 0, which stands for no symbol.
    pub fn name(&self, index: usize) -> Option<&CStr> {
        if index == 0 {
            return None;
        }
        // SAFETY: whoever has an index of the symbol table has it from the image.
        let symbol = unsafe { &*self.entries.wrapping_add(index) };
        let name = self.names.wrapping_add(symbol.st_name as usize);
        // SAFETY: the names of symbols are NUL-terminated and lie in the image's string table.
        Some(unsafe { CStr::from_ptr(name) })
    }

    /// `DT_GNU_HASH`: number of buckets, index of the first hashed symbol, words and shift of a
    /// Bloom filter, the filter, the buckets, and a hash for each symbol whose lowest bit ends a
    /// chain (<https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html>).
    fn by_gnu_hash(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the table begins with four words, and `word` is used only for offsets that the
        // table's own numbers say are inside it.
        let word = |offset: usize| unsafe { *self.gnu.wrapping_add(offset) } as usize;
        let (buckets, first, filter_words) = (word(0), word(1), word(2));
        if buckets == 0 {
            return None;
        }
        let hash = gnu_hash(name);
        // The words of the filter are of 64 bits.
        let buckets_at = 4 + 2 * filter_words;
        let chains_at = buckets_at + buckets;
        let mut index = word(buckets_at + hash as usize % buckets);
        while index >= first {
            let found = word(chains_at + index - first);
            if found | 1 == hash as usize | 1 && self.name(index) == Some(name) {
                return Some(index);
            }
            if found & 1 == 1 {
                break;
            }
            index += 1;
        }
        None
    }

    /// `DT_HASH`: number of buckets, number of symbols, the buckets, and for each symbol the next
    /// one of its bucket (System V ABI, "Hash Table").
    fn by_sysv_hash(&self, name: &CStr) -> Option<usize> {
        if self.sysv.is_null() {
            return None;
        }
        // SAFETY: the table begins with two words, and `word` is used only for offsets that these
        // say are inside it.
        let word = |offset: usize| unsafe { *self.sysv.wrapping_add(offset) } as usize;
        let (buckets, symbols) = (word(0), word(1));
        if buckets == 0 {
            return None;
        }
        let mut index = word(2 + sysv_hash(name) as usize % buckets);
        while index != 0 && index < symbols {
            if self.name(index) == Some(name) {
                return Some(index);
            }
            index = word(2 + buckets + index);
        }
        None
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    let add = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(byte.into());
    name.to_bytes().iter().fold(5381, add)
}

fn sysv_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(0, |hash: u32, &byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let top = hash & 0xf000_0000;
        (hash ^ (top >> 24)) & !top
    })
}
