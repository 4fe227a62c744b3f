//! How the functions of the user's own that are on a stack came to run: called by one another, or
//! called back by code that one of them had called.

use super::known_functions::name;
use crate::origin::{Origin, Users, module_in};
use crate::record::Frame;

/// A function of the user's own on a stack.
#[derive(Clone, Debug)]
pub(super) struct Called<'a> {
    pub(super) frame: &'a Frame,
    /// Whether it ran inside of a call that an outer function of the user's own had made to other
    /// code, and that called back: it runs once for each row, say, and not once for each such call.
    pub(super) back: bool,
    /// Whether it imports, or is code of a module that is being imported.
    pub(super) imports: bool,
    /// The module that it imports.
    pub(super) imported: Option<String>,
}

impl<'a> Called<'a> {
    /// One of which nothing more is known.
    pub(super) fn by_itself(frame: &'a Frame) -> Self {
        Self { frame, back: false, imports: false, imported: None }
    }
}

/// Packages that run what a program is made of: its requests, its tasks, its commands. What these
/// call stands for itself, although a function of the program may have started them.
const RUNNERS: [&str; 73] = [
    "IPython",
    "Pyro5",
    "_pytest",
    "aiogram",
    "aiohttp",
    "anyio",
    "apscheduler",
    "billiard",
    "blinker",
    "bottle",
    "celery",
    "cheroot",
    "cherrypy",
    "click",
    "daphne",
    "dash",
    "discord",
    "django",
    "dramatiq",
    "engineio",
    "eventlet",
    "falcon",
    "fastapi",
    "fire",
    "flask",
    "gevent",
    "gradio",
    "granian",
    "grpc",
    "gunicorn",
    "huey",
    "hypercorn",
    "hypothesis",
    "ipykernel",
    "kombu",
    "litestar",
    "locust",
    "luigi",
    "nicegui",
    "nornir",
    "paho",
    "pika",
    "pluggy",
    "prefect",
    "prompt_toolkit",
    "pyftpdlib",
    "pymodbus",
    "pyramid",
    "quart",
    "rpyc",
    "rq",
    "sanic",
    "schedule",
    "scrapy",
    "slack_bolt",
    "socketio",
    "starlette",
    "streamlit",
    "telegram",
    "textual",
    "tornado",
    "trio",
    "twisted",
    "typer",
    "ungil",
    "uvicorn",
    "uvloop",
    "waitress",
    "watchdog",
    "websocket",
    "websockets",
    "werkzeug",
    "zmq",
];
/// The same in Python's own library, as files and folders.
const OWN_RUNNERS: [&str; 16] = [
    "/asyncio/",
    "/asyncore.py",
    "/cmd.py",
    "/code.py",
    "/concurrent/futures/",
    "/http/server.py",
    "/importlib/",
    "/multiprocessing/",
    "/runpy.py",
    "/sched.py",
    "/socketserver.py",
    "/threading.py",
    "/tkinter/",
    "/unittest/",
    "/wsgiref/",
    "/xmlrpc/server.py",
];

/// What the function is called by which a decorator replaces another one: who calls that calls the
/// other one, and few frames are between.
const DECORATES: [&str; 6] = ["wrap", "inner", "decorat", "call__", "fun", "new_func"];
const FEW: usize = 3;

/// The user's own functions on a stack, or on the inner part of one, outermost first; `frames` has
/// the innermost frame first.
pub(super) fn called<'a>(frames: &'a [Frame], users: Users) -> Vec<Called<'a>> {
    let (mut path, mut back) = (Vec::new(), false);
    let (mut between, mut passed) = (Between::default(), Vec::new());
    // A stack may be deep: it is searched once, not from each of its frames on.
    let first_import = frames.iter().position(is_import);
    let last_import = frames.iter().rposition(is_import);
    let is_again = frames.iter().any(is_reload);
    for (place, frame) in frames.iter().enumerate().rev() {
        if !users.has(frame) {
            between.add(frame, &mut passed);
            continue;
        }
        if !path.is_empty() {
            back = is_special(frame) || between.calls_back(frame).unwrap_or(back);
        }
        let is_module = frame.function == "<module>" && last_import.is_some_and(|it| it >= place);
        let imports = first_import.is_some_and(|it| it < place);
        path.push(Called {
            frame,
            back,
            imports: (is_module || imports) && !is_again,
            imported: if imports { imported(&frames[..place]) } else { None },
        });
        between = Between::default();
    }
    path
}

/// Whether native code of Python calls it for what looks like something else: `__getattr__`, `__eq__`.
/// No frame is between.
fn is_special(frame: &Frame) -> bool {
    let name = name(frame);
    name.starts_with("__") && name.ends_with("__") && !matches!(name, "__call__" | "__init__")
}

