//! The memory of another process.

use std::io;

/// The memory of a process, which may be read as long as the platform lets it.
pub struct Memory {
    pid: libc::pid_t,
}

impl Memory {
    pub fn of(pid: u32) -> Self {
        Self { pid: libc::pid_t::try_from(pid).unwrap_or(-1) }
    }

    /// Copies what is at `address`, all of it.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let length = into.len();
        let there = usize::try_from(address).map_err(|_| torn())? as *mut libc::c_void;
        let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: length };
        let there = libc::iovec { iov_base: there, iov_len: length };
        // SAFETY: one range on either side, of which ours is valid for writing; the kernel checks
        // that of the other process.
        let read =
            unsafe { libc::process_vm_readv(self.pid, &raw const here, 1, &raw const there, 1, 0) };
        match usize::try_from(read) {
            Ok(read) if read == length => Ok(()),
            Ok(_) => Err(torn()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// The words at `address`.
    pub fn words<const COUNT: usize>(&self, address: u64) -> io::Result<[u64; COUNT]> {
        let mut bytes = vec![0; COUNT * 8];
        self.read(address, &mut bytes)?;
        let mut words = [0; COUNT];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        Ok(words)
    }

    /// The word at `address`.
    pub fn word(&self, address: u64) -> io::Result<u64> {
        self.words::<1>(address).map(|[word]| word)
    }

    /// The four bytes at `address`.
    pub fn half_word(&self, address: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Some bytes at `address`.
    pub fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }
}

/// What was read makes no sense: it changed meanwhile.
pub fn torn() -> io::Error {
    io::Error::other("its data changed while it was read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_an_error() {
        let memory = Memory::of(std::process::id());
        let there = [7_u64, 9];
        let address = &raw const there as u64;
        assert_eq!(memory.words::<2>(address).unwrap(), there);
        assert_eq!(memory.word(address + 8).unwrap(), 9);
        assert_eq!(memory.half_word(address).unwrap(), 7);
        assert_eq!(memory.bytes(address, 1).unwrap(), [7]);
        assert_eq!(memory.word(8).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
