//! Why a process has no control page: told by what it has mapped, was started with, and is.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::hookable::{self, Hookable};
use crate::mapping::Mapping;
use crate::started::Started;

/// There is no page, or none that can be used.
#[derive(Debug)]
pub enum NoPage {
    /// The sentence, about the process and without a final dot, says why not.
    Never(String),
    /// It has made none, as the sentence says, and may be asked in another way.
    Without(String),
    /// Not yet, as the sentence says; it may come at any moment.
    NotYet(String),
    /// The process cannot be looked into.
    Unknown(io::Error),
}

impl From<io::Error> for NoPage {
    fn from(error: io::Error) -> Self {
        Self::Unknown(error)
    }
}

/// Why `process`, a folder of `/proc`, has no page among its `mappings`.
pub fn why(process: &Path, mappings: &[Mapping<'_>]) -> NoPage {
    if mappings.is_empty() {
        return NoPage::Never("it has ended".into()); // A zombie; the kernel's own have none either.
    }
    if mappings.iter().any(Mapping::is_hook) {
        return why_not_scheduled(process, mappings);
    }
    let started = Started::read(process);
    if started.is_unknown() {
        return NoPage::NotYet("it is just executing another program (exec)".into());
    }
    let executable = || hookable::program(&process.join("exe"));
    if let Some(verb) = started.verb_of_ungil() {
        return match verb {
            b"run" => NoPage::NotYet("it is ungil run, and has not become its program yet".into()),
            b"trace" => NoPage::Never(
                "it is ungil trace itself; give the process id of the program that it runs".into(),
            ),
            _ => NoPage::Never("it is ungil itself".into()),
        };
    }
    if started.preloads_hook() {
        return match executable() {
            Hookable::No(why) => NoPage::Never(named(process, &why)),
            Hookable::NotPython { preloadable: false } => {
                NoPage::Never("it is statically linked, so no loader preloads the hook".into())
            }
            _ => NoPage::NotYet(
                "the hook that its environment names is not loaded; it is still starting, or the \
                 loader has refused it"
                    .into(),
            ),
        };
    }
    if started.has(b"UNGIL_POLICY") {
        return match executable() {
            Hookable::Yes => NoPage::NotYet(
                "its environment has UNGIL_POLICY, but ungil is not loaded; it is still starting, \
                 or ungil is not installed in its Python"
                    .into(),
            ),
            _ => NoPage::Never(
                "UNGIL_POLICY works only in a Python that has ungil installed; start \
                 it with: ungil run"
                    .into(),
            ),
        };
    }
    let is_library = mappings.iter().any(Mapping::is_libpython);
    if !is_library && matches!(executable(), Hookable::NotPython { .. }) {
        return NoPage::Never("it does not run under ungil, and no Python was found in it".into());
    }
    NoPage::Never(format!(
        "it does not run under ungil; give it one with: {}",
        first_policy(process)
    ))
}

/// What gives it its first policy.
fn first_policy(process: &Path) -> String {
    format!("ungil policy {} interactive", process.file_name().unwrap_or_default().display())
}

/// Why it has no page although the hook is in it.
fn why_not_scheduled(process: &Path, mappings: &[Mapping<'_>]) -> NoPage {
    let (mut is_python, mut why) = (false, None);
    // A file is mapped in several parts.
    let libraries: BTreeSet<PathBuf> = mappings
        .iter()
        .filter(|mapping| mapping.is_libpython())
        .map(|mapping| mapping.path_from_outside(process))
        .collect();
    let program = hookable::program(&process.join("exe"));
    for verdict in libraries.iter().map(|it| hookable::library(it)).chain([program]) {
        match verdict {
            Hookable::Yes | Hookable::FreeThreaded(_) => is_python = true,
            Hookable::NotScheduled(it) | Hookable::No(it) => why = Some(named(process, &it)),
            Hookable::NotPython { .. } => {}
        }
    }
    if !is_python {
        return NoPage::Never(why.unwrap_or_else(|| {
            "ungil is loaded into it, but it has loaded no Python, so it has no GIL".into()
        }));
    }
    let started = Started::read(process);
    if !started.has(b"UNGIL_POLICY") {
        return NoPage::Never(if started.has(b"UNGIL_SESSION") {
            // As under `ungil check` and pytest.
            format!("it is only recorded; give it one with: {}", first_policy(process))
        } else {
            "ungil is loaded into it, but does not schedule its GIL".into()
        });
    }
    NoPage::NotYet(if started.has(b"UNGIL_CHILDREN=0") {
        "its parent is scheduled without its children, or it is still starting".into()
    } else {
        "its Python has not started yet, or cannot write a control page to /dev/shm".into()
    })
}

/// A sentence about a file of `process`, which is called in it as the process itself would.
fn named(process: &Path, why: &str) -> String {
    let (program, root) = (process.join("exe"), process.join("root"));
    let own = fs::read_link(&program).unwrap_or_else(|_| program.clone());
    why.replace(&*program.to_string_lossy(), &own.to_string_lossy())
        .replace(&*root.to_string_lossy(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELF: &str = "/proc/self";

    fn mapping(line: &str) -> Mapping<'_> {
        Mapping::parse(line.as_bytes()).expect("a line as the kernel writes it")
    }

    fn never(why: NoPage) -> String {
        match why {
            NoPage::Never(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_without_memory_has_ended() {
        assert_eq!(never(why(Path::new(SELF), &[])), "it has ended");
    }

    #[test]
    fn a_program_without_ungil_is_told_from_one_that_is_just_starting() {
        let other = [mapping("1-2 r-xp 0 fe:01 5 /lib/libc.so.6")];
        let answer = never(why(Path::new(SELF), &other));
        assert_eq!(answer, "it does not run under ungil, and no Python was found in it");
        let python = [mapping("1-2 r-xp 0 fe:01 5 /usr/lib/libpython3.11.so.1.0")];
        let said = "it does not run under ungil; give it one with: ungil policy self interactive";
        assert_eq!(never(why(Path::new(SELF), &python)), said);
        let blank = why(Path::new("/proc/self/no-such-folder"), &other);
        assert!(matches!(blank, NoPage::NotYet(_)), "{blank:?}");
    }

    #[test]
    fn a_program_with_the_hook_and_without_a_python_has_no_gil() {
        let hooked = [mapping("1-2 r-xp 0 fe:01 5 /x/libungil_hook.so")];
        assert!(never(why(Path::new(SELF), &hooked)).contains("it has loaded no Python"));
    }

    #[test]
    fn sentences_call_files_as_the_process_itself_does() {
        let process = Path::new(SELF);
        let own = std::env::current_exe().unwrap();
        assert_eq!(named(process, "/proc/self/exe is old"), format!("{} is old", own.display()));
        assert_eq!(named(process, "/proc/self/root/usr/lib/x.so is old"), "/usr/lib/x.so is old");
    }
}
