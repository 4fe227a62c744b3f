//! How long a thread that was forced to let go of the GIL takes to go on once another has it.
//!
//! That depends on who has it. An executor that an event loop interrupts often waits behind the loop
//! for its processor, until that one sleeps: for 200 us at the median in a recording. One that
//! another executor interrupts goes on after 30 us.

use super::collector::enough;
use crate::delays::{Delays, Seen};
use std::collections::HashMap;
use std::sync::Arc;

/// Distributions by the thread that has the GIL.
#[derive(Clone, Debug)]
pub(crate) struct Switches {
    /// By its place in the demand, if there are enough of them.
    by: HashMap<usize, Arc<Delays>>,
    /// For all others.
    others: Arc<Delays>,
}

impl Switches {
    /// Whoever has it.
    pub(crate) fn always(delays: Arc<Delays>) -> Self {
        Self { by: HashMap::new(), others: delays }
    }

    /// Of a thread for which these were seen, by the number of the taker's seat, if it is known. Where
    /// they are too few it is as `usual`.
    pub(super) fn of(
        seen: HashMap<Option<usize>, Seen>,
        place_of: &HashMap<usize, usize>,
        usual: &Arc<Delays>,
    ) -> Self {
        let others = enough(&Seen::merged(seen.values()));
        let others = others.map_or_else(|| usual.clone(), Arc::new);
        let by = seen
            .into_iter()
            .filter_map(|(seat, seen)| Some((*place_of.get(&seat?)?, Arc::new(enough(&seen)?))));
        Self { by: by.collect(), others }
    }

    /// How long it takes once the thread at that place has the GIL.
    pub(crate) fn after(&self, place: usize) -> &Arc<Delays> {
        self.by.get(&place).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::collector::ENOUGH;
    use super::*;

    #[test]
    fn how_long_a_switch_takes_is_told_for_each_thread_of_which_enough_is_known() {
        let seen = |ns, count| {
            let mut seen = Seen::default();
            (0..count).for_each(|_| seen.add(ns));
            seen
        };
        let by_seat = HashMap::from([
            (Some(3), seen(200, ENOUGH)),
            (Some(5), seen(30, 3 * ENOUGH)),
            (Some(8), seen(1, 2)),
        ]);
        let places = HashMap::from([(3, 0), (5, 1), (8, 2)]);
        let usual = Arc::new(Delays::fixed(7));
        let switches = Switches::of(by_seat, &places, &usual);
        assert_eq!(switches.after(0).median_ns(), 200);
        assert_eq!(switches.after(1).median_ns(), 30);
        // All of them, whoever it was.
        assert_eq!(switches.after(2), switches.after(9));
        assert_eq!(switches.after(2).median_ns(), 30);
        let few = Switches::of(HashMap::from([(Some(3), seen(200, 2))]), &places, &usual);
        assert_eq!(few.after(0), &usual);
    }
}
