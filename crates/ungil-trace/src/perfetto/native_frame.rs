//! A native frame as a person reads it, `symbol = method [library]`, from which it can be read back.
//!
//! ` = method` is missing where Python does not call the function, and ` by ctypes` follows where it
//! calls it so. In a made-up name a `\` is written
//! `\\`, and what would end the name `\=` or `\[`.

use crate::record::NativeFrame;

/// Ends the text of a function that Python code called by ctypes.
const BY_CTYPES: &str = " by ctypes";

/// The text of a frame.
pub fn to_text(frame: &NativeFrame) -> String {
    let NativeFrame { symbol, method, library, by_ctypes } = frame;
    let mut text = escaped(symbol);
    if !method.is_empty() {
        text += " = ";
        text += &escaped(method);
    }
    format!("{text} [{library}]{}", if *by_ctypes { BY_CTYPES } else { "" })
}

/// The frame with this text.
pub fn from_text(text: &str) -> Option<NativeFrame> {
    let plain = text.strip_suffix(BY_CTYPES);
    let frame = plain.unwrap_or(text);
    let (function, library) = frame.strip_suffix(']')?.split_once(" [")?;
    let (symbol, method) = function.split_once(" = ").unwrap_or((function, ""));
    let (symbol, method) = (unescaped(symbol)?, unescaped(method)?);
    Some(NativeFrame { symbol, method, library: library.to_owned(), by_ctypes: plain.is_some() })
}

fn escaped(name: &str) -> String {
    if !name.contains(['\\', '[', '=']) {
        return name.to_owned();
    }
    let name = name.replace('\\', r"\\").replace(" [", r" \[").replace('=', r"\=");
    if name.starts_with('[') { format!(r"\{name}") } else { name }
}

fn unescaped(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        name.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_reads_as_its_function_and_its_library() {
        let frame = |symbol: &str, method: &str| NativeFrame {
            symbol: symbol.into(),
            method: method.into(),
            library: "/usr/bin/python3.11".into(),
            by_ctypes: false,
        };
        for (frame, text) in [
            (frame("sre_match", ""), "sre_match [/usr/bin/python3.11]"),
            (
                frame("pattern_match", "re.Pattern.match"),
                "pattern_match = re.Pattern.match [/usr/bin/python3.11]",
            ),
            (frame("", "re.match"), " = re.match [/usr/bin/python3.11]"),
            (frame("", ""), " [/usr/bin/python3.11]"),
            (frame("A::operator[]", ""), "A::operator[] [/usr/bin/python3.11]"),
        ] {
            assert_eq!(to_text(&frame), text);
        }
        let by_ctypes = NativeFrame { by_ctypes: true, ..frame("usleep", "") };
        assert_eq!(to_text(&by_ctypes), "usleep [/usr/bin/python3.11] by ctypes");
    }

    #[test]
    fn a_text_that_is_no_frame_is_refused() {
        for text in ["", "f", "f [x", "f(x)", "f[x]", "\\ [x]"] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_frame_survives_its_text(
            symbol in r"[ab \[\]\\=é]{0,9}", method in r"[ab \[\]\\=]{0,9}", library in r"[ab \[\]/=\\]{0,9}",
            by_ctypes in any::<bool>()
        ) {
            let frame = NativeFrame { symbol, method, library, by_ctypes };
            prop_assert_eq!(from_text(&to_text(&frame)), Some(frame));
        }
    }
}
