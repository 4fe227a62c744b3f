//! Threads that do less with the GIL than they did: a part of it without the GIL, or nothing at all.

use super::{Planned, Use, Waits, away_runs_ns};
use crate::demand::Burst;
use crate::lengths::scaled;
use std::sync::Arc;

impl Planned {
    /// A use as it is if a part of it is done without the GIL: that part comes before the rest each time
    /// that the thread wakes another. What it does natively with the GIL is gone first.
    pub(super) fn in_parts(&self, all: Use) -> impl Iterator<Item = Use> + use<> {
        if self.off_gil <= 0.0 {
            return Vec::new().into_iter().chain(Some(all));
        }
        let Use { wall_ns, runs_ns, .. } = all;
        let part = |from_ns: u64, to_ns: u64, goes_on: bool, all: &Use| {
            let of_all = (to_ns - from_ns) as f64 / wall_ns.max(1) as f64;
            let with_gil = of_all * (1.0 - self.off_gil);
            Use {
                off_gil_ns: scaled(runs_ns, of_all * self.off_gil),
                goes_on,
                wall_ns: scaled(wall_ns, with_gil),
                runs_ns: scaled(runs_ns, with_gil),
                unanswered_ns: Vec::new(),
                posts: Vec::new(),
                stops_ns: Vec::new(),
                ..all.clone()
            }
        };
        let mut parts = Vec::new();
        let mut from_ns = 0;
        for &(at_ns, progress) in &all.posts {
            let to_ns = at_ns.clamp(from_ns, wall_ns);
            parts.push(Use {
                end: progress,
                replies: false,
                away_runs_ns: 0,
                waits: Waits::For(0),
                ..part(from_ns, to_ns, !parts.is_empty(), &all)
            });
            from_ns = to_ns;
        }
        let last = part(from_ns, wall_ns, !parts.is_empty(), &all);
        parts.into_iter().chain(Some(last))
    }
}

/// These, where the thread only sleeps in its times away, in each of which it ran for so long.
pub(super) fn asleep(bursts: &[Burst], runs_ns: u64) -> Arc<[Burst]> {
    let sleeps = |away_ns: u64| away_ns - away_runs_ns(away_ns, runs_ns);
    bursts.iter().map(|it| Burst { away_ns: sleeps(it.away_ns), ..*it }).collect()
}
