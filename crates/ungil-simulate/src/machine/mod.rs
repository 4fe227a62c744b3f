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
mod world;
mod following;
mod arrivals;
mod tally;
mod stock;
mod thread;

pub(crate) use tally::Outcome;

use crate::delays::Delays;
use crate::plan::Planned;
use crate::rules::Gil;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::rc::Rc;
use thread::Here;
use world::World;

/// What a simulation needs beside its threads.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) gil: Gil,
    pub(crate) cores: Option<usize>,
    pub(crate) wake_up_factor: f64,
    pub(crate) lateness: Delays,
    /// When it ends, if threads have not before.
    pub(crate) lasts_ns: u64,
    pub(crate) seed: u64,
}

/// A thread needs no more: the deepest call is that of a wait in the line.
const STACK_BYTES: usize = 32 * 1024;

/// So many threads may live at once: each stack is two mappings of memory, of which Linux lets a
/// process have 65,530 (`vm.max_map_count`).
const MOST_STACKS: usize = 25_000;

/// There is not enough memory for a stack of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoStack;

type Body = Coroutine<(), (), (), DefaultStack>;

/// Runs `threads` to their end, or to that of the time.
pub(crate) fn simulate(threads: &[Planned], setting: &Setting) -> Result<Outcome, NoStack> {
    let world = Rc::new(World::new(threads, setting));
    let mut bodies: Vec<Option<Body>> = Vec::new();
    bodies.resize_with(threads.len(), || None);
    // Threads that end leave their stacks to those that begin.
    let mut stacks: Vec<DefaultStack> = Vec::new();
    let mut made = 0;
    loop {
        let next = world.events.borrow_mut().next();
        let Some((number, at_ns)) = next.filter(|(_, at_ns)| *at_ns <= setting.lasts_ns) else {
            break;
        };
        world.now_ns.set(at_ns);
        if world.is_looked_after(number) {
            continue;
        }
        let body = match &mut bodies[number] {
            Some(body) => body,
            none => {
                let stack = match stacks.pop() {
                    Some(stack) => stack,
                    None if made == MOST_STACKS => return Err(NoStack),
                    None => {
                        made += 1;
                        DefaultStack::new(STACK_BYTES).map_err(|_| NoStack)?
                    }
                };
                none.insert(thread_body(&world, number, &threads[number], stack))
            }
        };
        if let CoroutineResult::Return(()) = body.resume(()) {
            world.events.borrow_mut().cancel(number);
            stacks.extend(bodies[number].take().map(Coroutine::into_stack));
            world.ended(number);
            world.leaves(number);
        }
    }
    let is_over = bodies.iter().all(Option::is_none) && !world.events.borrow().are_left();
    let ended_ns = if is_over { world.now_ns.get() } else { setting.lasts_ns };
    Ok(world.outcome(ended_ns))
}

fn thread_body(world: &Rc<World>, number: usize, thread: &Planned, stack: DefaultStack) -> Body {
    let (world, thread) = (world.clone(), thread.clone());
    let body = move |yielder: &Yielder<(), ()>, ()| {
        Here::new(&world, number, yielder, thread.level).live(&thread);
    };
    Coroutine::with_stack(stack, body)
}
