//! Why a process has no control page: told by what it has mapped, was started with, and is.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use ungil_trace::interpreter::{self, Hookable};

use super::mapping::Mapping;

/// Name of the hook library's file.
const HOOK: &[u8] = b"libungil_hook.so";

create_exception!(
    ungil._native,
    StillStarting,
    PyRuntimeError,
    "The process may be about to get a policy."
);

/// There is no page, or none that can be used.
pub enum NoPage {
    /// The sentence, about the process and without a final dot, says why not.
    Never(String),
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

impl From<NoPage> for PyErr {
    fn from(why: NoPage) -> Self {
        match why {
            NoPage::Never(why) => PyRuntimeError::new_err(why),
            NoPage::NotYet(why) => StillStarting::new_err(why),
            NoPage::Unknown(error) => error.into(),
        }
    }
}

/// Why `process`, a folder of `/proc`, has no page among its `mappings`.
pub fn why(process: &Path, mappings: &[Mapping<'_>]) -> NoPage {
    if mappings.is_empty() {
        return NoPage::Never("it has ended".into()); // A zombie; the kernel's own have none either.
    }
    if mappings.iter().any(|mapping| mapping.file_name() == HOOK) {
        return why_not_scheduled(process, mappings);
    }
    let started = Started::read(process);
    if started.is_unknown() {
        return NoPage::NotYet("it is just becoming another program".into());
    }
    let executable = || interpreter::hookable(&process.join("exe"));
    if let Some(verb) = started.verb_of_ungil() {
        return match verb {
            b"run" => NoPage::NotYet("it is ungil run, and has not become its program yet".into()),
            b"trace" => NoPage::Never(
                "it is ungil trace itself; name the process of the program that it runs".into(),
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
                "UNGIL_POLICY alone is obeyed only by a Python that ungil is installed in; start \
                 it with: ungil run"
                    .into(),
            ),
        };
    }
    NoPage::Never("it does not run under ungil; start it with: ungil run".into())
}

/// Why it has no page although the hook is in it.
fn why_not_scheduled(process: &Path, mappings: &[Mapping<'_>]) -> NoPage {
    let (mut is_python, mut why) = (false, None);
    // A file is mapped in several parts.
    let libraries: BTreeSet<PathBuf> = mappings
        .iter()
        .filter(|mapping| mapping.is_interpreter())
        .map(|mapping| mapping.path_from_outside(process))
        .collect();
    let program = interpreter::hookable(&process.join("exe"));
    for verdict in libraries.iter().map(|it| interpreter::library(it)).chain([program]) {
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
    if !started.has(b"UNGIL_POLICY") && !started.has(b"UNGIL_SESSION") {
        return NoPage::Never(
            "ungil is loaded into it, but nothing asked it to schedule its GIL".into(),
        );
    }
    NoPage::NotYet(if started.has(b"UNGIL_CHILDREN=0") {
        "it is the child of a program that is scheduled without its children, or still starting"
            .into()
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

/// What a process was started with. Later changes of its environment do not show.
struct Started {
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
}

impl Started {
    fn read(process: &Path) -> Self {
        let words = |file| {
            let text = fs::read(process.join(file)).unwrap_or_default();
            text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
        };
        Self { arguments: words("cmdline"), environment: words("environ") }
    }

    /// Whether there is nothing: the kernel has not put it there yet, in the middle of an exec.
    fn is_unknown(&self) -> bool {
        [&self.arguments, &self.environment].into_iter().flatten().all(Vec::is_empty)
    }

    /// Whether its environment has the variable `name`, which may be followed by `=` and a value.
    fn has(&self, name: &[u8]) -> bool {
        self.environment.iter().any(|variable| match variable.strip_prefix(name) {
            Some(rest) => rest.is_empty() || (rest[0] == b'=' && rest.len() > 1),
            None => false,
        })
    }

    fn preloads_hook(&self) -> bool {
        let values = self.environment.iter().filter_map(|it| it.strip_prefix(b"LD_PRELOAD="));
        let mut paths = values.flat_map(|value| value.split(|byte| b" :".contains(byte)));
        paths.any(|path| file_name(path) == HOOK)
    }

    /// The command of ungil that it runs, if it is ungil: `python .../ungil VERB`, `python -m ungil
    /// VERB`.
    fn verb_of_ungil(&self) -> Option<&[u8]> {
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
