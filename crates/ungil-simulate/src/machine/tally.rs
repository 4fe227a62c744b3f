//! What happened in a simulation.

use crate::lengths::Lengths;

/// What happened to one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) waits: Lengths,
    /// From wanting the GIL after time away from it to having it.
    pub(crate) returns: Lengths,
    pub(crate) held_ns: u64,
    /// Its CPU time, with the GIL and without it.
    pub(crate) ran_ns: u64,
    /// How much of it was with the GIL.
    pub(crate) held_ran_ns: u64,
    waits_since_ns: Option<u64>,
    holds_since_ns: Option<u64>,
    is_back: bool,
}

/// What happened, as it happens.
#[derive(Debug)]
pub(crate) struct Tally {
    threads: Vec<Happened>,
    handoffs: u64,
    forced: u64,
    /// How many wait, since when the GIL is free, and the longest time in which it was while
    /// somebody waited.
    waiting: usize,
    free_since_ns: u64,
    idle_ns: u64,
}

/// What happened, as a whole.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ended_ns: u64,
    pub(crate) handoffs: u64,
    pub(crate) forced: u64,
    /// The longest time in which the GIL was free though a thread waited for it.
    #[cfg_attr(not(test), expect(dead_code, reason = "what tests look at"))]
    pub(crate) idle_ns: u64,
    pub(crate) threads: Vec<Happened>,
}

impl Tally {
    pub(super) fn new(threads: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(threads, || Happened { is_back: true, ..Happened::default() });
        Self { threads: all, handoffs: 0, forced: 0, waiting: 0, free_since_ns: 0, idle_ns: 0 }
    }

    /// The thread wants the GIL and does not get it at once.
    pub(super) fn waits(&mut self, number: usize, now_ns: u64) {
        if self.threads[number].waits_since_ns.replace(now_ns).is_none() {
            if self.waiting == 0 {
                self.free_since_ns = self.free_since_ns.max(now_ns);
            }
            self.waiting += 1;
        }
    }

    pub(super) fn acquired(&mut self, number: usize, now_ns: u64, is_handoff: bool) {
        self.handoffs += u64::from(is_handoff);
        if self.waiting > 0 {
            self.idle_ns = self.idle_ns.max(now_ns.saturating_sub(self.free_since_ns));
        }
        let thread = &mut self.threads[number];
        let since_ns = thread.waits_since_ns.take();
        let waited_ns = since_ns.map(|since_ns| now_ns - since_ns);
        if let Some(waited_ns) = waited_ns {
            thread.waits.add(waited_ns);
            self.waiting -= 1;
        }
        if thread.is_back {
            thread.returns.add(waited_ns.unwrap_or(0));
        }
        thread.holds_since_ns = Some(now_ns);
    }

    /// The thread lets go of the GIL. For how long it had it.
    pub(super) fn released(
        &mut self,
        number: usize,
        now_ns: u64,
        asked: bool,
        is_back: bool,
    ) -> u64 {
        self.forced += u64::from(asked);
        self.free_since_ns = now_ns;
        let thread = &mut self.threads[number];
        let held_ns = thread.holds_since_ns.take().map_or(0, |since_ns| now_ns - since_ns);
        thread.held_ns += held_ns;
        thread.is_back = is_back;
        held_ns
    }

    pub(super) fn ran(&mut self, number: usize, ns: u64, with_gil: bool) {
        let thread = &mut self.threads[number];
        thread.ran_ns += ns;
        thread.held_ran_ns += if with_gil { ns } else { 0 };
    }

    pub(super) fn outcome(&mut self, ended_ns: u64) -> Outcome {
        let mut threads = std::mem::take(&mut self.threads);
        for thread in &mut threads {
            // What has not ended counts, as in a report.
            if let Some(since_ns) = thread.holds_since_ns {
                thread.held_ns += ended_ns.saturating_sub(since_ns);
            }
            if let Some(since_ns) = thread.waits_since_ns {
                thread.waits.add(ended_ns.saturating_sub(since_ns));
                if thread.is_back {
                    thread.returns.add(ended_ns.saturating_sub(since_ns));
                }
            }
        }
        let Self { handoffs, forced, idle_ns, .. } = *self;
        Outcome { ended_ns, handoffs, forced, idle_ns, threads }
    }
}
