//! The Python stacks in which threads of a free-threaded interpreter parked, and from which others
//! woke them. Each is kept once, and has a number.

use crate::atomic::{AtomicU64, Ordering};
use crate::park::STACK_NUMBERS;

/// How many stacks are told apart in one process; further ones are not known.
pub const STACKS: usize = STACK_NUMBERS as usize - 1;
/// Frames that are kept of one, innermost first.
pub const FRAMES: usize = 16;

/// An instruction of a code object, in one word: 0 for none.
///
/// Code objects lie at multiples of 16 below 2^48, and few have a million instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlaceInCode(pub u64);

const INSTRUCTION_BITS: u32 = 20;
/// An instruction that is not known.
const UNKNOWN: u64 = (1 << INSTRUCTION_BITS) - 1;
/// Of a code unit (`_Py_CODEUNIT`).
const UNIT_BYTES: u64 = 2;

impl PlaceInCode {
    /// The instruction that lies that many bytes after the first one of the code object at `code`.
    /// `None` if that is where no code object can be.
    pub fn of(code: u64, bytes: u64) -> Option<Self> {
        let is_possible = code != 0 && code.is_multiple_of(16) && code < 1 << 48;
        let instruction = (bytes / UNIT_BYTES).min(UNKNOWN);
        is_possible.then_some(Self(code << (INSTRUCTION_BITS - 4) | instruction))
    }

    /// Address of the code object.
    pub const fn code(self) -> u64 {
        (self.0 >> INSTRUCTION_BITS) << 4
    }

    /// The number of its code unit, counted from 0, if it is known.
    pub fn instruction(self) -> Option<u32> {
        let instruction = self.0 & UNKNOWN;
        u32::try_from(instruction).ok().filter(|_| instruction != UNKNOWN)
    }
}

/// One stack.
#[repr(C)]
#[derive(Debug)]
pub struct Stack {
    /// Innermost frame first, 0 after the outermost one. The first is stored last (`Release`).
    frames: [AtomicU64; FRAMES],
}

impl Stack {
    /// Fills in a stack that nobody reads yet.
    pub(super) fn store(&self, frames: &[PlaceInCode; FRAMES]) {
        for (place, frame) in self.frames.iter().zip(frames).rev() {
            place.store(frame.0, Ordering::Release);
        }
    }

    /// Its frames, innermost first; empty if it is not there yet.
    pub fn load(&self) -> impl Iterator<Item = PlaceInCode> {
        let frames = self.frames.iter().map(|frame| frame.load(Ordering::Acquire));
        frames.take_while(|&frame| frame != 0).map(PlaceInCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_survives_its_word(code in 1u64..1 << 44, instruction in 0u32..0xf_ffff) {
            let place = PlaceInCode::of(code * 16, u64::from(instruction) * UNIT_BYTES).unwrap();
            prop_assert_eq!((place.code(), place.instruction()), (code * 16, Some(instruction)));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_known() {
        assert_eq!(PlaceInCode::of(0, 0), None);
        assert_eq!(PlaceInCode::of(24, 0), None);
        assert_eq!(PlaceInCode::of(1 << 48, 0), None);
        let far = PlaceInCode::of(32, u64::MAX).unwrap();
        assert_eq!((far.code(), far.instruction()), (32, None));
    }

    #[test]
    fn a_stack_comes_back_without_what_follows_its_last_frame() {
        let stack = Stack { frames: [const { AtomicU64::new(0) }; FRAMES] };
        assert_eq!(stack.load().count(), 0);
        let mut frames = [PlaceInCode::default(); FRAMES];
        frames[..2].copy_from_slice(&[PlaceInCode(7), PlaceInCode(9)]);
        stack.store(&frames);
        assert_eq!(stack.load().collect::<Vec<_>>(), [PlaceInCode(7), PlaceInCode(9)]);
    }
}
