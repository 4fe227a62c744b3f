//! What the kernel does with a thread, by its own account in `/proc/PID/task/TID`.
//!
//! The holder itself tells for how long it ran in a long hold, but not whether it slept or was not
//! run for the rest, and nothing at all if it is killed. The kernel's count of how long a thread
//! wanted to run and did not (its run delay) tells these apart, if it is read before the hold,
//! during it, and after it.

use crate::clock::now_ns;
use crate::record::{Record, ThreadId};
use std::fs;

/// Between two answers that are given out during one hold, at most.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;

/// What the kernel has counted for a thread, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// When it was asked.
    pub at_ns: u64,
    /// Time on a processor. It may lack what the thread ran since the last tick.
    pub ran_ns: u64,
    /// Time in which the thread wanted to run and did not. It lacks a delay that goes on.
    pub delayed_ns: u64,
    /// Whether it ran or wanted to, and did not sleep.
    pub runnable: bool,
}

impl Scheduled {
    /// Asks. `None` if the thread is gone, or if the kernel does not count.
    pub fn of(pid: u32, tid: u32) -> Option<Self> {
        let runnable = is_runnable(&read(pid, tid, "stat"));
        let [ran_ns, delayed_ns] = times(&read(pid, tid, "schedstat"))?;
        Some(Self { at_ns: now_ns(), ran_ns, delayed_ns, runnable })
    }

    /// As a record of `thread`.
    pub const fn record(self, thread: ThreadId) -> Record {
        let Self { at_ns, ran_ns, delayed_ns, runnable } = self;
        Record::Scheduled { thread, at_ns, ran_ns, delayed_ns, runnable }
    }
}

/// Voluntary and involuntary context switches of a thread; zeroes if it is gone.
pub fn switches(pid: u32, tid: u32) -> [u64; 2] {
    let status = read(pid, tid, "status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|it| field(it).unwrap_or(0))
}

/// A file of the thread; empty if it cannot be read.
fn read(pid: u32, tid: u32, file: &str) -> String {
    // The name of a thread, which is in `stat`, may be any bytes.
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `proc_pid_schedstat` in Linux's `fs/proc/base.c`: time on a processor, run delay, and how often
/// the thread was put on a processor, which is 0 where nothing is counted.
fn times(schedstat: &str) -> Option<[u64; 2]> {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (ran_ns, delayed_ns, times) = (next()?, next()?, next()?);
    (times > 0).then_some([ran_ns, delayed_ns])
}

/// `proc_pid_stat`: id, name in parentheses, state. What is not known may be runnable.
fn is_runnable(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_none_or(|state| state == 'R')
}

/// Follows the holds of one thread, and asks as often as it takes to tell what became of them.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// The last answer, if it was not given out.
    latest: Option<Scheduled>,
    /// The last one that found the thread asleep, if it is older and was not given out either.
    asleep: Option<Scheduled>,
    /// Beginning of the hold that is followed, or 0.
    hold_ns: u64,
    /// The age of that hold at which an answer is given out again.
    next_age_ns: u64,
}

impl Follower {
    /// Keeps an answer, which may turn out to be the last one before a long hold.
    pub fn keep(&mut self, answer: Scheduled) {
        if let Some(earlier) = self.latest.replace(answer)
            && !earlier.runnable
        {
            self.asleep = Some(earlier);
        }
    }

    /// The last answers during the hold that is followed, if they were not given out: no end of
    /// that hold will be seen. A thread that is killed while it sleeps is seen awake before it dies,
    /// and what came before is known only from when it slept.
    pub fn last_of_a_hold(&mut self) -> impl Iterator<Item = Scheduled> {
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
        ask: impl Fn() -> Option<Scheduled>,
        mut give: impl FnMut(Scheduled),
    ) {
        if self.hold_ns != 0 && self.hold_ns != since_ns {
            self.hold_ns = 0;
            self.asleep = None;
            self.latest.take().into_iter().chain(ask()).for_each(&mut give);
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
            self.latest.take().into_iter().for_each(&mut give);
            self.asleep = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn answer(at_ns: u64) -> Scheduled {
        Scheduled { at_ns, ran_ns: 0, delayed_ns: 0, runnable: false }
    }

    /// The answers that looks at `(since, now)`, in ms, gave out.
    fn looks(follower: &mut Follower, looks: &[(u64, u64)]) -> Vec<u64> {
        let mut given = Vec::new();
        for &(since, now) in looks {
            let give = |answer: Scheduled| given.push(answer.at_ns / MS);
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
        let woken = |at_ns| Scheduled { runnable: true, ..answer(at_ns) };
        let look = |follower: &mut Follower, now: u64, found: Option<Scheduled>| {
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

    #[test]
    fn a_kernel_that_does_not_count_has_no_answer() {
        assert_eq!(times("4373795 12 7\n"), Some([4_373_795, 12]));
        for text in ["0 0 0\n", "", "1 2", "-1 2 3", "a b c"] {
            assert_eq!(times(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_may_have_any_name() {
        assert!(is_runnable("22914 (cat) R 22899 22899"));
        assert!(!is_runnable("22914 (a) R (b) S 22899 22899"));
        assert!(!is_runnable("22914 (a) D 1"));
        assert!(is_runnable(""), "what is not known may be runnable");
    }

    #[test]
    fn this_very_thread_has_run() {
        // SAFETY: gettid has no preconditions.
        let tid = u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
        let answer = Scheduled::of(std::process::id(), tid);
        assert_eq!(answer.is_some(), fs::metadata("/proc/self/schedstat").is_ok());
        assert!(Scheduled::of(u32::MAX, 1).is_none());
    }
}
