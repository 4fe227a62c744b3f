//! The names of functions, as the file of an image has them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use object::LittleEndian as LE;
use object::elf::{
    FileHeader64, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC,
    STT_NOTYPE, SectionType, Sym64,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef, SectionIndex};

/// How the function begins with which an extension module is made (PEP 489).
const MODULE: &[u8] = b"PyInit_";
/// Larger tables are not read.
const MOST_BYTES: u64 = 512 << 20;
/// A longer name is cut.
const LONGEST: usize = 200;
/// Longer ones are no names that a person wrote; they are not taken apart.
const LONGEST_RAW: usize = 8192;
/// Symbols before the one that is searched for, which may contain the address instead: functions
/// with several entries overlap.
const OVERLAPPING: usize = 8;

/// The functions of an image by their addresses in the file.
#[derive(Default)]
pub struct Symbols {
    entries: Vec<Entry>,
    names: Vec<u8>,
    /// Whether Python can import the image.
    is_extension: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    size: u64,
    /// Where in `names` its name begins.
    name: usize,
    is_local: bool,
}

impl Symbols {
    /// Those of a file, if it begins with the same bytes as the image in memory; else none.
    pub fn of_file(path: &Path, beginning: &[u8]) -> Self {
        let open = || {
            let mut file = File::open(path).ok().filter(is_regular)?;
            let mut head = vec![0; beginning.len()];
            file.read_exact(&mut head).ok()?;
            (head == beginning).then(|| Self::of(&ReadCache::new(file)))
        };
        open().unwrap_or_default()
    }

    /// Those of an image that is all there.
    pub fn of<'data, R: ReadRef<'data>>(data: R) -> Self {
        let mut symbols = Self::default();
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            symbols.add(data, kind);
        }
        // Of several names of one function the first one is told: a global one, not a part of it.
        symbols.entries.sort_by_key(|it| (it.address, it.is_local, it.name));
        symbols
    }

    fn add<'data, R: ReadRef<'data>>(&mut self, data: R, kind: SectionType) -> Option<()> {
        let header = FileHeader64::<LE>::parse(data).ok()?;
        let sections = header.sections(LE, data).ok()?;
        let table = sections.iter().find(|it| it.sh_type(LE) == kind)?;
        let strings = sections.section(SectionIndex(table.sh_link(LE) as usize)).ok()?;
        if table.sh_size(LE).max(strings.sh_size(LE)) > MOST_BYTES {
            return None;
        }
        let found: &[Sym64<LE>] = table.data_as_array(LE, data).ok()?;
        let (names, strings) = (self.names.len(), strings.data(LE, data).ok()?);
        self.names.extend_from_slice(strings);
        if kind == SHT_DYNSYM {
            self.is_extension = strings.windows(MODULE.len()).any(|it| it == MODULE);
        }
        let functions = found.iter().filter(|it| {
            let is_code = match it.st_type() {
                STT_FUNC | STT_GNU_IFUNC => true,
                // What is written in assembler may say no more.
                STT_NOTYPE => it.st_size(LE) > 0 || it.st_bind() != STB_LOCAL,
                _ => false,
            };
            is_code && it.st_shndx(LE) != SHN_UNDEF && it.st_value(LE) != 0
        });
        self.entries.extend(functions.map(|it| Entry {
            address: it.st_value(LE),
            size: it.st_size(LE),
            name: names + it.st_name(LE) as usize,
            is_local: it.st_bind() == STB_LOCAL,
        }));
        Some(())
    }

    /// Whether Python can import the image.
    pub fn is_extension(&self) -> bool {
        self.is_extension
    }

    /// The name of the function that contains `address`. Where a symbol does not tell its size, the
    /// function must begin with it; `begin` is where that is, if it is known.
    pub fn name_at(&self, address: u64, begin: Option<u64>) -> Option<String> {
        let behind = self.entries.partition_point(|it| it.address <= address);
        let before = &self.entries[..behind];
        let contains = |it: &&Entry| {
            let ends = it.address.saturating_add(it.size);
            address < ends || (it.size == 0 && begin == Some(it.address))
        };
        let last = before.iter().rev().take(OVERLAPPING).find(contains)?;
        let first = before.partition_point(|it| it.address < last.address);
        let name = before[first..].iter().find(contains).unwrap_or(last).name;
        let name = self.names.get(name..)?;
        let name = &name[..name.iter().position(|&byte| byte == 0)?];
        (!name.is_empty()).then(|| readable(name))
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|facts| facts.is_file())
}

