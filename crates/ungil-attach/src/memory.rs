//! The memory of a process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::process::Process;

/// Its memory, as far as it may be read and written.
pub struct Memory(File);

impl Memory {
    /// That of a process.
    pub fn of(process: Process) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Ok(Self(options.read(true).write(true).open(process.folder().join("mem"))?))
    }

    /// Fills `bytes` with what is at `address`.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, address)
    }

    /// Fills `bytes` as far as there is memory from `address` on, and says how far.
    pub fn up_to(&self, address: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(bytes, address)
    }

    /// As many bytes.
    pub fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// A number of 4 bytes.
    pub fn u32(&self, address: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// What is at `address` up to a NUL, at most 256 bytes.
    pub fn text(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 256];
        let length = self.0.read_at(&mut bytes, address)?;
        let end = bytes[..length].iter().position(|&byte| byte == 0).unwrap_or(length);
        Ok(bytes[..end].to_vec())
    }

    /// Writes `bytes` there.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }
}
