//! Calls in machine code: what a function returns to follows one.

use ungil_attach::memory::Memory;

/// The instruction before a place that a function returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A call of the function that begins there.
    Of(u64),
    /// A call of whatever a register or a word in memory points to.
    Indirect,
}

/// The call before an address, if there is one.
pub fn call_before(memory: &Memory, address: u64) -> Option<Call> {
    let mut before = [0; 8];
    memory.read(address.checked_sub(8)?, &mut before).ok()?;
    call_at_end(before, address)
}

/// Whether a function only goes on to where a word in memory points to, in another image mostly
/// (an entry of the procedure linkage table).
pub fn is_stub(memory: &Memory, function: u64) -> bool {
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
