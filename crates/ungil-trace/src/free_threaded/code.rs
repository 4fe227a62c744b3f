//! Code objects, and which line an instruction is of.

use super::FreeThreaded;
use crate::record::Frame;
use std::io;
use std::sync::Arc;

/// A table of lines that is longer is none.
const LONGEST_TABLE: u64 = 16 << 20;

/// What is known of a code object.
#[derive(Clone, Debug)]
pub(super) struct Code {
    address: u64,
    /// The addresses of its file name, qualified name and table of lines.
    parts: [u64; 3],
    file: Arc<str>,
    function: Arc<str>,
    first_line: u32,
    /// `co_linetable`.
    lines: Arc<[u8]>,
}

impl Code {
    pub(super) fn read(interpreter: &FreeThreaded, address: u64) -> io::Result<Self> {
        let parts = parts(interpreter, address)?;
        let [file, function, lines] = parts;
        let first_line = address + interpreter.offsets.firstlineno as u64;
        Ok(Self {
            address,
            parts,
            file: interpreter.text(file)?.into(),
            function: interpreter.text(function)?.into(),
            first_line: interpreter.memory.half_word(first_line)?,
            lines: interpreter.bytes_object(lines, LONGEST_TABLE)?.into(),
        })
    }

    /// Whether it has not been freed, as far as its parts tell.
    pub(super) fn is_still_there(&self, interpreter: &FreeThreaded) -> bool {
        parts(interpreter, self.address).is_ok_and(|parts| parts == self.parts)
    }

    /// A frame of it that is at this instruction.
    pub(super) fn frame(&self, instruction: Option<u32>) -> Frame {
        let line = instruction.and_then(|it| line_of(&self.lines, self.first_line, it));
        Frame {
            function: self.function.to_string(),
            file: self.file.to_string(),
            line: line.unwrap_or(0),
        }
    }
}

fn parts(interpreter: &FreeThreaded, address: u64) -> io::Result<[u64; 3]> {
    let it = &interpreter.offsets;
    let part = |offset: usize| interpreter.memory.word(address + offset as u64);
    Ok([part(it.filename)?, part(it.qualname)?, part(it.linetable)?])
}

/// The line of an instruction (Objects/locations.md, `InternalDocs/code_objects.md`): entries of a
/// few bytes tell, one after the other, for how many instructions they are and how many lines
/// further these are. `None` if the instruction has none.
fn line_of(table: &[u8], first_line: u32, instruction: u32) -> Option<u32> {
    let mut bytes = table.iter().copied();
    let (mut at, mut line) = (0_u32, i64::from(first_line));
    while let Some(head) = bytes.next() {
        let mut has_line = true;
        match head >> 3 & 15 {
            15 => has_line = false,
            14 => {
                line += signed(&mut bytes)?;
                for _ in 0..3 {
                    number(&mut bytes)?;
                }
            }
            13 => line += signed(&mut bytes)?,
            form @ 10..=12 => {
                line += i64::from(form - 10);
                bytes.nth(1)?;
            }
            _ => {
                bytes.next()?;
            }
        }
        at += u32::from(head & 7) + 1;
        if instruction < at {
            return u32::try_from(line).ok().filter(|_| has_line);
        }
    }
    None
}

/// A number in steps of six bits, lowest first; a seventh bit says that there are more.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x3f).checked_shl(shift)?;
        shift += 6;
        if byte & 0x40 == 0 {
            return Some(number);
        }
    }
}

/// The same with a sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let number = number(bytes)?;
    let size = i64::try_from(number >> 1).ok()?;
    Some(if number & 1 == 0 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_entry_moves_on_by_its_lines() {
        // Two instructions on line 10 (form 10), one on the next (11), one without a line, one five
        // lines further (13), one three lines back (14), and one on the same line (0).
        let table = [
            0x80 | 10 << 3 | 1,
            0,
            0,
            0x80 | 11 << 3,
            0,
            0,
            0x80 | 15 << 3,
            0x80 | 13 << 3,
            10,
            0x80 | 14 << 3,
            7,
            0,
            0x41,
            2,
            0,
            0x80,
            0x12,
        ];
        let lines: Vec<_> = (0..8).map(|it| line_of(&table, 10, it)).collect();
        let expected = [Some(10), Some(10), Some(11), None, Some(16), Some(13), Some(13), None];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_table_that_is_cut_has_no_line() {
        assert_eq!(line_of(&[0x80 | 14 << 3, 0x40], 1, 0), None);
        assert_eq!(line_of(&[], 1, 0), None);
    }
}
