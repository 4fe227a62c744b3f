//! The processors that a process may use.

use super::throttling::CpuLimits;
use crate::record::Processors;

/// Those of the process `pid`, whose control groups have these limits. `None` if it is gone.
pub fn processors(pid: u32, limits: Option<&CpuLimits>) -> Option<Processors> {
    let limit_thousandths = limits.and_then(CpuLimits::lowest_thousandths);
    Some(Processors { allowed: allowed(pid)?, limit_thousandths })
}

/// Those of this process, which has started the one that is gone, as far as can be told.
pub fn own() -> Option<Processors> {
    let pid = std::process::id();
    processors(pid, CpuLimits::of(pid).as_ref())
}

/// On how many processors a process may run. What `/proc` lists may name some that are not there.
fn allowed(pid: u32) -> Option<u32> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    // A machine has more processors than a `cpu_set_t` can name if the kernel says so.
    for sets in [1, 8, 64] {
        // SAFETY: a set of processors is plain bits, and all of them may be 0.
        let mut sets = vec![unsafe { std::mem::zeroed::<libc::cpu_set_t>() }; sets];
        let bytes = std::mem::size_of_val(&sets[..]);
        // SAFETY: the sets are one array of so many bytes, which the kernel writes to.
        if unsafe { libc::sched_getaffinity(pid, bytes, sets.as_mut_ptr()) } == 0 {
            // SAFETY: each is a whole set.
            let counts = sets.iter().map(|set| unsafe { libc::CPU_COUNT(set) });
            return u32::try_from(counts.sum::<i32>()).ok().filter(|&count| count > 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_use_as_many_as_it_is_told() {
        let own = processors(std::process::id(), None).unwrap();
        // What it is told may be less, by a limit.
        let told = std::thread::available_parallelism().unwrap().get();
        assert!(own.allowed as usize >= told, "{own:?}, {told}");
        assert_eq!(own.limit_thousandths, None);
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_known() {
        assert_eq!(processors(u32::MAX, None), None);
    }
}
