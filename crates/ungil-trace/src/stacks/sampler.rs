//! A thread that takes samples on request, so that finding an interpreter (up to 50 ms) never
//! delays the draining of rings.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock::with_cpu_ns;

use super::{Everyone, Sample, StackError, StackReader, TRIES};

/// A process that gave no sample is left alone for this long, then twice as long, ...
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// ... up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The sampling thread. Dropping it waits for the sample being taken, if one is.
pub struct StackSampler {
    orders: Arc<Orders>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A sample.
    Sample {
        /// Of which process.
        pid: u32,
        /// What it showed.
        sample: Sample,
    },
    /// What all threads do.
    Everyone {
        /// Of which process.
        pid: u32,
        /// What was seen.
        everyone: Everyone,
        /// The CPU time that it took, in nanoseconds.
        cpu_ns: u64,
    },
    /// What all threads do could not be read.
    NotEveryone {
        /// Of which process.
        pid: u32,
    },
    /// No sample. After any error but [`StackError::NotReady`] further requests for this process
    /// are answered alike until it is [forgotten](StackSampler::forget), and for some time after
    /// that one, too: nothing is tried meanwhile.
    Failed {
        /// Of which process.
        pid: u32,
        /// Why.
        error: StackError,
    },
}

/// What is wanted of a process, beside the stacks of the threads that hold a GIL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    names: bool,
    /// Where `_PyRuntime` of a free-threaded interpreter is.
    runtime: Option<u64>,
    /// The native frames of these threads.
    natives: Vec<u32>,
}

/// What the sampling thread has been asked to do and has not begun.
#[derive(Default)]
struct Orders {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    /// In the order of asking; at most one [`Order::Sample`] a process.
    queue: VecDeque<Order>,
    stop: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    Sample(u32, Wanted),
    Everyone(u32, Option<u64>),
    Forget(u32),
}

impl StackSampler {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let orders = Arc::new(Orders::default());
        let (sender, answers) = mpsc::channel();
        let worker = Worker { orders: orders.clone(), answers: sender, targets: HashMap::new() };
        let thread =
            std::thread::Builder::new().name("ungil-stacks".into()).spawn(move || worker.run())?;
        Ok(Self { orders, answers, thread: Some(thread) })
    }

    /// Asks for the stack of the thread that holds the GIL of process `pid`. Never blocks.
    ///
    /// Every request has an answer, unless the process is forgotten first; one for a process that
    /// has another one waiting merges with it and shares its answer. If `native` names the holder by
    /// its kernel thread id, its native frames are wanted too. `runtime` says where `_PyRuntime` of a
    /// free-threaded interpreter is.
    pub fn request_stack(&self, pid: u32, runtime: Option<u64>, native: Option<u32>) {
        let natives = native.into_iter().collect();
        self.orders.add(pid, Wanted { names: false, runtime, natives });
    }

    /// Asks for the names of all threads of process `pid`, and the stack as well. Never blocks.
    /// Merges like [`request_stack`](Self::request_stack).
    ///
    /// Worth asking for when a thread has appeared, but not more often than a few times a second:
    /// it costs 6 ms of CPU time with 200 threads, 40 ms if none of them holds the GIL.
    pub fn request_names(&self, pid: u32, runtime: Option<u64>) {
        self.orders.add(pid, Wanted { names: true, runtime, natives: Vec::new() });
    }

    /// Asks what all threads of process `pid` do, those that hold no GIL as well. Never blocks.
    ///
    /// It has an answer of its own, and none that says why it failed: a request for a stack has.
    pub fn request_everyone(&self, pid: u32, runtime: Option<u64>) {
        self.orders.change(|pending| pending.queue.push_back(Order::Everyone(pid, runtime)));
    }

    /// Says that process `pid` has ended or has called exec: what is known of it is dropped, a
    /// waiting request too.
    pub fn forget(&self, pid: u32) {
        self.orders.change(|pending| {
            let is_of_pid = |order: &Order| {
                matches!(order, Order::Sample(it, _) | Order::Everyone(it, _) if *it == pid)
            };
            pending.queue.retain(|order| !is_of_pid(order));
            pending.queue.push_back(Order::Forget(pid));
        });
    }

    /// The answers that have come since the last call. Never blocks.
    pub fn answers(&self) -> impl Iterator<Item = Answer> {
        self.answers.try_iter()
    }
}

