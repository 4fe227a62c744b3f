//! Signals as the kernel knows them: all 64, blocked, waited for, and sent on as they came.
//!
//! The C library keeps the numbers 32 and 33 for itself and leaves them out of every mask that it
//! is given, but anybody may send them. So the kernel is asked directly.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_void, pid_t, siginfo_t};

/// What the C library keeps for itself.
pub const RESERVED: [c_int; 2] = [32, 33];

/// Bytes of a mask, as the kernel counts them.
const MASK_BYTES: usize = size_of::<Mask>();

/// A set of signals.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask(u64);

impl Mask {
    /// Every signal. The kernel leaves out those that nobody can block.
    pub const ALL: Self = Self(u64::MAX);

    /// One signal.
    pub const fn of(number: c_int) -> Self {
        Self(1 << (number - 1))
    }

    const fn has(self, number: c_int) -> bool {
        self.0 & Self::of(number).0 != 0
    }

    /// All but one signal.
    pub const fn without(self, number: c_int) -> Self {
        Self(self.0 & !Self::of(number).0)
    }
}

/// Gives the calling thread a mask, and returns the one it had. Safe after fork.
pub fn set_mask(mask: Mask) -> Mask {
    let mut before = Mask(0);
    // SAFETY: both masks live during the call and have the size that is said.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            MASK_BYTES,
        )
    };
    before
}

/// Keeps every signal from the calling thread. A thread begins with the mask of the one that
/// started it, from which the C library may have taken 32 and 33. What it gets before it calls this
/// is [passed on](Disposition::passed_on).
pub fn block_all() {
    set_mask(Mask::ALL);
}

/// One of these signals that is blocked and was sent, if there is one. Safe after fork.
pub fn take(mask: Mask) -> Option<siginfo_t> {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the mask and the time live during the call, `info` is as large as the kernel's own.
    let number = unsafe {
        libc::syscall(
            libc::SYS_rt_sigtimedwait,
            &raw const mask,
            info.as_mut_ptr(),
            &raw const at_once,
            MASK_BYTES,
        )
    };
    // SAFETY: it began as zeroes, which are a valid siginfo_t, and the kernel writes a valid one.
    (number > 0).then(|| unsafe { info.assume_init() })
}

/// Tells when a signal has come, and leaves it where it is.
pub struct Arrivals(OwnedFd);

impl Arrivals {
    /// Those of the signals that the calling thread blocks.
    pub fn new() -> io::Result<Self> {
        let mask = Mask::ALL;
        // SAFETY: the mask lives during the call and has the size that is said.
        let file = unsafe {
            libc::syscall(
                libc::SYS_signalfd4,
                -1,
                &raw const mask,
                MASK_BYTES,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        let file = RawFd::try_from(file).ok().filter(|&file| file >= 0);
        let file = file.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Waits until there is one.
    pub fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Who calls looks again and again, so an error (the process was stopped) does not matter.
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
    }
}

/// The lowest number of all signals that are blocked and were sent.
pub fn lowest_pending() -> Option<c_int> {
    let pending = pending();
    (pending.0 != 0).then(|| pending.0.trailing_zeros().cast_signed() + 1)
}

/// Whether such a signal is blocked and was sent.
pub fn is_pending(number: c_int) -> bool {
    pending().has(number)
}

fn pending() -> Mask {
    let mut pending = Mask(0);
    // SAFETY: the mask lives during the call and has the size that is said.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut pending, MASK_BYTES) };
    pending
}

/// Whether every signal of this number waits for its turn. Of the others, one waits, and those that
/// come meanwhile are as if they had not been sent.
pub const fn is_queued(number: c_int) -> bool {
    // The first real-time signal of the kernel's; SIGRTMIN is that of the C library.
    number >= 32
}

/// Who sent a signal, how, and with which value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `SI_USER` for kill(2), `SI_QUEUE` for sigqueue(3), `SI_KERNEL`, and so on.
    pub code: c_int,
    pid: pid_t,
    user: libc::uid_t,
    value: usize,
}

impl Origin {
    /// That of a signal.
    pub fn of(info: &siginfo_t) -> Self {
        // What a code has not is zero.
        // SAFETY: the kernel has filled it in, or it is zero: any number is an id of a process.
        let pid = unsafe { info.si_pid() };
        // SAFETY: the kernel has filled it in, or it is zero: any number is an id of a user.
        let user = unsafe { info.si_uid() };
        // SAFETY: the kernel has filled it in, or it is zero; the pointer in it is not followed.
        let value = unsafe { info.si_value() };
        Self { code: info.si_code, pid, user, value: value.sival_ptr.addr() }
    }

