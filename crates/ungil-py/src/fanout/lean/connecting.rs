//! `connect` and `connect_unix`.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::vec;

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use ungil_fanout::reactor::Direction;

use super::connection::Connection;
use super::hand::{self, Belongs, Want};
use super::operation::{Kind, Operation, Progress, awaited_already};
use super::resolver::{Lookup, Unresolved};
use super::socket::Address;

/// How long to wait for room in the queue of a UNIX socket's listener, which nothing announces.
const QUEUE_IS_FULL: u64 = 1_000_000;

/// What a connection is to, as the user has called it.
pub enum Place {
    Host(Py<PyString>, u16),
    Path(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host, port) => {
                let host = host.to_string();
                if host.contains(':') {
                    write!(f, "[{host}]:{port}")
                } else {
                    write!(f, "{host}:{port}")
                }
            }
            Self::Path(path) => write!(f, "{}", path.display().to_string().replace('\0', "@")),
        }
    }
}

/// The exception for an errno: what users know, and with whom it happened.
pub fn os_error(errno: i32, place: &Place) -> PyErr {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    PyOSError::new_err((errno, format!("{text}: {place}")))
}

/// A connection that is being made.
pub struct Connect {
    place: Option<Place>,
    stage: Stage,
}

enum Stage {
    Looking(Arc<Lookup>),
    Trying {
        next: vec::IntoIter<Address>,
        current: Option<Attempt>,
        /// Why the first address could not be connected to, which the system thinks is the best.
        failed: Option<i32>,
    },
    Made(Py<Connection>),
}

struct Attempt {
    address: Address,
    socket: OwnedFd,
    /// The loop that waits for it, or 0.
    kept_by: u64,
}

impl Connect {
    fn to(place: Place, addresses: Vec<Address>) -> Self {
        Self { place: Some(place), stage: Stage::trying(addresses) }
    }

    fn place(&self) -> &Place {
        self.place.as_ref().expect("it goes to the connection when that is made")
    }

    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        if let Stage::Looking(lookup) = &self.stage {
            let addresses = match lookup.found() {
                None => return Ok(Progress::Wait(Want::Lookup(lookup.clone()))),
                Some(Ok(addresses)) => addresses.clone(),
                Some(&Err(why)) => return Err(self.unresolved(py, why)),
            };
            self.stage = Stage::trying(addresses);
        }
        loop {
            let Stage::Trying { next, current, failed } = &mut self.stage else {
                return Err(awaited_already());
            };
            let Some(attempt) = current else {
                let Some(address) = next.next() else {
                    let errno = failed.unwrap_or(libc::EADDRNOTAVAIL);
                    return Err(os_error(errno, self.place()));
                };
                match address.socket() {
                    Ok(socket) => *current = Some(Attempt { address, socket, kept_by: 0 }),
                    Err(error) => {
                        failed.get_or_insert(errno(&error));
                    }
                }
                continue;
            };
            match attempt.advance() {
                Ok(None) => return self.made(py).map(Progress::Done),
                Ok(Some(want)) => return Ok(Progress::Wait(want)),
                Err(error) => {
                    failed.get_or_insert(errno(&error));
                    *current = None;
                }
            }
        }
    }

    fn made(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Stage::Trying { current, .. } = &mut self.stage else {
            unreachable!("only an attempt makes a connection");
        };
        let Attempt { socket, kept_by, address } =
            current.take().expect("the attempt that has succeeded");
        let place = self.place.take().expect("a connection is made once");
        let connection = Connection::new(socket, kept_by, address.is_internet(), place);
        let connection = Py::new(py, connection)?;
        self.stage = Stage::Made(connection.clone_ref(py));
        Ok(connection.into_any())
    }

    fn unresolved(&self, py: Python<'_>, why: Unresolved) -> PyErr {
        let number = match why {
            Unresolved::System(errno) => return os_error(errno, self.place()),
            Unresolved::Name(number) => number,
        };
        // SAFETY: gives a static string for every number.
        let text = unsafe { CStr::from_ptr(libc::gai_strerror(number)) }.to_string_lossy();
        let sentence = format!("{text}: {}", self.place());
        // `socket` itself takes long to import, and this is where it has its exception from.
        match py.import("_socket").and_then(|socket| socket.getattr("gaierror")) {
            Ok(kind) => match kind.call1((number, sentence)) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            },
            Err(error) => error,
        }
    }

    fn connection(&self) -> Option<&Py<Connection>> {
        match &self.stage {
            Stage::Made(connection) => Some(connection),
            _ => None,
        }
    }
}

