//! What a process that already runs is asked to do: join a recording, follow a policy, or have
//! everything taken back. It travels in the memory of the process itself, or in its control page.

use crate::schedule::{Policy, Settings};
use crate::tick::Tick;
use std::fmt;

/// Longer paths of a session directory are not taken.
pub const LONGEST_SESSION: usize = 240;
/// In the place of a policy: it stays as it is.
const NO_POLICY: u32 = u32::MAX;

/// A request. Every content is valid: what makes no sense is refused, or taken for nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// A [`Deed`] as a number.
    deed: u32,
    /// A policy as a number, or [`NO_POLICY`].
    policy: u32,
    quantum_ns: u64,
    /// How long a tick of the processor's counter is ([`Tick::fraction`]); 0: times are of
    /// `CLOCK_MONOTONIC`.
    tick: u64,
    /// Whether the children that it forks from now on join, too: 0 or 1.
    follow_children: u32,
    session_bytes: u32,
    session: [u8; LONGEST_SESSION],
}

/// A request and the place for its answer, in the memory of the process that is asked.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct Asking(pub [u8; ASKING_BYTES]);

/// A request, and an answer as a number.
pub const ASKING_BYTES: usize = size_of::<Request>() + 8;

impl Asking {
    /// Not answered.
    pub fn new(request: &Request) -> Self {
        let mut bytes = [0; ASKING_BYTES];
        let mut rest = bytes.as_mut_slice();
        let mut put = |part: &[u8]| {
            let (here, after) = std::mem::take(&mut rest).split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        };
        put(&request.deed.to_ne_bytes());
        put(&request.policy.to_ne_bytes());
        put(&request.quantum_ns.to_ne_bytes());
        put(&request.tick.to_ne_bytes());
        put(&request.follow_children.to_ne_bytes());
        put(&request.session_bytes.to_ne_bytes());
        put(&request.session);
        put(&(-1i32).to_ne_bytes());
        Self(bytes)
    }

    /// The answer, if there is one.
    pub fn answer(&self) -> Option<Answer> {
        let [a, b, c, d] = *self.0[size_of::<Request>()..].first_chunk()?;
        Answer::from_number(i32::from_ne_bytes([a, b, c, d]))
    }
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Deed {
    /// Record into the session.
    Join = 1,
    /// Follow the policy.
    Schedule = 2,
    /// Leave the recording. If nothing else needs them, calls lead to libc again.
    Leave = 3,
    /// The same for the policy.
    Unschedule = 4,
}

/// What became of a request. Numbers never change: the hook and who asks may be of two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Answer {
    /// Done.
    Done = 0,
    /// The interpreter is free-threaded, and its GIL is off.
    FreeThreaded = 1,
    /// `PyPy`.
    PyPy = 2,
    /// An interpreter whose calls are not the known ones.
    Unknown = 3,
    /// There is no interpreter.
    NoInterpreter = 4,
    /// There is no memory, or no file, for the table.
    NoTable = 5,
    /// Another request is being served.
    Busy = 6,
    /// The request makes no sense to this version.
    Senseless = 7,
    /// It can make no control page, so nobody could change the policy or take it back.
    NoPage = 8,
}

/// As the end of a sentence about the process.
impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Done => "it is done",
            Self::FreeThreaded => {
                "its Python is free-threaded; ungil records it only from its start"
            }
            Self::PyPy => "its Python is PyPy, whose GIL does not use the C library",
            Self::Unknown => {
                "its Python does not call the C library where the hook expects it: CPython 3.7 and \
                 later do; 2.7 can be recorded from its start, with ungil trace PROGRAM"
            }
            Self::NoInterpreter => "there is no Python in it",
            Self::NoTable => "it cannot write to the folder of the recording, or has no memory",
            Self::Busy => "another ungil is attaching to it; try again",
            Self::Senseless => "its hook belongs to another version of ungil",
            Self::NoPage => {
                "it cannot write to /dev/shm, which ungil needs to change a policy and to restore \
                 it"
            }
        })
    }
}

impl Answer {
    const ALL: [Self; 9] = [
        Self::Done,
        Self::FreeThreaded,
        Self::PyPy,
        Self::Unknown,
        Self::NoInterpreter,
        Self::NoTable,
        Self::Busy,
        Self::Senseless,
        Self::NoPage,
    ];

    /// The answer of that number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as i32 == number)
    }
}

