//! Threads that hand work to each other all the time (`bench/handovers.py`): a policy that
//! interrupts them costs more than it gives anybody.

use super::simulation::simulate;
use super::workload::{Act, Outcome, Step, Then, Thread, Workload};
use crate::schedule::{Level, Policy, Settings};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const QUANTUM_NS: u64 = 5 * MS;
const OWN: [Policy; 4] = [Policy::Interactive, Policy::Fair, Policy::Batch, Policy::Priority];

fn does(steps: Vec<Step>, then: Then) -> Thread {
    Thread { level: Level::Normal, begins_ns: 0, steps, then }
}

fn run(policy: Policy, threads: Vec<Thread>, queues: Vec<Option<usize>>) -> Outcome {
    simulate(&under(policy, threads, queues))
}

fn under(policy: Policy, threads: Vec<Thread>, queues: Vec<Option<usize>>) -> Workload {
    Workload {
        threads,
        settings: vec![(0, Settings { policy, quantum_ns: QUANTUM_NS })],
        queues,
        signal_ns: None,
        lasts_ns: 10_000 * MS,
        wake_ns: 20 * US,
        drop_ns: 10 * US,
    }
}

/// How often the GIL went from one thread to another.
fn handoffs(outcome: &Outcome) -> usize {
    outcome.holds.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count()
}

/// How long it took, and how much of that somebody held the GIL.
fn lasted_and_held_ns(outcome: &Outcome) -> (u64, u64) {
    let last = outcome.holds.last().expect("somebody held the GIL");
    (last.to_ns, outcome.holds.iter().map(|hold| hold.to_ns - hold.from_ns).sum())
}

#[test]
fn a_thread_that_feeds_a_pool_is_not_interrupted_for_each_item() {
    const ITEMS: usize = 5_000;
    const WORKERS: usize = 8;
    for policy in OWN {
        // ThreadPoolExecutor(8).map(int, ...): the first makes items, the others take them.
        let item = [Act::Compute(10 * US), Act::Put(0)];
        let feeds = does(vec![Step::Use(item.repeat(ITEMS))], Then::Exit);
        let works = does(
            vec![Step::Use([Act::Get(0), Act::Compute(5 * US)].repeat(ITEMS / WORKERS))],
            Then::Exit,
        );
        let threads = [vec![feeds], vec![works; WORKERS]].concat();
        let outcome = run(policy, threads, vec![None]);
        let (lasted_ns, held_ns) = lasted_and_held_ns(&outcome);
        // Each quantum of the first, every worker may find nothing.
        let quanta = usize::try_from(lasted_ns / QUANTUM_NS).expect("few") + 2;
        let most = quanta * 3 * WORKERS;
        assert!(handoffs(&outcome) <= most, "{policy:?}: {} > {most}", handoffs(&outcome));
        assert!(lasted_ns - held_ns <= held_ns / 10, "{policy:?}: {lasted_ns} {held_ns}");
    }
}

#[test]
fn producers_and_consumers_of_a_bounded_queue_do_not_interrupt_each_other() {
    const PAIRS: usize = 50;
    const ITEMS: usize = 20_000;
    for policy in OWN {
        // Each begins when others are at it: one that is interrupted holds the queue's own mutex,
        // for which all others then line up, and such a convoy lasts.
        let threads: Vec<_> = [Act::Put(0), Act::Get(0)]
            .into_iter()
            .cycle()
            .take(2 * PAIRS)
            .zip(0..)
            .map(|(act, number)| {
                let thread = does(vec![Step::Use(vec![act; ITEMS / PAIRS])], Then::Exit);
                Thread { begins_ns: number * MS, ..thread }
            })
            .collect();
        let outcome = run(policy, threads, vec![Some(PAIRS)]);
        let (requests, handoffs) = (outcome.requests, handoffs(&outcome));
        assert!(requests <= 10, "{policy:?}: {requests} requests");
        assert!(handoffs <= ITEMS / 4, "{policy:?}: {handoffs} handoffs");
    }
}

