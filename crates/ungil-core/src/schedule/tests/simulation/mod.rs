//! An interpreter in virtual time: threads that compute, block, come and go, around the real
//! [`Line`](crate::schedule::Line).
//!
//! Each thread is a coroutine that does what `take_gil` and `drop_gil` do when the hook stands in
//! for their calls, so the code under test runs unchanged: a wait really sleeps in
//! [`Line::wait`](crate::schedule::Line::wait), and sleeping hands over to the thread whose time is
//! next. Processors are as many as threads. What costs time is what the workload says, and besides:
//! a thread that is woken runs [`Workload::wake_ns`] later, in which another may take the free GIL
//! before it, and a holder looks at a request [`Workload::drop_ns`] after it was made. Everything
//! else is immediate, so one workload has one schedule.

mod world;
mod here;

pub(super) use here::Here;

use super::workload::{Outcome, Workload};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::rc::Rc;
use world::World;

/// Runs `workload` to its end.
///
/// # Panics
/// If threads are left that nobody will ever wake.
pub fn simulate(workload: &Workload) -> Outcome {
    let world = Rc::new(World::new(workload));
    let mut threads: Vec<_> = workload
        .threads
        .iter()
        .enumerate()
        .map(|(number, thread)| {
            let (world, thread) = (world.clone(), thread.clone());
            let body = move |yielder: &Yielder<(), ()>, ()| {
                Here::new(&world, number, yielder).live(&thread);
            };
            Some(Coroutine::new(body))
        })
        .collect();
    while let Some((number, due_ns)) = world.next()
        && due_ns <= workload.lasts_ns
    {
        if let Some(signal_ns) = world.signal_ns.get()
            && signal_ns <= due_ns
        {
            world.interrupt(signal_ns);
            continue;
        }
        world.now_ns.set(due_ns);
        world.running.set(number);
        let thread = &mut threads[number];
        world.tasks.borrow_mut()[number].due_ns = None;
        let coroutine = thread.as_mut().expect("a thread that has ended is never due");
        if let CoroutineResult::Return(()) = coroutine.resume(()) {
            *thread = None;
        }
    }
    let lasts_for_ever = threads.iter().any(Option::is_some);
    assert!(!lasts_for_ever || world.next().is_some(), "waits for ever: {:?}", world.tasks);
    world.end(workload.lasts_ns)
}
