//! What is to be different from the recording.

use ungil_core::schedule::{Level, Settings};

/// How the recorded demand is replayed. Threads are meant by their place in
/// [`Demand::threads`](crate::Demand::threads).
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Who gets the GIL.
    pub gil: Gil,
    /// Processors for which threads compete, with the GIL and without it. `None` for as many as
    /// there are threads, but with the delays by the kernel that were recorded.
    pub cores: Option<usize>,
    /// Threads that are left out.
    pub without: Vec<usize>,
    /// Threads that are changed.
    pub changes: Vec<(usize, Change)>,
    /// Threads with a level other than normal, for the policies of ungil.
    pub levels: Vec<(usize, Level)>,
    /// Whether each thread does what it did once, until the last is done. Otherwise the run lasts
    /// as long as the recorded one, and threads that were alive to its end go on as they did.
    pub once: bool,
    /// How often it is simulated, each time with other delays; at least once.
    pub runs: u32,
    /// Where chance begins: the same number brings the same prediction.
    pub seed: u64,
}

/// Who gets the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gil {
    /// By CPython's own rules, or by those of a policy of ungil.
    Scheduled(Settings),
    /// There is none: a free-threaded build that shares nothing else.
    Free,
}

/// How a thread is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Each of its uses of the GIL takes so many times as long.
    Work(f64),
    /// This part (of 1) of each of its uses of the GIL is done without it: in another process, or by
    /// code that lets go. A job of a pool that does what clients ask for is done as it was.
    OffGil(f64),
    /// It has nothing to do: its uses of the GIL take no time, and between them it only sleeps.
    Idle,
    /// There are so many of it, each with all of its work.
    Times(usize),
}

impl From<Settings> for Rules {
    fn from(settings: Settings) -> Self {
        Self::of(Gil::Scheduled(settings))
    }
}

impl Rules {
    /// These alone, everything else as recorded.
    pub fn of(gil: Gil) -> Self {
        Self {
            gil,
            cores: None,
            without: Vec::new(),
            changes: Vec::new(),
            levels: Vec::new(),
            once: false,
            runs: 3,
            seed: 0,
        }
    }

    /// Whether nothing is to be different from a recording under these settings.
    pub(crate) fn are_those_of(&self, settings: Settings) -> bool {
        let Self { once, runs, seed, .. } = *self;
        *self == Self { once, runs, seed, ..Self::of(Gil::Scheduled(settings)) }
    }
}
