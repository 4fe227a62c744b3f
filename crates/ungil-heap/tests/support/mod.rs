//! What the tests with several processes share: forking, and killing at every step.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ungil_heap::chunk::{self, State};
use ungil_heap::header::CHUNK;
use ungil_heap::lock::Sleep;
use ungil_heap::segment::Offset;
use ungil_heap::{Heap, Result, size_class, slab};

/// Keeps forks of different tests apart: a child must not inherit what another one's parent just
/// opened for it.
static FORK: Mutex<()> = Mutex::new(());

/// Keeps other tests from forking.
pub fn no_forks() -> MutexGuard<'static, ()> {
    FORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new heap.
pub fn heap(max_size: usize) -> Arc<Heap> {
    let _no_forks = no_forks();
    Heap::anonymous(max_size, Box::new(Sleep)).expect("a heap is made")
}

/// Takes memory that no object owns. Unlike [`Heap::change`], this never collects garbage, which
/// such memory is.
pub fn take(heap: &Heap, bytes: usize) -> Result<Offset> {
    let mut op = heap.op()?;
    let at = op.take(bytes)?;
    op.commit()?;
    Ok(at)
}

/// Frees such memory.
pub fn free(heap: &Heap, at: Offset, bytes: usize) -> Result<()> {
    let mut op = heap.op()?;
    op.free(at, bytes);
    op.commit()
}

/// How many bytes of a heap are taken, which nobody changes meanwhile.
pub fn taken(heap: &Heap) -> usize {
    let segment = heap.segment();
    let (mut bytes, mut at) = (0, 0);
    while at < chunk::count(segment) {
        let state = chunk::state(segment, at).unwrap().load(Relaxed);
        let mut length = 1;
        match State::from_word(state).unwrap() {
            State::Free | State::Hole => {}
            State::Slab(class) | State::Retiring(class) => {
                let bitmap = slab::bitmap(segment, at).unwrap();
                let blocks: u32 = bitmap.iter().map(|word| word.load(Relaxed).count_ones()).sum();
                bytes += blocks as usize * size_class::SIZES[usize::from(class)];
            }
            State::Run(chunks) => {
                length = chunks;
                bytes += chunks * CHUNK;
            }
        }
        at += length;
    }
    bytes
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did what it had to.
    Done,
    /// By SIGKILL.
    Killed,
}