#[test]
fn threads_that_are_interrupted_do_not_line_up_at_the_lock_that_they_share() {
    for policy in OWN {
        let locked = [Act::ComputeLocked(30 * US), Act::Compute(10 * US)];
        let computes = does(vec![Step::Use(locked.repeat(25_000))], Then::Exit);
        let outcome = run(policy, vec![computes; 8], vec![]);
        assert_eq!(outcome.lined_up, 0, "{policy:?}");
        assert!(handoffs(&outcome) >= 50, "{policy:?}: they are interrupted");
    }
}

#[test]
fn a_thread_that_computes_with_a_lock_is_interrupted_all_the_same() {
    // In the lock for 30 us at a time, or for so long that nobody waits for its end.
    for (locked_ns, most_ns) in [(30 * US, QUANTUM_NS / 2), (20 * MS, QUANTUM_NS / 5)] {
        let locked = [Act::ComputeLocked(locked_ns), Act::Compute(10 * US)];
        let computes = does(vec![Step::Use(locked.to_vec())], Then::Repeat);
        let answers = does(vec![Step::Block(3 * MS), Step::Compute(50 * US)], Then::Repeat);
        let outcome = run(Policy::Interactive, vec![answers, computes], vec![]);
        let longest_ns = outcome.longest_wait_ns(0, 500 * MS);
        assert!(longest_ns <= most_ns, "{locked_ns}: {longest_ns}");
        assert!(outcome.waits_of(0, 500 * MS).count() > 2_000, "it waits each time");
    }
}

#[test]
fn a_worker_that_a_thread_of_little_use_has_woken_interrupts_one_that_computes() {
    // It gets a request every 3 ms and hands it to a worker, who comes before it lets go.
    let computes = does(vec![Step::Compute(1 << 50)], Then::Exit);
    let receives = does(
        vec![Step::Block(3 * MS), Step::Use(vec![Act::Put(0), Act::Compute(50 * US)])],
        Then::Repeat,
    );
    let works = does(vec![Step::Use(vec![Act::Get(0), Act::Compute(50 * US)])], Then::Repeat);
    let threads = [vec![receives, works], vec![computes; 4]].concat();
    let outcome = run(Policy::Interactive, threads, vec![None]);
    for thread in [0, 1] {
        let longest_ns = outcome.longest_wait_ns(thread, 500 * MS);
        assert!(longest_ns <= QUANTUM_NS / 10, "{thread}: {longest_ns}");
    }
    assert!(outcome.waits_of(1, 500 * MS).count() > 2_000, "it waits each time");
}

#[test]
fn threads_that_never_have_to_wait_take_the_gil_back_and_share_it_all_the_same() {
    for policy in OWN {
        // As on a pair of sockets of its own: away for shorter than another takes to wake.
        let steps = vec![Step::Compute(US), Step::Block(US)];
        let threads = vec![does(steps, Then::Repeat); 8];
        let lasts_ns = 50 * 8 * QUANTUM_NS;
        let outcome = simulate(&Workload { lasts_ns, ..under(policy, threads, vec![]) });
        let held_ns: Vec<_> = (0..8).map(|thread| outcome.held_ns(thread, 0, lasts_ns)).collect();
        let (least, most) = (held_ns.iter().min(), held_ns.iter().max());
        assert!(
            least.zip(most).is_some_and(|(least, most)| most <= &(2 * least)),
            "{policy:?} {held_ns:?}"
        );
        // It goes to another now and then; and a system call is not made for each use. One that was
        // woken may find the GIL taken back, and is woken again.
        let uses = outcome.holds.len();
        let each_wake = uses / 10; // So many go by while a thread wakes up.
        for (what, count, most) in [
            ("handoffs", handoffs(&outcome), uses / 50),
            ("CPU times read", outcome.cpu_reads, uses / 50),
            ("wakes", outcome.wakes, each_wake + each_wake / 10),
        ] {
            assert!(count <= most, "{policy:?}: {count} {what} for {uses} uses");
        }
    }
}
