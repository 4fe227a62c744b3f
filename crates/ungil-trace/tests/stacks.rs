//! Stacks and names of a real Python. `UNGIL_TEST_PYTHON` names another one than `python3`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ungil_trace::record::Frame;
use ungil_trace::stacks::{
    Answer, Holder, Sample, StackError, StackReader, StackSampler, ThreadName,
};

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

fn named(sample: &Sample) -> impl Iterator<Item = &ThreadName> {
    sample.names.iter().flat_map(|names| &names.threads)
}

fn names(sample: &Sample) -> Vec<&str> {
    let mut names: Vec<&str> = named(sample).map(|it| it.name.as_str()).collect();
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
    let mut reader = until(|| StackReader::attach(program.0.id(), None).ok());
    // Until it has taken the GIL again after printing, the other thread may hold it.
    let sample = until(|| reader.read_with_names().ok().filter(|it| is_held_by(it, ident)));
    let frames = &sample.holders[0].frames;
    assert_eq!((frames[0].function.as_str(), frames[0].file.as_str()), ("hog", "<string>"));
    assert_eq!(frames[0].line, 5);
    assert_eq!(names(&sample), ["MainThread", "hog"]);
    assert!(named(&sample).any(|it| it.ident == ident && it.name == "hog"));
}

fn is_held_by(sample: &Sample, ident: u64) -> bool {
    let is_there =
        |it: &Holder| it.ident == ident && it.frames.first().is_some_and(|it| it.line == 5);
    matches!(&sample.holders[..], [holder] if is_there(holder))
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
    let mut reader = until(|| StackReader::attach(program.0.id(), None).ok());
    let idle = |it: &Sample| it.holders.is_empty() && named(it).count() > 0;
    let sample = until(|| reader.read_with_names().ok().filter(idle));
    assert_eq!(names(&sample), ["patient", "reader"]);
}

#[test]
fn the_sampler_answers_and_then_says_that_the_process_has_ended() {
    let (program, ident) = run(HOG);
    let pid = program.0.id();
    let sampler = StackSampler::start().unwrap();
    until(|| {
        sampler.request_stack(pid, None, None);
        sampler.answers().find(|answer| match answer {
            Answer::Sample { sample, .. } => is_held_by(sample, ident),
            _ => false,
        })
    });
    drop(program);
    until(|| {
        sampler.request_stack(pid, None, None);
        sampler.answers().find(|it| *it == Answer::Failed { pid, error: StackError::Gone })
    });
    sampler.request_stack(pid, None, None);
    assert_eq!(until(|| sampler.answers().next()), Answer::Failed { pid, error: StackError::Gone });
}

/// A thread that makes a sub-interpreter and runs its code for ever, and prints its ident from there.
const HOST: &str = r#"
import threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
CODE = """
import threading
def inside():
    print(threading.get_ident(), flush=True)
    while True:
        pass
inside()
"""
def host():
    made = interpreters.create()
    # Younger ones are what py-spy finds first.
    younger = interpreters.create()
    interpreters.run_string(made, CODE)
threading.Thread(target=time.sleep, args=(600,), name='idle', daemon=True).start()
threading.Thread(target=host, name='host', daemon=True).start()
time.sleep(600)
"#;

#[test]
fn a_thread_in_a_sub_interpreter_has_its_own_name_and_the_frames_of_both_interpreters() {
    let (program, ident) = run(HOST);
    let mut reader = until(|| StackReader::attach(program.0.id(), None).ok());
    let is_inside = |it: &Holder| it.frames.first().is_some_and(|it| it.function == "inside");
    let sample = until(|| {
        let sample = reader.read_with_names().ok()?;
        sample.holders.iter().any(is_inside).then_some(sample)
    });
    let holder = sample.holders.iter().find(|it| is_inside(it)).unwrap();
    assert_eq!((holder.ident, holder.in_main), (ident, false));
    let functions = |frames: &[Frame]| -> Vec<String> {
        frames.iter().map(|frame| format!("{}:{}", frame.function, frame.line)).collect()
    };
    assert_eq!(functions(&holder.frames)[1..], ["<module>:7"]);
    assert_eq!(functions(&holder.callers)[0], "host:19");
    assert_eq!(names(&sample), ["MainThread", "host", "idle"]);
    let of_host = |it: &&ThreadName| it.ident == ident;
    assert_eq!(named(&sample).find(of_host).unwrap().name, "host");
}

#[test]
fn a_thread_is_not_called_what_only_a_sub_interpreter_takes_it_for() {
    let unnamed = HOST.replace(
        "threading.Thread(target=host, name='host', daemon=True).start()",
        "__import__('_thread').start_new_thread(host, ())",
    );
    assert_ne!(unnamed, HOST);
    let (program, ident) = run(&unnamed);
    let mut reader = until(|| StackReader::attach(program.0.id(), None).ok());
    let sample = until(|| reader.read_with_names().ok().filter(|it| named(it).count() >= 2));
    // There it is the main thread, because it imports `threading`.
    assert_eq!(names(&sample), ["MainThread", "idle"]);
    assert!(named(&sample).all(|it| it.ident != ident));
}