/// A name as its programmer wrote it, without the types of arguments.
fn readable(name: &[u8]) -> String {
    let raw = String::from_utf8_lossy(name);
    // The name of a version is no part of it (`memcpy@@GLIBC_2.14`).
    let raw = raw.split_once('@').map_or(&*raw, |(name, _)| name);
    let whole = if raw.len() > LONGEST_RAW { None } else { demangled(raw) };
    let whole = whole.as_deref().unwrap_or(raw);
    whole.chars().take(LONGEST).collect()
}

fn demangled(raw: &str) -> Option<String> {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return Some(format!("{name:#}"));
    }
    if !raw.starts_with("_Z") {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(raw.as_bytes()).ok()?.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(entries: &[(u64, u64, &str, bool)]) -> Symbols {
        let mut symbols = Symbols::default();
        for &(address, size, name, is_local) in entries {
            let at = symbols.names.len();
            symbols.names.extend_from_slice(name.as_bytes());
            symbols.names.push(0);
            symbols.entries.push(Entry { address, size, name: at, is_local });
        }
        symbols.entries.sort_by_key(|it| (it.address, it.is_local, it.name));
        symbols
    }

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let known =
            symbols(&[(100, 20, "f", false), (200, 50, "outer", true), (210, 5, "in", true)]);
        let name = |address| known.name_at(address, None);
        assert_eq!(name(99), None);
        assert_eq!(name(100).as_deref(), Some("f"));
        assert_eq!(name(119).as_deref(), Some("f"));
        assert_eq!(name(120), None);
        assert_eq!(name(212).as_deref(), Some("in"));
        assert_eq!(name(249).as_deref(), Some("outer"));
        assert_eq!(name(250), None);
    }

    #[test]
    fn a_symbol_without_a_size_names_the_function_that_begins_with_it_and_no_other() {
        let known = symbols(&[(100, 0, "kernel", false)]);
        assert_eq!(known.name_at(5000, Some(100)).as_deref(), Some("kernel"));
        assert_eq!(known.name_at(5000, Some(4000)), None);
        assert_eq!(known.name_at(5000, None), None);
    }

    #[test]
    fn of_two_names_the_global_one_is_told() {
        let known = symbols(&[(100, 9, "alias.part.0", true), (100, 9, "f", false)]);
        assert_eq!(known.name_at(104, None).as_deref(), Some("f"));
    }

    #[test]
    fn names_are_told_as_they_were_written() {
        for (raw, name) in [
            ("sre_match", "sre_match"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN5numpy4sortEPdi", "numpy::sort"),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(readable(raw.as_bytes()), name);
        }
        assert_eq!(readable(&[b'x'; 10_000]).len(), LONGEST);
        assert_eq!(readable(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn a_file_that_is_not_what_the_memory_holds_has_no_symbols() {
        let own = std::env::current_exe().unwrap();
        let mut head = [0; 64];
        File::open(&own).unwrap().read_exact(&mut head).unwrap();
        assert!(!Symbols::of_file(&own, &head).entries.is_empty());
        head[63] ^= 1;
        assert!(Symbols::of_file(&own, &head).entries.is_empty());
        assert!(Symbols::of_file(Path::new("/dev/zero"), &[]).entries.is_empty());
        assert!(Symbols::of(&b"no ELF"[..]).entries.is_empty());
    }
}
