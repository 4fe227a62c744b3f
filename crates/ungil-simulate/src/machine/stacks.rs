//! Stacks for the threads of simulations.
//!
//! They are kept from one simulation to the next of the same thread: with 10,000 threads, mapping and
//! unmapping them takes longer than what the threads do.

use corosensei::stack::DefaultStack;

/// A thread needs no more: the deepest call is that of a wait in the line.
const STACK_BYTES: usize = 32 * 1024;

/// So many threads may live at once: each stack is two mappings of memory, of which Linux lets a
/// process have 65,530 (`vm.max_map_count`).
const MOST_STACKS: usize = 25_000;

/// There is not enough memory for a stack of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoStack;

/// Those that no thread uses.
#[derive(Default)]
pub(super) struct Stacks {
    free: Vec<DefaultStack>,
    /// How many there are, with those in use.
    made: usize,
}

impl Stacks {
    pub(super) fn take(&mut self) -> Result<DefaultStack, NoStack> {
        if let Some(stack) = self.free.pop() {
            return Ok(stack);
        }
        if self.made == MOST_STACKS {
            return Err(NoStack);
        }
        let stack = DefaultStack::new(STACK_BYTES).map_err(|_| NoStack)?;
        self.made += 1;
        Ok(stack)
    }

    pub(super) fn give_back(&mut self, stack: DefaultStack) {
        self.free.push(stack);
    }
}
