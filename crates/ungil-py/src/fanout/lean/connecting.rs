//! `connect` and `connect_unix`.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use ungil_fanout::lean::resolver::{Lookup, Unresolved, name_error};
use ungil_fanout::lean::socket::Address;
use ungil_fanout::lean::{self, Progress};

use super::connection::Connection;
use super::operation::{self, Kind, Operation, awaited_already};

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
    PyOSError::new_err((errno, format!("{}: {place}", meaning(errno))))
}

/// What an errno means, without its number.
pub fn meaning(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// A connection that is being made, and what it is called.
pub struct Connect {
    /// None when the connection has it.
    place: Option<Place>,
    connect: lean::connect::Connect,
    made: Option<Py<Connection>>,
}

impl Connect {
    fn new(place: Place, connect: lean::connect::Connect) -> Self {
        Self { place: Some(place), connect, made: None }
    }

    /// Does what can be done now.
    pub fn advance(&mut self, py: Python<'_>) -> PyResult<operation::Progress> {
        let Some(place) = &self.place else { return Err(awaited_already()) };
        match self.connect.advance() {
            Ok(Progress::Done(stream)) => {
                let place = self.place.take().expect("it was there just now");
                let connection = Py::new(py, Connection::new(stream, place))?;
                self.made = Some(connection.clone_ref(py));
                Ok(Progress::Done(connection.into_any()))
            }
            Ok(Progress::Wait(want)) => Ok(Progress::Wait(want)),
            Err(why) => Err(unresolved(py, why, place)),
        }
    }
}

fn unresolved(py: Python<'_>, why: Unresolved, place: &Place) -> PyErr {
    let number = match why {
        Unresolved::System(errno) => return os_error(errno, place),
        Unresolved::Name(number) => number,
    };
    let sentence = format!("{}: {place}", name_error(number));
    // `socket` itself takes long to import, and this is where it has its exception from.
    match py.import("_socket").and_then(|socket| socket.getattr("gaierror")) {
        Ok(kind) => match kind.call1((number, sentence)) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        },
        Err(error) => error,
    }
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
        if let Some(connection) = slf.as_super().borrow().connect().and_then(|it| it.made.as_ref())
        {
            connection.get().close(py);
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
        let connect = lean::connect::Connect::to(vec![Address::numeric(address, number)]);
        return connecting(py, Connect::new(place, connect));
    }
    let name = if text.is_ascii() {
        text.as_bytes().to_vec()
    } else {
        host.call_method1("encode", ("idna",))?.extract()?
    };
    let name = CString::new(name)
        .map_err(|_| PyValueError::new_err(format!("host={host:?} contains a NUL character")))?;
    let connect = lean::connect::Connect::to_name(Arc::new(Lookup::new(name, number)));
    connecting(py, Connect::new(place, connect))
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
    connecting(py, Connect::new(Place::Path(path), lean::connect::Connect::to(vec![address])))
}
