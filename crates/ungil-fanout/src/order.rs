//! In which order finished items are handed out.

use std::collections::VecDeque;

/// Finished items that nobody has taken yet.
#[derive(Debug)]
pub(crate) enum Order<T> {
    /// As they finish.
    Completion(VecDeque<T>),
    /// As they came in: the one at the front is the next, once it has finished.
    Input { next: u64, waiting: VecDeque<Option<T>> },
}

impl<T> Order<T> {
    pub(crate) fn of_input() -> Self {
        Self::Input { next: 0, waiting: VecDeque::new() }
    }

    pub(crate) fn of_completion() -> Self {
        Self::Completion(VecDeque::new())
    }

    pub(crate) fn put(&mut self, index: u64, item: T) {
        match self {
            Self::Completion(finished) => finished.push_back(item),
            Self::Input { next, waiting } => {
                let place = usize::try_from(index - *next).expect("the window is a usize");
                while waiting.len() <= place {
                    waiting.push_back(None);
                }
                waiting[place] = Some(item);
            }
        }
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        match self {
            Self::Completion(finished) => finished.pop_front(),
            Self::Input { next, waiting } => {
                let item = waiting.front_mut()?.take()?;
                waiting.pop_front();
                *next += 1;
                Some(item)
            }
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Completion(finished) => !finished.is_empty(),
            Self::Input { waiting, .. } => matches!(waiting.front(), Some(Some(_))),
        }
    }
}
