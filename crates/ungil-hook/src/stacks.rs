//! The Python stacks of threads of a free-threaded interpreter that park, or wake others.
//!
//! A thread reads its own frames (`struct _PyInterpreterFrame`, `Include/internal/pycore_frame.h`),
//! which nobody else changes, and which refer to their code objects. It notes which instruction of
//! which code object each frame is at; what that is called, and its line, the recorder reads.

use crate::interpreter::Interpreter;
use crate::table;
use libc::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering::Release};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use ungil_core::debug_offsets::DebugOffsets;
use ungil_core::table::{FRAMES, PlaceInCode};

/// Frames that are looked at, at most.
const DEPTH: usize = 512;
/// Whose frames have no code: `FRAME_OWNED_BY_CSTACK` of 3.13, `FRAME_OWNED_BY_INTERPRETER` of
/// 3.14, and what comes after.
const OWNED_BY_NOBODY: u8 = 3;
/// References from a frame carry a tag in their lowest bits from 3.14 on (`_PyStackRef`).
const TAG: usize = 7;
/// What the file of a code object is called that is compiled into Python and imports others.
const IMPORTING: &[u8] = b"<frozen importlib";
/// In `PyASCIIObject.state`: the text lies behind the object, and each letter is a byte.
const COMPACT_ASCII: u32 = 0x60;

/// Offsets, functions and variables of the interpreter; all 0 if they are not known.
struct Known {
    current_frame: AtomicUsize,
    previous: AtomicUsize,
    executable: AtomicUsize,
    instr_ptr: AtomicUsize,
    owner: AtomicUsize,
    tlbc_index: AtomicUsize,
    code_adaptive: AtomicUsize,
    tlbc: AtomicUsize,
    filename: AtomicUsize,
    text_state: AtomicUsize,
    text_ascii_bytes: AtomicUsize,
    object_type: AtomicUsize,
    /// `PyGILState_GetThisThreadState`.
    get_state: AtomicUsize,
    /// `Py_IsFinalizing`.
    is_finalizing: AtomicUsize,
    /// `PyCode_Type`.
    code_type: AtomicUsize,
}

static KNOWN: Known = {
    const fn none() -> AtomicUsize {
        AtomicUsize::new(0)
    }
    Known {
        current_frame: none(),
        previous: none(),
        executable: none(),
        instr_ptr: none(),
        owner: none(),
        tlbc_index: none(),
        code_adaptive: none(),
        tlbc: none(),
        filename: none(),
        text_state: none(),
        text_ascii_bytes: none(),
        object_type: none(),
        get_state: none(),
        is_finalizing: none(),
        code_type: none(),
    }
};

/// Places in which stacks are looked up that have a number.
const PLACES: usize = 1 << 14;
/// Places that are tried for one stack.
const TRIES: usize = 8;
/// Stacks by their hashes: a hash without its lowest bits, and there the number.
static NUMBERS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
const NUMBER: u64 = ungil_core::park::STACK_NUMBERS as u64 - 1;

/// Finds what is needed to read stacks, before the calls lead here.
pub fn prepare(interpreter: &Interpreter, offsets: Option<&DebugOffsets>) {
    KNOWN.code_type.store(0, Relaxed);
    let Some(offsets) = offsets else { return };
    let of = |name| interpreter.variable(name).map_or(0, |it| it.address);
    for (place, offset) in [
        (&KNOWN.current_frame, offsets.current_frame),
        (&KNOWN.previous, offsets.previous),
        (&KNOWN.executable, offsets.executable),
        (&KNOWN.instr_ptr, offsets.instr_ptr),
        (&KNOWN.owner, offsets.owner),
        (&KNOWN.tlbc_index, offsets.tlbc_index.unwrap_or(0)),
        (&KNOWN.code_adaptive, offsets.code_adaptive),
        (&KNOWN.tlbc, offsets.tlbc.unwrap_or(0)),
        (&KNOWN.filename, offsets.filename),
        (&KNOWN.text_state, offsets.text_state),
        (&KNOWN.text_ascii_bytes, offsets.text_ascii_bytes),
        (&KNOWN.object_type, offsets.object_type),
        (&KNOWN.get_state, of(c"PyGILState_GetThisThreadState")),
        (&KNOWN.is_finalizing, of(c"Py_IsFinalizing")),
        (&KNOWN.code_type, of(c"PyCode_Type")),
    ] {
        place.store(offset, Relaxed);
    }
    if KNOWN.get_state.load(Relaxed) == 0 || KNOWN.is_finalizing.load(Relaxed) == 0 {
        KNOWN.code_type.store(0, Relaxed);
    }
}

/// The number of the calling thread's stack, 0 if it has none.
pub fn number() -> u16 {
    number_of(|_| true)
}

/// The same without the frames that import others.
pub fn number_without_imports() -> u16 {
    number_of(|code| !is_importing(code))
}

fn number_of(is_kept: impl Fn(usize) -> bool) -> u16 {
    let mut frames = [PlaceInCode::default(); FRAMES];
    let mut count = 0;
    for (_, place) in Frames::of_this_thread().filter(|&(code, _)| is_kept(code)) {
        frames[count] = place;
        count += 1;
        if count == FRAMES {
            break;
        }
    }
    if count == 0 { 0 } else { kept(&frames) }
}

