//! Advice on the page. What to advise is known above this crate (`ungil-advise`), so the page takes
//! it as JSON, and only keeps it within bounds.

use crate::record::Record;
use crate::report::Report;
use serde_json::Value;

/// Texts beyond these characters are cut, and lists beyond these items.
const CHARACTERS: usize = 4_000;
const ITEMS: usize = 100;
/// What can be typed is whole or not there.
const TYPED: [&str; 3] = ["command", "shell", "code"];
const TYPED_CHARACTERS: usize = 20_000;

/// Says what to do about a trace while its page is written.
pub trait Adviser {
    /// Takes in one record of the trace.
    fn push(&mut self, record: &Record);

    /// What to do, as `docs/advise.md` has it, about the trace of this report; asked once.
    fn advise(&mut self, report: &Report) -> Value;
}

/// Advice in what a page has room for.
pub(super) fn shortened(advice: &Value) -> Value {
    match advice {
        Value::String(text) => Value::String(cut(text)),
        Value::Array(items) => items.iter().take(ITEMS).map(shortened).collect(),
        Value::Object(known) => known
            .iter()
            .map(|(key, value)| {
                let is_typed = TYPED.contains(&key.as_str());
                let value = match value {
                    it if is_typed && characters(it) > TYPED_CHARACTERS => Value::Null,
                    it if is_typed => it.clone(),
                    it => shortened(it),
                };
                (key.clone(), value)
            })
            .collect(),
        it => it.clone(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// How many characters a text, or a list of texts, has.
fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(characters).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_texts_and_lists_are_cut_but_what_can_be_typed_is_whole_or_gone() {
        let long = "é".repeat(5_000);
        let advice = json!({
            "text": long,
            "gain": null,
            "subject": {"threads": (0..1_000).collect::<Vec<_>>()},
            "action": {"shell": long, "command": ["x".repeat(30_000)], "code": null},
        });
        let made = shortened(&advice);
        assert_eq!(made["text"].as_str().unwrap().chars().count(), CHARACTERS + 1);
        assert_eq!(made["subject"]["threads"].as_array().unwrap().len(), ITEMS);
        assert_eq!(made["action"]["shell"], advice["action"]["shell"]);
        assert!(made["action"]["command"].is_null());
    }
}
