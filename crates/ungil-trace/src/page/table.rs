//! Integers in columns, deflated: what a browser reads with a `DecompressionStream` and no more.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::io::{self, Write};

/// The largest integer that a browser's numbers can tell from its neighbours.
pub(super) const LARGEST: u64 = (1 << 53) - 1;
/// From this length on a plane gets statistics of its own.
const OWN_STATISTICS: usize = 2_048;
/// Of the 9 levels of deflate: above it, noise costs time and gets no smaller.
const LEVEL: u32 = 6;

/// Deflated bytes, base64 of which stands in the page.
pub(super) type Bytes = Box<[u8]>;

/// A block by its number.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Block {
    pub(super) block: usize,
}

/// A block of columns.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Table {
    pub(super) block: usize,
    pub(super) rows: usize,
    /// Name and bytes of each value.
    pub(super) columns: Vec<(&'static str, usize)>,
}

/// A table that has no number yet.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) rows: usize,
    pub(super) columns: Vec<(&'static str, usize)>,
    pub(super) bytes: Bytes,
}

/// The blocks of a page, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Blocks(pub(super) Vec<Bytes>);

impl Blocks {
    /// Numbers these bytes.
    pub(super) fn add(&mut self, bytes: Bytes) -> Block {
        self.0.push(bytes);
        Block { block: self.0.len() - 1 }
    }

    /// Numbers a table.
    pub(super) fn add_table(&mut self, packed: Packed) -> Table {
        let Packed { rows, columns, bytes } = packed;
        Table { block: self.add(bytes).block, rows, columns }
    }

    /// Writes `value` as JSON.
    pub(super) fn add_json(&mut self, value: &impl Serialize) -> io::Result<Block> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
        serde_json::to_writer(&mut encoder, value)?;
        Ok(self.add(encoder.finish()?.into()))
    }

    /// How many characters they take in the page.
    pub(super) fn characters(&self) -> usize {
        self.0.iter().map(|bytes| characters(bytes.len())).sum()
    }
}

/// How many characters so many bytes take in the page, with the element around them.
pub(super) const fn characters(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4 + 80
}

/// Deflates columns of one length. Values above [`LARGEST`] become that.
pub(super) fn pack(columns: &[(&'static str, &[u64])]) -> Packed {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    let mut widths = Vec::with_capacity(columns.len());
    let mut plane = Vec::with_capacity(rows);
    for &(name, values) in columns {
        let largest = values.iter().copied().max().unwrap_or(0).min(LARGEST);
        let width = (64 - largest.leading_zeros() as usize).div_ceil(8);
        widths.push((name, width));
        for byte in 0..width {
            plane.clear();
            plane.extend(values.iter().map(|&value| value.min(LARGEST).to_le_bytes()[byte]));
            encoder.write_all(&plane).expect(IN_MEMORY);
            if rows >= OWN_STATISTICS {
                encoder.flush().expect(IN_MEMORY);
            }
        }
    }
    Packed { rows, columns: widths, bytes: encoder.finish().expect(IN_MEMORY).into() }
}

const IN_MEMORY: &str = "writing into memory does not fail";

#[cfg(test)]
pub(super) fn unpack(packed: &Packed) -> Vec<Vec<u64>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(&packed.bytes[..]).read_to_end(&mut bytes).unwrap();
    let mut planes = bytes.chunks_exact(packed.rows.max(1));
    let columns = packed.columns.iter().map(|&(_, width)| {
        let mut values = vec![0u64; packed.rows];
        for byte in 0..width {
            let plane = planes.next().unwrap();
            values
                .iter_mut()
                .zip(plane)
                .for_each(|(it, &part)| *it |= u64::from(part) << (8 * byte));
        }
        values
    });
    let columns = columns.collect();
    assert!(planes.next().is_none(), "nothing follows the last plane");
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked_the_same(
            rows in prop::collection::vec([0..=LARGEST, 0..=3, 0..=70_000, 0..=0], 0..5_000),
        ) {
            let columns: Vec<Vec<u64>> =
                (0..4).map(|column| rows.iter().map(|row| row[column]).collect()).collect();
            let names = ["a", "b", "c", "d"];
            let named: Vec<_> =
                names.into_iter().zip(&columns).map(|(name, values)| (name, &values[..])).collect();
            prop_assert_eq!(unpack(&pack(&named)), columns);
        }
    }

    #[test]
    fn a_column_of_zeroes_takes_no_plane_and_an_absurd_value_becomes_the_largest() {
        let packed = pack(&[("zero", &[0, 0]), ("huge", &[u64::MAX, 1])]);
        assert_eq!(packed.columns, [("zero", 0), ("huge", 7)]);
        assert_eq!(unpack(&packed)[1], [LARGEST, 1]);
    }
}
