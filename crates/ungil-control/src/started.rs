//! What a process was started with, as `/proc` tells it.

use std::fs;
use std::path::Path;

use ungil_core::brings_hook;

/// What a process was started with. Later changes of its environment do not show.
pub struct Started {
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
}

impl Started {
    /// Of `process`, a folder of `/proc`. What cannot be read is empty.
    pub fn read(process: &Path) -> Self {
        let words = |file| {
            let text = fs::read(process.join(file)).unwrap_or_default();
            text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
        };
        Self { arguments: words("cmdline"), environment: words("environ") }
    }

    /// Whether there is nothing: the kernel has not put it there yet, in the middle of an exec.
    pub fn is_unknown(&self) -> bool {
        [&self.arguments, &self.environment].into_iter().flatten().all(Vec::is_empty)
    }

    /// Whether its environment has the variable `name`, which may be followed by `=` and a value.
    pub fn has(&self, name: &[u8]) -> bool {
        self.environment.iter().any(|variable| match variable.strip_prefix(name) {
            Some(rest) => rest.is_empty() || (rest[0] == b'=' && rest.len() > 1),
            None => false,
        })
    }

    /// Whether the loader was told to load the hook, or its stub, into it.
    pub fn preloads_hook(&self) -> bool {
        let values = self.environment.iter().filter_map(|it| it.strip_prefix(b"LD_PRELOAD="));
        let mut paths = values.flat_map(|value| value.split(|byte| b" :".contains(byte)));
        paths.any(|path| brings_hook(file_name(path)))
    }

    /// The command of ungil that it runs, if it is ungil: `python .../ungil VERB`, `python -m ungil
    /// VERB`.
    pub fn verb_of_ungil(&self) -> Option<&[u8]> {
        let words: Vec<&[u8]> = self.arguments.iter().map(Vec::as_slice).collect();
        let (program, rest) = words.split_first()?;
        if file_name(program) == b"ungil" {
            return rest.first().copied();
        }
        if !file_name(program).starts_with(b"python") {
            return None;
        }
        match rest {
            [b"-m", b"ungil", verb, ..] => Some(verb),
            [script, verb, ..] if file_name(script) == b"ungil" => Some(verb),
            _ => None,
        }
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn run_as(arguments: &str) -> Started {
        Started { arguments: words(arguments), environment: Vec::new() }
    }

    fn with(variables: &str) -> Started {
        Started { arguments: Vec::new(), environment: words(variables) }
    }

    #[test]
    fn ungil_is_known_by_its_script_and_by_its_module() {
        for line in ["ungil run app.py", "python3.13 /usr/bin/ungil run", "python -m ungil run"] {
            assert_eq!(run_as(line).verb_of_ungil(), Some(b"run".as_slice()), "{line}");
        }
        for line in ["python app.py run", "python -m other run", "vi ungil run", "ungil", ""] {
            assert_eq!(run_as(line).verb_of_ungil(), None, "{line}");
        }
    }

    #[test]
    fn a_variable_without_a_value_was_not_set() {
        assert!(with("A=b UNGIL_POLICY=batch").has(b"UNGIL_POLICY"));
        assert!(with("UNGIL_CHILDREN=0").has(b"UNGIL_CHILDREN=0"));
        assert!(!with("UNGIL_POLICY=").has(b"UNGIL_POLICY"));
        assert!(!with("UNGIL_POLICY_OF=batch").has(b"UNGIL_POLICY"));
    }

    #[test]
    fn the_hook_is_found_among_what_else_is_preloaded() {
        assert!(with("LD_PRELOAD=/y.so:/x/libungil_preload.so").preloads_hook());
        assert!(with("LD_PRELOAD=/y.so:/older/libungil_hook.so").preloads_hook());
        assert!(!with("LD_PRELOAD=/libungil_preload.so/y.so").preloads_hook());
        assert!(!with("PATH=/x/libungil_preload.so").preloads_hook());
    }

    #[test]
    fn the_words_of_this_very_process_can_be_read() {
        let started = Started::read(Path::new("/proc/self"));
        assert!(!started.is_unknown());
        assert!(Started::read(Path::new("/proc/self/no-such-folder")).is_unknown());
    }
}
