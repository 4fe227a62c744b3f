//! What a header tells as numbers: of the hook, and of the GIL that it looks at.

/// What became of the hook in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The interpreter is hooked; its GIL is recorded.
    Hooked = 1,
    /// A free-threaded build, whose GIL is hooked all the same: see [`GilState`].
    FreeThreaded = 2,
    /// PyPy: its GIL is not made of calls to libc.
    PyPy = 3,
    /// An interpreter image without the calls that the hook rewrites (an unknown build).
    UnknownInterpreter = 4,
    /// An interpreter that was loaded later, and of whose start the hook saw nothing.
    NotSeen = 5,
}

impl Status {
    /// The status with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Hooked,
            2 => Self::FreeThreaded,
            3 => Self::PyPy,
            4 => Self::UnknownInterpreter,
            5 => Self::NotSeen,
            _ => return None,
        })
    }
}

/// Whether a recorder reads the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Recording {
    /// Nobody does, or nobody does any more: the hook only counts.
    No = 0,
    /// One does.
    Yes = 1,
    /// One did, and asks the process to leave: to forget this table, and if nothing else needs the
    /// hook, to make its calls as if it had never been there. Then this becomes [`Self::No`].
    ToBeLeft = 2,
}

/// Whether the main interpreter has a GIL, which in a free-threaded build is known at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum GilState {
    /// It always has: the build is not free-threaded.
    #[default]
    Always = 0,
    /// Not known: it was not made yet, or is made in a way that the hook does not know.
    Unknown = 1,
    /// Off, or on only while extension modules are being imported.
    Off = 2,
    /// On from the start.
    On = 3,
    /// Off at first, then switched on for good.
    SwitchedOn = 4,
}

impl GilState {
    /// The state with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Always,
            1 => Self::Unknown,
            2 => Self::Off,
            3 => Self::On,
            4 => Self::SwitchedOn,
            _ => return None,
        })
    }
}
