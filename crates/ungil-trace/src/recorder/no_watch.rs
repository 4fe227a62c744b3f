//! Stands in for the watch where the feature `stacks` is off: nothing is looked at from outside.

use super::pace::Pace;
use super::times::Times;
use super::traced::Traced;
use crate::record::Record;

/// Looks at nothing.
pub struct Watch;

#[expect(clippy::unused_self, reason = "the real one uses it")]
impl Watch {
    /// As the real one.
    pub fn new(_blame_ns: u64, _hold_ns: Option<u64>, _native: bool, _pace: Pace) -> Self {
        Self
    }

    /// As the real one.
    pub fn look(&mut self, _traced: &mut [Traced], _times: &mut Times, _now: u64) -> bool {
        false
    }

    /// As the real one.
    pub fn owes_names(&mut self, _traced: &mut Traced) -> bool {
        false
    }

    /// As the real one.
    pub fn collect(
        &mut self,
        _traced: &mut [Traced],
        _times: &mut Times,
        _give: impl FnMut(Record),
    ) {
    }

    /// As the real one.
    pub fn forget(&mut self, _pid: u32) {}
}
