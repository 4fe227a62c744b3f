//! Sockets that do not block, and their addresses.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use super::reactor::owned;

/// Where a socket connects to.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Address {
    /// A host by number.
    pub fn numeric(host: IpAddr, port: u16) -> Self {
        match host {
            IpAddr::V4(host) => Self::version_4(host, port),
            IpAddr::V6(host) => Self::version_6(host, port),
        }
    }

    fn version_4(host: Ipv4Addr, port: u16) -> Self {
        Self::of(&libc::sockaddr_in {
            sin_family: family(libc::AF_INET),
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(host.octets()) },
            sin_zero: [0; 8],
        })
    }

    fn version_6(host: Ipv6Addr, port: u16) -> Self {
        Self::of(&libc::sockaddr_in6 {
            sin6_family: family(libc::AF_INET6),
            sin6_port: port.to_be(),
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr { s6_addr: host.octets() },
            sin6_scope_id: 0,
        })
    }

    /// A UNIX socket by its path; an abstract one if that begins with a zero byte.
    ///
    /// None if it is too long for the system.
    pub fn unix(path: &OsStr) -> Option<Self> {
        let mut address =
            libc::sockaddr_un { sun_family: family(libc::AF_UNIX), sun_path: [0; 108] };
        let path = path.as_bytes();
        // One byte is left for the zero that ends a path.
        if path.is_empty() || path.len() >= address.sun_path.len() {
            return None;
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        let mut whole = Self::of(&address);
        if path[0] == 0 {
            // The name of an abstract socket is as long as is said here.
            let length = mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
            whole.length = socklen(length);
        }
        Some(whole)
    }

    /// What `getaddrinfo` gave.
    ///
    /// # Safety
    /// `address` points at `length` readable bytes.
    pub unsafe fn copied(address: *const libc::sockaddr, length: libc::socklen_t) -> Option<Self> {
        // SAFETY: an address consists of integers, for which zeros are valid.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        if length as usize > size_of_val(&storage) {
            return None;
        }
        let to = (&raw mut storage).cast::<u8>();
        // SAFETY: the caller promises so many readable bytes, and the new storage, which has been
        // seen to be large enough, cannot overlap with them.
        unsafe { address.cast::<u8>().copy_to_nonoverlapping(to, length as usize) };
        Some(Self { storage, length })
    }

    fn of<T: Copy>(address: &T) -> Self {
        // SAFETY: a reference to a `T`, and its size.
        let copied = unsafe { Self::copied((&raw const *address).cast(), socklen(size_of::<T>())) };
        copied.expect("there is room for every kind of address")
    }

    /// A stream socket for this kind of address.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `socket` takes integers.
        let fd = unsafe { libc::socket(i32::from(self.storage.ss_family), kind, 0) };
        owned(fd)
    }

    /// Begins to connect, or asks how that goes: `EINPROGRESS` and `EALREADY` mean not yet.
    pub fn connect(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let address = (&raw const self.storage).cast();
        // SAFETY: the descriptor is borrowed, and the storage holds that many bytes of an address.
        let result = unsafe { libc::connect(socket.as_raw_fd(), address, self.length) };
        match result {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EISCONN) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Whether it is a host's.
    pub fn is_internet(&self) -> bool {
        i32::from(self.storage.ss_family) != libc::AF_UNIX
    }
}

fn family(number: i32) -> libc::sa_family_t {
    libc::sa_family_t::try_from(number).expect("the numbers of families are small")
}

fn socklen(size: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(size).expect("addresses and options are small")
}

/// Takes what has arrived, at most as much as there is room for; nothing at the end.
pub fn receive(fd: RawFd, room: &mut [mem::MaybeUninit<u8>]) -> io::Result<&[u8]> {
    loop {
        // SAFETY: the slice is writable for its length. A descriptor that is not open is an error.
        let count = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => {
                // SAFETY: the kernel has written so many bytes at the start of `room`.
                return Ok(unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), count) });
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Gives the system as much as it takes now; says how much that was.
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the slice is readable for its length. A descriptor that is not open is an error.
        let count =
            unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(count) {
            Ok(count) => return Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Sends what is written without waiting for the answer to what was written before.
pub fn without_delay(fd: RawFd) {
    let on: libc::c_int = 1;
    // SAFETY: `on` is readable for the size that is given. It can only fail for what is no TCP
    // socket, and then it is not needed.
    unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            socklen(size_of_val(&on)),
        );
    }
}

/// Ends both directions, which wakes whoever waits for the socket.
pub fn shut_down(fd: RawFd) {
    // SAFETY: `shutdown` takes integers. It fails for what is not connected, and then nobody waits
    // for it.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use super::*;

    /// Connects, however many calls that takes.
    fn connected(address: &Address) -> OwnedFd {
        let socket = address.socket().unwrap();
        loop {
            match address.connect(socket.as_fd()) {
                Ok(()) => return socket,
                Err(error) => {
                    let errno = error.raw_os_error();
                    assert!(matches!(errno, Some(libc::EINPROGRESS | libc::EALREADY)), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_numeric_address_of_each_version_connects() {
        for host in ["127.0.0.1", "::1"] {
            // A machine without IPv6 has no such address.
            let Ok(listener) = TcpListener::bind((host, 0)) else { continue };
            let port = listener.local_addr().unwrap().port();
            let address = Address::numeric(host.parse().unwrap(), port);
            assert!(address.is_internet());
            let socket = connected(&address);
            let (mut theirs, _) = listener.accept().unwrap();
            without_delay(socket.as_raw_fd());
            assert_eq!(send(socket.as_raw_fd(), b"hello").unwrap(), 5);
            let mut bytes = [0; 5];
            theirs.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"hello");
        }
    }

    #[test]
    fn a_unix_socket_is_found_by_its_path_and_an_abstract_one_by_its_name() {
        let name = format!("ungil-test-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let listener = UnixListener::bind(&folder).unwrap();
        connected(&Address::unix(folder.as_os_str()).unwrap());
        drop(listener);
        std::fs::remove_file(folder).unwrap();
        let _listener =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let address = Address::unix(OsStr::new(&format!("\0{name}"))).unwrap();
        assert!(!address.is_internet());
        connected(&address);
    }

    #[test]
    fn a_path_that_does_not_fit_is_no_address() {
        assert!(Address::unix(OsStr::new("")).is_none());
        assert!(Address::unix(OsStr::new(&"x".repeat(108))).is_none());
        assert!(Address::unix(OsStr::new(&"x".repeat(107))).is_some());
    }

    #[test]
    fn what_arrives_is_taken_piece_by_piece_until_the_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let fd = ours.as_raw_fd();
        let mut room = [mem::MaybeUninit::uninit(); 3];
        let nothing = receive(fd, &mut room).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        theirs.write_all(b"abcd").unwrap();
        assert_eq!(receive(fd, &mut room).unwrap(), b"abc");
        assert_eq!(receive(fd, &mut room).unwrap(), b"d");
        shut_down(theirs.as_raw_fd());
        assert_eq!(receive(fd, &mut room).unwrap(), b"");
        // The peer is gone, and that is an error and no signal.
        assert_eq!(send(fd, b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
