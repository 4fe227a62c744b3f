//! Which thread waits for the processor of which other one.
//!
//! A woken thread that finds no free processor waits behind the thread of one, and has it when that
//! one sleeps. That happens where the recording says that a thread took long to go on, and where two
//! processors were shared by three: the one that let go, the one that had asked it to, and the one
//! that has the GIL now.

/// Who waits behind whom.
#[derive(Debug)]
pub(super) struct Behind {
    /// Behind each thread, in their order.
    lines: Vec<Vec<usize>>,
    /// Behind whom each thread is.
    of: Vec<Option<usize>>,
}

impl Behind {
    pub(super) fn new(threads: usize) -> Self {
        Self { lines: vec![Vec::new(); threads], of: vec![None; threads] }
    }

    /// Thread `number` waits for the processor of thread `by`.
    pub(super) fn wait(&mut self, number: usize, by: usize) {
        self.of[number] = Some(by);
        self.lines[by].push(number);
    }

    /// Thread `number` goes on, on whatever processor.
    pub(super) fn goes_on(&mut self, number: usize) {
        self.of[number] = None;
    }

    /// Those that wait for the processor of thread `by`, and do not from now on.
    pub(super) fn freed(&mut self, by: usize) -> impl Iterator<Item = usize> + '_ {
        let Self { lines, of } = self;
        lines[by].drain(..).filter(move |number| of[*number].take_if(|it| *it == by).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_processor_is_told_once_and_only_if_it_still_does() {
        let mut behind = Behind::new(4);
        behind.wait(1, 0);
        behind.wait(2, 0);
        behind.wait(3, 0);
        behind.goes_on(2);
        behind.wait(3, 1);
        assert_eq!(behind.freed(0).collect::<Vec<_>>(), [1]);
        assert_eq!(behind.freed(0).count(), 0);
        assert_eq!(behind.freed(1).collect::<Vec<_>>(), [3]);
    }
}
