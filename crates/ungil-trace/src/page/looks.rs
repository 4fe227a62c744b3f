//! Looks at the holders of one GIL: stacks of long holds, and a fair sample of who held while others
//! waited.
//!
//! The recorder looks at a holder after the fact or while it holds, and what it saw is told before or
//! after the end of that hold. A long hold is remembered for a while, so that a late look finds it.
//! Of a short hold that is over the length is not known any more, and a fair look needs none: it
//! stands for time, not for that hold.

use super::stacks::{Look, Sampled};
use crate::record::ThreadId;
use std::collections::{HashMap, VecDeque};

/// Holds from this length on may be looked at after they have ended.
const LOOKED_AT_NS: u64 = 1_000_000;
/// That many of them are remembered.
const REMEMBERED: usize = 64;
/// Looks kept for one GIL; a long hold has about fifty.
const LOOKS: usize = 100_000;

/// A long hold that has ended.
#[derive(Debug)]
enum Recent {
    /// Nobody has looked at it so far.
    Unseen(Sampled),
    /// It is at this place in [`Looks::sampled`].
    Seen(usize),
}

/// All looks at the holders of a GIL.
#[derive(Debug)]
pub(super) struct Looks {
    /// Holds with their looks; sorted once nothing comes any more.
    pub(super) sampled: Vec<Sampled>,
    /// How many looks found no room.
    pub(super) lost: u64,
    /// Of so many fair looks one is kept.
    pub(super) one_in: u64,
    /// How many looks are kept, and how many fair ones came.
    kept: usize,
    came: u64,
    /// Long holds that ended not long ago, by thread.
    recent: VecDeque<(ThreadId, Recent)>,
    /// Looks at holds that have not ended.
    pending: HashMap<ThreadId, Vec<Look>>,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            sampled: Vec::new(),
            lost: 0,
            one_in: 1,
            kept: 0,
            came: 0,
            recent: VecDeque::new(),
            pending: HashMap::new(),
        }
    }
}

impl Looks {
    /// A hold has ended, after `ns`.
    #[inline]
    pub(super) fn ended(&mut self, thread: ThreadId, ns: u64, hold: impl FnOnce() -> Sampled) {
        if ns >= LOOKED_AT_NS || (!self.pending.is_empty() && self.pending.contains_key(&thread)) {
            self.remember(thread, hold());
        }
    }

    /// Remembers a hold that may be looked at later, with the looks that came already.
    fn remember(&mut self, thread: ThreadId, mut hold: Sampled) {
        for look in self.pending.remove(&thread).unwrap_or_default() {
            if (hold.begin..=hold.end).contains(&look.at) {
                hold.looks.push(look);
            } else if look.at > hold.end {
                self.pending.entry(thread).or_default().push(look);
            } else {
                self.of_unknown(hold.lane, look);
            }
        }
        let entry = if hold.looks.is_empty() {
            Recent::Unseen(hold)
        } else {
            self.sampled.push(hold);
            Recent::Seen(self.sampled.len() - 1)
        };
        self.recent.push_back((thread, entry));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }

    /// Keeps a fair look of whose hold nothing is known. Another one says nothing then.
    fn of_unknown(&mut self, lane: u32, look: Look) {
        if look.waiters > 0 {
            let at = look.at;
            self.sampled.push(Sampled { lane, begin: at, end: at, waited: 0, looks: vec![look] });
        } else {
            self.kept = self.kept.saturating_sub(1);
        }
    }

    /// Somebody looked at the hold that this thread had then.
    pub(super) fn look(&mut self, thread: ThreadId, look: Look) {
        if look.waiters > 0 {
            self.came += 1;
            if !self.came.is_multiple_of(self.one_in) {
                return;
            }
        }
        if self.kept >= LOOKS {
            self.thin();
        }
        if self.kept >= LOOKS {
            self.lost += 1;
            return;
        }
        self.kept += 1;
        let Self { recent, sampled, pending, .. } = self;
        for (_, entry) in recent.iter_mut().rev().filter(|(holder, _)| *holder == thread) {
            let hold = match entry {
                Recent::Unseen(hold) => hold,
                Recent::Seen(place) => &mut sampled[*place],
            };
            if !(hold.begin..=hold.end).contains(&look.at) {
                continue;
            }
            hold.looks.push(look);
            if let Recent::Unseen(hold) = entry {
                sampled.push(hold.clone());
                *entry = Recent::Seen(sampled.len() - 1);
            }
            return;
        }
        pending.entry(thread).or_default().push(look);
    }

    /// Drops every other fair look that is the only one of its hold, so that there is room for those
    /// of a long run's end. Those that stay are as fair as all were.
    pub(super) fn thin(&mut self) {
        let mut is_dropped = false;
        for hold in &mut self.sampled {
            if hold.is_fair() {
                if is_dropped {
                    hold.looks.clear();
                    self.kept -= 1;
                }
                is_dropped = !is_dropped;
            }
        }
        self.one_in = self.one_in.saturating_mul(2);
    }

    /// Nothing comes any more. `lane_of` is the lane that a thread has at this GIL, if it has one.
    pub(super) fn finish(&mut self, lane_of: impl Fn(ThreadId) -> Option<u32>) {
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_by_key(|(thread, _)| *thread);
        for (thread, looks) in pending {
            let Some(lane) = lane_of(thread) else { continue };
            for look in looks {
                self.of_unknown(lane, look);
            }
        }
        self.sampled.sort_by_key(|hold| hold.begin);
    }
}
