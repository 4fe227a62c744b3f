//! A free-threaded build (3.13 and later), whose GIL is off, on, or switched on while it runs.
//!
//! `struct _gil_runtime_state` (`Include/internal/pycore_gil.h`) of such a build begins with
//! `int enabled`: 0 is off, `INT_MAX` on for good (`PYTHON_GIL=1`, `-X gil=1`, or an extension
//! module that did not say it needs none), and another number on for as long as extension modules
//! are being imported, about which nothing is known yet. `create_gil` is called when it is set.

use crate::clock;
use crate::gil::{self, Gil};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use ungil_core::table::{GilState, Header};

/// Distances from the fields of the struct to `cond`, in a build that is free-threaded.
const ENABLED_TO_COND: usize = 40;
const INTERVAL_TO_COND: usize = 32;
const LOCKED_TO_COND: usize = 16;

/// Whether the interpreter is such a build, with that struct.
static IS_ONE: AtomicBool = AtomicBool::new(false);
/// A [`GilState`] of the main GIL.
static STATE: AtomicU32 = AtomicU32::new(GilState::Always as u32);
/// When the GIL was first seen to be on for good.
static ON_TICKS: AtomicU64 = AtomicU64::new(0);

/// Says whether the interpreter that is about to make its GIL is such a build.
pub fn expect(is_one: bool) {
    IS_ONE.store(is_one, Relaxed);
    let state = if is_one { GilState::Unknown } else { GilState::Always };
    STATE.store(state as u32, Release);
}

/// Whether the interpreter is such a build.
#[inline]
pub fn is_build() -> bool {
    IS_ONE.load(Relaxed)
}

/// Whether threads park where others wait for a GIL: it is off, as far as is known.
#[inline]
pub fn parks() -> bool {
    is_build() && STATE.load(Relaxed) < GilState::On as u32
}

/// The main GIL is being made.
pub fn created(gil: &Gil) {
    if !IS_ONE.load(Relaxed) || STATE.load(Relaxed) != GilState::Unknown as u32 {
        return;
    }
    let [locked, interval] =
        [LOCKED_TO_COND, INTERVAL_TO_COND].map(|distance| field(gil, distance));
    if !(-1..=1).contains(&locked) || interval < 1 {
        IS_ONE.store(false, Relaxed); // Another struct than the one that is known.
        return;
    }
    let is_on = field(gil, ENABLED_TO_COND) == i32::MAX;
    became(if is_on { GilState::On } else { GilState::Off });
}

/// `gil` was taken or let go of: it may have been switched on before.
#[inline]
pub fn used(gil: &'static Gil) {
    if is_build() && std::ptr::eq(gil, gil::main()) {
        look(gil);
    }
}

/// The process is about to end: its only thread may have kept the GIL since it was switched on.
pub fn on_exit() {
    if gil::main().is_known() {
        used(gil::main());
    }
}

fn look(gil: &Gil) {
    let is_off = STATE.load(Relaxed) < GilState::On as u32;
    if is_off && field(gil, ENABLED_TO_COND) == i32::MAX {
        became(GilState::SwitchedOn);
    }
}

fn became(state: GilState) {
    if state == GilState::SwitchedOn
        && let Some(table) = crate::table::own()
    {
        // This thread has the GIL, or is about to let go of it, so mostly it is the one that imports.
        let header = table.header();
        crate::system::keeping_errno(|| crate::image::last_extension(&header.gil_on_library));
        let stack = crate::stacks::number_without_imports();
        header.gil_on_stack.store(stack.into(), Relaxed);
    }
    if state != GilState::Off {
        ON_TICKS.store(clock::now_ticks(), Relaxed);
    }
    STATE.store(state as u32, Release);
    if let Some(table) = crate::table::own() {
        tell(table.header());
    }
}

/// Tells the recorder.
pub fn tell(header: &Header) {
    let state = STATE.load(Acquire);
    header.gil_on_ticks.store(ON_TICKS.load(Relaxed), Relaxed);
    header.gil_state.store(state, Release);
}

/// The `int` that lies that far before the condition variable of `gil`.
fn field(gil: &Gil, distance: usize) -> i32 {
    let address = (gil.cond() - distance) as *mut i32;
    // SAFETY: the GIL is a struct of a free-threaded build, in which an aligned int lies there,
    // and it is being used, so its interpreter is loaded.
    unsafe { AtomicI32::from_ptr(address) }.load(Relaxed)
}
