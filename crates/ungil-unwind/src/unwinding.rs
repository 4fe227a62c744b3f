//! From the copied registers and stack to the functions that were called.
//!
//! Where the tables lead no further, the stack is searched: the first word in it that follows a call in
//! known code, and from which the tables lead to Python, is where the function returns to. That is so
//! for functions without tables (written in assembler, or made while the program ran), and where the
//! way out needs the frame pointer of a thread that waits in the kernel, which `/proc` does not tell.
//! Assembler may keep more on its stack than is searched; the way back is then in a register.
//! A stack also has words that earlier calls have left. So a way counts only if it leads to Python by a
//! function that Python can call. Calls that name the function that was reached come first. One that
//! names another function counts only if nothing else leads to Python; for code that was made while the
//! program ran, if no word before a frame of the interpreter does: that function may have jumped on.
//! Where a function returns to also tells its frame pointer, if it has tables, and by that the one of
//! its caller: no other search is needed for that one.

use std::ops::Range;

use framehop::{FrameAddress, UnwindRegsNative, Unwinder};
use ungil_attach::memory::Memory;

use crate::calls::{Call, call_before, is_stub};
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
/// Words between the frame pointer of a function and where it returns to, at most. Two are usual;
/// libffi's `ffi_call_unix64` has four.
const MOST_WORDS_OF_FRAME: u64 = 8;
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

/// A function whose end is searched.
#[derive(Clone, Copy)]
struct Inner {
    /// Where it is.
    address: FrameAddress,
    /// The top of its stack.
    sp: u64,
    /// Its frame pointer, as far as that is known.
    fp: u64,
    /// Whether it has tables.
    is_known: bool,
}

