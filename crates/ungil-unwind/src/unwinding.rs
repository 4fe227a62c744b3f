//! From the copied registers and stack to the functions that were called.
//!
//! Where the tables lead no further, the stack is searched: the first word in it that follows a call in
//! known code, and from which the tables lead to Python, is where the function returns to. That is so
//! for functions without tables (written in assembler, or made while the program ran), and where the
//! way out needs the frame pointer of a thread that waits in the kernel, which `/proc` does not tell.
//! Assembler may keep more on its stack than is searched; the way back is then in a register.
//! A stack also has words that earlier calls have left. So a way counts only if it leads to Python by a
//! function that Python can call. A call that names another function than the one that was reached
//! counts only if nothing else leads to Python; for code that was made while the program ran, if no word
//! before a frame of the interpreter does: that function may have jumped on.

use std::ops::Range;

use framehop::{FrameAddress, Unwinder};
use ungil_attach::memory::Memory;

use crate::module::Function;
use crate::modules::Modules;
use crate::plumbing::is_plumbing;
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
/// A function without a table that tells where it ends is not longer.
const LARGEST_FUNCTION: u64 = 1 << 20;

/// What a stack shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The functions from the innermost one on, up to the one that Python code called.
    pub functions: Vec<Function>,
    /// The image of the interpreter; `None` if the way did not lead to Python.
    pub interpreter: Option<String>,
}

