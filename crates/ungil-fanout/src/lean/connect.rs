//! A connection that is being made.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::vec;

use super::hand;
use super::reactor::Direction;
use super::resolver::{Lookup, Unresolved};
use super::socket::Address;
use super::stream::Stream;
use super::want::{Progress, Want};

/// How long to wait for room in the queue of a UNIX socket's listener, which nothing announces.
const QUEUE_IS_FULL: u64 = 1_000_000;

/// A connection that is being made: of several addresses, all are tried in turn.
pub struct Connect {
    stage: Stage,
}

enum Stage {
    Looking(Arc<Lookup>),
    Trying(Trying),
}

struct Trying {
    next: vec::IntoIter<Address>,
    current: Option<Attempt>,
    /// Why the first address could not be connected to, which the system thinks is the best.
    failed: Option<i32>,
}

struct Attempt {
    address: Address,
    socket: OwnedFd,
    /// The loop that waits for it, or 0.
    kept_by: u64,
}

impl Connect {
    /// To the first of these addresses that answers.
    pub fn to(addresses: Vec<Address>) -> Self {
        Self { stage: Stage::trying(addresses) }
    }

    /// To a host, by its name.
    pub fn to_name(lookup: Arc<Lookup>) -> Self {
        Self { stage: Stage::Looking(lookup) }
    }

    /// Does what can be done now. It is not to be called again after its end.
    ///
    /// # Errors
    /// Why the name has no address, or its first one could not be connected to.
    pub fn advance(&mut self) -> Result<Progress<Stream>, Unresolved> {
        loop {
            match &mut self.stage {
                Stage::Looking(lookup) => {
                    let addresses = match lookup.found() {
                        None => return Ok(Progress::Wait(Want::Lookup(lookup.clone()))),
                        Some(Ok(addresses)) => addresses.clone(),
                        Some(&Err(why)) => return Err(why),
                    };
                    self.stage = Stage::trying(addresses);
                }
                Stage::Trying(trying) => return trying.advance().map_err(Unresolved::System),
            }
        }
    }
}

impl Stage {
    fn trying(addresses: Vec<Address>) -> Self {
        Self::Trying(Trying { next: addresses.into_iter(), current: None, failed: None })
    }
}

impl Trying {
    fn advance(&mut self) -> Result<Progress<Stream>, i32> {
        loop {
            let mut attempt = match self.current.take() {
                Some(attempt) => attempt,
                None => match self.next.next().map(Attempt::begin) {
                    Some(Ok(attempt)) => attempt,
                    Some(Err(error)) => {
                        self.failed.get_or_insert(errno(&error));
                        continue;
                    }
                    None => return Err(self.failed.unwrap_or(libc::EADDRNOTAVAIL)),
                },
            };
            match attempt.advance() {
                Ok(None) => return Ok(Progress::Done(attempt.into())),
                Ok(Some(want)) => {
                    self.current = Some(attempt);
                    return Ok(Progress::Wait(want));
                }
                Err(error) => {
                    self.failed.get_or_insert(errno(&error));
                }
            }
        }
    }
}

impl Attempt {
    fn begin(address: Address) -> io::Result<Self> {
        Ok(Self { address, socket: address.socket()?, kept_by: 0 })
    }

    /// None if it is connected, else what has to happen first.
    fn advance(&mut self) -> io::Result<Option<Want>> {
        let socket = self.socket.as_fd();
        let mut result = self.address.connect(socket);
        if self.kept_by == 0 && is_under_way(&result) {
            // On the loopback it is done when the first call comes back. Another call is cheaper
            // than a turn of the loop.
            result = self.address.connect(socket);
        }
        match result {
            Ok(()) => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                Ok(Some(Want::Sleep(QUEUE_IS_FULL)))
            }
            Err(_) if is_under_way(&result) => {
                let fd = self.socket.as_raw_fd();
                let belongs = hand::belongs(&mut self.kept_by);
                Ok(Some(Want::Ready { fd, direction: Direction::Write, belongs }))
            }
            Err(error) => Err(error),
        }
    }
}

impl From<Attempt> for Stream {
    fn from(attempt: Attempt) -> Self {
        Self::new(attempt.socket, attempt.kept_by, attempt.address.is_internet())
    }
}

fn is_under_way(result: &io::Result<()>) -> bool {
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
    matches!(errno, Some(libc::EINPROGRESS | libc::EALREADY | libc::EINTR))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use std::ffi::{CString, OsStr};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn local(port: u16) -> Address {
        Address::numeric(Ipv4Addr::LOCALHOST.into(), port)
    }

    /// A socket that is not there.
    fn nowhere() -> Address {
        Address::unix(OsStr::new("/no/such/socket")).unwrap()
    }

    /// A file that is no socket.
    fn deaf() -> Address {
        Address::unix(OsStr::new("/dev/null")).unwrap()
    }

    /// Tries, looking names up and waiting for nothing, until it ends.
    fn end(mut connect: Connect) -> Result<Stream, Unresolved> {
        loop {
            match connect.advance()? {
                Progress::Done(stream) => return Ok(stream),
                Progress::Wait(Want::Lookup(lookup)) => lookup.run(),
                Progress::Wait(_) => {}
            }
        }
    }

    #[test]
    fn the_first_address_that_answers_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = end(Connect::to(vec![nowhere(), local(port)])).unwrap();
        assert!(stream.fd().is_ok());
        listener.accept().unwrap();
    }

    #[test]
    fn if_none_answers_the_first_says_why() {
        let refused = end(Connect::to(vec![deaf(), nowhere()])).unwrap_err();
        assert_eq!(refused, Unresolved::System(libc::ECONNREFUSED));
        let not_there = end(Connect::to(vec![nowhere(), deaf()])).unwrap_err();
        assert_eq!(not_there, Unresolved::System(libc::ENOENT));
        assert_eq!(end(Connect::to(vec![])).unwrap_err(), Unresolved::System(libc::EADDRNOTAVAIL));
    }

    #[test]
    fn a_name_is_looked_up_before_anything_is_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let named =
            |name: &str| Connect::to_name(Arc::new(Lookup::new(CString::new(name).unwrap(), port)));
        end(named("127.0.0.1")).unwrap();
        let why = end(named(&"x".repeat(64))).unwrap_err();
        assert!(matches!(why, Unresolved::Name(_)), "{why:?}");
    }
}