/// A forked child, which is killed when this is dropped before [`Child::wait`].
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Runs `work` in a forked child that is attached to `heap`. A panic there fails the test that
    /// waits for it.
    pub fn fork(heap: &Heap, work: impl FnOnce()) -> Self {
        let one_at_a_time = no_forks();
        let reserved = heap.before_fork().expect("there is room for a child");
        // SAFETY: the child uses its own memory and the heap, and leaves by `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                drop(one_at_a_time);
                let work = std::panic::AssertUnwindSafe(|| {
                    heap.forked(reserved).expect("the child is attached");
                    work();
                });
                let code = i32::from(std::panic::catch_unwind(work).is_err());
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { libc::_exit(code) };
            }
            pid if pid > 0 => Self { pid },
            _ => panic!("fork: {}", std::io::Error::last_os_error()),
        }
    }

    /// Its number.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Sends it SIGKILL; it stays a zombie until [`Self::wait`].
    pub fn kill(&self) {
        // SAFETY: takes integers; the child was not waited for, so the number is its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    /// Waits until it has died, and leaves it a zombie.
    pub fn wait_for_zombie(&self) {
        // SAFETY: all zeros are a valid structure, filled by the call.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let pid = self.pid.cast_unsigned();
        // SAFETY: the structure lives during the call.
        let result =
            unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
        assert_eq!(result, 0, "waitid: {}", std::io::Error::last_os_error());
    }

    /// Waits for its end.
    pub fn wait(self) -> End {
        let mut status = 0;
        // SAFETY: the integer lives during the call.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!(pid, self.pid, "waitpid: {}", std::io::Error::last_os_error());
        std::mem::forget(self);
        if libc::WIFSIGNALED(status) {
            assert_eq!(libc::WTERMSIG(status), libc::SIGKILL, "the child was killed otherwise");
            return End::Killed;
        }
        assert_eq!(libc::WEXITSTATUS(status), 0, "the child panicked");
        End::Done
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: a status is not asked for.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// What [`every_step`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many steps the operation has, so how often a process died in it.
    pub all: u64,
    /// Deaths that left nothing of the operation to be seen.
    pub unseen: u64,
}

/// Kills a process at each step of an operation, and looks what others find then.
///
/// For k = 0, 1, 2 … there is a new heap of `max_size` bytes, on which this process calls `setup`;
/// a forked child then calls `operation` and is killed at its fault point number k, until there is
/// one that passes them all. Each time this process calls `check`, which uses what the dead child
/// was changing (taking its locks), asserts that everything is whole, and says whether the operation
/// has happened. It must have happened at all later points if it has at one, and when nobody died.
/// At last the heap is settled (see [`settle`]).
///
/// `setup` should leave `operation` nothing that this process alone could know: what `operation`
/// learns in the child is lost with it.
#[cfg(feature = "fault")]
pub fn every_step<S>(
    max_size: usize,
    setup: impl Fn(&Arc<Heap>) -> S,
    operation: impl Fn(&Heap, &S),
    check: impl Fn(&Heap, &S) -> bool,
) -> Steps {
    let mut steps = Steps { all: 0, unseen: 0 };
    loop {
        let step = steps.all;
        let heap = heap(max_size);
        let state = setup(&heap);
        let last_words = last_words::Page::new();
        let child = Child::fork(&heap, || {
            last_words.arm(step);
            operation(&heap, &state);
        });
        let end = child.wait();
        let point = if end == End::Killed { last_words.said() } else { "none" };
        let happened = context(step, point, || check(&heap, &state));
        context(step, point, || settle(&heap));
        if end == End::Done {
            assert!(happened, "the operation ended, but it has not happened");
            assert!(step > 0, "the operation has no fault point");
            return steps;
        }
        if !happened {
            assert_eq!(
                steps.unseen, step,
                "killed at step {step} ({point}) it has not happened, but killed earlier it had"
            );
            steps.unseen += 1;
        }
        steps.all += 1;
        assert!(steps.all < 1_000_000, "the operation never ends");
    }
}

/// Says where the child died, if `work` panics.
#[cfg(feature = "fault")]
#[expect(clippy::print_stderr, reason = "a test that fails says where")]
fn context<T>(step: u64, point: &str, work: impl FnOnce() -> T) -> T {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    result.unwrap_or_else(|panic| {
        eprintln!("the child was killed at step {step}, {point:?}");
        std::panic::resume_unwind(panic)
    })
}

/// Asserts that a heap in which somebody died works as if nobody had: everyone dead is cleaned up
/// behind, no lock of the heap's own is stuck, and memory of every kind can be had and freed.
pub fn settle(heap: &Heap) {
    heap.clean().expect("the dead are cleaned up behind");
    for bytes in [16, 64, 40 << 10] {
        let mut op = heap.op().expect("an operation begins");
        let at = op.take(bytes).expect("there is memory");
        op.free(at, bytes);
        op.commit().expect("an operation ends");
    }
}

#[cfg(feature = "fault")]
mod last_words {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

    /// Where this process's dying child leaves the address and the length of a point's name, which
    /// are the same in parent and child.
    static PAGE: AtomicPtr<[AtomicUsize; 2]> = AtomicPtr::new(std::ptr::null_mut());

    /// Memory that a parent shares with its child.
    pub struct Page(NonNull<[AtomicUsize; 2]>);

    impl Page {
        pub fn new() -> Self {
            // SAFETY: a new mapping at a place of the kernel's choice; the result is checked.
            let page = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size_of::<[AtomicUsize; 2]>(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            assert_ne!(page, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
            Self(NonNull::new(page.cast()).expect("not mapped at 0"))
        }

        /// Lets this process, the child, die at a step.
        pub fn arm(&self, step: u64) {
            PAGE.store(self.0.as_ptr(), Relaxed);
            ungil_heap::fault::arm(step, |name| {
                // SAFETY: the page stays mapped until the child's end, which is now.
                let words = unsafe { &*PAGE.load(Relaxed) };
                words[0].store(name.as_ptr() as usize, Relaxed);
                words[1].store(name.len(), Relaxed);
            });
        }

        /// The name of the point where the child died.
        pub fn said(&self) -> &'static str {
            // SAFETY: mapped until this is dropped, and made of atomics.
            let [at, length] = unsafe { self.0.as_ref() };
            let at = std::ptr::with_exposed_provenance(at.load(Relaxed));
            if length.load(Relaxed) == 0 {
                return "none";
            }
            // SAFETY: the child is a fork of this process, so its string constants are ours.
            let bytes = unsafe { std::slice::from_raw_parts(at, length.load(Relaxed)) };
            std::str::from_utf8(bytes).expect("it is a string")
        }
    }

    impl Drop for Page {
        fn drop(&mut self) {
            // SAFETY: our own mapping, to which nothing refers any more.
            unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<[AtomicUsize; 2]>()) };
        }
    }
}
