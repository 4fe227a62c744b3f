//! One thread at one GIL: what it did there, and where it stands.

use super::kernel_counts::KernelCounts;
use super::late_waits::Waits;
use super::length::{Lengths, Sum, part, seconds};
use super::looks::Looks;
use crate::record::{ThreadId, ThreadTotals};
use crate::report;

/// How much is kept of holds and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// All that a report says.
    All,
    /// What findings are made of: no percentiles of holds and waits.
    Verdict,
}

/// Everything about one thread at one GIL, in memory that does not grow with the trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    /// Whose; `None` if the seat is free, or stands for all folded threads.
    pub(super) thread: Option<ThreadId>,
    pub(super) holds: Lengths,
    /// What it held before the process had a second thread, in nanoseconds.
    pub(super) startup_ns: u64,
    pub(super) waits: Lengths,
    /// Release to the next acquire.
    pub(super) gaps: Sum,
    pub(super) voluntary: u64,
    pub(super) forced: u64,
    pub(super) drop_requests: u64,
    /// Acquires whose last release before was voluntary.
    pub(super) blocking_calls: u64,
    /// Those of before the process had a second thread: mostly imports.
    pub(super) startup_calls: u64,
    /// The waits of those acquires that waited.
    pub(super) blocking_waits: Waits,
    pub(super) unanswered: Unanswered,
    /// `unanswered` without the time in which the kernel did not run the thread.
    pub(super) kept: Unanswered,
    pub(super) descheduled: Descheduled,
    /// What the kernel had counted for the thread outside of its holds.
    pub(super) counts: KernelCounts,
    /// What looks at it showed, if that is wanted.
    pub(super) looks: Option<Box<Looks>>,
    pub(super) blame: Blame,
    /// Parts of `holds` and `waits` that did not end by themselves, but with the thread: the
    /// thread's own totals do not know them.
    pub(super) cut_holds: Sum,
    pub(super) cut_waits: Sum,
    /// The wait that has not ended.
    pub(super) wait: Option<Wait>,
    /// The last release, unless a hold has begun since.
    pub(super) released: Option<Released>,
    /// Time of the last event; a later event never counts as earlier.
    pub(super) last_ns: u64,
}

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    /// Up to when it has been charged already.
    pub(super) charged_ns: u64,
    /// Who held longest in the part that has been charged already.
    pub(super) worst: Option<(ThreadId, u64)>,
    /// How much of what was held in that part was the holders' own.
    pub(super) own_ns: u64,
}

/// A release.
#[derive(Clone, Copy, Debug)]
pub(super) struct Released {
    pub(super) at_ns: u64,
    pub(super) voluntary: bool,
    /// Whether the gap after it has ended: the thread waits, or has waited.
    pub(super) is_gap_over: bool,
}

/// Drop requests that this thread left unanswered for long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unanswered {
    /// From the drop request to the release.
    pub(super) sum: Sum,
    /// What others waited in that time.
    pub(super) waited_ns: u64,
}

/// Time in which this thread held and the kernel did not run it, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descheduled {
    /// By hold.
    pub(super) sum: Sum,
    /// What others waited in that time.
    pub(super) waited_ns: u64,
}

/// What one thread waited, by who held meanwhile.
#[derive(Clone, Debug, Default)]
pub(super) struct Blame {
    /// Nobody held: the GIL was on its way to the next holder.
    pub(super) nobody_ns: u64,
    /// Not known, because events were lost.
    pub(super) unknown_ns: u64,
    /// By the holder's seat; shorter than the number of seats when the rest is zero.
    pub(super) by_seat: Vec<u64>,
}

impl Unanswered {
    pub(super) fn report(&self) -> report::Unanswered {
        report::Unanswered {
            holds: self.sum.count,
            total_s: seconds(self.sum.total_ns),
            max_ms: self.sum.max_ns as f64 / 1e6,
            waited_s: seconds(self.waited_ns),
        }
    }

    pub(super) fn add(&mut self, ns: u64, waited_ns: u64) {
        self.sum.add(ns);
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
    }
}

impl Descheduled {
    pub(super) fn add(&mut self, ns: u64, waited_ns: u64) {
        self.sum.add(ns);
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
    }
}

impl Blame {
    #[inline]
    pub(super) fn charge(&mut self, seat: usize, ns: u64) {
        if seat >= self.by_seat.len() {
            self.by_seat.resize(seat + 1, 0);
        }
        self.by_seat[seat] = self.by_seat[seat].saturating_add(ns);
    }

