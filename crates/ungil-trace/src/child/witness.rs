//! Whether a signal was sent to this process alone, or to its whole process group.
//!
//! The kernel does not tell who else got a signal: Ctrl-C, `kill -TERM -GROUP` and
//! `kill -TERM PROCESS` look the same to who gets them (but for the sender). So a second process
//! of ours stands in the group and collects what it gets, which can only be what all of them get.
//!
//! It has got its copy when we get ours: the kernel signals the members of a group one after the
//! other, the youngest first (`hlist_add_head` of `attach_pid` in Linux's kernel/pid.c), and does
//! so under a lock. A sender that goes through single processes (systemd's `KillMode=control-group`,
//! `pkill -f`) comes to it at a moment of its own, so what such a sender sends may be handed on
//! also to a program that gets it from there.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::mem::{self, MaybeUninit, size_of};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::{fs, ptr};

use libc::{c_int, c_uint, pid_t, siginfo_t};

use crate::signals::{self, Mask, Origin};

/// Its name and command line: without any word by which a person would look for ungil, or for the
/// program, to send them a signal.
const NAME: &[u8] = b"signal-witness\0";
/// A witness that somebody has stopped is told to go on if it has not answered for so long.
const NUDGE_MS: c_int = 200;
/// Asks the witness to forget what it has collected.
const FORGET: u8 = 0;

/// A process that stands in our process group.
pub struct Witness {
    pid: pid_t,
    socket: UnixStream,
    testimony: Testimony,
    is_gone: bool,
}

impl Witness {
    /// Posts a witness. The calling thread must have blocked all signals.
    pub fn post() -> io::Result<Self> {
        let (socket, its_socket) = UnixStream::pair()?;
        let arguments = own_arguments();
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child calls nothing but what is safe after the fork of a process with threads.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => stand(its_socket.as_raw_fd(), arguments, parent),
            pid => Ok(Self { pid, socket, testimony: Testimony::default(), is_gone: false }),
        }
    }

    /// Forgets what was sent so far.
    pub fn forget(&mut self) -> io::Result<()> {
        self.testimony = Testimony::default();
        self.ask(FORGET).map(drop)
    }

    /// The next signal of that number, and whether the whole process group got it; `None` if it was
    /// taken back (by SIGCONT, for example). The caller has seen it waiting.
    pub fn take(&mut self, number: c_int) -> Option<(siginfo_t, bool)> {
        let mut testimony = mem::take(&mut self.testimony);
        let taken = testimony.take(
            number,
            || self.told(number),
            || signals::take(Mask::of(number)).map(|info| (info, Origin::of(&info))),
            || signals::is_pending(number),
        );
        self.testimony = testimony;
        taken
    }

    /// Whether it does not answer any more, so that what it has told last may be wrong.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// What it has collected of that number; forgets it.
    fn told(&mut self, number: c_int) -> Option<Origin> {
        let answer = u8::try_from(number).map_err(io::Error::other).and_then(|it| self.ask(it));
        self.is_gone |= answer.is_err();
        answer.ok().filter(|info| info.si_signo != 0).map(|info| Origin::of(&info))
    }

    fn ask(&mut self, request: u8) -> io::Result<siginfo_t> {
        self.socket.write_all(&[request])?;
        while !self.answers()? {
            // SAFETY: takes integers; a child of ours that has not been waited for.
            unsafe { libc::kill(self.pid, libc::SIGCONT) };
        }
        let mut answer = [0; size_of::<siginfo_t>()];
        self.socket.read_exact(&mut answer)?;
        // SAFETY: the bytes of a siginfo_t, which is made of integers.
        Ok(unsafe { ptr::read_unaligned(answer.as_ptr().cast()) })
    }

    /// Waits for an answer, or an end, but not for ever.
    fn answers(&self) -> io::Result<bool> {
        let mut poll =
            libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        match unsafe { libc::poll(&raw mut poll, 1, NUDGE_MS) } {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
            ready => Ok(ready > 0),
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Killed, because one that is stopped would not notice the end of its socket.
        // SAFETY: takes integers; a child of ours that has not been waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: the address for its status may be null.
        unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
    }
}

