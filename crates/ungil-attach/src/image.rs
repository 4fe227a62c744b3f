//! An ELF image in the memory of a process, and its dynamic symbols. The file may be another one by
//! now, after an upgrade, or lie in another container: memory is what the process runs.

use std::io;

use crate::memory::Memory;
use crate::process::Mapping;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// An image.
pub struct Image<'a> {
    memory: &'a Memory,
    /// What has to be added to the addresses that the file names.
    bias: u64,
    symbols: u64,
    names: u64,
    hash: u64,
}

/// A function or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it begins.
    pub address: u64,
    /// Its length in bytes, 0 if that is not told.
    pub size: u64,
}

impl<'a> Image<'a> {
    /// The image that begins at `mapping`. `None` if it is none, or has no GNU hash table.
    pub fn at(memory: &'a Memory, mapping: &Mapping) -> io::Result<Option<Self>> {
        let base = mapping.start;
        let head = memory.bytes(base, 64)?;
        // 64 bits, little-endian.
        if head[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
            return Ok(None);
        }
        let (offset, count) = (u64_at(&head, 32), u64::from(u16_at(&head, 56)));
        let headers = memory.bytes(base + offset, usize::from(u16_at(&head, 56)) * 56)?;
        let header = |index: u64| &headers[usize::try_from(index).unwrap_or(0) * 56..][..56];
        let all = || (0..count).map(header);
        let Some(first) = all().find(|it| u32_at(it, 0) == PT_LOAD) else { return Ok(None) };
        let bias = base.wrapping_sub(u64_at(first, 16) & !0xfff);
        let Some(dynamic) = all().find(|it| u32_at(it, 0) == PT_DYNAMIC) else { return Ok(None) };
        let mut image = Self { memory, bias, symbols: 0, names: 0, hash: 0 };
        let section = bias.wrapping_add(u64_at(dynamic, 16));
        let length = usize::try_from(u64_at(dynamic, 40)).unwrap_or(0).min(1 << 16);
        for entry in memory.bytes(section, length)?.chunks_exact(16) {
            // glibc relocates these in place, other linkers leave offsets.
            let value = u64_at(entry, 8);
            let address = if value < bias { bias + value } else { value };
            match u64_at(entry, 0) {
                0 => break,
                DT_SYMTAB => image.symbols = address,
                DT_STRTAB => image.names = address,
                DT_GNU_HASH => image.hash = address,
                _ => {}
            }
        }
        Ok((image.symbols != 0 && image.names != 0 && image.hash != 0).then_some(image))
    }

    /// What the image defines under this name.
    pub fn symbol(&self, name: &[u8]) -> io::Result<Option<Symbol>> {
        let memory = self.memory;
        let [buckets, first, blooms] = [0, 4, 8].map(|at| memory.u32(self.hash + at));
        let (buckets, first, blooms) = (u64::from(buckets?), first?, u64::from(blooms?));
        if buckets == 0 {
            return Ok(None);
        }
        let hash = gnu_hash(name);
        let bucket = self.hash + 16 + blooms * 8;
        let mut index = memory.u32(bucket + u64::from(hash) % buckets * 4)?;
        while index >= first {
            let chain = memory.u32(bucket + (buckets + u64::from(index - first)) * 4)?;
            if chain | 1 == hash | 1 {
                let entry = memory.bytes(self.symbols + u64::from(index) * 24, 24)?;
                let is_defined = u16_at(&entry, 6) != 0;
                if is_defined && memory.text(self.names + u64::from(u32_at(&entry, 0)))? == name {
                    let address = self.bias.wrapping_add(u64_at(&entry, 8));
                    return Ok(Some(Symbol { address, size: u64_at(&entry, 16) }));
                }
            }
            if chain & 1 == 1 {
                break;
            }
            index += 1;
        }
        Ok(None)
    }
}

fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use std::ffi::c_void;

    #[test]
    fn functions_of_libc_are_where_this_process_calls_them() {
        let own = Process { pid: std::process::id() };
        let memory = Memory::of(own).unwrap();
        let mappings = own.mappings().unwrap();
        let libc = mappings.iter().find(|it| it.file_name().starts_with(b"libc.so")).unwrap();
        let image = Image::at(&memory, libc).unwrap().unwrap();
        for (name, expected) in [
            (c"dlopen", libc::dlopen as *const c_void),
            (c"getpid", libc::getpid as *const c_void),
            (c"malloc", libc::malloc as *const c_void),
        ] {
            let symbol = image.symbol(name.to_bytes()).unwrap().unwrap();
            assert_eq!(symbol.address, expected as u64, "{name:?}");
            assert!(symbol.size > 0);
        }
        assert_eq!(image.symbol(b"no_such_function").unwrap(), None);
    }
}
