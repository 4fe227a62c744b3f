//! Where a free-threaded interpreter keeps what is read from its memory.
//!
//! Since 3.13 `_PyRuntime` begins with the offsets of fields for debuggers (`struct
//! _Py_DebugOffsets` in `Include/internal/pycore_runtime.h`, from 3.14 on
//! `pycore_debug_offsets.h`), one word each. Their order is the same within a minor version.

/// As many words as are read from the beginning of `_PyRuntime`.
pub const WORDS: usize = 96;
/// The first word, in every version.
pub const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
/// The second one, `PY_VERSION_HEX`, and the third one, 1 in a free-threaded build.
const VERSION: usize = 1;
const FREE_THREADED: usize = 2;

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of CPython")]
pub struct DebugOffsets {
    /// The minor version: 13 is 3.13.
    pub minor: u64,
    /// In `_PyRuntime`: the newest interpreter.
    pub interpreters_head: usize,
    // In a PyInterpreterState.
    pub interpreter_next: usize,
    pub threads_head: usize,
    pub gc: usize,
    pub imports_modules: usize,
    pub ceval_gil: usize,
    // In a PyThreadState.
    pub thread_next: usize,
    pub thread_interpreter: usize,
    pub current_frame: usize,
    pub thread_ident: usize,
    pub native_thread_id: usize,
    // In a _PyInterpreterFrame.
    pub previous: usize,
    pub executable: usize,
    pub instr_ptr: usize,
    pub owner: usize,
    /// From 3.14 on every thread has bytecode of its own, and this says which.
    pub tlbc_index: Option<usize>,
    // In a PyCodeObject.
    pub filename: usize,
    pub name: usize,
    pub qualname: usize,
    pub linetable: usize,
    pub firstlineno: usize,
    pub code_adaptive: usize,
    /// Where that bytecode is.
    pub tlbc: Option<usize>,
    // In objects.
    pub object_bytes: usize,
    pub object_type: usize,
    pub type_bytes: usize,
    pub type_flags: usize,
    pub dict_keys: usize,
    pub dict_values: usize,
    pub long_tag: usize,
    pub long_digits: usize,
    pub bytes_length: usize,
    pub bytes_data: usize,
    pub text_state: usize,
    pub text_length: usize,
    pub text_ascii_bytes: usize,
    /// The lowest bit of the kind in the state of a text: how many bytes a letter has, in three bits.
    /// One that says that the text lies behind the object, and one that it is ASCII, follow.
    pub text_kind_bit: u32,
    /// In what `gc` is the offset of.
    pub gc_collecting: usize,
}

impl DebugOffsets {
    /// Those in the first words of `_PyRuntime`, if it is of a free-threaded build of a version that
    /// is known here.
    pub fn of(words: &[u64; WORDS]) -> Option<Self> {
        if words[0] != COOKIE || words[VERSION] >> 24 != 3 || words[FREE_THREADED] != 1 {
            return None;
        }
        let minor = words[VERSION] >> 16 & 0xff;
        let at = |place: usize| usize::try_from(words[place]).unwrap_or(0);
        // How many words later versions have put in before each of these.
        let Later { interpreter, thread, ids, frame, code, object, dict, gc } = Later::of(minor)?;
        Some(Self {
            minor,
            interpreters_head: at(5),
            interpreter_next: at(8),
            threads_head: at(9),
            gc: at(10 + interpreter),
            imports_modules: at(11 + interpreter),
            ceval_gil: at(14 + interpreter),
            thread_next: at(21 + thread),
            thread_interpreter: at(22 + thread),
            current_frame: at(23 + thread),
            thread_ident: at(24 + ids),
            native_thread_id: at(25 + ids),
            previous: at(29 + frame),
            executable: at(30 + frame),
            instr_ptr: at(31 + frame),
            owner: at(33 + frame),
            tlbc_index: (minor >= 14).then(|| at(35 + frame)),
            filename: at(35 + code),
            name: at(36 + code),
            qualname: at(37 + code),
            linetable: at(38 + code),
            firstlineno: at(39 + code),
            code_adaptive: at(43 + code),
            tlbc: (minor >= 14).then(|| at(44 + code)),
            object_bytes: at(44 + object),
            object_type: at(45 + object),
            type_bytes: at(46 + object),
            type_flags: at(49 + object),
            dict_keys: at(57 + dict),
            dict_values: at(58 + dict),
            long_tag: at(62 + dict),
            long_digits: at(63 + dict),
            bytes_length: at(65 + dict),
            bytes_data: at(66 + dict),
            text_state: at(68 + dict),
            text_length: at(69 + dict),
            text_ascii_bytes: at(70 + dict),
            // Before it comes `interned`: two bits, or a byte of its own.
            text_kind_bit: if minor >= 14 { 8 } else { 2 },
            gc_collecting: at(72 + gc),
        })
    }
}

