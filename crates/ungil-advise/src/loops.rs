//! Event loops: which library runs one, and what it takes there to leave a function to another
//! thread or process, so that the loop goes on meanwhile.

use crate::functions::is_in;
use ungil_trace::analysis::NATIVE_LOOP;
use ungil_trace::report::ThreadReport;

/// A library that runs event loops. gevent is none of these: how to wait in a greenlet depends on what
/// the program has patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Asyncio,
    Trio,
    Twisted,
}

/// The files whose functions run a loop, or wait for something to do for it. That of uvloop is native
/// code, below what starts it.
const FILES: [&str; 8] = [
    "asyncio/base_events.py",
    "asyncio/runners.py",
    "uvicorn/_compat.py",
    "aiohttp/web.py",
    "tornado/platform/asyncio.py",
    "trio/_core/_run.py",
    "twisted/internet/base.py",
    "gevent/hub.py",
];

/// Whether a frame is of what runs a loop.
pub fn runs_loop(frame: &str) -> bool {
    FILES.iter().any(|file| is_in(frame, file)) || frame.contains("/uvloop/") || is_native(frame)
}

/// Whether a frame stands for a loop in native code, of which only its sleeps tell.
pub fn is_native(frame: &str) -> bool {
    // It has no line.
    frame.contains(NATIVE_LOOP.0)
}

/// What the threads are called in which a loop runs the functions that it is given.
const WORKERS: [(&str, Library); 3] = [
    ("asyncio_", Library::Asyncio),
    ("AnyIO worker thread", Library::Trio),
    ("Trio thread", Library::Trio),
];

const POOL: &str = "from concurrent.futures import ProcessPoolExecutor\n\
                    processes = ProcessPoolExecutor()\n";

/// What runs a function in another process.
pub struct InProcess {
    /// Lines of what it needs.
    pub before: &'static str,
    pub call: String,
    /// A comment on what is needed besides.
    pub needs: Option<&'static str>,
}

impl Library {
    /// The one whose loop is run by the function of this frame.
    pub fn of(frame: &str) -> Option<Self> {
        match frame {
            _ if frame.contains("/trio/") => Some(Self::Trio),
            _ if frame.contains("/twisted/") => Some(Self::Twisted),
            _ if frame.contains("/gevent/") => None,
            _ => Some(Self::Asyncio),
        }
    }

    /// The one whose loop one of these threads runs.
    pub fn run_by<'a>(threads: impl IntoIterator<Item = &'a ThreadReport>) -> Option<Self> {
        let mut by = threads.into_iter().filter_map(|thread| thread.event_loop.as_ref());
        by.find_map(|it| Self::of(&it.by))
    }

    /// The one whose loop gives functions to a thread that is called so.
    pub fn that_gives_work_to(thread: &str) -> Option<Self> {
        let of = WORKERS.into_iter().find(|(name, _)| thread.starts_with(name));
        of.map(|(_, library)| library)
    }
}

impl InProcess {
    /// For code that such a loop runs; without one it may wait.
    pub fn of(library: Option<Library>, function: &str) -> Self {
        let call = match library {
            Some(Library::Asyncio) => format!(
                "await asyncio.get_running_loop().run_in_executor(processes, {function}, \
                 *arguments)"
            ),
            Some(Library::Trio) => {
                return Self {
                    before: "",
                    call: format!("await anyio.to_process.run_sync({function}, *arguments)"),
                    needs: Some("# anyio works with trio: pip install anyio"),
                };
            }
            Some(Library::Twisted) => {
                format!("await deferToThread(processes.submit({function}, *arguments).result)")
            }
            None => format!("processes.submit({function}, *arguments).result()"),
        };
        Self { before: POOL, call, needs: None }
    }
}

/// What code of a loop should leave to another thread or process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work<'a> {
    /// The function, if it has a name.
    pub name: Option<&'a str>,
    /// Whether the loop itself called it: it is a coroutine, or what the loop calls back.
    pub is_outermost: bool,
}

impl<'a> Work<'a> {
    /// The function, in a line of code.
    pub fn word(self) -> &'a str {
        self.name.filter(|_| !self.is_outermost).unwrap_or("function")
    }

    /// A comment on that line, which says what else it may have to be. Nothing tells a coroutine from
    /// other functions, and neither a thread nor a process can run one.
    pub fn comment(self, does: &str) -> Option<String> {
        self.name.map(|name| {
            if self.is_outermost {
                format!("# function: what {does} in {name}")
            } else {
                format!("# if {name} is async: what {does} in it")
            }
        })
    }
}