/// What the witness has told of signals that we have not taken yet, by number.
#[derive(Default)]
struct Testimony(HashMap<c_int, Origin>);

impl Testimony {
    /// Takes a signal that waits, and says whether it is one that the witness got, too.
    ///
    /// `ask` has the witness forget what it tells, `take` is the signal, and `is_pending` whether
    /// another one of its number waits.
    fn take<T>(
        &mut self,
        number: c_int,
        mut ask: impl FnMut() -> Option<Origin>,
        take: impl FnOnce() -> Option<(T, Origin)>,
        is_pending: impl FnOnce() -> bool,
    ) -> Option<(T, bool)> {
        let kept = self.0.remove(&number);
        if signals::is_queued(number) {
            // Both get what the group gets in one order, and we get other signals between.
            let told = kept.or_else(ask);
            let (own, origin) = take()?;
            let seen = told == Some(origin);
            if let Some(told) = told.filter(|_| !seen && is_pending()) {
                self.0.insert(number, told);
            }
            return Some((own, seen));
        }
        // The witness must not wait with one when the next one comes, or it would miss that. So it
        // is asked before: whatever it tells of came while ours waited, and was our own or none.
        let told = [kept, ask()];
        let (own, origin) = take()?;
        // It may have got another one since; if that came before ours was taken it was none, too.
        if let Some(later) = ask().filter(|_| is_pending()) {
            self.0.insert(number, later);
        }
        Some((own, told.contains(&Some(origin))))
    }
}

/// The life of a witness. After fork: it must not allocate, nor touch a lock.
fn stand(socket: RawFd, arguments: Range<usize>, parent: pid_t) -> ! {
    // SAFETY: NUL-terminated, as the kernel wants a name.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    rename(arguments);
    close_all_but(socket);
    let mut request = [0; 1];
    loop {
        // SAFETY: there is room for one byte.
        match unsafe { libc::read(socket, request.as_mut_ptr().cast(), 1) } {
            1 => {}
            -1 if interrupted() => continue,
            // Who posted it is gone.
            // SAFETY: ends the process, and runs nothing of the parent's.
            _ => unsafe { libc::_exit(0) },
        }
        let answer = match request[0] {
            FORGET => {
                while signals::take(Mask::ALL).is_some() {}
                None
            }
            number => collected(number.into(), parent),
        };
        // SAFETY: all zeroes are a valid siginfo_t.
        let answer = answer.unwrap_or_else(|| unsafe { MaybeUninit::zeroed().assume_init() });
        let bytes = (&raw const answer).cast::<libc::c_void>();
        // Shorter than any socket's buffer, so all of it is written.
        // SAFETY: the bytes of `answer`, which live during the call.
        while unsafe { libc::write(socket, bytes, size_of::<siginfo_t>()) } < 0 && interrupted() {}
    }
}

