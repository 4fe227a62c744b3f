//! Sockets that do not block, and their addresses.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

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
        // SAFETY: numbers only, for which zeros are valid.
        let mut address: libc::sockaddr_in = unsafe { mem::zeroed() };
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes(host.octets());
        Self::of(&address)
    }

    fn version_6(host: Ipv6Addr, port: u16) -> Self {
        // SAFETY: numbers only, for which zeros are valid.
        let mut address: libc::sockaddr_in6 = unsafe { mem::zeroed() };
        address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        address.sin6_port = port.to_be();
        address.sin6_addr.s6_addr = host.octets();
        Self::of(&address)
    }

    /// A UNIX socket by its path; an abstract one if that begins with a zero byte.
    ///
    /// None if it is too long for the system.
    pub fn unix(path: &OsStr) -> Option<Self> {
        // SAFETY: numbers only, for which zeros are valid.
        let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let path = path.as_bytes();
        // One byte is left for the zero that ends a path.
        if path.is_empty() || path.len() >= address.sun_path.len() {
            return None;
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = from.cast_signed();
        }
        let mut whole = Self::of(&address);
        if path[0] == 0 {
            // The name of an abstract socket is as long as is said here.
            let length = mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
            whole.length = length as libc::socklen_t;
        }
        Some(whole)
    }

    /// What `getaddrinfo` gave.
    ///
    /// # Safety
    /// `address` points at `length` readable bytes.
    pub unsafe fn copied(address: *const libc::sockaddr, length: libc::socklen_t) -> Option<Self> {
        // SAFETY: numbers only, for which zeros are valid.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        if length as usize > size_of_val(&storage) {
            return None;
        }
        // SAFETY: as much as there is, into no less room.
        unsafe {
            let to = (&raw mut storage).cast::<u8>();
            address.cast::<u8>().copy_to_nonoverlapping(to, length as usize);
        }
        Some(Self { storage, length })
    }

    fn of<T: Copy>(address: &T) -> Self {
        // SAFETY: a socket address of the system, and its size.
        let copied = unsafe {
            Self::copied((&raw const *address).cast(), size_of::<T>() as libc::socklen_t)
        };
        copied.expect("there is room for every kind of address")
    }

    /// A stream socket for this kind of address.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: numbers only.
        let fd = unsafe { libc::socket(i32::from(self.storage.ss_family), kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Begins to connect, or asks how that goes: `EINPROGRESS` and `EALREADY` mean not yet.
    pub fn connect(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let address = (&raw const self.storage).cast();
        // SAFETY: an open descriptor and an address of that length.
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

/// Takes what has arrived, at most as much as there is room for; nothing at the end.
pub fn receive(fd: RawFd, room: &mut [mem::MaybeUninit<u8>]) -> io::Result<&[u8]> {
    loop {
        // SAFETY: as much room as is said. A descriptor that is not open is an error.
        let count = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), 0) };
        match usize::try_from(count) {
            // SAFETY: so many bytes were written.
            Ok(count) => {
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
        // SAFETY: as many bytes as is said. A descriptor that is not open is an error.
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
    // SAFETY: an int and its size. It can only fail for what is no TCP socket, and then it is not
    // needed.
    unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        );
    }
}

/// Ends both directions, which wakes whoever waits for the socket.
pub fn shut_down(fd: RawFd) {
    // SAFETY: numbers only; it fails for what is not connected, and then nobody waits for it.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}
