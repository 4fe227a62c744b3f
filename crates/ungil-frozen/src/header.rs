//! The first bytes of a file.

use ungil_heap::value::Cell;

use crate::cell;
use crate::{Error, Result};

/// With what each file begins.
pub const MAGIC: [u8; 8] = *b"ungil\0fz";
/// The version of the format that this code writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of a header.
pub const SIZE: usize = 128;
/// Where in it its own checksum is, which is of everything before.
const CHECKSUM: usize = SIZE - 4;

/// What a header says. All numbers are little-endian; what is not named is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole file.
    pub length: u64,
    /// The cell of the structure.
    pub root: Cell,
    /// The key of all hashes in the file.
    pub key: [u64; 2],
    /// Which file it is.
    pub uuid: u128,
    /// Where the schemas are, which is up to the end of the file.
    pub schemas: u64,
    /// How many there are.
    pub schema_count: u32,
    /// The CRC-32 of the schemas.
    pub schema_checksum: u32,
    /// The CRC-32 of everything behind the header.
    pub checksum: u32,
}

impl Header {
    /// As it is written.
    #[must_use]
    pub fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(16, &self.length.to_le_bytes());
        put(24, &cell::bytes(self.root));
        put(40, &self.key[0].to_le_bytes());
        put(48, &self.key[1].to_le_bytes());
        put(56, &self.uuid.to_le_bytes());
        put(72, &self.schemas.to_le_bytes());
        put(80, &self.schema_count.to_le_bytes());
        put(84, &self.schema_checksum.to_le_bytes());
        put(88, &self.checksum.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What the first bytes of a file say.
    ///
    /// # Errors
    /// For what is no frozen file, one of another version, and one that is damaged or cut off.
    pub fn read(file: &[u8]) -> Result<Self> {
        if !file.starts_with(&MAGIC) {
            return Err(Error::Foreign);
        }
        let length = file.len() as u64;
        let Some(bytes) = file.first_chunk::<SIZE>() else {
            return Err(Error::Length { found: length, expected: SIZE as u64 });
        };
        let word = |at: usize| bytes[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        let half = |at: usize| bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        if half(8) != VERSION {
            return Err(Error::Version { found: half(8), known: VERSION });
        }
        if half(CHECKSUM) != crc32fast::hash(&bytes[..CHECKSUM]) {
            return Err(Error::Damaged("the checksum of its header is wrong"));
        }
        let header = Self {
            length: word(16),
            root: Cell(word(24), word(32)),
            key: [word(40), word(48)],
            uuid: u128::from(word(64)) << 64 | u128::from(word(56)),
            schemas: word(72),
            schema_count: half(80),
            schema_checksum: half(84),
            checksum: half(88),
        };
        if header.length != length {
            return Err(Error::Length { found: length, expected: header.length });
        }
        Ok(header)
    }
}