/// How a call may have led to a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// It names this function.
    Named,
    /// It may lead anywhere.
    Open,
    /// It names another one.
    Other,
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
            let caller = if is_known { self.unwind(address, &mut unwound) } else { None };
            match caller.and_then(FrameAddress::from_return_address) {
                Some(caller) if self.modules.is_code(caller.address_for_lookup()) => {
                    address = caller;
                }
                _ => {
                    let searches = searches.checked_sub(1)?;
                    // Nobody has changed these yet where the innermost function is searched for its end.
                    let saved = if functions.len() == 1 { &registers.saved[..] } else { &[] };
                    let inner = Inner { address, sp, fp, is_known };
                    return self.search(inner, saved, functions, searches);
                }
            }
        }
        None
    }

    /// Searches the stack for where the function `inner` returns to: from its top on, and then, as
    /// such a function may keep much on the stack, from where one of the registers `saved` points.
    fn search(
        &mut self,
        inner: Inner,
        saved: &[u64],
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        let mut starts = saved.to_vec();
        starts.sort_unstable();
        let mut end = inner.sp;
        for start in std::iter::once(inner.sp).chain(starts) {
            if start < end || self.stack.word(start).is_none() {
                continue;
            }
            end = start.wrapping_add(8 * SEARCHED_WORDS);
            if let Some(interpreter) = self.search_in(start..end, inner, functions, searches) {
                return Some(interpreter);
            }
        }
        None
    }

    /// Searches these addresses of the stack for where the function `inner` returns to.
    fn search_in(
        &mut self,
        addresses: Range<u64>,
        inner: Inner,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<String> {
        // Only of a function with tables is it known where it begins.
        if inner.is_known {
            let mut places = addresses.clone().step_by(8);
            while let Some((lead, word)) = self.next_lead(&mut places, inner) {
                if lead == Lead::Named
                    && let Trial::Callee(interpreter) =
                        self.try_from(word, inner, functions, searches)?
                {
                    return Some(interpreter);
                }
            }
        }
        let is_made = self.modules.at(self.memory, inner.address.address_for_lookup()).is_none();
        let mut others = Vec::new();
        let mut places = addresses.step_by(8);
        while let Some((lead, word)) = self.next_lead(&mut places, inner) {
            match lead {
                Lead::Named => continue, // It was tried.
                Lead::Other => {
                    others.push(word);
                    continue;
                }
                Lead::Open => {}
            }
            match self.try_from(word, inner, functions, searches)? {
                Trial::Callee(interpreter) => return Some(interpreter),
                // What called the function is nearer, if that is a frame. Which calls may lead to code
                // that was made while the program ran, nothing tells.
                Trial::Python if is_made => {
                    let all = self.try_all(&mut others, inner, functions, searches)?;
                    if let Trial::Callee(interpreter) = all {
                        return Some(interpreter);
                    }
                }
                Trial::Python | Trial::Nothing => {}
            }
        }
        match self.try_all(&mut others, inner, functions, searches)? {
            Trial::Callee(interpreter) => Some(interpreter),
            Trial::Python | Trial::Nothing => None,
        }
    }

    /// The next word at these places of the stack that follows a call in known code.
    fn next_lead(
        &mut self,
        places: &mut impl Iterator<Item = u64>,
        inner: Inner,
    ) -> Option<(Lead, (u64, u64))> {
        for place in places {
            let ip = self.stack.word(place)?;
            if !self.modules.is_code(ip) || !self.is_known(ip.wrapping_sub(1)) {
                continue;
            }
            let Some(call) = call_before(self.memory, ip) else { continue };
            let lead = match call {
                Call::Of(function) => self.lead(function, inner.address.address_for_lookup()),
                Call::Indirect => Lead::Open,
            };
            return Some((lead, (place, ip)));
        }
        None
    }

    /// Tries these words until one leads to a function that Python can call. `None` if no more may be
    /// tried.
    fn try_all(
        &mut self,
        words: &mut Vec<(u64, u64)>,
        inner: Inner,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<Trial> {
        for word in words.drain(..) {
            let trial = self.try_from(word, inner, functions, searches)?;
            if matches!(trial, Trial::Callee(_)) {
                return Some(trial);
            }
        }
        Some(Trial::Nothing)
    }

    /// Follows the stack from a word on (where it is, and what it is), which may be where the function
    /// `inner` returns to. `None` if no more may be tried.
    fn try_from(
        &mut self,
        (place, ip): (u64, u64),
        inner: Inner,
        functions: &mut Vec<Function>,
        searches: usize,
    ) -> Option<Trial> {
        let known = functions.len();
        let fp = self.frame_pointer_behind(inner, (place, ip)).unwrap_or(inner.fp);
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

    /// The frame pointer of the caller, if the function `inner` returns to this word. Its own frame
    /// pointer is that from which its tables lead to the word.
    fn frame_pointer_behind(&mut self, inner: Inner, (place, ip): (u64, u64)) -> Option<u64> {
        let words = 1..=MOST_WORDS_OF_FRAME;
        words.filter(|_| inner.is_known).find_map(|words| {
            let fp = place.checked_sub(8 * words)?;
            let registers = Registers { fp, ..Registers::without_others(0, inner.sp) };
            let mut unwound = registers.unwinding();
            let caller = self.unwind(inner.address, &mut unwound);
            let is_there = caller == Some(ip) && unwound.sp() > place;
            is_there.then(|| frame_pointer(&unwound))
        })
    }

    /// How a call of `function` may have led to `inner`: that is in it, or `function` goes on to a
    /// function of another image.
    fn lead(&mut self, function: u64, inner: u64) -> Lead {
        let module = self.modules.at(self.memory, function);
        match module.and_then(|it| it.function_around(function)) {
            Some(range) if range.contains(&inner) => Lead::Named,
            Some(_) if is_stub(self.memory, function) => Lead::Open,
            None if function <= inner && inner - function < LARGEST_FUNCTION => Lead::Open,
            Some(_) | None => Lead::Other,
        }
    }

    /// Where the function at `address` returns to, by its tables. `unwound` has its registers, and then
    /// those of its caller.
    fn unwind(&mut self, address: FrameAddress, unwound: &mut UnwindRegsNative) -> Option<u64> {
        let mut read = |address| self.stack.word(address).ok_or(());
        let Modules { unwinding, cache, .. } = &mut *self.modules;
        unwinding.unwind_frame(address, unwound, cache, &mut read).ok().flatten()
    }

    fn is_known(&mut self, address: u64) -> bool {
        self.modules.at(self.memory, address).is_some_and(|it| it.can_unwind(address))
    }
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.bp()
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(registers: &UnwindRegsNative) -> u64 {
    registers.fp()
}
