//! An interpreter in virtual time: threads that want one GIL, the processors under them, and
//! either CPython's own rules or the [`Line`](ungil_core::schedule::Line) of ungil between them.
//!
//! Each thread is a coroutine that does what `take_gil` and `drop_gil` (`Python/ceval_gil.c`) do,
//! so that the scheduler of ungil runs unchanged: a wait really sleeps in
//! [`Line::wait`](ungil_core::schedule::Line::wait), and sleeping hands over to the thread whose
//! time is next. What costs time is what was recorded: the uses of the GIL and the time away from
//! it, how long a thread takes to wake up, by how much timers are late, how soon a holder answers.

mod events;
mod processors;
mod behind;
mod requests;
mod stacks;
mod world;
mod following;
mod arrivals;
mod launched;
mod progress;
mod deliveries;
mod tally;
mod stock;
mod supplies;
mod pools;
mod thread;

pub(crate) use stacks::NoStack;
pub(crate) use tally::Outcome;
#[cfg(test)]
pub(crate) use world::MOVES_NS;

use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::naps::Naps;
use crate::plan::Planned;
use crate::rules::Gil;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use stacks::Stacks;
use std::cell::RefCell;
use std::rc::Rc;
use thread::Here;
use world::World;

/// What a simulation needs beside its threads.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) gil: Gil,
    pub(crate) cores: Option<usize>,
    /// Whether a light thread that gets the GIL takes the processor of the one that asked for it.
    pub(crate) displaces: bool,
    pub(crate) wake_up_factor: f64,
    pub(crate) lateness: Delays,
    pub(crate) naps: Naps,
    pub(crate) coldness: Coldness,
    /// When it ends, if threads have not before.
    pub(crate) lasts_ns: u64,
    pub(crate) seed: u64,
}

type Body = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    static STACKS: RefCell<Stacks> = RefCell::default();
}

/// Runs `threads` to their end, or to that of the time.
pub(crate) fn simulate(threads: &[Planned], setting: &Setting) -> Result<Outcome, NoStack> {
    let world = Rc::new(World::new(threads, setting));
    let mut bodies: Vec<Option<Body>> = Vec::new();
    bodies.resize_with(threads.len(), || None);
    STACKS.with_borrow_mut(|stacks| {
        let ended_ns = run(&world, &mut bodies, threads, setting.lasts_ns, stacks);
        for mut body in bodies.into_iter().flatten() {
            body.force_unwind();
            stacks.give_back(body.into_stack());
        }
        Ok(world.outcome(ended_ns?))
    })
}

/// Lets the threads do what they do, until `lasts_ns` at most. When that ended.
fn run(
    world: &Rc<World>,
    bodies: &mut [Option<Body>],
    threads: &[Planned],
    lasts_ns: u64,
    stacks: &mut Stacks,
) -> Result<u64, NoStack> {
    loop {
        let next = world.events.borrow_mut().next();
        let Some((number, at_ns)) = next.filter(|(_, at_ns)| *at_ns <= lasts_ns) else { break };
        world.now_ns.set(at_ns);
        if world.is_client(number) {
            world.arrives_at_pool(number);
            continue;
        }
        if world.is_looked_after(number) {
            continue;
        }
        let body = match &mut bodies[number] {
            Some(body) => body,
            none => none.insert(thread_body(world, number, &threads[number], stacks.take()?)),
        };
        if let CoroutineResult::Return(()) = body.resume(()) {
            world.events.borrow_mut().cancel(number);
            if let Some(body) = bodies[number].take() {
                stacks.give_back(body.into_stack());
            }
            world.ended(number);
            world.leaves(number);
        }
    }
    let is_over = bodies.iter().all(Option::is_none) && !world.events.borrow().are_left();
    Ok(if is_over { world.now_ns.get() } else { lasts_ns })
}

fn thread_body(world: &Rc<World>, number: usize, thread: &Planned, stack: DefaultStack) -> Body {
    let (world, thread) = (world.clone(), thread.clone());
    let body = move |yielder: &Yielder<(), ()>, ()| {
        Here::new(&world, number, yielder, &thread).live();
    };
    Coroutine::with_stack(stack, body)
}
