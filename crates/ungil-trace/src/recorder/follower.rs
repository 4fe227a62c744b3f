//! When the kernel is asked what it does with a holder, and which of its answers are given out.

use crate::record::KernelCount;

/// Between two answers that are given out during one hold, at most.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

/// Follows the holds of one thread, and asks as often as it takes to tell what became of them.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// The last answer, if it was not given out.
    latest: Option<KernelCount>,
    /// The last one that found the thread asleep, if it is older and was not given out either.
    asleep: Option<KernelCount>,
    /// Beginning of the hold that is followed, or 0.
    hold_ns: u64,
    /// The age of that hold at which an answer is given out again.
    next_age_ns: u64,
}

impl Follower {
    /// Keeps an answer, which may turn out to be the last one before a long hold.
    pub fn keep(&mut self, answer: KernelCount) {
        if let Some(earlier) = self.latest.replace(answer)
            && !earlier.runnable
        {
            self.asleep = Some(earlier);
        }
    }

    /// The last answers during the hold that is followed, if they were not given out: no end of
    /// that hold will be seen. A thread that is killed while it sleeps is seen awake before it dies,
    /// and what came before is known only from when it slept.
    pub fn last_of_a_hold(&mut self) -> impl Iterator<Item = KernelCount> {
        let last = [self.asleep.take(), self.latest.take()];
        let is_followed = self.hold_ns != 0;
        last.into_iter().flatten().filter(move |_| is_followed)
    }

    /// Takes a look at the thread, which has held a GIL since `since_ns`, or holds none if that is
    /// 0. A hold is followed once it is `after_ns` old: the answer before it is given out, some
    /// during it, the last one during it, and one after it.
    pub fn look(
        &mut self,
        since_ns: u64,
        now: u64,
        after_ns: u64,
        ask: impl Fn() -> Option<KernelCount>,
        mut give: impl FnMut(KernelCount),
    ) {
        if self.hold_ns != 0 && self.hold_ns != since_ns {
            self.hold_ns = 0;
            // It may have woken up, and not have been run, a while before the end.
            let woken = self.latest.is_some_and(|latest| latest.runnable);
            let asleep = self.asleep.take().filter(|_| woken);
            asleep.into_iter().chain(self.latest.take()).chain(ask()).for_each(&mut give);
        }
        let age = now.saturating_sub(since_ns);
        if since_ns == 0 || age < after_ns {
            return;
        }
        if self.hold_ns == 0 {
            (self.hold_ns, self.next_age_ns) = (since_ns, age);
            self.latest.take().into_iter().for_each(&mut give);
            self.asleep = None;
        }
        // A thread that is gone has no answer, and its last one counts.
        let Some(answer) = ask() else { return };
        self.keep(answer);
        // Enough for a hold of which no end will be seen.
        if age >= self.next_age_ns {
            self.next_age_ns = age + age.min(LONGEST_PAUSE_NS);
            // It may be on its way to its death, and this the last answer of all.
            let asleep = self.asleep.take().filter(|_| answer.runnable);
            asleep.into_iter().chain(self.latest.take()).for_each(&mut give);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn answer(at_ns: u64) -> KernelCount {
        KernelCount { at_ns, ran_ns: 0, delayed_ns: 0, runnable: false }
    }

    /// The answers that looks at `(since, now)`, in ms, gave out.
    fn looks(follower: &mut Follower, looks: &[(u64, u64)]) -> Vec<u64> {
        let mut given = Vec::new();
        for &(since, now) in looks {
            let give = |answer: KernelCount| given.push(answer.at_ns / MS);
            follower.look(since * MS, now * MS, 5 * MS, || Some(answer(now * MS)), give);
        }
        given
    }

    #[test]
    fn a_long_hold_has_answers_before_during_and_after_it() {
        let mut follower = Follower::default();
        follower.keep(answer(80 * MS));
        follower.keep(answer(90 * MS));
        let given = looks(&mut follower, &[(0, 95), (100, 103), (100, 106), (100, 107), (0, 108)]);
        assert_eq!(given, [90, 106, 107, 108]);
        assert!(looks(&mut follower, &[(0, 109), (0, 200)]).is_empty());
    }

    #[test]
    fn the_last_answer_before_a_program_died_is_not_lost() {
        let mut follower = Follower::default();
        assert_eq!(looks(&mut follower, &[(100, 105), (100, 110), (100, 114)]), [105, 110]);
        let last: Vec<_> = follower.last_of_a_hold().collect();
        assert_eq!(last, [answer(114 * MS)]);
        follower.keep(answer(120 * MS));
        assert!(looks(&mut follower, &[(0, 121)]).len() == 2, "the hold has ended");
        follower.keep(answer(130 * MS));
        assert_eq!(follower.last_of_a_hold().count(), 0);
    }

    #[test]
    fn a_thread_that_wakes_to_die_was_asleep_until_then() {
        let mut follower = Follower::default();
        let woken = |at_ns| KernelCount { runnable: true, ..answer(at_ns) };
        let look = |follower: &mut Follower, now: u64, found: Option<KernelCount>| {
            follower.look(100 * MS, now * MS, 5 * MS, || found, |_| ());
        };
        for now in [105, 110, 113, 114] {
            look(&mut follower, now, Some(answer(now * MS)));
        }
        for now in [115, 116] {
            look(&mut follower, now, Some(woken(now * MS)));
        }
        look(&mut follower, 117, None);
        let last: Vec<_> = follower.last_of_a_hold().collect();
        assert_eq!(last, [answer(114 * MS), woken(116 * MS)]);
    }

    #[test]
    fn a_thread_that_is_found_awake_when_an_answer_is_due_was_asleep_until_then() {
        let mut follower = Follower::default();
        let woken = KernelCount { runnable: true, ..answer(120 * MS) };
        let mut given = Vec::new();
        for found in [105, 110, 115, 119].map(|at_ms| answer(at_ms * MS)).into_iter().chain([woken])
        {
            follower.look(100 * MS, found.at_ns, 5 * MS, || Some(found), |it| given.push(it));
        }
        assert_eq!(given, [answer(105 * MS), answer(110 * MS), answer(119 * MS), woken]);
        assert_eq!(follower.last_of_a_hold().count(), 0);
    }

    #[test]
    fn short_holds_have_none() {
        let mut follower = Follower::default();
        follower.keep(answer(1));
        assert!(looks(&mut follower, &[(100, 104), (105, 109), (110, 114), (0, 120)]).is_empty());
    }

    #[test]
    fn a_hold_that_follows_at_once_has_its_own() {
        let mut follower = Follower::default();
        let given = looks(&mut follower, &[(100, 110), (120, 130), (131, 132)]);
        assert_eq!(given, [110, 130, 130, 132]);
    }

    #[test]
    fn the_longer_a_hold_the_fewer_answers_are_given_out_but_one_a_second() {
        let mut follower = Follower::default();
        let moments: Vec<_> = (1_000..9_000).map(|now| (1_000, now)).collect();
        let given = looks(&mut follower, &moments);
        let ages: Vec<_> = given.iter().map(|at| at - 1_000).collect();
        assert_eq!(ages[..8], [5, 10, 20, 40, 80, 160, 320, 640]);
        assert!(ages[8..].windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{ages:?}");
    }
}
