//! Which function of the user's own a thread was in while others waited for it.

use ungil_trace::report::{HeldIn, ThreadReport};

/// A function is where a thread held if so much of what was seen of it was there.
const MOST: f64 = 0.8;

/// The function, and the part of what others waited for this thread that it was in.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Which.
    pub function: &'a HeldIn,
    /// Its place in `held_in`.
    pub place: usize,
    /// Of 1.
    pub share: f64,
}

/// The innermost function that was nearly always on the stack; if there is none, the one that was
/// there most often of those that are not below all. A generator expression or a lambda stands for
/// the function that it is part of, which can be called by its name.
pub fn held(thread: &ThreadReport) -> Option<Held<'_>> {
    let outermost = thread.held_in.iter().filter(|it| it.depth == 0);
    let all: u64 = outermost.map(|it| it.waiters).sum();
    if all == 0 {
        return None;
    }
    let share = |function: &HeldIn| (function.waiters as f64 / all as f64).min(1.0);
    let can_be_called = |it: &&HeldIn| !name(it).ends_with('>');
    let is_called = thread.held_in.iter().any(|it| can_be_called(&it));
    let places = || {
        let places = thread.held_in.iter().enumerate();
        places.filter(move |(_, it)| !is_called || can_be_called(it))
    };
    let inmost = places().filter(|(_, it)| share(it) >= MOST).max_by_key(|(_, it)| it.depth);
    let (place, function) = inmost.or_else(|| places().max_by_key(|(_, it)| it.waiters))?;
    Some(Held { function, place, share: share(function) })
}

/// `function` of `function (file)`.
pub fn name(function: &HeldIn) -> &str {
    function.function.split_once(" (").map_or(function.function.as_str(), |(name, _)| name)
}

/// Whether a frame, `Class.function (folder/file:line)`, is in a file of this name, in any folder.
pub fn is_in(frame: &str, file: &str) -> bool {
    let place = frame.split_once(" (").map_or(frame, |(_, place)| place);
    let place = place.rsplit_once(':').map_or(place, |(place, _)| place);
    let folder = place.strip_suffix(file);
    folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Whether a frame is of this function of such a file, of whatever class.
pub fn is_of(frame: &str, (file, function): (&str, &str)) -> bool {
    let name = frame.split(" (").next().and_then(|function| function.rsplit('.').next());
    name == Some(function) && is_in(frame, file)
}

/// `function (folder/file)` for a sentence.
pub fn short(frame: &str) -> String {
    let Some((function, place)) = frame.split_once(" (/") else { return frame.to_owned() };
    let tail: Vec<&str> = place.rsplitn(3, '/').take(2).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    format!("{function} ({}", tail.join("/"))
}
