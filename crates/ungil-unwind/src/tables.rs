//! What an image in memory says of its functions: where each begins, and how it is left.
//!
//! They are read from the memory of the process, not from a file: that may be another one by now, lie
//! in another container, or be none (the vDSO).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use object::LittleEndian as LE;
use object::elf::{
    ET_EXEC, FileHeader64, PF_W, PF_X, PT_GNU_EH_FRAME, PT_LOAD, ProgramFlags, ProgramHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader};
use ungil_attach::memory::Memory;

/// An image has fewer program headers.
const MOST_HEADERS: usize = 128;
/// Larger tables are not read: those of the largest libraries there are have some 100 MiB.
const MOST_BYTES: u64 = 512 << 20;

/// The program headers of an image, and where it is.
pub struct Headers {
    /// What has to be added to the addresses that the file names.
    pub bias: u64,
    headers: Vec<ProgramHeader64<LE>>,
}

impl Headers {
    /// Those of the image that begins at `base`. `None` if there is none for this machine.
    pub fn read(memory: &Memory, base: u64) -> io::Result<Option<Self>> {
        let head = memory.bytes(base, size_of::<FileHeader64<LE>>())?;
        let Ok(header) = FileHeader64::<LE>::parse(&*head) else { return Ok(None) };
        if header.endian().is_err() || header.e_phentsize.get(LE) != 56 {
            return Ok(None);
        }
        let count = usize::from(header.e_phnum.get(LE)).min(MOST_HEADERS);
        let at = base.wrapping_add(header.e_phoff.get(LE));
        let bytes = memory.bytes(at, count * size_of::<ProgramHeader64<LE>>())?;
        let Ok((headers, _)) = object::pod::slice_from_bytes::<ProgramHeader64<LE>>(&bytes, count)
        else {
            return Ok(None);
        };
        let headers = headers.to_vec();
        let Some(first) = headers.iter().find(|it| it.p_type(LE) == PT_LOAD) else {
            return Ok(None);
        };
        let is_fixed = header.e_type.get(LE) == ET_EXEC;
        let first = first.p_vaddr(LE) & !0xfff;
        let bias = if is_fixed { 0 } else { base.wrapping_sub(first) };
        Ok(Some(Self { bias, headers }))
    }

    fn loaded(&self, flags: ProgramFlags) -> impl Iterator<Item = Range<u64>> {
        let has = move |it: &&ProgramHeader64<LE>| {
            it.p_type(LE) == PT_LOAD && it.p_flags(LE).0 & flags.0 != 0
        };
        self.headers.iter().filter(has).map(|it| self.range(it))
    }

    fn range(&self, header: &ProgramHeader64<LE>) -> Range<u64> {
        let start = self.bias.wrapping_add(header.p_vaddr(LE));
        start..start.saturating_add(header.p_memsz(LE))
    }

    /// Its code.
    pub fn code(&self) -> Vec<Range<u64>> {
        self.loaded(PF_X).collect()
    }

    /// What it may have changed, or the loader for it.
    pub fn data(&self) -> Vec<Range<u64>> {
        self.loaded(PF_W).collect()
    }

    /// All of it.
    pub fn whole(&self) -> Range<u64> {
        let all = || self.loaded(ProgramFlags(u32::MAX));
        all().map(|it| it.start).min().unwrap_or(0)..all().map(|it| it.end).max().unwrap_or(0)
    }
}

/// The tables of an image. Addresses in them are those of the file.
#[derive(Clone, Default)]
pub struct Tables {
    /// `.eh_frame_hdr`.
    index: (u64, Arc<[u8]>),
    /// `.eh_frame`, and what is behind it.
    frames: (u64, Arc<[u8]>),
}

impl Tables {
    /// Reads them. `None` if the image has none.
    pub fn read(memory: &Memory, headers: &Headers) -> io::Result<Option<Self>> {
        let Headers { bias, headers: all } = headers;
        let Some(found) = all.iter().find(|it| it.p_type(LE) == PT_GNU_EH_FRAME) else {
            return Ok(None);
        };
        let at = found.p_vaddr(LE);
        let Some(index) = copy(memory, *bias, at, found.p_memsz(LE))? else { return Ok(None) };
        let bases = BaseAddresses::default().set_eh_frame_hdr(at);
        let header = EhFrameHdr::new(&index, LittleEndian).parse(&bases, 8);
        let Ok(gimli::Pointer::Direct(start)) = header.map(|it| it.eh_frame_ptr()) else {
            return Ok(None);
        };
        let holds = |it: &&ProgramHeader64<LE>| {
            it.p_type(LE) == PT_LOAD && (it.p_vaddr(LE)..end_of(it)).contains(&start)
        };
        let Some(around) = all.iter().find(holds) else { return Ok(None) };
        let Some(frames) = copy(memory, *bias, start, end_of(around) - start)? else {
            return Ok(None);
        };
        Ok(Some(Self { index: (at, index), frames: (start, frames) }))
    }

    /// As the unwinder takes them.
    pub fn sections(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        let Self { index, frames } = self.clone();
        let range = |(at, bytes): &(u64, Arc<[u8]>)| *at..*at + bytes.len() as u64;
        ExplicitModuleSectionInfo {
            eh_frame_svma: Some(range(&frames)),
            eh_frame: Some(frames.1),
            eh_frame_hdr_svma: Some(range(&index)),
            eh_frame_hdr: Some(index.1),
            ..Default::default()
        }
    }

    /// The function, or the part of one, that `address` is in.
    pub fn function_at(&self, address: u64) -> Option<Range<u64>> {
        let bases =
            BaseAddresses::default().set_eh_frame_hdr(self.index.0).set_eh_frame(self.frames.0);
        let index = EhFrameHdr::new(&self.index.1, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(&self.frames.1, LittleEndian);
        // Not by `fde_for_address`: an index that names a place before all frames overflows there.
        let named = index.table()?.lookup(address, &bases).ok()?.direct().ok()?;
        let offset = usize::try_from(named.checked_sub(self.frames.0)?).ok()?;
        let entry = frames
            .fde_from_offset(&bases, offset.into(), |it, bases, offset| {
                it.cie_from_offset(bases, offset)
            })
            .ok()
            .filter(|it| it.contains(address))?;
        Some(entry.initial_address()..entry.end_address())
    }
}

fn end_of(header: &ProgramHeader64<LE>) -> u64 {
    header.p_vaddr(LE).saturating_add(header.p_filesz(LE))
}

fn copy(memory: &Memory, bias: u64, at: u64, length: u64) -> io::Result<Option<Arc<[u8]>>> {
    if length > MOST_BYTES {
        return Ok(None);
    }
    let length = usize::try_from(length).unwrap_or(0);
    Ok(Some(memory.bytes(bias.wrapping_add(at), length)?.into()))
}