/// Which of these functions Python code called, if it is one that it can call: the outermost one that
/// does not only hand the call on.
pub fn known_callee(functions: &[Function], interpreter: &str) -> Option<usize> {
    let hands_on = |it: &Function| {
        // Of a function without a name nothing tells what it does.
        it.library == interpreter
            && it.name.method.is_empty()
            && (it.name.symbol.is_empty() || is_plumbing(&it.name.symbol))
    };
    let callee = functions.iter().rposition(|it| !hands_on(it))?;
    functions[callee].is_for_python(interpreter).then_some(callee)
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

/// Where a word of a stack leads.
enum Trial {
    /// To Python, in this image, by a function that Python can call.
    Callee(String),
    /// To Python, but not so.
    Python,
    Nothing,
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
                _ => {
                    let searches = searches.checked_sub(1)?;
                    // Nobody has changed these yet where the innermost function is searched for its end.
                    let saved = if functions.len() == 1 { &registers.saved[..] } else { &[] };
                    return self.search(at, (sp, fp), saved, functions, searches);
                }
            }
        }
        None
    }

    /// Searches the stack for where the function around `inner` returns to: from `sp` on, and then,
    /// as such a function may keep much on the stack, from where one of the registers `saved` points.
    fn search(
        &mut self,
        inner: u64,
        (sp, fp): (u64, u64),
        saved: &[u64],
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        let mut starts = saved.to_vec();
        starts.sort_unstable();
        let mut end = sp;
        for start in std::iter::once(sp).chain(starts) {
            if start < end || self.stack.word(start).is_none() {
                continue;
            }
            end = start.wrapping_add(8 * SEARCHED_WORDS);
            let words = start..end;
            if let Some(interpreter) = self.search_in(words, inner, fp, functions, searches) {
                return Some(interpreter);
            }
        }
        None
    }

    /// Searches these addresses of the stack for where the function around `inner` returns to.
    fn search_in(
        &mut self,
        addresses: Range<u64>,
        inner: u64,
        fp: u64,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        let is_made = self.modules.at(self.memory, inner).is_none();
        let mut others = Vec::new();
        for place in addresses.step_by(8) {
            let Some(ip) = self.stack.word(place) else { break };
            if !self.modules.is_code(ip) || !self.is_known(ip.wrapping_sub(1)) {
                continue;
            }
            match call_before(self.memory, ip) {
                None => continue,
                Some(Call::Of(function)) if !self.leads_to(function, inner) => {
                    others.push((place, ip));
                    continue;
                }
                Some(Call::Of(_) | Call::Indirect) => {}
            }
            match self.try_from((place, ip), fp, functions, searches)? {
                Trial::Callee(interpreter) => return Some(interpreter),
                // What called the function is nearer, if that is a frame. Which calls may lead to code
                // that was made while the program ran, nothing tells.
                Trial::Python if is_made => {
                    let all = self.try_all(&mut others, fp, functions, searches)?;
                    if let Trial::Callee(interpreter) = all {
                        return Some(interpreter);
                    }
                }
                Trial::Python | Trial::Nothing => {}
            }
        }
        match self.try_all(&mut others, fp, functions, searches)? {
            Trial::Callee(interpreter) => Some(interpreter),
            Trial::Python | Trial::Nothing => None,
        }
    }

    /// Tries these words until one leads to a function that Python can call. `None` if no more may be
    /// tried.
    fn try_all(
        &mut self,
        words: &mut Vec<(u64, u64)>,
        fp: u64,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<Trial> {
        for word in words.drain(..) {
            let trial = self.try_from(word, fp, functions, searches)?;
            if matches!(trial, Trial::Callee(_)) {
                return Some(trial);
            }
        }
        Some(Trial::Nothing)
    }

    /// Follows the stack from a word on (where it is, and what it is), which may be where a function
    /// returns to. `None` if no more may be tried.
    fn try_from(
        &mut self,
        (place, ip): (u64, u64),
        fp: u64,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<Trial> {
        let known = functions.len();
        let behind = Registers::without_others(ip, place.wrapping_add(8));
        let registers = Registers { fp, ..behind };
        let address = FrameAddress::from_return_address(ip);
        let interpreter = address.and_then(|it| self.follow(it, registers, functions, searches));
        let trial = match interpreter {
            Some(it) if known_callee(functions, &it).is_some() => return Some(Trial::Callee(it)),
            Some(_) => Trial::Python,
            None => Trial::Nothing,
        };
        functions.truncate(known);
        self.trials = self.trials.checked_sub(1)?;
        Some(trial)
    }

    /// Whether a call of `function` may be what has led to `inner`: that is in it, or `function` goes
    /// on to a function of another image.
    fn leads_to(&mut self, function: u64, inner: u64) -> bool {
        let range = self.modules.at(self.memory, function).map(|it| it.function_around(function));
        match range {
            None | Some(None) => function <= inner && inner - function < LARGEST_FUNCTION,
            Some(Some(range)) => range.contains(&inner) || is_stub(self.memory, function),
        }
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

/// The instruction before a place that a function returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// A call of the function that begins there.
    Of(u64),
    /// A call of whatever a register or a word in memory points to.
    Indirect,
}

/// The call before an address, if there is one.
fn call_before(memory: &Memory, address: u64) -> Option<Call> {
    let mut before = [0; 8];
    memory.read(address.checked_sub(8)?, &mut before).ok()?;
    call_at_end(before, address)
}

/// Whether a function only goes on to where a word in memory points to, in another image mostly
/// (an entry of the procedure linkage table).
fn is_stub(memory: &Memory, function: u64) -> bool {
    let mut code = [0; 8];
    memory.read(function, &mut code).is_ok() && begins_with_jump(code)
}

/// `call` to a distance, or by a register or a place in memory, which takes 2 to 7 bytes.
#[cfg(target_arch = "x86_64")]
fn call_at_end(code: [u8; 8], end: u64) -> Option<Call> {
    /// The register field that makes `ff` a call, in the byte behind it.
    const CALLS: u8 = 2 << 3;
    if code[3] == 0xe8 {
        let distance = i32::from_le_bytes([code[4], code[5], code[6], code[7]]);
        return Some(Call::Of(end.wrapping_add_signed(distance.into())));
    }
    let by_place = |length: usize, mode: u8, has_index: bool| {
        let instruction = &code[8 - length..];
        let [first, second] = [instruction[0], instruction[1]];
        first == 0xff
            && second & 0x38 == CALLS
            && second & 0xc0 == mode
            && (mode == 0xc0 || (second & 7 == 4) == has_index)
    };
    let is_call = by_place(2, 0xc0, false)
        || by_place(2, 0x00, false)
        || by_place(3, 0x00, true)
        || by_place(3, 0x40, false)
        || by_place(4, 0x40, true)
        || by_place(6, 0x80, false)
        || by_place(7, 0x80, true)
        // Relative to the instruction.
        || (code[2] == 0xff && code[3] == 0x15);
    is_call.then_some(Call::Indirect)
}

/// `jmp` by a word in memory, maybe behind `endbr64`, with a `bnd` before it.
#[cfg(target_arch = "x86_64")]
fn begins_with_jump(code: [u8; 8]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(&code);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    code.starts_with(&[0xff, 0x25])
}

/// `bl`, or `blr` with a register.
#[cfg(target_arch = "aarch64")]
fn call_at_end(code: [u8; 8], end: u64) -> Option<Call> {
    let instruction = u32::from_le_bytes([code[4], code[5], code[6], code[7]]);
    if instruction >> 26 == 0b10_0101 {
        // A distance of 26 bits with a sign, in instructions, from this one.
        let distance = ((instruction << 6).cast_signed() >> 6) * 4;
        return Some(Call::Of(end.wrapping_sub(4).wrapping_add_signed(distance.into())));
    }
    (instruction & 0xffff_fc1f == 0xd63f_0000).then_some(Call::Indirect)
}

/// `adrp` to the address of a word in memory; a function does not begin so otherwise.
#[cfg(target_arch = "aarch64")]
fn begins_with_jump(code: [u8; 8]) -> bool {
    let instruction = u32::from_le_bytes([code[0], code[1], code[2], code[3]]);
    instruction & 0x9f00_001f == 0x9000_0010
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
            assert!(call_at_end(code, 0x1000).is_some(), "{call:x?}");
        }
        for other in [[0x90; 8], [0, 0, 0, 0, 0, 0, 0xff, 0xe0], [0, 0, 0, 0, 0, 0, 0xff, 0xc0]] {
            assert_eq!(call_at_end(other, 0x1000), None, "{other:x?}");
        }
    }

    #[test]
    fn a_call_to_a_distance_names_its_function() {
        let call = |distance: [u8; 4]| {
            let mut code = [0x90; 8];
            code[3] = 0xe8;
            code[4..].copy_from_slice(&distance);
            call_at_end(code, 0x1000)
        };
        assert_eq!(call([0x10, 0, 0, 0]), Some(Call::Of(0x1010)));
        assert_eq!(call([0xf0, 0xff, 0xff, 0xff]), Some(Call::Of(0xff0)));
        assert_eq!(call_at_end([0, 0, 0, 0, 0, 0, 0xff, 0xd0], 0x1000), Some(Call::Indirect));
    }

    #[test]
    fn an_entry_of_the_linkage_table_is_told_from_a_function() {
        assert!(begins_with_jump([0xff, 0x25, 1, 2, 3, 4, 0, 0]));
        assert!(begins_with_jump([0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2]));
        assert!(begins_with_jump([0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1]));
        assert!(!begins_with_jump([0x55, 0x48, 0x89, 0xe5, 0, 0, 0, 0]));
    }
}