impl Stage {
    fn trying(addresses: Vec<Address>) -> Self {
        Self::Trying { next: addresses.into_iter(), current: None, failed: None }
    }
}

impl Attempt {
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
                let belongs = belongs(&mut self.kept_by);
                Ok(Some(Want::Ready { fd, direction: Direction::Write, belongs }))
            }
            Err(error) => Err(error),
        }
    }
}

fn is_under_way(result: &io::Result<()>) -> bool {
    let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
    matches!(errno, Some(libc::EINPROGRESS | libc::EALREADY | libc::EINTR))
}

/// Whether the loop that drives this thread has seen a socket before; it has from now on.
pub fn belongs(kept_by: &mut u64) -> Belongs {
    let Some(driver) = hand::driver() else { return Belongs::User };
    if std::mem::replace(kept_by, driver) == driver { Belongs::Kept } else { Belongs::New }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// A connection that is being made: `await` gives it, and `async with` also closes it.
#[pyclass(extends = Operation, module = "ungil._native")]
pub struct Connecting;

#[pymethods]
impl Connecting {
    fn __aenter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> Operation {
        let py = slf.py();
        if let Some(connection) = slf.as_super().borrow().connect().and_then(Connect::connection) {
            connection.borrow_mut(py).close();
        }
        Operation::known(py.None())
    }
}

fn connecting(py: Python<'_>, connect: Connect) -> PyResult<Bound<'_, Connecting>> {
    let operation = Operation::new(Kind::Connect(Box::new(connect)));
    Bound::new(py, PyClassInitializer::from(operation).add_subclass(Connecting))
}

/// A TCP connection to `host`, a name or an address. Of a name all addresses are tried in turn.
///
/// Raises the OSError that says why not (ConnectionRefusedError, TimeoutError...), or
/// socket.gaierror if the name has no address.
#[pyfunction]
pub fn connect<'py>(host: &Bound<'py, PyAny>, port: i64) -> PyResult<Bound<'py, Connecting>> {
    let py = host.py();
    let host = host
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err(format!("host={host:?} is not a string")))?;
    let number = u16::try_from(port)
        .map_err(|_| PyValueError::new_err(format!("port={port} is not from 0 to 65535")))?;
    let place = Place::Host(host.clone().unbind(), number);
    let text = host.to_str()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return connecting(py, Connect::to(place, vec![Address::numeric(address, number)]));
    }
    let name = if text.is_ascii() {
        text.as_bytes().to_vec()
    } else {
        host.call_method1("encode", ("idna",))?.extract()?
    };
    let name = CString::new(name)
        .map_err(|_| PyValueError::new_err(format!("host={host:?} has a zero character")))?;
    let stage = Stage::Looking(Arc::new(Lookup::new(name, number)));
    connecting(py, Connect { place: Some(place), stage })
}

/// A connection to the UNIX socket at `path`; to an abstract one if that begins with a zero
/// character.
///
/// Raises the OSError that says why not (FileNotFoundError, ConnectionRefusedError...).
#[pyfunction]
pub fn connect_unix(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, Connecting>> {
    let Some(address) = Address::unix(path.as_os_str()) else {
        return Err(PyValueError::new_err(format!(
            "path={:?} is empty, or longer than a socket's can be",
            path.display()
        )));
    };
    connecting(py, Connect::to(Place::Path(path), vec![address]))
}
