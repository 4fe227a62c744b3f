//! What a segment begins with, and where its fixed parts are.
//!
//! | part | size |
//! |---|---|
//! | [`Header`] | a page |
//! | process table | [`PROCESSES`] × [`PROCESS_SIZE`] |
//! | lanes | [`LANES`] × [`LANE_SIZE`] |
//! | the lanes' logs | [`LANES`] × [`LOG_SIZE`], with memory behind those in use |
//! | chunk states | a word a chunk |
//! | chunk bitmaps | [`BITMAP_SIZE`] a chunk |
//! | chunks | [`CHUNK`] each, the first of them the reserve |
//!
//! All numbers are in the byte order of the machine: a segment never leaves it.
//!
//! A heap that loom checks is as small as can be: it looks at every word of it again and again.

use crate::atomic::{AtomicU32, AtomicU64};

use crate::hazard;

/// The first eight bytes of a segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ungil\0hp");
/// Changes with every change of this layout or of anything stored in the heap.
pub const VERSION: u32 = 3;

/// The unit of allocation, in bytes; every offset is a multiple of it.
pub const GRANULE: usize = 16;
/// The unit in which the allocator gets memory.
pub const CHUNK: usize = if cfg!(loom) { 1 << 10 } else { 64 << 10 };
/// Bytes of the bitmap of a chunk: a bit for each granule.
pub const BITMAP_SIZE: usize = CHUNK / GRANULE / 8;
/// Bytes of the header.
pub const PAGE: usize = 4096;
/// Processes that can be attached at a time.
pub const PROCESSES: usize = if cfg!(loom) { 3 } else { 2048 };
/// Bytes of an entry of the process table.
pub const PROCESS_SIZE: usize = 64;
/// Threads that can change the heap at a time.
pub const LANES: usize = if cfg!(loom) { 3 } else { 4095 };
/// Bytes of a lane.
pub const LANE_SIZE: usize = 64;
/// Bytes of the beginning of a lane's log.
pub const LOG_SIZE: usize = if cfg!(loom) { 256 } else { 1024 };
/// The smallest heap: room for the fixed parts and some chunks.
pub const MIN_SIZE: usize = if cfg!(loom) { 4 << 10 } else { 1 << 20 };
/// Lanes whose logs have memory from the beginning, so that threads can begin when there is none.
pub const READY_LANES: usize = if cfg!(loom) { LANES } else { 64 };
/// Chunks of the reserve that have memory from the beginning.
pub const READY_CHUNKS: usize = if cfg!(loom) { 1 } else { 4 };
/// The largest heap.
pub const MAX_SIZE: usize = 1 << 44;

/// Keeps what is written often on a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct Alone<T>(T);

impl<T> std::ops::Deref for Alone<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The beginning of a segment. What comes before [`Self::gate`] is written once, before the segment
/// is published.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct Header {
    /// [`MAGIC`], stored last: a segment without it is no heap.
    pub magic: AtomicU64,
    /// [`VERSION`] in the low half, the size of a pointer in the high.
    pub version: AtomicU64,
    /// Names the heap among all heaps.
    pub uuid: [AtomicU64; 2],
    /// The key of the hash of strings: the same in all processes, unknown to who sends the keys.
    pub hash_key: [AtomicU64; 2],
    /// Bytes that the heap can have, fixed parts and reserve aside.
    pub max_size: AtomicU64,
    /// Seconds since the epoch when the heap was made.
    pub created: AtomicU64,
    /// Closed (a lock word, see [`crate::lock`]) while the world stands still for the collector.
    /// Every operation looks at it.
    pub gate: AtomicU32,
    /// Processes that died attached, since the heap was made.
    pub deaths: AtomicU32,
    /// The object that everybody finds: the dict `heap.root`. 0 until it is made.
    pub root: AtomicU64,
    /// Chunks that the heap has, from the first on; their memory is allocated. Never fewer.
    pub chunks: AtomicU64,
    /// The serial number of the next object.
    pub serial: Alone<AtomicU32>,
    /// The lock of the chunks: who takes whole ones.
    pub chunk_lock: Alone<AtomicU32>,
    /// The chunk from which on the next one is looked for, which never lies inside of a run. Under
    /// the lock of the chunks.
    pub chunk_cursor: AtomicU64,
    /// The lock of transactions, which run one at a time.
    pub transaction_lock: Alone<AtomicU32>,
    /// Objects to which a reference is about to be counted without a lock: see `hazard`.
    pub hazards: Alone<[AtomicU64; hazard::PLACES]>,
    /// Collections that were finished.
    pub collections: AtomicU64,
    /// Chunks in use after the last collection.
    pub collected_chunks: AtomicU64,
    /// [`Self::deaths`] before the last collection.
    pub collected_deaths: AtomicU64,
    /// The bell at which those sleep who watch several objects: see `watch`.
    pub watch: Alone<AtomicU32>,
}

const _: () = assert!(size_of::<Header>() <= PAGE && hazard::GRANULE == GRANULE as u64);

/// Where the parts of a segment of a given size are: offsets from its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The process table.
    pub processes: usize,
    /// The lanes.
    pub lanes: usize,
    /// The lanes' logs.
    pub logs: usize,
    /// The words of chunk states.
    pub states: usize,
    /// The bitmaps.
    pub bitmaps: usize,
    /// The first chunk.
    pub data: usize,
    /// How many of the first chunks are kept for what cannot fail in a heap that is full: to refer
    /// to what is in it, and to take things out.
    pub reserve: usize,
    /// How many chunks there can be, those of the reserve among them.
    pub chunks: usize,
    /// The end of the last chunk; the size of the file.
    pub end: usize,
}

impl Layout {
    /// The layout of a segment of at most `max_size` bytes, which is at least [`MIN_SIZE`].
    pub const fn new(max_size: usize) -> Self {
        let processes = PAGE;
        let lanes = processes + PROCESSES * PROCESS_SIZE;
        let logs = lanes + (LANES + 1) * LANE_SIZE;
        let states = logs + (LANES + 1) * LOG_SIZE;
        let room = if max_size < MIN_SIZE { MIN_SIZE } else { max_size };
        let usable = room / (CHUNK + BITMAP_SIZE + 8);
        let reserve = reserve(usable);
        let chunks = usable + reserve;
        let bitmaps = (states + chunks * 8).next_multiple_of(PAGE);
        let data = (bitmaps + chunks * BITMAP_SIZE).next_multiple_of(CHUNK);
        let end = data + chunks * CHUNK;
        Self { processes, lanes, logs, states, bitmaps, data, reserve, chunks, end }
    }

    /// Where chunk number `index` is.
    pub const fn chunk(&self, index: usize) -> usize {
        self.data + index * CHUNK
    }
}

/// How many chunks are reserved beside so many: a sixteenth as many, up to 4 MiB. Most of them get
/// memory when they are needed.
const fn reserve(chunks: usize) -> usize {
    const MOST: usize = 64;
    match chunks / 16 {
        0..READY_CHUNKS => READY_CHUNKS,
        wanted if wanted > MOST => MOST,
        wanted => wanted,
    }
}
