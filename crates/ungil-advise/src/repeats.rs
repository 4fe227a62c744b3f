//! Advice that is the same for many processes: a server has workers that are all alike.

use crate::advice::Advice;
use std::collections::HashMap;

/// Has each piece of advice say which better one asks for the same elsewhere.
pub fn mark(all: &mut [Advice]) {
    let mut firsts = HashMap::new();
    for (place, Advice { kind, cause, action, subject, same_as, .. }) in all.iter_mut().enumerate()
    {
        let whom = (subject.function.clone(), subject.thread_group.clone());
        let first = *firsts.entry((*kind, *cause, action.clone(), whom)).or_insert(place);
        *same_as = (first != place).then_some(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::tests::story::{MS, Story};

    #[test]
    fn of_two_processes_that_are_alike_the_second_one_is_advised_the_same() {
        let told = Story::convoy().end(2_000 * MS).advised.advice;
        assert!(told.iter().all(|it| it.same_as.is_none()));
        let mut all = [told.clone(), told.clone()].concat();
        mark(&mut all);
        let firsts: Vec<_> = all.iter().map(|it| it.same_as).collect();
        let repeats: Vec<_> = (0..told.len()).map(Some).collect();
        assert_eq!(firsts, [vec![None; told.len()], repeats].concat());
    }

    #[test]
    fn what_is_asked_of_another_function_is_not_the_same() {
        let told = Story::convoy().end(2_000 * MS).advised.advice;
        let mut all: Vec<_> =
            told.iter().filter(|it| it.kind == Kind::ToAProcess).cloned().collect();
        all.push(all[0].clone());
        all[0].subject.function = Some("other (app.py:9)".to_owned());
        mark(&mut all);
        assert_eq!(all[1].same_as, None);
    }
}