/// The number of these frames in this process's table.
fn kept(frames: &[PlaceInCode; FRAMES]) -> u16 {
    let Some(table) = table::own() else { return 0 };
    // Numbers are those of one table.
    let seed = u64::from(table::generation());
    let hash = frames.iter().fold(seed, |hash, frame| {
        (hash.rotate_left(5) ^ frame.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }) & !NUMBER;
    let first = (hash >> 32) as usize;
    let places = (0..TRIES).map(|next| &NUMBERS[(first + next) % PLACES]);
    let mut free = None;
    for place in places {
        match place.load(Acquire) {
            0 => {
                free = Some(place);
                break;
            }
            found if found & !NUMBER == hash => return (found & NUMBER) as u16,
            _ => {}
        }
    }
    // Two threads may both give it a number: it has two then.
    let Some(number) = free.and_then(|_| table.keep_stack(frames, table::commit)) else { return 0 };
    if let Some(free) = free {
        let _ = free.compare_exchange(0, hash | u64::from(number), Release, Relaxed);
    }
    number
}

/// Forgets which stacks have a number: another table begins.
pub fn forget() {
    // Mostly there are none.
    for place in NUMBERS.iter().filter(|place| place.load(Relaxed) != 0) {
        place.store(0, Relaxed);
    }
}

/// The frames of the calling thread, innermost first: addresses of their code, and where in that.
struct Frames {
    next: usize,
    left: usize,
}

impl Frames {
    fn of_this_thread() -> Self {
        let state = this_state();
        let next = if state == 0 { 0 } else { word(state + KNOWN.current_frame.load(Relaxed)) };
        Self { next, left: DEPTH }
    }
}

impl Iterator for Frames {
    type Item = (usize, PlaceInCode);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next != 0 && self.left > 0 {
            let frame = self.next;
            self.next = word(frame + KNOWN.previous.load(Relaxed));
            self.left -= 1;
            if byte(frame + KNOWN.owner.load(Relaxed)) >= OWNED_BY_NOBODY {
                continue;
            }
            let code = word(frame + KNOWN.executable.load(Relaxed)) & !TAG;
            let is_code = code != 0
                && word(code + KNOWN.object_type.load(Relaxed)) == KNOWN.code_type.load(Relaxed);
            if !is_code {
                continue;
            }
            let at = word(frame + KNOWN.instr_ptr.load(Relaxed));
            let bytes = at.checked_sub(first_instruction(frame, code));
            if let Some(place) =
                PlaceInCode::of(code as u64, bytes.map_or(u64::MAX, |it| it as u64))
            {
                return Some((code, place));
            }
        }
        None
    }
}

/// Where the instructions of `code` begin that `frame` runs.
fn first_instruction(frame: usize, code: usize) -> usize {
    match KNOWN.tlbc.load(Relaxed) {
        0 => code + KNOWN.code_adaptive.load(Relaxed),
        // struct _PyCodeArray { Py_ssize_t size; char *entries[]; }
        tlbc => {
            let index = half_word(frame + KNOWN.tlbc_index.load(Relaxed));
            let array = word(code + tlbc);
            match (array, usize::try_from(index)) {
                (0, _) | (_, Err(_)) => 0,
                (array, Ok(index)) if index < word(array) => word(array + 8 + 8 * index),
                _ => 0,
            }
        }
    }
}

/// The thread state of the calling thread, also if it is detached from it; 0 if there is none, or
/// it may be freed any moment.
fn this_state() -> usize {
    if KNOWN.code_type.load(Relaxed) == 0 {
        return 0;
    }
    // SAFETY: the function of this name takes nothing and returns an int, in every CPython since
    // 3.13; all it does is to read a variable.
    let is_finalizing =
        unsafe { transmute::<usize, extern "C" fn() -> c_int>(KNOWN.is_finalizing.load(Relaxed)) };
    // From then on an interpreter deletes the states of threads that still run.
    if is_finalizing() != 0 {
        return 0;
    }
    // SAFETY: the function of this name takes nothing and returns a pointer, in every CPython; all
    // it does is to read a variable of the thread.
    let get_state = unsafe {
        transmute::<usize, extern "C" fn() -> *const c_void>(KNOWN.get_state.load(Relaxed))
    };
    get_state() as usize
}

/// Whether the code is of a module that imports others.
fn is_importing(code: usize) -> bool {
    let file = word(code + KNOWN.filename.load(Relaxed));
    if file == 0
        || half_word(file + KNOWN.text_state.load(Relaxed)).cast_unsigned() & COMPACT_ASCII
            != COMPACT_ASCII
    {
        return false;
    }
    let text = file + KNOWN.text_ascii_bytes.load(Relaxed);
    // A text ends with a NUL, so no byte behind it is read.
    IMPORTING.iter().zip(0..).all(|(&letter, place)| byte(text + place) == letter)
}

/// The word at `address`, in a struct of the interpreter that this thread's own frames lead to.
fn word(address: usize) -> usize {
    // SAFETY: what frames of this thread refer to is there as long as they are, and `DebugOffsets`
    // says where an aligned word lies in it. Others may change it.
    unsafe { AtomicUsize::from_ptr(address as *mut usize) }.load(Relaxed)
}

/// The same of four bytes.
fn half_word(address: usize) -> i32 {
    // SAFETY: as in `word`.
    unsafe { AtomicI32::from_ptr(address as *mut i32) }.load(Relaxed)
}

/// The same of one byte.
fn byte(address: usize) -> u8 {
    // SAFETY: as in `word`.
    unsafe { AtomicU8::from_ptr(address as *mut u8) }.load(Relaxed)
}

#[cfg(test)]
mod tests;
