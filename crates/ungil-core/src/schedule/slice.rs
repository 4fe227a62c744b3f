//! How the kernel is to run a thread.
//!
//! Linux 6.12 and later let each thread say how long it wants to run when it runs, its *slice*
//! (Peter Zijlstra, "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion",
//! 2023). It gets no more or less time by that, but who asks for less is run sooner after it was
//! woken, also before a thread that runs. That is what a thread wants which uses the GIL a little and
//! often, and only that one: a short slice of everybody's is nobody's.
//!
//! The price is that it has soon used what it asked for, and is then put aside for a thread that it
//! wakes: for the next one in line, when it lets go of the GIL and is about to sleep. So threads that
//! compute are told to put nobody aside when they wake up (`SCHED_BATCH`).

use super::policy::{Policy, Settings};

/// The slice of a thread, and what it does with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slice {
    /// What it has without ungil.
    #[default]
    Own,
    /// The shortest that the kernel knows.
    Short,
    /// Its own, for which it puts aside nobody who runs when it wakes up.
    Patient,
}

/// How many quanta less than its share a thread has to use for a short slice.
const BEHIND: u64 = 2;
/// How often the kernel has to let a thread use the GIL without putting it aside before it becomes
/// patient: where other programs want the processors, a patient one would not get its share of them.
const UNDISTURBED: u8 = 20;

impl Slice {
    /// What a thread is to have that has `self` and asks for the GIL, of which it used `behind_ns`
    /// less than its share; `was_forced` to let go of it the last time.
    ///
    /// It keeps a short one until it has used up all that it was behind, so that each change costs
    /// it quanta. A thread that computes can be as far behind, when the kernel did not run it for a
    /// while; but that one was forced.
    pub(super) fn next(
        self,
        settings: Settings,
        behind_ns: u64,
        was_forced: bool,
        undisturbed: u8,
    ) -> Self {
        if settings.policy != Policy::Interactive {
            return Self::Own;
        }
        let is_far_behind = behind_ns >= settings.quantum_ns.saturating_mul(BEHIND);
        match self {
            Self::Own | Self::Patient if is_far_behind && !was_forced => Self::Short,
            Self::Patient if undisturbed == 0 => Self::Own,
            Self::Own | Self::Short
                if behind_ns == 0 && was_forced && undisturbed >= UNDISTURBED =>
            {
                Self::Patient
            }
            Self::Short if behind_ns == 0 => Self::Own,
            _ => self,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const QUANTUM_NS: u64 = 5_000_000;

    fn next(slice: Slice, policy: Policy, behind_ns: u64, was_forced: bool) -> Slice {
        slice.next(Settings { policy, quantum_ns: QUANTUM_NS }, behind_ns, was_forced, UNDISTURBED)
    }

    #[test]
    fn a_thread_that_used_much_less_than_its_share_gets_a_short_slice() {
        for slice in [Slice::Own, Slice::Patient] {
            let next = |behind_ns| next(slice, Policy::Interactive, behind_ns, false);
            assert_eq!(next(BEHIND * QUANTUM_NS), Slice::Short);
            assert_eq!(next(BEHIND * QUANTUM_NS - 1), slice);
        }
    }

    #[test]
    fn it_keeps_it_until_it_has_used_its_share() {
        for (was_forced, then) in [(false, Slice::Own), (true, Slice::Patient)] {
            let next = |behind_ns| next(Slice::Short, Policy::Interactive, behind_ns, was_forced);
            assert_eq!(next(1), Slice::Short);
            assert_eq!(next(0), then);
        }
    }

    #[test]
    fn one_that_had_to_be_asked_to_let_go_is_patient_once_it_has_used_its_share() {
        let next = |behind_ns| next(Slice::Own, Policy::Interactive, behind_ns, true);
        assert_eq!(next(0), Slice::Patient);
        for behind_ns in [1, u64::MAX] {
            assert_eq!(next(behind_ns), Slice::Own);
        }
    }

    #[test]
    fn nobody_is_patient_whom_the_kernel_puts_aside() {
        let settings = Settings { policy: Policy::Interactive, quantum_ns: QUANTUM_NS };
        let next = |slice: Slice, undisturbed| slice.next(settings, 0, true, undisturbed);
        for slice in [Slice::Own, Slice::Short] {
            assert_eq!(next(slice, UNDISTURBED - 1), Slice::Own);
            assert_eq!(next(slice, UNDISTURBED), Slice::Patient);
        }
        assert_eq!(next(Slice::Patient, 0), Slice::Own);
        assert_eq!(next(Slice::Patient, 1), Slice::Patient);
    }

    #[test]
    fn one_that_lets_go_by_itself_is_not_made_patient() {
        assert_eq!(next(Slice::Own, Policy::Interactive, 0, false), Slice::Own);
    }

    #[test]
    fn no_other_policy_changes_or_leaves_one() {
        for policy in Policy::ALL.into_iter().filter(|it| *it != Policy::Interactive) {
            for slice in [Slice::Own, Slice::Short, Slice::Patient] {
                assert_eq!(next(slice, policy, u64::MAX, false), Slice::Own);
                assert_eq!(next(slice, policy, 0, true), Slice::Own);
            }
        }
    }

    #[test]
    fn it_is_decided_for_any_quantum() {
        let settings = Settings { policy: Policy::Interactive, quantum_ns: u64::MAX };
        assert_eq!(Slice::Own.next(settings, 0, false, UNDISTURBED), Slice::Own);
    }
}
