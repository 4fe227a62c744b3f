//! Whether all of a file is whole.

use ungil_heap::stack;
use ungil_heap::value::Cell;

use crate::frozen::{Frozen, Node};
use crate::header;
use crate::{Error, Result};

impl Frozen {
    /// Reads all of the file and compares it to its checksum, which tells of any damage by chance.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn verify(&self) -> Result<()> {
        let body = self.bytes().get(header::SIZE..).unwrap_or_default();
        if crc32fast::hash(body) != self.header().checksum {
            return Err(Error::Damaged("the checksum of its contents is wrong"));
        }
        Ok(())
    }

    /// Visits everything that the structure is made of, as often as it occurs; the number of values.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::TooDeep`]; [`Error::TooMany`] if there are more than `most`.
    pub fn walk(&self, most: u64) -> Result<u64> {
        let mut left = most;
        self.visit(self.header().root, self.end(), &mut left)?;
        Ok(most - left)
    }

    fn visit(&self, found: Cell, below: usize, left: &mut u64) -> Result<()> {
        stack::check(0)?;
        *left =
            left.checked_sub(1).ok_or(Error::TooMany("there are more values than asked for"))?;
        match self.node(found, below)? {
            Node::Value(_) => Ok(()),
            Node::List(items) | Node::Tuple(items) => {
                self.visit_cells(items.at, items.len, items.at, left)
            }
            Node::Set(table) | Node::FrozenSet(table) => {
                self.visit_cells(table.entries, table.len, table.at, left)
            }
            Node::Dict(table) => self.visit_cells(table.entries, table.len * 2, table.at, left),
            Node::Record(record) => self.visit_cells(record.at, record.len, record.at, left),
        }
    }

    fn visit_cells(&self, at: usize, count: usize, below: usize, left: &mut u64) -> Result<()> {
        for number in 0..count {
            self.visit(self.cell(at + number * Cell::SIZE)?, below, left)?;
        }
        Ok(())
    }
}
