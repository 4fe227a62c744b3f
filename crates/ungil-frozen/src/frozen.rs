//! A file that is mapped, and the checked steps from a cell to what it refers to.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memmap2::Mmap;
use ungil_heap::value::{Cell, Value};

use crate::cell::OUTSIDE;
use crate::header::Header;
use crate::schema::{self, Schema};
use crate::table::{HEAD, PLACE, Sorted};
use crate::{Error, Result, cell};

/// A structure in a file that is mapped.
///
/// Nobody may write to the file or cut it off while it is mapped. One without a name is sealed against
/// that; one with a name is not written to by anybody who makes it with [`crate::file::Replacing`].
pub struct Frozen {
    map: Mmap,
    header: Header,
    schemas: Vec<Schema>,
    serial: u64,
}

/// Mappings of this process so far.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// What a cell is.
#[derive(Debug)]
pub enum Node<'f> {
    /// Something without a container in it.
    Value(Value<'f>),
    /// A list.
    List(Items),
    /// A tuple.
    Tuple(Items),
    /// A set.
    Set(Table),
    /// A frozenset.
    FrozenSet(Table),
    /// A dict with an index of its own.
    Dict(Table),
    /// A dict with a schema.
    Record(Record),
}

/// The cells of a list or a tuple, all of which are in the file.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// Where they begin.
    pub at: usize,
    /// How many there are.
    pub len: usize,
}

/// A dict or a set, all of which is in the file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Where it begins.
    pub at: usize,
    /// How many entries it has.
    pub len: usize,
    /// One less than the number of places of its index.
    pub mask: usize,
    /// Where the entries begin.
    pub entries: usize,
    /// Bytes of an entry.
    pub width: usize,
    /// How its keys are found in their order.
    pub sorted: Sorted,
}

/// A dict with a schema, all of which is in the file.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The number of the schema.
    pub schema: usize,
    /// Where its values begin.
    pub at: usize,
    /// How many it has.
    pub len: usize,
}

impl Frozen {
    /// Maps a file, and checks its header, its length and its schemas; [`Frozen::verify`] checks the
    /// rest.
    ///
    /// # Errors
    /// For what is no whole frozen file of a version that is known, in words.
    pub fn open(file: &File) -> Result<Self> {
        let known = file.metadata().map_err(Error::io(OPENING))?;
        if !known.is_file() || known.len() == 0 {
            return Err(Error::Foreign);
        }
        // SAFETY: nobody writes to the file, as is said above.
        let map = unsafe { Mmap::map(file) }.map_err(Error::io(OPENING))?;
        let header = Header::read(&map)?;
        let schemas = usize::try_from(header.schemas).ok().and_then(|at| map.get(at..));
        let schemas = schemas.ok_or(OUTSIDE)?;
        if crc32fast::hash(schemas) != header.schema_checksum {
            return Err(Error::Damaged("the checksum of its schemas is wrong"));
        }
        let schemas = schema::read(schemas, header.schema_count)?;
        Ok(Self { map, header, schemas, serial: SERIAL.fetch_add(1, Relaxed) })
    }

    /// What the header says.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The schemas.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// A number that no other mapping of this process has had.
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// Everything.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Behind everything that the structure is made of.
    pub fn end(&self) -> usize {
        usize::try_from(self.header.schemas).map_or(self.map.len(), |end| end.min(self.map.len()))
    }

    /// The structure.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn root(&self) -> Result<Node<'_>> {
        self.node(self.header.root, self.end())
    }

    /// The cell at `at`.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn cell(&self, at: usize) -> Result<Cell> {
        let bytes = self.map.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| cell::of(*bytes)).ok_or(OUTSIDE)
    }

    /// What a cell is that lies in something that begins at `below`.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn node(&self, found: Cell, below: usize) -> Result<Node<'_>> {
        Ok(match cell::tag(found) {
            cell::LIST => Node::List(self.items(found, below)?),
            cell::TUPLE => Node::Tuple(self.items(found, below)?),
            cell::SET => Node::Set(self.table(found, below, false)?),
            cell::FROZEN_SET => Node::FrozenSet(self.table(found, below, false)?),
            cell::DICT => Node::Dict(self.table(found, below, true)?),
            cell::RECORD => Node::Record(self.record(found, below)?),
            _ => Node::Value(self.value(found, below)?),
        })
    }

    /// The value of a cell that lies in something that begins at `below`.
    ///
    /// # Errors
    /// [`Error::Damaged`], also for a container.
    #[inline]
    pub fn value(&self, found: Cell, below: usize) -> Result<Value<'_>> {
        cell::value_in(&self.map, found, below)
    }

    /// A list or a tuple.
    #[inline]
    fn items(&self, found: Cell, below: usize) -> Result<Items> {
        let len = usize::try_from(cell::count(found)).map_err(|_| OUTSIDE)?;
        let at = self.within(found.1, len.checked_mul(Cell::SIZE), below)?;
        Ok(Items { at, len })
    }

    /// A dict with a schema.
    #[inline]
    fn record(&self, found: Cell, below: usize) -> Result<Record> {
        let schema = usize::try_from(cell::count(found)).map_err(|_| OUTSIDE)?;
        let known = self.schemas.get(schema).ok_or(Error::Damaged("a schema is missing"))?;
        let len = known.keys.len();
        let at = self.within(found.1, len.checked_mul(Cell::SIZE), below)?;
        Ok(Record { schema, at, len })
    }

    /// A dict or a set.
    fn table(&self, found: Cell, below: usize, is_dict: bool) -> Result<Table> {
        let count = cell::count(found);
        let len = usize::try_from(count).map_err(|_| OUTSIDE)?;
        let at = usize::try_from(found.1).map_err(|_| OUTSIDE)?;
        let head = self.map.get(at..).and_then(|rest| rest.first_chunk::<2>()).ok_or(OUTSIDE)?;
        let places = 1_u64.checked_shl(head[0].into()).filter(|places| *places < 1 << 40);
        let places = places.ok_or(Error::Damaged("an index is too large"))?;
        let sorted = Sorted::of(head[1]).ok_or(Error::Damaged("an order is unknown"))?;
        let width: u64 = if is_dict { 32 } else { 16 };
        let listed: u64 = if sorted == Sorted::Listed { 4 } else { 0 };
        let entries = HEAD + places * PLACE;
        let size = count.checked_mul(width + listed).and_then(|size| size.checked_add(entries));
        let size = size.and_then(|size| usize::try_from(size).ok());
        let at = self.within(found.1, size, below)?;
        let narrow = |number: u64| usize::try_from(number).map_err(|_| OUTSIDE);
        Ok(Table {
            at,
            len,
            mask: narrow(places - 1)?,
            entries: at + narrow(entries)?,
            width: narrow(width)?,
            sorted,
        })
    }

    /// Where something of so many bytes begins that has to end before `below`.
    #[inline]
    fn within(&self, at: u64, size: Option<usize>, below: usize) -> Result<usize> {
        let at = usize::try_from(at).map_err(|_| OUTSIDE)?;
        let end = size.and_then(|size| at.checked_add(size)).ok_or(OUTSIDE)?;
        if end <= below.min(self.map.len()) { Ok(at) } else { Err(OUTSIDE) }
    }
}

const OPENING: &str = "mapping a frozen file";
