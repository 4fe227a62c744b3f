//! A program that runs as if nobody stood between it and whoever started this process.
//!
//! Standard streams, other inherited descriptors, working directory, process group and terminal
//! are the program's own; it starts with the signal mask and the dispositions with which this
//! process was started. Signals, while it runs:
//!
//! | sent to                     | for example                   | what is done here            |
//! |-----------------------------|-------------------------------|------------------------------|
//! | this process alone          | `kill`, `sigqueue`, an alarm  | it is sent on to the program |
//! | the whole process group     | Ctrl-C, `kill -TERM -GROUP`   | nothing: the program has it  |
//! | the program, and it stops   | Ctrl-Z, `kill -TSTP`          | this process stops with it   |
//!
//! | this process alone          | the number that is its own    | what it means to this process|
//!
//! So each signal arrives once, whatever its number, and whatever the program does with it. That
//! holds because nothing is decided here by handlers or dispositions: every signal is blocked, and
//! taken one by one.

mod spawn;
mod witness;

use std::io;
use std::mem::zeroed;
use std::thread;
use std::time::Duration;

use libc::{c_int, pid_t, siginfo_t};

pub use crate::signals::{block_all, die_by};
pub use spawn::Command;

use crate::signals::{self, Arrivals, Disposition, Mask};
use spawn::{Start, spawn};
use witness::Witness;

/// What the default of is to stop, and what a terminal sends to those who use it.
const STOPPING: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// After so long most looks at the program are over.
const LOOKED_AT: Duration = Duration::from_micros(100);

/// Signals of this process, kept from it as long as it stands between its own caller and a program.
///
/// Made, used and given back by one thread, before which no other has been started.
pub struct Signals {
    mask: Mask,
    /// Python's handler would swallow a Ctrl-C that comes between fork and exec.
    interrupt: Disposition,
    /// Where the end of children is ignored, there is no status to wait for.
    children: Disposition,
    /// Threads of this process cannot keep from these when they begin.
    reserved: [Disposition; 2],
}

impl Signals {
    /// From now on signals wait.
    pub fn hold() -> Self {
        // The first thread of all makes the C library let in its own two signals, whatever the
        // mask; if there can be none, there is nothing to repair.
        let _ = thread::Builder::new().spawn(|| ()).map(thread::JoinHandle::join);
        let mask = signals::set_mask(Mask::ALL);
        let (interrupt, children) =
            (Disposition::default_of(libc::SIGINT), Disposition::default_of(libc::SIGCHLD));
        if interrupt.was_ignored() {
            interrupt.restore();
        }
        let reserved = signals::RESERVED.map(Disposition::passed_on);
        Self { mask, interrupt, children, reserved }
    }

    /// From now on they have the effect that they had before. What has been sent to a program that
    /// is over is forgotten.
    pub fn release(self, is_over: bool) {
        while is_over && signals::take(Mask::ALL).is_some() {}
        self.interrupt.restore();
        self.children.restore();
        self.reserved.iter().for_each(Disposition::restore);
        signals::set_mask(self.mask);
    }

    fn start(&self) -> Start<'_> {
        Start {
            mask: self.mask,
            ignores_children: self.children.was_ignored(),
            reserved: &self.reserved,
        }
    }
}

/// A signal that means this process, and is not sent on: its number, and what it does.
pub type Own = (c_int, Box<dyn Fn() + Send>);

/// A running program.
pub struct Child {
    pid: pid_t,
    arrivals: Arrivals,
    own: Option<Own>,
    /// `None` if there cannot be one, or somebody has killed it.
    witness: Option<Witness>,
    /// A stop was asked for, and the program was not seen to go on since.
    was_asked_to_stop: bool,
    /// By which signal the program was seen to be stopped, if it was not seen to go on since.
    stopped_by: Option<c_int>,
}

/// What has become of a program.
enum State {
    Ended(c_int),
    Stopped(c_int),
    Continued,
    /// A thread of this process has stopped it, to look at it, and lets it go on.
    LookedAt,
    Unchanged,
}

