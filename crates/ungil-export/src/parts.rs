//! Which code held, part by part, also where nobody looked.
//!
//! A hold is sampled while it is long. Most holds that others wait for are shorter than that: 5 ms,
//! the switch interval. The recorder looks at some of them, 20 times a second, whoever holds then;
//! so the looks at a thread are a fair sample of what it does in such holds. Each look stands for
//! the holds of its thread that nobody looked at since the look before.

use crate::stacks::StackId;
use crate::stretches::{Hold, Look, Stretch};
use std::collections::HashMap;
use ungil_trace::record::{ProcessId, ThreadId};

/// A look says nothing of holds that are further away than this.
const NEAR_NS: u64 = 1_000_000_000;

/// What a thread held, and time that others waited meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of which process.
    pub process: ProcessId,
    /// Which of its GILs.
    pub gil: u8,
    /// The holder.
    pub thread: ThreadId,
    /// A moment of it; for several holds that of the first one.
    pub at_ns: u64,
    /// What it did, as far as somebody looked.
    pub stack: Option<StackId>,
    /// How long it held.
    pub held_ns: u64,
    /// What others waited, summed.
    pub waited_ns: u64,
}

/// Turns stretches into parts.
#[derive(Debug, Default)]
pub struct Parts {
    threads: HashMap<ThreadId, Unseen>,
}

/// What is not known of a thread so far.
#[derive(Debug, Default)]
struct Unseen {
    /// The last look at a hold that was not long.
    look: Option<(u64, StackId)>,
    /// Holds at one GIL that others waited for, since then.
    holds: Option<Part>,
}

impl Parts {
    /// Takes in what ended; waits have no parts.
    pub fn push(&mut self, stretch: &Stretch, give: &mut impl FnMut(Part)) {
        match stretch {
            Stretch::Hold(hold) => self.hold(hold, give),
            Stretch::Look(look) => self.look(look, give),
            Stretch::Wait(_) => {}
        }
    }

    /// Hands over what nobody looked at any more.
    pub fn finish(&mut self, give: &mut impl FnMut(Part)) {
        let mut threads: Vec<_> = self.threads.drain().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, mut unseen) in threads {
            unseen.give_up(give);
        }
    }

    fn hold(&mut self, hold: &Hold, give: &mut impl FnMut(Part)) {
        let &Hold { process, gil, thread, begin_ns, end_ns, waited_ns, .. } = hold;
        let at_ns = begin_ns;
        let whole = Part {
            process,
            gil,
            thread,
            at_ns,
            stack: None,
            held_ns: end_ns - begin_ns,
            waited_ns,
        };
        if let Some(sample) = hold.samples.first().filter(|_| !hold.is_long) {
            self.look(&Look { thread, at_ns: sample.at_ns, stack: sample.stack }, give);
        }
        for sample in &hold.samples {
            let stack = Some(sample.stack);
            let (held_ns, waited_ns) = (sample.held_ns, sample.waited_ns);
            give(Part { at_ns: sample.at_ns, stack, held_ns, waited_ns, ..whole });
        }
        if hold.samples.is_empty() {
            // Who held while nobody waited was not looked at: a look says nothing of that.
            if waited_ns > 0 {
                self.threads.entry(thread).or_default().add(whole, give);
            } else {
                give(whole);
            }
        }
    }

    fn look(&mut self, look: &Look, give: &mut impl FnMut(Part)) {
        let unseen = self.threads.entry(look.thread).or_default();
        if let Some(holds) = unseen.holds.take() {
            give(Part { stack: Some(look.stack), ..holds });
        }
        unseen.look = Some((look.at_ns, look.stack));
    }
}

impl Unseen {
    fn add(&mut self, part: Part, give: &mut impl FnMut(Part)) {
        let is_far = |holds: &Part| {
            holds.gil != part.gil || part.at_ns.saturating_sub(holds.at_ns) >= NEAR_NS
        };
        if self.holds.as_ref().is_some_and(is_far) {
            self.give_up(give);
        }
        let holds = self.holds.get_or_insert(Part { held_ns: 0, waited_ns: 0, ..part });
        holds.held_ns = holds.held_ns.saturating_add(part.held_ns);
        holds.waited_ns = holds.waited_ns.saturating_add(part.waited_ns);
    }

