//! Reads a free-threaded interpreter of another process: what its threads are called, and where
//! they are. py-spy knows only builds whose objects are laid out as with a GIL.
//!
//! Nothing is stopped meanwhile, so what is read of a thread that runs may be a mixture of two
//! moments, or no longer there. A thread that sleeps changes nothing, and what is read of it is so.

mod code;
mod memory;
mod objects;
#[cfg(feature = "stacks")]
mod threads;

use code::Code;
use memory::Memory;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use ungil_core::debug_offsets::{DebugOffsets, WORDS};
use ungil_core::table::PlaceInCode;

use crate::record::Frame;

/// Code objects that are remembered.
const CODES: usize = 4_096;

/// The interpreter of one process.
pub struct FreeThreaded {
    memory: Memory,
    runtime: u64,
    offsets: DebugOffsets,
    codes: RefCell<HashMap<u64, Code>>,
    /// Address of the dict `threading._active`, once it was found.
    #[cfg(feature = "stacks")]
    active: RefCell<Option<u64>>,
}

impl Debug for FreeThreaded {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FreeThreaded")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

impl FreeThreaded {
    /// That of process `pid` whose `_PyRuntime` is at `runtime`; an error if it cannot be read, or is
    /// of a version that is not known.
    pub fn open(pid: u32, runtime: u64) -> io::Result<Self> {
        let memory = Memory::of(pid);
        let words: [u64; WORDS] = memory.words(runtime)?;
        let unknown = || {
            let minor = words[1] >> 16 & 0xff;
            io::Error::other(format!("Unsupported version of Python: 3.{minor}, free-threaded"))
        };
        let offsets = DebugOffsets::of(&words).ok_or_else(unknown)?;
        Ok(Self {
            memory,
            runtime,
            offsets,
            codes: RefCell::default(),
            #[cfg(feature = "stacks")]
            active: RefCell::default(),
        })
    }

    /// The version of Python: 3 and 13 is 3.13.
    #[cfg(feature = "stacks")]
    pub fn version(&self) -> (u64, u64) {
        (3, self.offsets.minor)
    }

    /// The frame that is at this place.
    pub fn frame(&self, place: PlaceInCode) -> io::Result<Frame> {
        self.frame_at(place.code(), place.instruction())
    }

    fn frame_at(&self, address: u64, instruction: Option<u32>) -> io::Result<Frame> {
        let mut codes = self.codes.borrow_mut();
        if codes.len() >= CODES && !codes.contains_key(&address) {
            codes.clear();
        }
        // Another one may have taken the place of one that is gone.
        let known = codes.get(&address).filter(|code| code.is_still_there(self));
        if let Some(code) = known {
            return Ok(code.frame(instruction));
        }
        let code = Code::read(self, address)?;
        let frame = code.frame(instruction);
        codes.insert(address, code);
        Ok(frame)
    }
}