/// How many more words than in 3.13 lie before the offsets of each struct.
struct Later {
    interpreter: usize,
    thread: usize,
    /// The numbers of a thread.
    ids: usize,
    frame: usize,
    code: usize,
    /// Objects and types.
    object: usize,
    /// Dicts, and all that follows but `gc`.
    dict: usize,
    gc: usize,
}

impl Later {
    const fn of(minor: u64) -> Option<Self> {
        Some(match minor {
            13 => Self {
                interpreter: 0,
                thread: 0,
                ids: 0,
                frame: 0,
                code: 0,
                object: 0,
                dict: 0,
                gc: 0,
            },
            14 => Self {
                interpreter: 1,
                thread: 3,
                ids: 3,
                frame: 3,
                code: 5,
                object: 6,
                dict: 10,
                gc: 10,
            },
            // As in 3.15.0rc1.
            15 => Self {
                interpreter: 1,
                thread: 3,
                ids: 6,
                frame: 11,
                code: 13,
                object: 14,
                dict: 22,
                gc: 23,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of which each one tells its place.
    fn words(version: u64, is_free_threaded: u64) -> [u64; WORDS] {
        let mut words = std::array::from_fn(|place| place as u64);
        (words[0], words[VERSION], words[FREE_THREADED]) = (COOKIE, version, is_free_threaded);
        words
    }

    #[test]
    fn each_version_has_its_own_order() {
        let old = DebugOffsets::of(&words(0x030d_05f0, 1)).unwrap();
        assert_eq!((old.minor, old.imports_modules, old.instr_ptr), (13, 11, 31));
        assert_eq!((old.code_adaptive, old.object_type, old.gc_collecting), (43, 45, 72));
        assert_eq!((old.tlbc_index, old.tlbc), (None, None));
        let new = DebugOffsets::of(&words(0x030e_00f0, 1)).unwrap();
        assert_eq!((new.minor, new.imports_modules, new.instr_ptr), (14, 12, 34));
        assert_eq!((new.code_adaptive, new.object_type, new.gc_collecting), (48, 51, 82));
        assert_eq!((new.tlbc_index, new.tlbc), (Some(38), Some(49)));
        let newest = DebugOffsets::of(&words(0x030f_00c1, 1)).unwrap();
        assert_eq!((newest.minor, newest.imports_modules, newest.instr_ptr), (15, 12, 42));
        assert_eq!((newest.current_frame, newest.native_thread_id), (26, 31));
        assert_eq!((newest.code_adaptive, newest.object_type, newest.gc_collecting), (56, 59, 95));
        assert_eq!((newest.tlbc_index, newest.tlbc), (Some(46), Some(57)));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(DebugOffsets::of(&words(0x030d_05f0, 0)), None, "a build with a GIL");
        assert_eq!(DebugOffsets::of(&words(0x0310_00f0, 1)), None, "a version to come");
        assert_eq!(DebugOffsets::of(&[0; WORDS]), None);
    }
}
