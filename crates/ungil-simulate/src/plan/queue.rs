//! A queue between threads of a simulation: who fills it, who lives on it, and with how much.

use super::Planned;
use crate::demand::{Demand, Supply};
use std::collections::HashMap;
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

/// Tells the threads of `demand` that are planned which queue they live on.
pub(super) fn tell(all: &mut [Planned], demand: &Demand) {
    let mut queues: Vec<(Arc<Supply>, Option<Arc<Queue>>)> = Vec::new();
    for number in 0..all.len() {
        let Some(consumer) = &demand.threads[all[number].source].lives_on else { continue };
        let supply = &consumer.supply;
        let known = queues.iter().find(|(known, _)| Arc::ptr_eq(known, supply));
        let queue = if let Some((_, queue)) = known {
            queue.clone()
        } else {
            let queue = queue(all, supply, demand).map(Arc::new);
            queues.push((supply.clone(), queue.clone()));
            queue
        };
        all[number].lives_on = queue.map(|queue| (queue, consumer.clone()));
    }
}

/// The queue of that supply. `None` where a producer is left out: nobody knows what would be in it, so
/// nobody waits for it. Where deliveries tell what is brought, they tell more.
fn queue(all: &[Planned], supply: &Arc<Supply>, demand: &Demand) -> Option<Queue> {
    let of = |places: &[usize]| -> Vec<usize> {
        let is_one = |thread: &Planned| places.binary_search(&thread.source).is_ok();
        (0..all.len()).filter(|number| is_one(&all[*number])).collect()
    };
    let (producers, consumers) = (of(&supply.producers), of(&supply.consumers));
    if producers.iter().chain(&consumers).any(|number| all[*number].awaits.is_some()) {
        return None;
    }
    let originals = |numbers: &[usize]| numbers.iter().filter(|it| !all[**it].is_copy).count();
    if originals(&producers) < supply.producers.len() {
        return None;
    }
    // One that is left out leaves all of its uses to the others.
    let mut round = 0..0;
    let planned: HashMap<_, _> = consumers
        .iter()
        .filter(|number| !all[**number].is_copy)
        .map(|number| (all[*number].source, &all[*number]))
        .collect();
    for place in &supply.consumers {
        let uses = demand.threads[*place].bursts.len();
        let again = planned.get(place).and_then(|thread| thread.again.as_ref());
        let its = again.map_or(uses..uses, |again| again.uses.clone());
        round = round.start + its.start..round.end + its.end;
    }
    Some(Queue { supply: supply.clone(), producers, consumers, round })
}
