//! Threads that are called alike: `worker-0`, `worker-1`; the threads of one pool.

use ungil_trace::report::ThreadReport;

/// Threads with one stem.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// A pattern for their names, as `ungil run --priority` takes it.
    pub pattern: String,
    /// In the order of the report, each with its place there.
    pub threads: Vec<(usize, &'a ThreadReport)>,
}

/// The groups, in the order of their first threads. The main thread is one of its own.
pub fn groups(threads: &[ThreadReport]) -> Vec<Group<'_>> {
    let mut groups: Vec<(String, Group)> = Vec::new();
    for (place, thread) in threads.iter().enumerate() {
        let stem = if thread.main { thread.name.clone() } else { stem(&thread.name) };
        if let Some((_, group)) = groups.iter_mut().find(|(it, _)| *it == stem) {
            group.threads.push((place, thread));
        } else {
            let group = Group { pattern: String::new(), threads: vec![(place, thread)] };
            groups.push((stem, group));
        }
    }
    let named = groups.into_iter().map(|(stem, mut group)| {
        let first = &group.threads[0].1.name;
        let alike = group.threads.iter().all(|(_, thread)| thread.name == *first);
        group.pattern = if alike { escaped(first) } else { escaped(&stem).replace(NUMBER, "*") };
        group
    });
    named.collect()
}

/// What stands for a number in a stem: no name has it.
const NUMBER: char = '\0';

/// A name with its last number left out: `pool-1_3` is `pool-1_`, `Thread-7 (work)` is
/// `Thread- (work)`.
fn stem(name: &str) -> String {
    let Some(end) = name.rfind(|it: char| it.is_ascii_digit()).map(|at| at + 1) else {
        return name.to_owned();
    };
    let start = name[..end]
        .rfind(|it: char| !it.is_ascii_digit())
        .map_or(0, |at| at + name[at..].chars().next().map_or(1, char::len_utf8));
    format!("{}{NUMBER}{}", &name[..start], &name[end..])
}

/// A name as a pattern that matches it alone.
fn escaped(name: &str) -> String {
    let mut pattern = String::new();
    for character in name.chars() {
        match character {
            '*' | '?' | '[' => pattern.extend(['[', character, ']']),
            _ => pattern.push(character),
        }
    }
    pattern
}

/// Whether `ungil run --priority PATTERN=LEVEL` can be given this pattern: it has the threads that
/// are meant and no others, and a name that somebody chose.
pub fn is_option(pattern: &str, main: bool) -> bool {
    let named = !pattern.is_empty() && !pattern.starts_with("thread-") && pattern != "*";
    named && !main && !pattern.contains('=') && !pattern.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_name_tells_the_threads_of_a_pool_apart() {
        for (name, pattern) in [
            ("ThreadPoolExecutor-0_3", "ThreadPoolExecutor-0_*"),
            ("Thread-7 (work)", "Thread-* (work)"),
            ("waitress-3", "waitress-*"),
            ("report-builder", "report-builder"),
            ("é7", "é*"),
            ("7", "*"),
            ("", ""),
            ("a[1]", "a[[]*]"),
        ] {
            assert_eq!(escaped(&stem(name)).replace(NUMBER, "*"), pattern, "{name}");
        }
    }

    #[test]
    fn a_pattern_that_nobody_can_type_is_no_option() {
        assert!(is_option("worker-*", false));
        for pattern in ["", "*", "a=b", "a\nb", "thread-*"] {
            assert!(!is_option(pattern, false), "{pattern:?}");
        }
        assert!(!is_option("MainThread", true));
    }
}
