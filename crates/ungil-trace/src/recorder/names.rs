//! When the names of a process's threads are asked for.
//!
//! With hundreds of threads that costs milliseconds, and a thread that Python does not know never
//! has one. So it is done rarely, and ever more rarely while no name is found: but not because of
//! older threads for one that has just begun, and may not live long. A thread that nobody has asked
//! for when the recording ends is worth a last look.

use crate::record::ThreadId;

/// Between two looks.
const EVERY_NS: u64 = 50_000_000;
/// The longest pause before a look for a thread that nobody has looked for.
const NEW_NS: u64 = 200_000_000;
/// The longest pause between looks that find no name.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What was asked of one process. Newer threads have higher ids.
#[derive(Debug, Default)]
pub struct Names {
    asked_ns: u64,
    pause_ns: u64,
    /// When the next look is due.
    next_ns: u64,
    /// The last thread that was there then, plus one.
    asked_until: u32,
    is_awaited: bool,
}

impl Names {
    /// Whether it is time to ask for names, where `last` is the last thread that has none.
    pub fn are_due(&self, last: ThreadId, now: u64) -> bool {
        now >= self.next_ns || (self.is_new(last) && now >= self.asked_ns + NEW_NS)
    }

    /// They are asked for, also that of `last`.
    pub fn are_asked_for(&mut self, last: ThreadId, now: u64) {
        if self.is_new(last) {
            self.pause_ns = self.pause_ns.min(NEW_NS / 4);
        }
        self.pause_ns = (self.pause_ns * 2).clamp(EVERY_NS, PATIENCE_NS);
        (self.asked_ns, self.next_ns) = (now, now + self.pause_ns);
        self.asked_until = self.asked_until.max(last.0.saturating_add(1));
        self.is_awaited = true;
    }

    /// The names have come, and `any` thread has got one that it had not: more are worth asking for.
    pub fn have_come(&mut self, any: bool) {
        self.is_awaited = false;
        if any {
            self.pause_ns = 0;
            self.next_ns = self.next_ns.min(self.asked_ns + EVERY_NS);
        }
    }

    /// They cannot be had now; whether they can be had later, so that nothing is known of them.
    pub fn have_failed(&mut self, is_for_now: bool) {
        self.is_awaited = false;
        if is_for_now {
            self.pause_ns = self.pause_ns.min(NEW_NS);
            self.next_ns = self.next_ns.min(self.asked_ns + self.pause_ns);
        }
    }

    /// Whether it is worth waiting for names when the recording ends, where `last` is the last thread
    /// that has none. If nobody has asked for it, it is time to.
    pub fn are_owed(&mut self, last: ThreadId) -> bool {
        let is_new = self.is_new(last);
        if is_new {
            self.next_ns = 0;
        }
        is_new || self.is_awaited
    }

    /// Whether nobody has asked for it.
    fn is_new(&self, thread: ThreadId) -> bool {
        thread.0 >= self.asked_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn names_that_nobody_finds_are_asked_for_ever_more_rarely() {
        let mut names = Names::default();
        let mut asked = vec![];
        for now in (1..10_000).map(|ms| ms * MS) {
            if names.are_due(ThreadId(3), now) {
                names.are_asked_for(ThreadId(3), now);
                names.have_come(false);
                asked.push(now / MS);
            }
        }
        assert_eq!(asked[..5], [1, 51, 151, 351, 751]);
        assert_eq!(asked[asked.len() - 1] - asked[asked.len() - 2], PATIENCE_NS / MS);
    }

    #[test]
    fn where_names_are_found_more_are_soon_asked_for() {
        let mut names = Names::default();
        for now in [10, 60, 160] {
            assert!(names.are_due(ThreadId(1), now * MS));
            names.are_asked_for(ThreadId(1), now * MS);
        }
        assert!(!names.are_due(ThreadId(1), 300 * MS));
        names.have_come(true);
        assert!(names.are_due(ThreadId(1), 300 * MS));
        names.are_asked_for(ThreadId(2), 300 * MS);
        assert!(!names.are_due(ThreadId(2), 349 * MS) && names.are_due(ThreadId(2), 350 * MS));
    }

    /// When a thread is looked for whose name nobody finds, from `begins_ms` on until `ends_ms`.
    fn looked_for(names: &mut Names, thread: u32, begins_ms: u64, ends_ms: u64) -> Vec<u64> {
        let mut looks = vec![];
        for ms in begins_ms..ends_ms {
            if names.are_due(ThreadId(thread), ms * MS) {
                names.are_asked_for(ThreadId(thread), ms * MS);
                names.have_come(false);
                looks.push(ms);
            }
        }
        looks
    }

    #[test]
    fn a_new_thread_does_not_wait_because_python_does_not_know_older_ones() {
        let mut names = Names::default();
        let for_the_first = looked_for(&mut names, 1, 1, 10_000);
        let last = for_the_first[for_the_first.len() - 1];
        let begins = 10_000.max(last + 1);
        let for_the_next = looked_for(&mut names, 2, begins, begins + 1000);
        assert!(for_the_next[0] <= begins + NEW_NS / MS, "{for_the_next:?}");
        let pauses: Vec<u64> = for_the_next.windows(2).map(|it| it[1] - it[0]).collect();
        assert_eq!(pauses[..2], [100, 200]);
    }

    #[test]
    fn looks_that_fail_are_repeated_soon() {
        let mut names = Names::default();
        let mut looks = vec![];
        for ms in 1..3000 {
            if names.are_due(ThreadId(1), ms * MS) {
                names.are_asked_for(ThreadId(1), ms * MS);
                names.have_failed(true);
                looks.push(ms);
            }
        }
        assert!(looks.windows(2).all(|it| it[1] - it[0] <= NEW_NS / MS), "{looks:?}");
    }

    #[test]
    fn who_came_after_the_last_look_is_owed_one() {
        let mut names = Names::default();
        assert!(names.are_owed(ThreadId(0)));
        names.are_asked_for(ThreadId(1), 10 * MS);
        assert!(names.are_owed(ThreadId(1)), "the answer has not come");
        names.have_come(true);
        assert!(!names.are_owed(ThreadId(1)), "Python does not know it");
        assert!(names.are_owed(ThreadId(2)));
        assert!(names.are_due(ThreadId(2), 11 * MS));
        names.are_asked_for(ThreadId(2), 11 * MS);
        names.have_failed(false);
        assert!(!names.are_owed(ThreadId(2)));
    }
}
