//! A stack frame as a person reads it, `func (file:line)`, from which it can be read back.
//!
//! The file is all between the first ` (` and the last `:`. Function names contain neither
//! parentheses nor backslashes unless somebody made them up; in such a name `\` is written `\\`
//! and ` (` is written ` \(`.

use std::borrow::Cow;

use crate::record::Frame;

/// The text of a frame.
pub fn to_text(frame: &Frame) -> String {
    let function = if frame.function.contains(['\\', '(']) {
        Cow::from(frame.function.replace('\\', r"\\").replace(" (", r" \("))
    } else {
        Cow::from(&frame.function)
    };
    format!("{function} ({}:{})", frame.file, frame.line)
}

/// The frame with this text.
pub fn from_text(text: &str) -> Option<Frame> {
    let (function, place) = text.strip_suffix(')')?.split_once(" (")?;
    let (file, line) = place.rsplit_once(':')?;
    let mut unescaped = String::with_capacity(function.len());
    let mut characters = function.chars();
    while let Some(character) = characters.next() {
        unescaped.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(Frame { function: unescaped, file: file.to_owned(), line: line.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_reads_as_python_programmers_write_it() {
        let frame = Frame { function: "serve".into(), file: "/a b (1)/s.py".into(), line: 7 };
        assert_eq!(to_text(&frame), "serve (/a b (1)/s.py:7)");
    }

    #[test]
    fn a_text_that_is_no_frame_is_refused() {
        for text in
            ["", "f", "f (x)", "f (x:y)", "f (x:1", "f(x:1)", "\\ (x:1)", "f (x:4294967296)"]
        {
            assert_eq!(from_text(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_frame_survives_its_text(
            function in r"[ab (\\):<>é]{0,9}", file in r"[ab (\\):/]{0,9}", line: u32
        ) {
            let frame = Frame { function, file, line };
            prop_assert_eq!(from_text(&to_text(&frame)), Some(frame));
        }
    }
}
