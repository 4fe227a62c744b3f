//! Frames as an interpreter has them, in memory that a test has laid out.

use super::*;
use std::mem::offset_of;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An object that all code objects refer to as their type.
static CODE_TYPE: u64 = 0;
static OTHER_TYPE: u64 = 0;
static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
static IS_FINALIZING: AtomicBool = AtomicBool::new(false);
/// What is known of the interpreter is static, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

#[repr(C)]
struct State {
    current_frame: *const Frame,
}

#[repr(C)]
struct Frame {
    previous: *const Frame,
    /// A code object, with a tag.
    executable: usize,
    instr_ptr: usize,
    tlbc_index: i32,
    owner: u8,
}

#[repr(C, align(16))]
struct Code {
    object_type: *const u64,
    filename: *const Text,
    /// Null before 3.14.
    tlbc: *const Bytecode,
    instructions: [u16; 8],
}

/// `struct _PyCodeArray` with two entries.
#[repr(C)]
struct Bytecode {
    size: usize,
    entries: [usize; 2],
}

#[repr(C)]
struct Text {
    state: u32,
    ascii: [u8; 32],
}

extern "C" fn get_state() -> *const c_void {
    STATE.load(Relaxed).cast()
}

extern "C" fn is_finalizing() -> c_int {
    IS_FINALIZING.load(Relaxed).into()
}

/// An interpreter of 3.14 if it `has_tlbc`, else of 3.13; until the end of the test.
fn interpreter(has_tlbc: bool) -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, value) in [
        (&KNOWN.current_frame, offset_of!(State, current_frame)),
        (&KNOWN.previous, offset_of!(Frame, previous)),
        (&KNOWN.executable, offset_of!(Frame, executable)),
        (&KNOWN.instr_ptr, offset_of!(Frame, instr_ptr)),
        (&KNOWN.owner, offset_of!(Frame, owner)),
        (&KNOWN.tlbc_index, offset_of!(Frame, tlbc_index)),
        (&KNOWN.code_adaptive, offset_of!(Code, instructions)),
        (&KNOWN.tlbc, if has_tlbc { offset_of!(Code, tlbc) } else { 0 }),
        (&KNOWN.filename, offset_of!(Code, filename)),
        (&KNOWN.text_state, offset_of!(Text, state)),
        (&KNOWN.text_ascii_bytes, offset_of!(Text, ascii)),
        (&KNOWN.object_type, offset_of!(Code, object_type)),
        (&KNOWN.get_state, get_state as *const () as usize),
        (&KNOWN.is_finalizing, is_finalizing as *const () as usize),
        (&KNOWN.code_type, &raw const CODE_TYPE as usize),
    ] {
        place.store(value, Relaxed);
    }
    IS_FINALIZING.store(false, Relaxed);
    turn
}

fn text(of: &[u8], state: u32) -> Text {
    let mut ascii = [0; 32];
    ascii[..of.len()].copy_from_slice(of);
    Text { state, ascii }
}

fn code(filename: &Text) -> Code {
    Code { object_type: &raw const CODE_TYPE, filename, tlbc: null(), instructions: [0; 8] }
}

/// A frame that is at this instruction of `code`.
fn frame(code: &Code, instruction: usize, previous: Option<&Frame>) -> Frame {
    Frame {
        previous: previous.map_or(null(), |it| &raw const *it),
        executable: &raw const *code as usize,
        instr_ptr: &raw const code.instructions[instruction] as usize,
        tlbc_index: 0,
        owner: 0,
    }
}

/// What `look` returns while the calling thread is in this frame.
fn within<T>(innermost: Option<&Frame>, look: impl FnOnce() -> T) -> T {
    let current_frame = innermost.map_or(null(), |it| &raw const *it);
    let mut state = State { current_frame };
    STATE.store(&raw mut state, Relaxed);
    let seen = look();
    STATE.store(std::ptr::null_mut(), Relaxed);
    seen
}

/// The frames of the thread: in which code, and at which instruction of that.
fn seen(innermost: &Frame) -> Vec<(usize, Option<u32>)> {
    let all =
        || Frames::of_this_thread().map(|(code, place)| (code, place.instruction())).collect();
    within(Some(innermost), all)
}

fn address(code: &Code) -> usize {
    &raw const *code as usize
}

#[test]
fn frames_come_innermost_first_with_their_instructions() {
    let _turn = interpreter(false);
    let file = text(b"app.py", COMPACT_ASCII);
    let (inner, outer) = (code(&file), code(&file));
    let first = frame(&outer, 5, None);
    let mut last = frame(&inner, 2, Some(&first));
    assert_eq!(seen(&last), [(address(&inner), Some(2)), (address(&outer), Some(5))]);
    // As a reference of 3.14 is kept.
    last.executable |= 1;
    assert_eq!(seen(&last)[0], (address(&inner), Some(2)));
}

#[test]
fn frames_without_code_are_left_out() {
    let _turn = interpreter(false);
    let file = text(b"app.py", COMPACT_ASCII);
    let (own, mut other) = (code(&file), code(&file));
    other.object_type = &raw const OTHER_TYPE;
    let first = frame(&own, 1, None);
    let mut of_interpreter = frame(&own, 2, Some(&first));
    of_interpreter.owner = OWNED_BY_NOBODY;
    let no_code = frame(&other, 3, Some(&of_interpreter));
    let mut nothing = frame(&own, 4, Some(&no_code));
    nothing.executable = 0;
    assert_eq!(seen(&nothing), [(address(&own), Some(1))]);
}

