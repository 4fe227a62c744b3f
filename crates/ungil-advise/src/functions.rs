//! Which function a frame of the report is of.

pub use ungil_trace::analysis::words::short;
use ungil_trace::origin::Origin;

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

/// The file in `function (file:line)`.
fn file_of(frame: &str) -> &str {
    let place = frame.split_once(" (").map_or(frame, |(_, place)| place);
    let place = place.strip_suffix(')').unwrap_or(place);
    match place.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => file,
        _ => place,
    }
}
