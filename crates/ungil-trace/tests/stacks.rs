//! Stacks and names of a real Python. `UNGIL_TEST_PYTHON` names another one than `python3`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ungil_trace::stacks::{Answer, Sample, StackError, StackReader, StackSampler};

/// A program that is killed at the end of the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs `code`, which has to print the ident of a thread as soon as it is where it will stay.
fn run(code: &str) -> (Program, u64) {
    let python = std::env::var("UNGIL_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    command.args(["-c", code]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Program(child), line.trim().parse().unwrap())
}

/// Calls `look` until it returns something. The watchdog is there for a broken test only.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let watchdog = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < watchdog, "it never came");
        std::thread::yield_now();
    }
}

fn names(sample: &Sample) -> Vec<&str> {
    let mut names: Vec<&str> = sample.names.iter().map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names
}

const HOG: &str = "
import ctypes, threading
def hog():
    print(threading.get_ident(), flush=True)
    ctypes.PyDLL(None).usleep(600_000_000)
threading.Thread(target=hog, name='hog', daemon=True).start()
while True:
    pass
";

#[test]
fn the_holder_of_the_gil_is_found_with_its_line_and_the_names_of_all() {
    let (program, ident) = run(HOG);
    let mut reader = until(|| StackReader::attach(program.0.id()).ok());
    // Until it has taken the GIL again after printing, the other thread may hold it.
    let sample = until(|| reader.read_with_names().ok().filter(|it| is_held_by(it, ident)));
    let frames = sample.holder.unwrap().frames;
    assert_eq!((frames[0].function.as_str(), frames[0].file.as_str()), ("hog", "<string>"));
    assert_eq!(frames[0].line, 5);
    let sample = reader.read().unwrap();
    assert!(is_held_by(&sample, ident));
    assert_eq!(names(&sample), ["MainThread", "hog"]);
    assert!(sample.names.iter().any(|it| it.ident == ident && it.name == "hog"));
}

fn is_held_by(sample: &Sample, ident: u64) -> bool {
    let line = |it: &ungil_trace::stacks::Holder| it.frames.first().map(|frame| frame.line);
    sample.holder.as_ref().is_some_and(|it| it.ident == ident && line(it) == Some(5))
}

#[test]
fn names_are_found_while_nobody_holds_the_gil() {
    let code = "
import sys, threading
threading.Thread(target=threading.Event().wait, name='patient', daemon=True).start()
threading.current_thread().name = 'reader'
print(threading.get_ident(), flush=True)
sys.stdin.read()
";
    let (program, _) = run(code);
    let mut reader = until(|| StackReader::attach(program.0.id()).ok());
    let idle = |it: &Sample| it.holder.is_none() && !it.names.is_empty();
    let sample = until(|| reader.read_with_names().ok().filter(idle));
    assert_eq!(names(&sample), ["patient", "reader"]);
}

#[test]
fn the_sampler_answers_and_then_says_once_that_the_process_has_ended() {
    let (program, ident) = run(HOG);
    let pid = program.0.id();
    let sampler = StackSampler::start().unwrap();
    until(|| {
        sampler.request_stack(pid);
        sampler.answers().find(|answer| match answer {
            Answer::Sample { sample, .. } => is_held_by(sample, ident),
            Answer::Failed { .. } => false,
        })
    });
    drop(program);
    until(|| {
        sampler.request_stack(pid);
        sampler.answers().find(|it| *it == Answer::Failed { pid, error: StackError::Gone })
    });
    sampler.request_stack(pid);
    sampler.forget(pid);
    sampler.request_stack(pid);
    // The first of these requests is ignored, so there is one more answer and no other.
    let gone = until(|| sampler.answers().next());
    assert_eq!(gone, Answer::Failed { pid, error: StackError::Gone });
    assert_eq!(sampler.answers().next(), None);
}