/// The first signal of that number that has come, but for our own nudges.
fn collected(number: c_int, parent: pid_t) -> Option<siginfo_t> {
    loop {
        let info = signals::take(Mask::of(number))?;
        if number != libc::SIGCONT || Origin::of(&info).pid() != parent {
            return Some(info);
        }
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

/// Where this process's command line is in its memory; empty if that cannot be found out.
fn own_arguments() -> Range<usize> {
    // proc_pid_stat(5): arg_start and arg_end are fields 48 and 49, and field 2, in parentheses,
    // may contain anything.
    let told = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = told.rsplit_once(')').map(|(_, fields)| fields.split_ascii_whitespace());
    let mut numbers = fields.into_iter().flatten().skip(45).map_while(|it| it.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(start), Some(end)) if start != 0 => start..end,
        _ => 0..0,
    }
}

/// Makes the command line say what this process is.
fn rename(arguments: Range<usize>) {
    for (index, address) in arguments.enumerate() {
        let byte = NAME.get(index).copied().unwrap_or(0);
        // SAFETY: the kernel says that the command line is there, on the stack of the first thread,
        // which exists in a forked child as it did before; nobody here reads it.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(byte) };
    }
}

/// Closes what the witness would keep open for others: pipes, terminals, locked files.
fn close_all_but(kept: RawFd) {
    let kept = kept.cast_unsigned();
    // With the number 0 the first range would be the wrong way round, which closes nothing.
    for (first, last) in [(0, kept.wrapping_sub(1)), (kept + 1, c_uint::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: takes integers; nothing of this process uses the files any more.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            // Before Linux 5.9. More descriptors than these are rarely allowed.
            for file in first..=last.min(1 << 16) {
                // SAFETY: takes an integer; nothing of this process uses the file any more.
                unsafe { libc::close(file.cast_signed()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use proptest::prelude::*;

    const TERM: c_int = libc::SIGTERM;

    fn from(pid: pid_t) -> Origin {
        Origin::example(libc::SI_USER, pid)
    }

    /// The signals of one number that wait for a process, as the kernel keeps them.
    #[derive(Default)]
    struct Waiting(VecDeque<Origin>);

    impl Waiting {
        /// Whether it is one, and not as if it had not been sent.
        fn send(&mut self, number: c_int, origin: Origin) -> bool {
            let is_one = signals::is_queued(number) || self.0.is_empty();
            if is_one {
                self.0.push_back(origin);
            }
            is_one
        }
    }

    /// A process, its witness, and what is sent to them.
    struct World {
        number: c_int,
        ours: Waiting,
        witness: Waiting,
        for_us: Vec<Origin>,
        /// What is sent next: to all, or to us alone.
        plan: VecDeque<(bool, pid_t)>,
    }

    impl World {
        /// Some of what is sent, while we are between two steps.
        fn pass(&mut self, count: usize) {
            for _ in 0..count {
                let Some((to_all, pid)) = self.plan.pop_front() else { return };
                // One sends to all, others to us alone.
                let origin = from(if to_all { 1 } else { 2 + pid });
                if to_all {
                    self.witness.send(self.number, origin);
                }
                if self.ours.send(self.number, origin) && !to_all {
                    self.for_us.push(origin);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_for_us_is_handed_on_and_what_is_for_all_is_not_whenever_it_comes(
            plan in prop::collection::vec((any::<bool>(), 0..3), 0..30),
            pauses in prop::collection::vec(0..3usize, 1..200),
            number in prop_oneof![Just(TERM), Just(libc::SIGRTMIN())],
        ) {
            let world = RefCell::new(World {
                number,
                ours: Waiting::default(),
                witness: Waiting::default(),
                for_us: Vec::new(),
                plan: plan.into(),
            });
            let mut pauses = pauses.into_iter().cycle();
            let pauses = RefCell::new(&mut pauses);
            let pause = || world.borrow_mut().pass(pauses.borrow_mut().next().unwrap_or(0));
            let (mut testimony, mut handed_on) = (Testimony::default(), Vec::new());
            loop {
                if world.borrow().ours.0.is_empty() {
                    if world.borrow().plan.is_empty() {
                        break;
                    }
                    world.borrow_mut().pass(1);
                    continue;
                }
                let taken = testimony.take(
                    number,
                    || {
                        pause();
                        let told = world.borrow_mut().witness.0.pop_front();
                        pause();
                        told
                    },
                    || {
                        pause();
                        let own = world.borrow_mut().ours.0.pop_front();
                        pause();
                        own.map(|own| (own, own))
                    },
                    || !world.borrow().ours.0.is_empty(),
                );
                if let Some((own, false)) = taken {
                    handed_on.push(own);
                }
            }
            prop_assert_eq!(handed_on, world.into_inner().for_us);
        }
    }

    #[test]
    fn what_was_taken_back_leaves_nothing_behind() {
        let mut testimony = Testimony::default();
        let taken = testimony.take(TERM, || Some(from(7)), || None::<((), _)>, || false);
        assert!(taken.is_none());
        let taken = testimony.take(TERM, || None, || Some(((), from(7))), || false);
        assert_eq!(taken, Some(((), false)));
    }
}