impl Drop for StackSampler {
    fn drop(&mut self) {
        self.orders.change(|pending| pending.stop = true);
        if let Some(thread) = self.thread.take() {
            // A panic there has nothing to add: the samples are missing, and that shows.
            let _ = thread.join();
        }
    }
}

impl Orders {
    fn add(&self, pid: u32, wanted: Wanted) {
        self.change(|pending| {
            for order in &mut pending.queue {
                if let Order::Sample(waiting, earlier) = order
                    && *waiting == pid
                {
                    earlier.names |= wanted.names;
                    earlier.runtime = earlier.runtime.or(wanted.runtime);
                    let known = earlier.natives.len();
                    let is_new = |tid: &u32| !earlier.natives[..known].contains(tid);
                    let new: Vec<_> = wanted.natives.into_iter().filter(is_new).collect();
                    earlier.natives.extend(new);
                    return;
                }
            }
            pending.queue.push_back(Order::Sample(pid, wanted));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for an order; `None` says that it is time to stop.
    fn next(&self) -> Option<Order> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |pending: &mut Pending| pending.queue.is_empty() && !pending.stop;
        let mut pending =
            self.changed.wait_while(pending, idle).unwrap_or_else(PoisonError::into_inner);
        if pending.stop { None } else { pending.queue.pop_front() }
    }
}

/// What the sampling thread knows of a process.
enum Target {
    Attached(Box<StackReader>),
    /// No sample before this time; the pause doubles with each failure in a row.
    Pausing {
        until: Instant,
        pause: Duration,
        why: StackError,
    },
    /// It will never work.
    Hopeless(StackError),
}

struct Worker {
    orders: Arc<Orders>,
    answers: Sender<Answer>,
    targets: HashMap<u32, Target>,
}

impl Worker {
    fn run(mut self) {
        crate::signals::block_all();
        while let Some(order) = self.orders.next() {
            let answer = match order {
                Order::Sample(pid, wanted) => self.answer(pid, &wanted),
                Order::Everyone(pid, runtime) => self.everyone(pid, runtime),
                Order::Forget(pid) => {
                    self.targets.remove(&pid);
                    continue;
                }
            };
            if self.answers.send(answer).is_err() {
                return;
            }
        }
    }

    /// What all threads do, if the process has been looked into, or can be now.
    fn everyone(&mut self, pid: u32, runtime: Option<u64>) -> Answer {
        if !matches!(self.targets.get(&pid), Some(Target::Attached(_))) {
            self.answer(pid, &Wanted { runtime, ..Wanted::default() });
            // Nobody gets that answer.
            if let Some(Target::Attached(reader)) = self.targets.get_mut(&pid) {
                reader.tell_libraries_again();
            }
        }
        let (read, cpu_ns) = with_cpu_ns(|| match self.targets.get_mut(&pid) {
            Some(Target::Attached(reader)) => reader.read_everyone().ok(),
            _ => None,
        });
        read.map_or(Answer::NotEveryone { pid }, |everyone| Answer::Everyone {
            pid,
            everyone,
            cpu_ns,
        })
    }

    /// The answer to a request. A process that is to be left alone gives its last one again.
    fn answer(&mut self, pid: u32, wanted: &Wanted) -> Answer {
        let now = Instant::now();
        let (reader, pause) = match self.targets.remove(&pid) {
            Some(Target::Attached(reader)) => (Ok(reader), FIRST_PAUSE),
            None => (StackReader::attach(pid, wanted.runtime).map(Box::new), FIRST_PAUSE),
            Some(Target::Pausing { until, pause, .. }) if until <= now => (
                StackReader::attach(pid, wanted.runtime).map(Box::new),
                (pause * 2).min(LONGEST_PAUSE),
            ),
            Some(target) => {
                let (Target::Pausing { why: error, .. } | Target::Hopeless(error)) = &target else {
                    unreachable!("an attached reader was taken above")
                };
                let answer = Answer::Failed { pid, error: error.clone() };
                self.targets.insert(pid, target);
                return answer;
            }
        };
        let outcome = reader.and_then(|mut reader| {
            let sample = read(&mut reader, wanted)?;
            Ok((reader, sample))
        });
        let (target, answer) = match outcome {
            Ok((reader, sample)) => (Target::Attached(reader), Answer::Sample { pid, sample }),
            Err(error) => {
                let why = error.clone();
                let target = match &error {
                    // Too many failures in a row: the process may have called exec, so look anew.
                    StackError::NotReady(_) => Target::Pausing { until: now + pause, pause, why },
                    _ => Target::Hopeless(why),
                };
                (target, Answer::Failed { pid, error })
            }
        };
        self.targets.insert(pid, target);
        answer
    }
}

/// Reads, and again if the process changed under the reader's hands.
fn read(reader: &mut StackReader, wanted: &Wanted) -> Result<Sample, StackError> {
    let mut attempt = 1;
    loop {
        // Names first: where they fail all is read again, and no thread is stopped in vain.
        let names = wanted.names.then(|| reader.read_names()).transpose();
        let sample = names.and_then(|names| {
            let sample = match &wanted.natives[..] {
                [] => reader.read()?,
                threads => reader.read_with_natives(threads)?,
            };
            Ok(Sample { names, ..sample })
        });
        match sample {
            Err(StackError::NotReady(_)) if attempt < TRIES => attempt += 1,
            sample => return sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_one_process_merge_and_keep_their_place() {
        let orders = Orders::default();
        let natives = |threads: &[u32]| Wanted { natives: threads.to_vec(), ..Wanted::default() };
        let names = || Wanted { names: true, ..Wanted::default() };
        orders.add(1, natives(&[7]));
        orders.add(2, names());
        orders.add(1, names());
        orders.add(2, Wanted::default());
        orders.add(1, natives(&[7, 8]));
        let both = Wanted { natives: vec![7, 8], ..names() };
        assert_eq!(orders.next(), Some(Order::Sample(1, both)));
        assert_eq!(orders.next(), Some(Order::Sample(2, names())));
    }

    #[test]
    fn a_process_that_has_ended_is_told_of_at_every_request() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let (answers, received) = mpsc::channel();
        let mut worker = Worker { orders: Arc::default(), answers, targets: HashMap::new() };
        let gone = Answer::Failed { pid, error: StackError::Gone };
        assert_eq!(worker.answer(pid, &Wanted::default()), gone);
        assert_eq!(worker.answer(pid, &Wanted::default()), gone);
        drop((worker, received));

        let sampler = StackSampler::start().unwrap();
        sampler.request_stack(pid, None, None);
        assert_eq!(sampler.answers.recv(), Ok(gone));
    }

    #[test]
    fn a_process_without_an_interpreter_yet_is_left_alone_for_ever_longer() {
        let (answers, _received) = mpsc::channel();
        let mut worker = Worker { orders: Arc::default(), answers, targets: HashMap::new() };
        let pid = std::process::id();
        let mut pauses = vec![];
        for _ in 0..10 {
            assert!(matches!(worker.answer(pid, &Wanted::default()), Answer::Failed { .. }));
            let Some(Target::Pausing { until, pause, why }) = worker.targets.get_mut(&pid) else {
                panic!("no pause after a failure")
            };
            pauses.push(*pause);
            *until = Instant::now() + LONGEST_PAUSE;
            // Told apart from a new failure by what is answered.
            *why = StackError::NotReady("as before".into());
            let before = Answer::Failed { pid, error: why.clone() };
            assert_eq!(worker.answer(pid, &Wanted::default()), before);
            let Some(Target::Pausing { until, .. }) = worker.targets.get_mut(&pid) else {
                panic!("the pause is gone")
            };
            *until = Instant::now();
        }
        assert_eq!(pauses[..3], [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]);
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
    }
}
