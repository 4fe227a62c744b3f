//! Which function a frame of the report is of.

pub use ungil_trace::analysis::words::short;

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