/// Code that is not the user's, between two functions that are.
#[derive(Default)]
struct Between<'a> {
    /// What the outer one calls.
    called: Option<&'a Frame>,
    frames: usize,
    /// Whether it runs what a program is made of, and was not further out already: a server may call a
    /// handler, and that a function of the server's package.
    runs: bool,
}

impl<'a> Between<'a> {
    fn add(&mut self, frame: &'a Frame, passed: &mut Vec<&'a str>) {
        if !is_import(frame) {
            self.called = self.called.or(Some(frame));
            self.frames += 1;
        }
        if let Some(runner) = runner(frame)
            && !passed.contains(&runner)
        {
            self.runs = true;
            passed.push(runner);
        }
    }

    /// Whether it calls back; `None` if it is nothing but what decorates the inner one.
    fn calls_back(&self, inner: &Frame) -> Option<bool> {
        let called = name(self.called?);
        let is_named_so =
            || DECORATES.iter().any(|it| called.trim_start_matches('_').starts_with(it));
        let decorates = self.frames <= FEW && (called == name(inner) || is_named_so());
        (self.runs || !decorates).then_some(!self.runs)
    }
}

/// Whether a frame is of what imports modules.
pub(super) fn is_import(frame: &Frame) -> bool {
    frame.file.starts_with("<frozen importlib._bootstrap")
}

/// Whether a frame is of what imports a module that has been imported, to have it changed.
fn is_reload(frame: &Frame) -> bool {
    frame.function == "reload" && frame.file.ends_with("/importlib/__init__.py")
}

/// The module that is imported on this inner part of a stack: the first one, and not those that it
/// imports. Before a line of it has run, nothing tells which it is.
fn imported(frames: &[Frame]) -> Option<String> {
    let import = frames.iter().rposition(is_import)?;
    let module = frames[..import].iter().rfind(|frame| !is_import(frame))?;
    if module.function == "<module>" { module_in(&module.file) } else { None }
}

