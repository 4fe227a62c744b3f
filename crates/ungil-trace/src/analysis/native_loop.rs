//! The event loop of uvloop, which is native code: in a Python stack nothing is between the function
//! that runs it and what it calls. What tells it is how it sleeps, in the function that runs it:
//! libuv calls `epoll_pwait`, and Python's own `select.epoll` calls `epoll_wait`.
//!
//! musl has only the first one. There, and on aarch64, code of the user's that polls by itself looks
//! the same; it waits for something to do, too.

use super::known_functions::NATIVE_LOOP;
use super::off_gil::polls_by_itself;
use crate::record::{Doing, Frame};
use std::borrow::Cow;

/// The loop of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct NativeLoop {
    /// The line that runs it.
    run_by: Option<Frame>,
}

impl NativeLoop {
    /// These frames, with that of the loop among them if they show what it calls.
    pub(super) fn shown<'a>(&mut self, doing: &Doing, frames: &'a [Frame]) -> Cow<'a, [Frame]> {
        if let Doing::Off { call, .. } = doing
            && call == "epoll_pwait"
            && let Some(innermost) = frames.first().filter(|it| !polls_by_itself(it))
        {
            self.run_by = Some(innermost.clone());
        }
        let run_by = self.run_by.as_ref();
        let place = run_by.and_then(|by| frames.iter().position(|frame| frame == by));
        let Some(place) = place else { return Cow::Borrowed(frames) };
        let (file, function) = NATIVE_LOOP;
        let frame = Frame { function: function.to_owned(), file: file.to_owned(), line: 0 };
        let (called, callers) = frames.split_at(place);
        Cow::Owned([called, &[frame], callers].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame { function: function.to_owned(), file: file.to_owned(), line }
    }

    fn off(call: &str) -> Doing {
        Doing::Off { stands_for_ns: 0, call: call.to_owned(), on: String::new() }
    }

    #[test]
    fn the_line_in_which_libuv_polls_runs_a_loop_from_then_on() {
        let serve = frame("serve", "/x/site-packages/sanic/server/runners.py", 273);
        let (handle, main) = (frame("handle", "app.py", 5), frame("main", "app.py", 9));
        let blocked = [handle.clone(), serve.clone(), main.clone()];
        let mut native = NativeLoop::default();
        assert_eq!(*native.shown(&off("recvfrom"), &blocked), blocked);
        let polls = [serve.clone(), main.clone()];
        let own = frame(NATIVE_LOOP.1, NATIVE_LOOP.0, 0);
        let shown = [own.clone(), serve.clone(), main.clone()];
        assert_eq!(*native.shown(&off("epoll_pwait"), &polls), shown);
        let shown = [handle, own, serve.clone(), main];
        assert_eq!(*native.shown(&off("recvfrom"), &blocked), shown);
        // Another line of that function runs none.
        let other = [frame("handle", "app.py", 5), Frame { line: 200, ..serve }];
        assert_eq!(*native.shown(&off("recvfrom"), &other), other);
    }

    #[test]
    fn a_loop_that_is_python_code_is_none_of_these() {
        for (function, file) in [
            ("EpollSelector.select", "/usr/lib/python3.11/selectors.py"),
            ("Runner.run", "/usr/lib/python3.11/asyncio/runners.py"),
            ("Hub.run", "/x/site-packages/gevent/hub.py"),
        ] {
            let frames = [frame(function, file, 1), frame("main", "app.py", 9)];
            let mut native = NativeLoop::default();
            assert_eq!(*native.shown(&off("epoll_pwait"), &frames), frames);
        }
        let mut native = NativeLoop::default();
        let frames = [frame("main", "app.py", 9)];
        assert_eq!(*native.shown(&off("epoll_wait"), &frames), frames);
        assert_eq!(*native.shown(&off("epoll_pwait"), &[]), []);
    }
}
