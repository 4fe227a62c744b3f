//! Event loops: which library runs one, and what it takes there to leave a function to another
//! thread or process, so that the loop goes on meanwhile.

use ungil_trace::report::ThreadReport;

/// A library that runs event loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Asyncio,
    Trio,
    Twisted,
    Gevent,
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
    pub fn of(frame: &str) -> Self {
        match frame {
            _ if frame.contains("/trio/") => Self::Trio,
            _ if frame.contains("/twisted/") => Self::Twisted,
            _ if frame.contains("/gevent/") => Self::Gevent,
            _ => Self::Asyncio,
        }
    }

    /// The one whose loop one of these threads runs.
    pub fn run_by<'a>(threads: impl IntoIterator<Item = &'a ThreadReport>) -> Option<Self> {
        let by = threads.into_iter().find_map(|thread| thread.event_loop.as_ref());
        by.map(|it| Self::of(&it.by))
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
            // How to wait for one in a greenlet depends on what the program has patched.
            Some(Library::Gevent) | None => {
                format!("processes.submit({function}, *arguments).result()")
            }
        };
        Self { before: POOL, call, needs: None }
    }
}
