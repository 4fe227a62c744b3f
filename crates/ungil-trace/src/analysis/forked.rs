//! What a forked process does itself: multiprocessing calls it from where it has forked, so below
//! that its stacks show what the process that forked it was doing, such as to run an event loop.

use crate::record::Frame;

/// The function with which such a process begins, in these files: Python's, and Celery's copy.
const BEGIN: &str = "_bootstrap";
const FILES: [&str; 2] = ["multiprocessing/process.py", "billiard/process.py"];

/// The frames, of these of a stack, that its own process has called.
pub(super) fn own(frames: &[Frame]) -> &[Frame] {
    let begin = frames.iter().position(is_begin);
    begin.map_or(frames, |begin| &frames[..=begin])
}

fn is_begin(frame: &Frame) -> bool {
    frame.function.rsplit('.').next() == Some(BEGIN)
        && FILES.iter().any(|file| frame.file.ends_with(&format!("/{file}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(stack: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |&(function, file): &(&str, &str)| Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line: 7,
        };
        stack.iter().map(frame).collect()
    }

    #[test]
    fn what_the_process_did_that_forked_this_one_is_left_out() {
        let process = "/usr/lib/python3.11/multiprocessing/process.py";
        let base = "/usr/lib/python3.11/asyncio/base_events.py";
        for begin in ["BaseProcess._bootstrap", "_bootstrap"] {
            let stack = frames(&[
                ("digest", "/srv/app.py"),
                (begin, process),
                ("BaseProcess.start", process),
                ("BaseEventLoop._run_once", base),
                (begin, process),
            ]);
            assert_eq!(own(&stack), &stack[..2]);
        }
        // Threads begin in a function of that name, too, and not all processes are forked.
        let threading = "/usr/lib/python3.11/threading.py";
        let stack = frames(&[
            ("BaseProcess.start", process),
            ("BaseEventLoop._run_once", base),
            ("Thread._bootstrap", threading),
        ]);
        assert_eq!(own(&stack), stack);
    }
}