/// What of Python or of which package runs what a program is made of, if a frame is of that.
fn runner(frame: &Frame) -> Option<&str> {
    match frame.origin() {
        Origin::Python => OWN_RUNNERS.into_iter().find(|it| frame.file.contains(it)),
        Origin::Package(name) => RUNNERS.into_iter().find(|it| *it == name),
        Origin::User => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "/usr/lib/python3.11";

    /// Which of the user's own functions were called back, outermost first. Frames are innermost
    /// first; those of a file without a folder are the user's.
    fn back(stack: &[(&str, &str)]) -> Vec<(String, bool)> {
        let frame = |&(function, file): &(&str, &str)| Frame {
            function: function.to_owned(),
            file: if file.contains('/') { format!("{LIB}/{file}") } else { file.to_owned() },
            line: 7,
        };
        let frames: Vec<_> = stack.iter().map(frame).collect();
        let path = called(&frames, Users::of(&frames));
        path.iter().map(|it| (it.frame.function.clone(), it.back)).collect()
    }

    fn told(path: &[(&str, bool)]) -> Vec<(String, bool)> {
        path.iter().map(|&(name, back)| (name.to_owned(), back)).collect()
    }

    #[test]
    fn what_a_package_calls_back_and_what_that_calls_runs_inside_of_the_call_to_the_package() {
        let stack = [
            ("spread", "app.py"),
            ("summarise", "app.py"),
            ("apply", "site-packages/pandas/core/groupby/groupby.py"),
            ("totals", "app.py"),
            ("report", "app.py"),
            ("run", "./threading.py"),
        ];
        let inside = [("report", false), ("totals", false), ("summarise", true), ("spread", true)];
        assert_eq!(back(&stack), told(&inside));
        let own = [("default", "app.py"), ("encode", "json/encoder.py"), ("answer", "app.py")];
        assert_eq!(back(&own), told(&[("answer", false), ("default", true)]));
    }

    #[test]
    fn what_a_server_a_pool_or_a_loop_calls_stands_for_itself() {
        for runner in [
            "site-packages/flask/app.py",
            "site-packages/click/core.py",
            "./threading.py",
            "concurrent/futures/thread.py",
            "asyncio/events.py",
        ] {
            let stack = [
                ("key", "app.py"),
                ("sort", "site-packages/sortedcontainers/sortedlist.py"),
                ("handle", "app.py"),
                ("wrapper", "site-packages/wrapt/decorators.py"),
                ("call", runner),
                ("main", "app.py"),
            ];
            assert_eq!(back(&stack), told(&[("main", false), ("handle", false), ("key", true)]));
        }
    }

    #[test]
    fn what_a_server_calls_back_inside_of_its_handler_runs_inside_of_that() {
        let stack = [
            ("default", "app.py"),
            ("encode", "json/encoder.py"),
            ("jsonify", "site-packages/flask/json/__init__.py"),
            ("view", "app.py"),
            ("dispatch_request", "site-packages/flask/app.py"),
            ("main", "app.py"),
        ];
        let inside = [("main", false), ("view", false), ("default", true)];
        assert_eq!(back(&stack), told(&inside));
    }

    #[test]
    fn what_decorates_a_function_calls_nothing_back_and_special_methods_are() {
        let tenacity = "site-packages/tenacity/__init__.py";
        let retried = [
            ("fetch", "app.py"),
            ("Retrying.__call__", tenacity),
            ("BaseRetrying.wraps.<locals>.wrapped_f", tenacity),
            ("work", "app.py"),
        ];
        assert_eq!(back(&retried), told(&[("work", false), ("fetch", false)]));
        let timed = [("load", "app.py"), ("inner", "./contextlib.py"), ("work", "app.py")];
        assert_eq!(back(&timed), told(&[("work", false), ("load", false)]));
        let made = [
            ("load", "app.py"),
            ("Timer.wrapped", "site-packages/prometheus_client/context_managers.py"),
            ("load", "site-packages/decorator.py"),
            ("work", "app.py"),
        ];
        assert_eq!(back(&made), told(&[("work", false), ("load", false)]));
        let got = [("Proxy.__getattr__", "app.py"), ("work", "app.py")];
        assert_eq!(back(&got), told(&[("work", false), ("Proxy.__getattr__", true)]));
        // A method of a package may be decorated, too.
        let pandas = "site-packages/pandas/core/frame.py";
        let rows = [
            ("each", "app.py"),
            ("apply_standard", "site-packages/pandas/core/apply.py"),
            ("apply", "site-packages/pandas/core/apply.py"),
            ("apply", pandas),
            ("wrapper", "site-packages/pandas/util/_decorators.py"),
            ("work", "app.py"),
        ];
        assert_eq!(back(&rows), told(&[("work", false), ("each", true)]));
    }

    #[test]
    fn what_imports_is_told_with_the_module_that_is_imported_first() {
        let stack = |module: &str| {
            let frames = [
                ("_compile", "re/__init__.py"),
                ("<module>", "site-packages/pandas/io/html.py"),
                ("_find_and_load", "<frozen importlib._bootstrap>"),
                ("<module>", module),
                ("exec_module", "<frozen importlib._bootstrap_external>"),
                ("_find_and_load", "<frozen importlib._bootstrap>"),
                ("import_module", "importlib/__init__.py"),
                ("load", "app.py"),
                ("run", "./threading.py"),
            ];
            let frame = |(function, file): (&str, &str)| Frame {
                function: function.to_owned(),
                file: if file.contains('/') { format!("{LIB}/{file}") } else { file.to_owned() },
                line: 7,
            };
            frames.map(frame)
        };
        let of = |frames: &[Frame]| -> Vec<_> {
            let path = called(frames, Users::of(frames));
            path.into_iter().map(|it| (it.back, it.imports, it.imported)).collect()
        };
        let pandas = stack("site-packages/pandas/__init__.py");
        assert_eq!(of(&pandas), [(false, true, Some("pandas".to_owned()))]);
        assert_eq!(of(&pandas[3..]), [(false, true, Some("pandas".to_owned()))]);
        assert_eq!(of(&pandas[4..]), [(false, true, None)]);
        assert_eq!(of(&pandas[6..]), [(false, false, None)]);
        // What is imported again was imported before.
        let mut again = pandas.to_vec();
        again[6] = Frame {
            function: "reload".into(),
            file: format!("{LIB}/importlib/__init__.py"),
            line: 7,
        };
        assert!(!of(&again)[0].1);
        // A module of the user's own, the code of which is what imports.
        let own = stack("tables.py");
        let tables = |name: Option<&str>| (false, true, name.map(str::to_owned));
        assert_eq!(of(&own[3..]), [tables(Some("tables")), tables(None)]);
        // What a module calls that is the program computes.
        let mut program = own[3..].to_vec();
        program.insert(0, Frame { function: "work".into(), file: "tables.py".into(), line: 9 });
        assert_eq!(of(&program)[2], (false, false, None));
    }

    #[test]
    fn what_nobody_of_the_users_own_is_further_out_of_was_not_called_back() {
        let stack = [("handle", "app.py"), ("call", "site-packages/server/loop.py")];
        assert_eq!(back(&stack), told(&[("handle", false)]));
    }
}