    /// Who sent it, 0 if it was the kernel.
    pub fn pid(&self) -> pid_t {
        self.pid
    }

    #[cfg(test)]
    pub fn example(code: c_int, pid: pid_t) -> Self {
        Self { code, pid, user: 0, value: 0 }
    }
}

/// Sends a signal on to a process that is not waited for yet.
///
/// What sigqueue(3) sent comes as it was sent, with its value and its sender. The kernel lets nobody
/// speak for kill(2), so of that the sender becomes this process.
pub fn send_on(info: &siginfo_t, to: pid_t) -> io::Result<()> {
    let is_queued = info.si_code < 0 && info.si_code != libc::SI_TKILL;
    if is_queued {
        // SAFETY: `info` lives during the call.
        let sent = unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, to, info.si_signo, info) };
        if sent == 0 {
            return Ok(());
        }
    }
    // Also where the queue of that process is full: the number arrives at least.
    // SAFETY: takes integers.
    if unsafe { libc::kill(to, info.si_signo) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// What a signal does, until it is put back.
pub struct Disposition {
    number: c_int,
    before: Action,
}

/// The kernel's `struct sigaction`, the same on all processors that ungil knows. All zeroes are the
/// default.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Action {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

impl Disposition {
    /// Gives a signal its default, and remembers what it did before.
    pub fn default_of(number: c_int) -> Self {
        Self::replaced(number, &Action::default())
    }

    /// From now on a thread that gets this signal passes it on to the calling one, which must block
    /// it. Remembers what the signal did before.
    pub fn passed_on(number: c_int) -> Self {
        // SAFETY: takes nothing.
        RECEIVER.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        Self::replaced(number, &passing())
    }

    fn replaced(number: c_int, action: &Action) -> Self {
        let mut before = Action::default();
        act(number, action, &mut before);
        Self { number, before }
    }

    /// Whether the signal was ignored.
    pub fn was_ignored(&self) -> bool {
        self.before.handler == libc::SIG_IGN
    }

    /// Puts back what was.
    pub fn restore(&self) {
        act(self.number, &self.before, &mut Action::default());
    }
}

/// The thread to which signals are passed on.
static RECEIVER: AtomicI32 = AtomicI32::new(0);

/// What passes a signal on. System calls of that thread go on.
fn passing() -> Action {
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = pass_on;
    let action = Action {
        handler: handler as usize,
        flags: (libc::SA_SIGINFO | libc::SA_RESTART) as libc::c_ulong,
        ..Action::default()
    };
    // Others know by themselves where a handler returns to.
    #[cfg(target_arch = "x86_64")]
    let action = Action {
        flags: action.flags | 0x0400_0000, // SA_RESTORER
        restorer: restorer as unsafe extern "C" fn() as usize,
        ..action
    };
    action
}

/// Ends a handler: rt_sigreturn(2), which the kernel wants to be there.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    std::arch::naked_asm!("mov eax, 15", "syscall")
}

/// Passes a signal on, with its value and its sender. The kernel allows that within a process.
extern "C" fn pass_on(number: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let (process, receiver) = (std::process::id(), RECEIVER.load(Ordering::Relaxed));
    // SAFETY: the C library has one for each thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: `info` is the kernel's, and lives until this returns.
    let sent =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, receiver, number, info) };
    if sent != 0 {
        // The queue is full: the number arrives at least.
        // SAFETY: takes integers.
        unsafe { libc::syscall(libc::SYS_tgkill, process, receiver, number) };
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

fn act(number: c_int, action: &Action, before: &mut Action) {
    // SAFETY: both live during the call; an action is the default, which runs no code of this
    // process, one that the kernel told of, or one that does only what is safe in a handler.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            number,
            ptr::from_ref(action),
            ptr::from_mut(before),
            MASK_BYTES,
        )
    };
}

/// Stops this process by a signal that stops, whatever it does otherwise. Returns when the process
/// goes on, or at once where the kernel does not stop it (its process group is an orphan).
pub fn stop_by(number: c_int) {
    if number == libc::SIGSTOP {
        send_to_this_process(number);
        return;
    }
    let disposition = Disposition::default_of(number);
    raise_unblocked(number);
    disposition.restore();
}