impl Child {
    /// Starts a program, or says why the system refuses.
    pub fn start(command: &Command, held: &Signals, own: Option<Own>) -> io::Result<Self> {
        let arrivals = Arrivals::new()?;
        let mut witness = Witness::post().ok();
        let mut early = Vec::new();
        while let Some(info) = signals::take(Mask::ALL) {
            early.push(info);
        }
        if let Some(posted) = &mut witness
            && posted.forget().is_err()
        {
            witness = None;
        }
        let pid = spawn(command, held.start())?;
        let (was_asked_to_stop, stopped_by) = (false, None);
        let child = Self { pid, arrivals, own, witness, was_asked_to_stop, stopped_by };
        // Whomever they were sent to, the program did not exist.
        for info in early {
            if !child.is_own(info.si_signo) {
                child.send_on(&info);
            }
        }
        Ok(child)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Waits for its end, and meanwhile sees to signals. Returns its exit status, or minus the
    /// number of the signal that killed it.
    pub fn wait(&mut self) -> io::Result<i32> {
        loop {
            match self.state()? {
                State::Ended(status) => return Ok(status),
                State::Stopped(number) => self.stopped_by = Some(number),
                State::Continued => (self.stopped_by, self.was_asked_to_stop) = (None, false),
                // Of what happens meanwhile no signal may tell.
                State::LookedAt => thread::sleep(LOOKED_AT),
                // A signal to go on may have come behind the one to stop.
                State::Unchanged => match (signals::lowest_pending(), self.stop_for_both()) {
                    (Some(number), _) => self.take_signal(number),
                    (None, Some(number)) => {
                        self.stopped_by = None;
                        signals::stop_by(number);
                    }
                    (None, None) => self.arrivals.wait(),
                },
            }
        }
    }

    /// What has become of it. A stop by a thread of this process is left for that thread to take.
    fn state(&self) -> io::Result<State> {
        match self.waited(libc::WNOWAIT)? {
            it @ (State::Unchanged | State::LookedAt) => Ok(it),
            _ => self.waited(0),
        }
    }

    fn waited(&self, flags: c_int) -> io::Result<State> {
        // SAFETY: all zeroes are a valid siginfo_t.
        let mut info: siginfo_t = unsafe { zeroed() };
        let events = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG | flags;
        // SAFETY: `info` is valid for writing.
        if unsafe { libc::waitid(libc::P_PID, self.pid.cast_unsigned(), &raw mut info, events) }
            != 0
        {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: waitid has filled it in, or left it zero.
        let pid = unsafe { info.si_pid() };
        // SAFETY: waitid fills it in with the id, or leaves it zero.
        let status = unsafe { info.si_status() };
        Ok(match info.si_code {
            _ if pid == 0 => State::Unchanged,
            libc::CLD_EXITED => State::Ended(status),
            libc::CLD_KILLED | libc::CLD_DUMPED => State::Ended(-status),
            libc::CLD_STOPPED => State::Stopped(status),
            libc::CLD_TRAPPED => State::LookedAt,
            _ => State::Continued,
        })
    }

    fn take_signal(&mut self, number: c_int) {
        let Some((info, group_has_it)) = self.taken(number) else { return };
        if number == libc::SIGCHLD && info.si_code > 0 {
            // The kernel's word that the program's state has changed.
            return;
        }
        self.was_asked_to_stop |= STOPPING.contains(&number);
        self.was_asked_to_stop &= number != libc::SIGCONT;
        if !self.is_own(number) && !group_has_it {
            self.send_on(&info);
        }
    }

    /// Whether a signal means this process, which does then what it asks for.
    fn is_own(&self, number: c_int) -> bool {
        let own = self.own.as_ref().filter(|(own, _)| *own == number);
        own.map(|(_, act)| act()).is_some()
    }

    /// A signal that waits, and whether the whole process group has it, and so the program.
    fn taken(&mut self, number: c_int) -> Option<(siginfo_t, bool)> {
        if let Some(witness) = &mut self.witness {
            let taken = witness.take(number);
            if !witness.is_gone() {
                return taken;
            }
            self.witness = None;
            return taken.map(|(info, seen)| (info, seen || is_the_terminals(&info)));
        }
        signals::take(Mask::of(number)).map(|info| (info, is_the_terminals(&info)))
    }

    /// A program that has changed its user may be out of reach; then it would have been for the
    /// sender, unless that was root.
    fn send_on(&self, info: &siginfo_t) {
        let _ = signals::send_on(info, self.pid);
    }

    /// By which signal this process is to stop as well, as whoever controls the job waits for it
    /// and not for the program.
    ///
    /// A program that was stopped by SIGSTOP, unless it did so when it was asked to stop, is
    /// somebody's who means the program alone (cpulimit), and will not continue this process.
    fn stop_for_both(&self) -> Option<c_int> {
        self.stopped_by.filter(|&number| number != libc::SIGSTOP || self.was_asked_to_stop)
    }
}

/// Without a witness: whether a signal is one that the kernel sends to a group, for a terminal.
fn is_the_terminals(info: &siginfo_t) -> bool {
    let usual = [libc::SIGINT, libc::SIGQUIT, libc::SIGWINCH, libc::SIGHUP, libc::SIGCONT];
    info.si_code == libc::SI_KERNEL
        && (usual.contains(&info.si_signo) || STOPPING.contains(&info.si_signo))
}