    /// No look has come: the last one may be near enough.
    fn give_up(&mut self, give: &mut impl FnMut(Part)) {
        let Some(holds) = self.holds.take() else { return };
        let near = self.look.filter(|(at_ns, _)| holds.at_ns.saturating_sub(*at_ns) < NEAR_NS);
        give(Part { stack: near.map(|(_, stack)| stack), ..holds });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::End;
    use crate::running::Sample;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn hold(begin_ns: u64, waited_ns: u64, samples: Vec<Sample>, is_long: bool) -> Stretch {
        Stretch::Hold(Hold {
            process: ProcessId(0),
            gil: 0,
            thread: ThreadId(0),
            begin_ns,
            end_ns: begin_ns + 5 * MS,
            end: End::Forced,
            waited_ns,
            waiters_max: 1,
            asked_ns: None,
            cpu_ns: None,
            samples,
            is_long,
        })
    }

    fn seen(at_ns: u64, stack: u32) -> Vec<Sample> {
        vec![Sample { at_ns, stack: StackId(stack), held_ns: 5 * MS, waited_ns: MS }]
    }

    fn look(at_ns: u64, stack: u32) -> Stretch {
        Stretch::Look(Look { thread: ThreadId(0), at_ns, stack: StackId(stack) })
    }

    /// What was waited, by stack.
    fn waited(stretches: &[Stretch]) -> Vec<(Option<u32>, u64)> {
        let (mut parts, mut given) = (Parts::default(), Vec::new());
        let mut give = |part: Part| given.push((part.stack.map(|it| it.0), part.waited_ns));
        for stretch in stretches {
            parts.push(stretch, &mut give);
        }
        parts.finish(&mut give);
        given
    }

    #[test]
    fn a_look_stands_for_the_holds_that_nobody_looked_at_since_the_one_before() {
        let holds = [
            hold(0, 2 * MS, vec![], false),
            hold(10 * MS, 3 * MS, vec![], false),
            look(12 * MS, 7),
            hold(20 * MS, MS, vec![], false),
            hold(30 * MS, MS, seen(32 * MS, 8), false),
            hold(40 * MS, 4 * MS, vec![], false),
        ];
        assert_eq!(
            waited(&holds),
            [(Some(7), 5 * MS), (Some(8), MS), (Some(8), MS), (Some(8), 4 * MS)]
        );
    }

    #[test]
    fn a_look_says_nothing_of_long_holds_of_others_and_of_what_is_far_away() {
        let is_long = hold(10 * MS, MS, seen(12 * MS, 8), true);
        let short = |at_ns| hold(at_ns, MS, vec![], false);
        assert_eq!(waited(&[short(0), is_long]), [(Some(8), MS), (None, MS)]);
        let far = [look(0, 7), short(NEAR_NS - 1), short(3 * NEAR_NS)];
        assert_eq!(waited(&far), [(Some(7), MS), (None, MS)]);
        let uncontended = [hold(0, 0, vec![], false), look(MS, 7)];
        assert_eq!(waited(&uncontended), [(None, 0)]);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_holds(
            steps in prop::collection::vec((0u64..2_000, 0u64..3, 0u8..4), 0..60)
        ) {
            let (mut now_ns, mut expected) = (0, 0);
            let stretches: Vec<_> = steps.into_iter().map(|(pause_ms, waited_ms, what)| {
                now_ns += pause_ms * MS;
                if what == 0 {
                    return look(now_ns, 1);
                }
                expected += waited_ms * MS;
                let samples = if what == 1 {
                    vec![Sample { waited_ns: waited_ms * MS, ..seen(now_ns, 2)[0] }]
                } else {
                    vec![]
                };
                hold(now_ns, waited_ms * MS, samples, false)
            }).collect();
            let sum: u64 = waited(&stretches).iter().map(|(_, ns)| ns).sum();
            prop_assert_eq!(sum, expected);
        }
    }
}