#[test]
fn each_thread_of_3_14_counts_in_its_own_bytecode() {
    let _turn = interpreter(true);
    let file = text(b"app.py", COMPACT_ASCII);
    let mut shared = code(&file);
    let own = [0_u16; 8];
    let entries = [&raw const shared.instructions as usize, &raw const own as usize];
    let bytecode = Bytecode { size: 2, entries };
    shared.tlbc = &raw const bytecode;
    let mut at = frame(&shared, 3, None);
    assert_eq!(seen(&at), [(address(&shared), Some(3))]);
    (at.tlbc_index, at.instr_ptr) = (1, &raw const own[6] as usize);
    assert_eq!(seen(&at), [(address(&shared), Some(6))]);
    for beyond in [2, -1] {
        at.tlbc_index = beyond;
        assert_eq!(seen(&at), [(address(&shared), None)], "the function is known all the same");
    }
}

#[test]
fn a_ring_of_frames_ends() {
    let _turn = interpreter(false);
    let file = text(b"app.py", COMPACT_ASCII);
    let own = code(&file);
    let mut frame = frame(&own, 1, None);
    frame.previous = &raw const frame;
    assert_eq!(seen(&frame).len(), DEPTH);
}

#[test]
fn a_thread_without_a_state_or_frames_has_no_stack() {
    let _turn = interpreter(false);
    assert_eq!(number(), 0, "no state");
    assert_eq!(within(None, number), 0, "no frames");
    let file = text(b"app.py", COMPACT_ASCII);
    let own = code(&file);
    let frame = frame(&own, 1, None);
    IS_FINALIZING.store(true, Relaxed);
    assert!(seen(&frame).is_empty(), "states are being deleted");
    IS_FINALIZING.store(false, Relaxed);
    assert_eq!(seen(&frame).len(), 1);
    KNOWN.code_type.store(0, Relaxed);
    assert!(seen(&frame).is_empty(), "an interpreter that is not known");
}

#[test]
fn only_the_machinery_of_imports_is_told_from_other_code() {
    let _turn = interpreter(false);
    let is_of = |name: &[u8], state| {
        let file = text(name, state);
        is_importing(address(&code(&file)))
    };
    assert!(is_of(b"<frozen importlib._bootstrap>", COMPACT_ASCII));
    assert!(!is_of(b"<frozen runpy>", COMPACT_ASCII));
    assert!(!is_of(b"<frozen", COMPACT_ASCII), "a short name");
    assert!(!is_of(b"<frozen importlib._bootstrap>", 0), "text that lies elsewhere");
    assert!(!is_importing(address(&Code { filename: null(), ..code(&text(b"", 0)) })));
}

#[test]
fn a_stack_has_one_number_until_the_table_ends() {
    let _turn = interpreter(false);
    assert!(table::own().is_some() || table::count_only(c"3.13"));
    forget();
    let (app, importing) =
        (text(b"app.py", COMPACT_ASCII), text(b"<frozen importlib._bootstrap>", COMPACT_ASCII));
    let (own, machinery) = (code(&app), code(&importing));
    let first = frame(&own, 1, None);
    let second = frame(&own, 2, None);
    let inside = frame(&machinery, 3, Some(&first));
    let one = within(Some(&first), number);
    let other = within(Some(&second), number);
    assert!(one != 0 && other != 0 && one != other);
    assert_eq!(within(Some(&first), number), one);
    assert_eq!(within(Some(&inside), number_without_imports), one, "imports are left out");
    let with_imports = within(Some(&inside), number);
    let kept: Vec<_> = table::own().unwrap().stack(with_imports).unwrap().load().collect();
    let places: Vec<_> = kept.iter().map(|it| (it.code(), it.instruction())).collect();
    let expected = [(&machinery, 3), (&own, 1)].map(|(it, at)| (address(it) as u64, Some(at)));
    assert_eq!(places, expected);
    forget();
    assert_ne!(within(Some(&first), number), one, "it is told anew");
    forget();
}

#[test]
fn of_a_deep_stack_the_innermost_frames_are_kept() {
    let _turn = interpreter(false);
    assert!(table::own().is_some() || table::count_only(c"3.13"));
    let file = text(b"app.py", COMPACT_ASCII);
    let codes: Vec<_> = (0..FRAMES + 4).map(|_| code(&file)).collect();
    let mut frames: Vec<_> = codes.iter().map(|it| frame(it, 0, None)).collect();
    for index in 1..frames.len() {
        frames[index].previous = &raw const frames[index - 1];
    }
    let number = within(frames.last(), number);
    let kept = table::own().unwrap().stack(number).unwrap().load();
    let kept: Vec<_> = kept.map(PlaceInCode::code).collect();
    let innermost: Vec<_> = codes.iter().rev().take(FRAMES).map(|it| address(it) as u64).collect();
    assert_eq!(kept, innermost);
    forget();
}
