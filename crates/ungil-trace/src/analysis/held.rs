//! Which function of the user's own threads were in while others waited for them.

use crate::report::HeldIn;

/// A function is where threads held if so much of what was seen of them was there.
const MOST: f64 = 0.8;

/// A function, and the part of what others waited for these threads that they were in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Which, with the looks at all of the threads.
    pub function: HeldIn,
    /// Of 1.
    pub share: f64,
}

/// The innermost function that was nearly always on the stack of these threads; if there is none, the
/// one that was there most often of those that are not below all. A generator expression or a lambda
/// stands for the function that it is part of, which can be called by its name.
///
/// The threads of a pool, or those that a server starts for each request, count together: of one of
/// them there may be one look.
pub fn held<'a>(threads: impl IntoIterator<Item = &'a [HeldIn]>) -> Option<Held> {
    inmost_of(threads, |_| true)
}

/// The same of those functions that can run elsewhere as a whole: of what a package calls back, for
/// each row, say, it is the one that called the package.
pub fn movable<'a>(threads: impl IntoIterator<Item = &'a [HeldIn]>) -> Option<Held> {
    inmost_of(threads, |it| !it.is_called_back())
}

/// The same of those that are meant, or of all if none is.
fn inmost_of<'a>(
    threads: impl IntoIterator<Item = &'a [HeldIn]>,
    is_meant: impl Fn(&HeldIn) -> bool,
) -> Option<Held> {
    let mut functions: Vec<HeldIn> = Vec::new();
    let mut all = 0.0;
    for held in threads.into_iter().flatten() {
        // Each look has one innermost function. A stack may be cut, so it may have no outermost one.
        all += held.innermost as f64 * held.waiters as f64 / held.looks.max(1) as f64;
        match functions.iter_mut().find(|it| it.function == held.function) {
            Some(known) => known.add(held),
            None => functions.push(held.clone()),
        }
    }
    if all <= 0.0 {
        return None;
    }
    let share = |function: &HeldIn| (function.waiters as f64 / all).min(1.0);
    let can_be_called = |it: &HeldIn| !it.name().ends_with('>');
    keep(&mut functions, is_meant);
    keep(&mut functions, can_be_called);
    let inmost = functions.iter().filter(|it| share(it) >= MOST).max_by_key(|it| it.depth);
    let function = inmost.or_else(|| functions.iter().max_by_key(|it| it.waiters))?;
    Some(Held { function: function.clone(), share: share(function) })
}

/// Keeps those that are meant, if there are any.
fn keep(functions: &mut Vec<HeldIn>, is_meant: impl Fn(&HeldIn) -> bool) {
    if functions.iter().any(&is_meant) {
        functions.retain(is_meant);
    }
}

impl HeldIn {
    /// The name of the function.
    pub fn name(&self) -> &str {
        self.function.split_once(" (").map_or(&self.function, |(name, _)| name)
    }

    /// Takes in what another thread did in the same function.
    fn add(&mut self, other: &Self) {
        if other.innermost > self.innermost {
            self.frame.clone_from(&other.frame);
        }
        self.depth = self.depth.min(other.depth);
        self.looks += other.looks;
        self.waiters += other.waiters;
        self.innermost += other.innermost;
        self.called_back += other.called_back;
        self.importing += other.importing;
        for module in &other.imported {
            if !self.imported.contains(module) {
                self.imported.push(module.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `looks` at a thread in a function, in so many of them in the function itself.
    fn held_in(name: &str, depth: u64, looks: u64, innermost: u64) -> HeldIn {
        HeldIn {
            function: format!("{name} (app.py)"),
            depth,
            looks,
            waiters: 2 * looks,
            innermost,
            called_back: 0,
            importing: 0,
            imported: Vec::new(),
            frame: Some(format!("{name} (app.py:{looks})")),
        }
    }

    fn of(threads: &[&[HeldIn]]) -> Option<(String, f64)> {
        let held = held(threads.iter().copied());
        held.map(|held| (held.function.name().to_owned(), held.share))
    }

    #[test]
    fn the_innermost_function_that_was_nearly_always_there_is_it() {
        let stack = [held_in("main", 0, 10, 1), held_in("score", 1, 9, 4), held_in("add", 2, 5, 5)];
        assert_eq!(of(&[&stack]), Some(("score".to_owned(), 0.9)));
        assert_eq!(of(&[&[]]), None);
    }

    #[test]
    fn what_a_package_calls_back_stays_with_the_function_that_called_the_package() {
        let back = |it: HeldIn, called_back| HeldIn { called_back, ..it };
        let stack = [
            held_in("main", 0, 10, 0),
            held_in("report", 1, 9, 1),
            back(held_in("each", 2, 9, 2), 9),
            back(held_in("spread", 3, 8, 6), 8),
        ];
        let movable = movable([&stack[..]]).unwrap();
        assert_eq!((movable.function.name(), movable.share), ("report", 1.0));
        assert_eq!(of(&[&stack]).unwrap().0, "spread");
    }

    #[test]
    fn threads_that_were_seen_once_each_count_together() {
        let one = [held_in("run", 0, 1, 0), held_in("wrapper", 1, 1, 1)];
        let other = [held_in("run", 0, 9, 0), held_in("score", 1, 9, 9)];
        assert_eq!(of(&[&one, &other]), Some(("score".to_owned(), 0.9)));
    }

    #[test]
    fn a_look_that_saw_the_inner_part_of_a_stack_alone_counts_as_one() {
        let inner = held_in("score.<locals>.<genexpr>", 0, 10, 10);
        let stack = [held_in("main", 0, 9, 0), held_in("score", 1, 9, 0), inner];
        assert_eq!(of(&[&stack]), Some(("score".to_owned(), 0.9)));
    }

    #[test]
    fn a_lambda_stands_for_the_function_that_it_is_part_of() {
        let stack = [held_in("main", 0, 10, 0), held_in("main.<locals>.<lambda>", 1, 10, 10)];
        assert_eq!(of(&[&stack]), Some(("main".to_owned(), 1.0)));
        assert_eq!(of(&[&[held_in("<lambda>", 0, 10, 10)]]), Some(("<lambda>".to_owned(), 1.0)));
    }
}