/// Ends this process by a signal, without a core dump. Returns if the signal does not kill, as for
/// the first process of a container.
pub fn die_by(number: c_int) {
    // A limit is not enough: the kernel ignores it where dumps go to a program.
    // SAFETY: takes integers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    // For SIGKILL it fails, and is not needed.
    Disposition::default_of(number);
    raise_unblocked(number);
}

fn raise_unblocked(number: c_int) {
    send_to_this_process(number);
    let before = set_mask(Mask::ALL);
    set_mask(before.without(number));
    set_mask(before);
}

fn send_to_this_process(number: c_int) {
    // SAFETY: takes integers.
    unsafe { libc::kill(std::process::id().cast_signed(), number) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sigqueue(3) sends, as the kernel lays it out.
    #[repr(C, align(8))]
    struct Sent {
        number: c_int,
        error: c_int,
        code: c_int,
        _padding: c_int,
        pid: pid_t,
        user: libc::uid_t,
        value: usize,
        _rest: [u8; 96],
    }

    /// As a thread of a program that does not know of the signals here.
    fn on_a_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                block_all();
                work();
            });
        });
    }

    fn send_to_this_thread(number: c_int) {
        // SAFETY: takes nothing.
        let this = unsafe { libc::gettid() };
        // SAFETY: takes integers; the signal is blocked.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), this, number) };
    }

    #[test]
    fn every_signal_waits_also_those_of_the_c_library() {
        on_a_thread(|| {
            for number in (1..=64).filter(|it| ![libc::SIGKILL, libc::SIGSTOP].contains(it)) {
                assert!(!is_pending(number), "{number}");
                send_to_this_thread(number);
                assert!(is_pending(number), "{number}");
                let info = take(Mask::of(number)).unwrap();
                assert_eq!((info.si_signo, Origin::of(&info).code), (number, libc::SI_TKILL));
                assert!(take(Mask::ALL).is_none());
            }
        });
    }

    #[test]
    fn what_another_thread_gets_is_passed_on_as_it_was_sent() {
        on_a_thread(|| {
            let held = RESERVED.map(Disposition::passed_on);
            // SAFETY: takes nothing.
            let (process, receiver) = (std::process::id(), unsafe { libc::gettid() });
            for (index, number) in [32, 33, 33, 32].into_iter().enumerate() {
                let mut sent = Sent {
                    number,
                    error: 0,
                    code: libc::SI_QUEUE,
                    _padding: 0,
                    pid: 1234,
                    user: 56,
                    value: index + 7,
                    _rest: [0; 96],
                };
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        // SAFETY: takes nothing.
                        let this = unsafe { libc::gettid() };
                        assert_ne!(this, receiver);
                        set_mask(Mask::ALL.without(number));
                        let info = &raw mut sent;
                        // SAFETY: `sent` has the layout and the size of the kernel's siginfo_t.
                        let done = unsafe {
                            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, this, number, info)
                        };
                        assert_eq!(done, 0);
                    });
                });
                let origin = take(Mask::of(number)).map(|info| Origin::of(&info));
                let expected =
                    Origin { code: libc::SI_QUEUE, pid: 1234, user: 56, value: index + 7 };
                assert_eq!(origin, Some(expected));
            }
            held.iter().for_each(Disposition::restore);
        });
    }

    #[test]
    fn an_arrival_is_told_and_stays() {
        on_a_thread(|| {
            let arrivals = Arrivals::new().unwrap();
            for number in [libc::SIGRTMIN(), libc::SIGTERM, libc::SIGHUP] {
                send_to_this_thread(number);
                arrivals.wait();
                assert_eq!(lowest_pending(), Some(number));
            }
            for number in [libc::SIGHUP, libc::SIGTERM, libc::SIGRTMIN()] {
                assert_eq!(lowest_pending(), Some(number));
                assert!(take(Mask::of(number)).is_some());
            }
            assert_eq!(lowest_pending(), None);
        });
    }

    #[test]
    fn two_signals_of_one_number_are_one_unless_they_are_real_time_ones() {
        on_a_thread(|| {
            for number in (1..=64).filter(|it| ![libc::SIGKILL, libc::SIGSTOP].contains(it)) {
                send_to_this_thread(number);
                send_to_this_thread(number);
                assert!(take(Mask::of(number)).is_some());
                assert_eq!(take(Mask::of(number)).is_some(), is_queued(number), "{number}");
            }
        });
    }
}
