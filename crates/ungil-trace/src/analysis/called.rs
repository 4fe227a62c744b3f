//! How the functions of the user's own that are on a stack came to run: called by one another, or
//! called back by code that one of them had called.

use crate::origin::{Origin, Users};
use crate::record::Frame;

/// A function of the user's own on a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called<'a> {
    pub(super) frame: &'a Frame,
    /// Whether it ran inside of a call that an outer function of the user's own had made to other code,
    /// and that called back: it runs once for each row, say, and not once for each such call.
    pub(super) back: bool,
}

/// Packages that run what a program is made of: its requests, its tasks, its commands. What these call
/// stands for itself, although a function of the program may have started them.
const RUNNERS: [&str; 55] = [
    "IPython",
    "_pytest",
    "aiohttp",
    "anyio",
    "apscheduler",
    "billiard",
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
    "ipykernel",
    "kombu",
    "litestar",
    "locust",
    "nicegui",
    "paho",
    "pika",
    "pluggy",
    "prompt_toolkit",
    "pyramid",
    "quart",
    "rq",
    "sanic",
    "schedule",
    "scrapy",
    "starlette",
    "streamlit",
    "textual",
    "tornado",
    "trio",
    "twisted",
    "typer",
    "uvicorn",
    "uvloop",
    "waitress",
    "werkzeug",
    "zmq",
];
/// The same in Python's own library, as files and folders.
const OWN_RUNNERS: [&str; 14] = [
    "/asyncio/",
    "/asyncore.py",
    "/cmd.py",
    "/code.py",
    "/concurrent/futures/",
    "/http/server.py",
    "/multiprocessing/",
    "/runpy.py",
    "/sched.py",
    "/socketserver.py",
    "/threading.py",
    "/tkinter/",
    "/unittest/",
    "/wsgiref/",
];

/// The user's own functions on a stack, or on the inner part of one, outermost first; `frames` has the
/// innermost frame first.
pub(super) fn called<'a>(frames: &'a [Frame], users: Users) -> Vec<Called<'a>> {
    let (mut path, mut back) = (Vec::new(), false);
    // Code that is not the user's, since the last function that is.
    let (mut others, mut runner) = (false, false);
    for frame in frames.iter().rev() {
        if !users.has(frame) {
            others = true;
            runner |= runs_programs(frame);
            continue;
        }
        if others && !path.is_empty() {
            back = !runner;
        }
        path.push(Called { frame, back });
        (others, runner) = (false, false);
    }
    path
}

/// Whether a frame is of code that runs what a program is made of.
fn runs_programs(frame: &Frame) -> bool {
    match frame.origin() {
        Origin::Python => OWN_RUNNERS.iter().any(|it| frame.file.contains(it)),
        Origin::Package(name) => RUNNERS.contains(&name),
        Origin::User => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "/usr/lib/python3.11";

    /// Which of the user's own functions were called back, outermost first. Frames are innermost first;
    /// those of a file without a folder are the user's.
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
    fn what_nobody_of_the_users_own_is_further_out_of_was_not_called_back() {
        let stack = [("handle", "app.py"), ("call", "site-packages/server/loop.py")];
        assert_eq!(back(&stack), told(&[("handle", false)]));
    }
}
