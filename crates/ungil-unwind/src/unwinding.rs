//! From the copied registers and stack to the functions that were called.
//!
//! Where the tables lead no further, the stack is searched: the first word in it that follows a call in
//! known code, and from which the tables lead to Python, is where the function returns to. That is so
//! for functions without tables (written in assembler, or made while the program ran), and where the
//! way out needs the frame pointer of a thread that waits in the kernel, which `/proc` does not tell.

use framehop::{FrameAddress, Unwinder};
use ungil_attach::memory::Memory;

use crate::module::Function;
use crate::modules::Modules;
use crate::registers::Registers;
use crate::stopped::Stack;

/// A longer way to Python is not followed.
const MOST_FRAMES: usize = 1024;
/// Words of a stack that are searched for the end of one function.
const SEARCHED_WORDS: u64 = 2048;
/// Times that the stack may be searched on one way.
const MOST_SEARCHES: usize = 3;
/// Words that are tried in all searches together.
const MOST_TRIALS: usize = 64;

/// What a stack shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The functions from the innermost one on, up to the one that Python code called.
    pub functions: Vec<Function>,
    /// The image of the interpreter; `None` if the way did not lead to Python.
    pub interpreter: Option<String>,
}

/// Follows a stack until it leads to Python code.
pub fn way_to_python(
    modules: &mut Modules,
    memory: &Memory,
    stack: &Stack,
    registers: Registers,
) -> Way {
    let mut walk = Walk { modules, memory, stack, trials: MOST_TRIALS };
    let address = FrameAddress::from_instruction_pointer(registers.ip);
    let mut functions = Vec::new();
    let interpreter = walk.follow(address, registers, &mut functions, MOST_SEARCHES);
    Way { functions, interpreter }
}

struct Walk<'a> {
    modules: &'a mut Modules,
    memory: &'a Memory,
    stack: &'a Stack,
    /// Words that may still be tried.
    trials: usize,
}

impl Walk<'_> {
    /// Adds functions until one of them runs Python code, and returns the image of that.
    fn follow(
        &mut self,
        mut address: FrameAddress,
        registers: Registers,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        let mut unwound = registers.unwinding();
        while functions.len() < MOST_FRAMES {
            let at = address.address_for_lookup();
            let (function, is_known) = match self.modules.at(self.memory, at) {
                Some(module) if module.runs_python_at(at) => return Some(module.library.clone()),
                Some(module) => (module.function_called_at(at), module.can_unwind(at)),
                None => (Function::default(), false),
            };
            functions.push(function);
            let (sp, fp) = (unwound.sp(), frame_pointer(&unwound));
            let caller = is_known.then(|| {
                let mut read = |address| self.stack.word(address).ok_or(());
                let Modules { unwinding, cache, .. } = &mut *self.modules;
                unwinding.unwind_frame(address, &mut unwound, cache, &mut read).ok().flatten()
            });
            match caller.flatten().and_then(FrameAddress::from_return_address) {
                Some(caller) if self.modules.is_code(caller.address_for_lookup()) => {
                    address = caller;
                }
                _ => return self.search(sp, fp, functions, searches.checked_sub(1)?),
            }
        }
        None
    }

    /// Searches the stack from `sp` on for where a function returns to.
    fn search(
        &mut self,
        sp: u64,
        fp: u64,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        let known = functions.len();
        for place in (0..SEARCHED_WORDS).map(|index| sp.wrapping_add(8 * index)) {
            let ip = self.stack.word(place)?;
            let is_return =
                self.modules.is_code(ip) && follows_call(self.memory, ip) && self.is_known(ip - 1);
            if !is_return {
                continue;
            }
            let registers = Registers { ip, sp: place.wrapping_add(8), fp, lr: 0 };
            let address = FrameAddress::from_return_address(ip)?;
            if let Some(interpreter) = self.follow(address, registers, functions, searches) {
                return Some(interpreter);
            }
            functions.truncate(known);
            self.trials = self.trials.checked_sub(1)?;
        }
        None
    }

    fn is_known(&mut self, address: u64) -> bool {
        self.modules.at(self.memory, address).is_some_and(|it| it.can_unwind(address))
    }
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(registers: &framehop::UnwindRegsNative) -> u64 {
    registers.bp()
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(registers: &framehop::UnwindRegsNative) -> u64 {
    registers.fp()
}

/// Whether the instruction before an address is a call.
fn follows_call(memory: &Memory, address: u64) -> bool {
    let mut before = [0; 8];
    let Some(start) = address.checked_sub(8) else { return false };
    memory.read(start, &mut before).is_ok() && ends_with_call(before)
}

/// `call` to a distance, or by a register or a place in memory, which takes 2 to 7 bytes.
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: [u8; 8]) -> bool {
    /// The register field that makes `ff` a call, in the byte behind it.
    const CALLS: u8 = 2 << 3;
    let by_place = |length: usize, mode: u8, has_index: bool| {
        let instruction = &code[8 - length..];
        let [first, second] = [instruction[0], instruction[1]];
        first == 0xff
            && second & 0x38 == CALLS
            && second & 0xc0 == mode
            && (mode == 0xc0 || (second & 7 == 4) == has_index)
    };
    code[3] == 0xe8
        || by_place(2, 0xc0, false)
        || by_place(2, 0x00, false)
        || by_place(3, 0x00, true)
        || by_place(3, 0x40, false)
        || by_place(4, 0x40, true)
        || by_place(6, 0x80, false)
        || by_place(7, 0x80, true)
        // Relative to the instruction.
        || (code[2] == 0xff && code[3] == 0x15)
}

/// `bl`, or `blr` with a register.
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: [u8; 8]) -> bool {
    let instruction = u32::from_le_bytes([code[4], code[5], code[6], code[7]]);
    instruction >> 26 == 0b10_0101 || instruction & 0xffff_fc1f == 0xd63f_0000
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_instructions() {
        for call in [
            &[0xe8, 1, 2, 3, 4][..],         // call +n
            &[0xff, 0xd0],                   // call rax
            &[0xff, 0x10],                   // call [rax]
            &[0x41, 0xff, 0xd4],             // call r12
            &[0xff, 0x50, 0x10],             // call [rax+16]
            &[0xff, 0x54, 0x24, 0x08],       // call [rsp+8]
            &[0xff, 0x90, 0, 1, 0, 0],       // call [rax+256]
            &[0xff, 0x94, 0x24, 0, 1, 0, 0], // call [rsp+256]
            &[0xff, 0x15, 0, 1, 0, 0],       // call [rip+256]
        ] {
            let mut code = [0x90; 8];
            code[8 - call.len()..].copy_from_slice(call);
            assert!(ends_with_call(code), "{call:x?}");
        }
        for other in [[0x90; 8], [0, 0, 0, 0, 0, 0, 0xff, 0xe0], [0, 0, 0, 0, 0, 0, 0xff, 0xc0]] {
            assert!(!ends_with_call(other), "{other:x?}");
        }
    }
}
