//! Which function a frame of the report is of.

pub use ungil_trace::analysis::words::short;
use ungil_trace::origin::{Origin, file_of};

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

/// What code calls the function of a frame, `Class.function (folder/file:line)` with a line or without.
/// A lambda, a function inside of another one and a template have no such name.
pub fn callable(frame: &str) -> Option<&str> {
    let (name, place) = frame.split_once(" (")?;
    let is_name = name.chars().all(|it| it.is_alphanumeric() || "_.".contains(it));
    (is_name && !name.is_empty() && !place.starts_with('<')).then_some(name)
}

/// Whether a frame is the user's own code.
pub fn is_users(frame: &str) -> bool {
    Origin::of(file_of(frame)) == Origin::User
}

/// Whether a frame is of an installed package.
pub fn is_packages(frame: &str) -> bool {
    matches!(Origin::of(file_of(frame)), Origin::Package(_))
}

/// Whether a frame is of a function that only takes a lock for the one that called it:
/// `Condition.__enter__`.
pub fn only_takes_lock(frame: &str) -> bool {
    let name = frame.split(" (").next().and_then(|name| name.rsplit('.').next());
    matches!(name, Some("acquire" | "__enter__"))
}
