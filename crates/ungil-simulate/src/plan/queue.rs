//! A queue between threads of a simulation: who fills it, who lives on it, and with how much.

use super::Planned;
use crate::demand::{Demand, Supply};
use std::ops::Range;
use std::sync::Arc;

/// What a [`Supply`] is among the threads that are planned. Copies of a thread share in it.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) supply: Arc<Supply>,
    pub(crate) producers: Vec<usize>,
    pub(crate) consumers: Vec<usize>,
    /// Which of their uses the recorded consumers do over and over, all together.
    round: Range<usize>,
}

impl Queue {
    /// How many uses the producers must have begun before the consumers begin this use of theirs.
    pub(crate) fn needed(&self, use_: usize) -> u64 {
        let Range { start, end } = self.round;
        if self.round.is_empty() || use_ < end {
            return self.supply.needed(use_);
        }
        let (rounds, at) = ((use_ - start) / (end - start), (use_ - start) % (end - start));
        let of_a_round = self.supply.needed(end) - self.supply.needed(start);
        self.supply.needed(start + at) + of_a_round * rounds as u64
    }
}

/// Tells the threads of `demand` that are planned which queue they live on. Where a producer is left
/// out nobody knows what would be in it, so that nobody waits for it.
pub(super) fn tell(all: &mut [Planned], demand: &Demand) {
    let mut queues: Vec<Arc<Queue>> = Vec::new();
    for number in 0..all.len() {
        let Some(consumer) = &demand.threads[all[number].source].lives_on else { continue };
        let supply = &consumer.supply;
        let known = queues.iter().find(|queue| Arc::ptr_eq(&queue.supply, supply)).cloned();
        let Some(queue) = known.or_else(|| queue(all, supply, demand)) else { continue };
        all[number].queue = Some(queue.clone());
        queues.push(queue);
    }
}

fn queue(all: &[Planned], supply: &Arc<Supply>, demand: &Demand) -> Option<Arc<Queue>> {
    let of = |places: &[usize]| -> Vec<usize> {
        (0..all.len()).filter(|number| places.contains(&all[*number].source)).collect()
    };
    let producers = of(&supply.producers);
    let is_whole = supply
        .producers
        .iter()
        .all(|place| producers.iter().any(|number| all[*number].source == *place));
    let mut round = 0..0;
    for place in &supply.consumers {
        let planned = all.iter().find(|thread| thread.source == *place && !thread.is_copy);
        let uses = demand.threads[*place].bursts.len();
        let its = planned.and_then(|thread| thread.again.as_ref()).map(|again| again.uses.clone());
        let its = its.unwrap_or(uses..uses);
        round = round.start + its.start..round.end + its.end;
    }
    let consumers = of(&supply.consumers);
    is_whole.then(|| Arc::new(Queue { supply: supply.clone(), producers, consumers, round }))
}