impl Request {
    const fn new(deed: Deed) -> Self {
        Self {
            deed: deed as u32,
            policy: NO_POLICY,
            quantum_ns: 0,
            tick: 0,
            follow_children: 0,
            session_bytes: 0,
            session: [0; LONGEST_SESSION],
        }
    }

    /// To join the session in a directory; `None` if its path is too long.
    pub fn join(session: &[u8], follow_children: bool, tick: Option<Tick>) -> Option<Self> {
        let mut request = Self::new(Deed::Join);
        request.session.get_mut(..session.len())?.copy_from_slice(session);
        request.session_bytes = u32::try_from(session.len()).ok()?;
        request.follow_children = u32::from(follow_children);
        request.tick = tick.map_or(0, Tick::fraction);
        Some(request)
    }

    /// To follow a policy.
    pub const fn schedule(settings: Settings) -> Self {
        let mut request = Self::new(Deed::Schedule);
        request.policy = settings.policy as u32;
        request.quantum_ns = settings.quantum_ns;
        request
    }

    /// To leave the recording.
    pub const fn leave() -> Self {
        Self::new(Deed::Leave)
    }

    /// To follow no policy any more.
    pub const fn unschedule() -> Self {
        Self::new(Deed::Unschedule)
    }

    /// What is to be done.
    pub fn deed(&self) -> Option<Deed> {
        [Deed::Join, Deed::Schedule, Deed::Leave, Deed::Unschedule]
            .into_iter()
            .find(|deed| *deed as u32 == self.deed)
    }

    /// The session directory, which has no NUL in it.
    pub fn session(&self) -> Option<&[u8]> {
        let path = self.session.get(..usize::try_from(self.session_bytes).ok()?)?;
        (!path.is_empty() && !path.contains(&0)).then_some(path)
    }

    /// Whether children after fork join.
    pub const fn follows_children(&self) -> bool {
        self.follow_children != 0
    }

    /// How long a tick of the processor's counter is, if times are to be taken from it.
    pub fn tick(&self) -> Option<Tick> {
        (self.tick != 0).then(|| Tick::from_fraction(self.tick))
    }

    /// The policy to follow.
    pub fn settings(&self) -> Option<Settings> {
        let policy = Policy::from_number(self.policy)?;
        let quantum_ns = if self.quantum_ns == 0 { policy.quantum_ns() } else { self.quantum_ns };
        Some(Settings { policy, quantum_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_was_made_of() {
        let tick = Tick::from_fraction(123_456);
        let join = Request::join(b"/dev/shm/ungil-session-x", true, Some(tick)).unwrap();
        assert_eq!(join.deed(), Some(Deed::Join));
        assert_eq!(join.session(), Some(b"/dev/shm/ungil-session-x".as_slice()));
        assert!(join.follows_children() && join.tick() == Some(tick) && join.settings().is_none());

        let settings = Settings { policy: Policy::Batch, quantum_ns: 7 };
        let schedule = Request::schedule(settings);
        assert_eq!((schedule.deed(), schedule.settings()), (Some(Deed::Schedule), Some(settings)));
        assert!(schedule.session().is_none() && schedule.tick().is_none());
    }

    #[test]
    fn a_request_is_in_memory_what_it_was_written_as() {
        let request = Request::join(b"/session", true, None).unwrap();
        let asking = Asking::new(&request);
        // SAFETY: it begins with as many bytes as a request has, and is aligned for it.
        let read = unsafe { (&raw const asking).cast::<Request>().read() };
        assert_eq!(read, request);
        assert_eq!(asking.answer(), None);
    }

    #[test]
    fn what_makes_no_sense_is_taken_for_nothing() {
        assert!(Request::join(&[b'a'; LONGEST_SESSION + 1], true, None).is_none());
        assert!(Request::join(b"", true, None).unwrap().session().is_none());
        assert!(Request::join(b"/a\0b", true, None).unwrap().session().is_none());
        let longer = Request { session_bytes: u32::MAX, ..Request::leave() };
        assert!(longer.session().is_none());
        assert!(Request { deed: 0, ..Request::leave() }.deed().is_none());
        assert!(Answer::from_number(99).is_none());
        assert_eq!(Answer::from_number(6), Some(Answer::Busy));
    }

    #[test]
    fn a_policy_has_its_own_quantum_unless_one_is_named() {
        let own = Request::schedule(Settings { policy: Policy::Fair, quantum_ns: 0 });
        assert_eq!(own.settings().unwrap().quantum_ns, Policy::Fair.quantum_ns());
    }
}
