//! JSON for Python, which may be printed as it is: names of other programs are in it.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;
use std::fmt::Write;

/// A value as JSON, without a character that a terminal would obey.
pub fn as_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map(harmless)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// JSON itself lets all characters but the first 32 stand for themselves, in strings alone.
fn harmless(json: String) -> String {
    if !json.contains(is_obeyed) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_obeyed(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").expect("a string takes everything");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Control characters, and those that say in which direction text runs.
const fn is_obeyed(character: char) -> bool {
    matches!(
        character,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}