    /// Adds the wait time of another thread.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.nobody_ns = self.nobody_ns.saturating_add(other.nobody_ns);
        self.unknown_ns = self.unknown_ns.saturating_add(other.unknown_ns);
        for (seat, &ns) in other.by_seat.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            self.charge(seat, ns);
        }
    }

    /// How much of the time that is not known a thread had the GIL, if that is the same part as of the
    /// time that is.
    pub(super) fn unknown_held_ns(&self) -> u64 {
        let held_ns = self.by_seat.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
        match held_ns.saturating_add(self.nobody_ns) {
            0 => self.unknown_ns,
            known_ns => part(self.unknown_ns, held_ns, known_ns),
        }
    }

    /// Moves what `from` is charged with to `to`.
    pub(super) fn move_culprit(&mut self, from: usize, to: usize) {
        let ns = self.by_seat.get_mut(from).map_or(0, std::mem::take);
        if ns > 0 {
            self.charge(to, ns);
        }
    }

    /// Shrinks everything so that `measured_ns`, its sum so far, becomes `exact_ns`; what cannot
    /// be told apart after rounding goes to the unknown.
    fn shrink(&mut self, measured_ns: u64, exact_ns: u64) {
        let part = |ns: u64| {
            let scaled = u128::from(ns) * u128::from(exact_ns) / u128::from(measured_ns.max(1));
            u64::try_from(scaled).unwrap_or(exact_ns)
        };
        self.nobody_ns = part(self.nobody_ns);
        self.unknown_ns = part(self.unknown_ns);
        self.by_seat.iter_mut().for_each(|ns| *ns = part(*ns));
        let sum = self.by_seat.iter().fold(self.nobody_ns, |sum, ns| sum.saturating_add(*ns));
        self.unknown_ns = exact_ns.saturating_sub(sum);
    }
}

impl Seat {
    /// Held and waited time, the measure of how much a thread matters.
    pub(super) fn weight_ns(&self) -> u64 {
        self.holds.sum.total_ns.saturating_add(self.waits.sum.total_ns)
    }

    /// It is off the GIL no longer, from `at_ns` on, if it was.
    #[inline]
    pub(super) fn end_gap(&mut self, at_ns: u64) {
        if let Some(looks) = &mut self.looks
            && let Some(released) = &mut self.released
            && !std::mem::replace(&mut released.is_gap_over, true)
        {
            looks.end_gap(at_ns.saturating_sub(released.at_ns));
        }
    }

    /// A seat in so much detail.
    pub(super) fn new(detail: Detail) -> Self {
        let lengths = || match detail {
            Detail::All => Lengths::default(),
            Detail::Verdict => Lengths::without_percentiles(),
        };
        let looks = match detail {
            Detail::All => Some(Box::default()),
            Detail::Verdict => None,
        };
        Self { holds: lengths(), waits: lengths(), looks, ..Self::default() }
    }

    /// The same thread with nothing counted yet, from `at_ns` on: what it does then begins then.
    pub(super) fn reopened(&self, at_ns: u64, detail: Detail) -> Self {
        let later = |ns: u64| ns.max(at_ns);
        Self {
            thread: self.thread,
            wait: self.wait.map(|wait| Wait {
                since_ns: later(wait.since_ns),
                charged_ns: later(wait.since_ns),
                worst: None,
                own_ns: 0,
            }),
            released: self
                .released
                .map(|released| Released { at_ns: later(released.at_ns), ..released }),
            last_ns: later(self.last_ns),
            counts: self.counts.clone(),
            looks: match detail {
                Detail::All => self.looks.as_ref().map(|looks| Box::new(looks.reopened())),
                Detail::Verdict => None,
            },
            ..Self::new(detail)
        }
    }

    /// Replaces counts and totals by those that the thread kept itself, which miss no lost event.
    ///
    /// Wait time that no event told of is charged to the unknown; if events told of too much
    /// (a wait whose end was lost), all charges shrink alike.
    pub(super) fn adopt(&mut self, totals: &ThreadTotals) {
        let measured_ns = self.waits.sum.total_ns;
        let replace = |sum: &mut Sum, cut: &Sum, count: u64, total_ns: u64| {
            sum.count = count.saturating_add(cut.count);
            sum.total_ns = total_ns.saturating_add(cut.total_ns);
        };
        replace(&mut self.holds.sum, &self.cut_holds, totals.holds, totals.held_ns);
        replace(&mut self.waits.sum, &self.cut_waits, totals.waits, totals.waited_ns);
        self.voluntary = totals.voluntary;
        self.forced = totals.forced;
        self.drop_requests = totals.drop_requests;
        let exact_ns = self.waits.sum.total_ns;
        if exact_ns >= measured_ns {
            self.blame.unknown_ns += exact_ns - measured_ns;
        } else {
            self.blame.shrink(measured_ns, exact_ns);
        }
    }
}
