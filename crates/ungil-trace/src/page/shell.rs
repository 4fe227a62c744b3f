//! The page without data, as `make page` has built it, and the places where data goes.

use super::table::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::{self, Write};

const TITLE: &str = "<title>ungil</title>";
const SUMMARY: &str = "<!-- ungil:summary -->";
const BLOCKS: &str = "<!-- ungil:blocks -->";

/// The page without data, in pieces.
#[derive(Debug)]
pub(super) struct Shell<'a> {
    pieces: [&'a str; 4],
}

impl<'a> Shell<'a> {
    /// Finds the places; `None` unless each is there once, in their order.
    pub(super) fn parse(shell: &'a str) -> Option<Self> {
        let mut rest = shell;
        let mut next = |marker: &str| {
            let (piece, after) = rest.split_once(marker)?;
            rest = after;
            Some(piece)
        };
        let pieces = [next(TITLE)?, next(SUMMARY)?, next(BLOCKS)?];
        let is_once = [TITLE, SUMMARY, BLOCKS].iter().all(|marker| !rest.contains(marker));
        let [head, skeleton, bundle] = pieces;
        is_once.then_some(Self { pieces: [head, skeleton, bundle, rest] })
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Writes the page; `summary` is JSON.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        title: &str,
        summary: &str,
        blocks: &[Bytes],
    ) -> io::Result<()> {
        let [head, skeleton, bundle, foot] = self.pieces;
        write!(out, "{head}<title>{}</title>{skeleton}", escaped_text(title))?;
        out.write_all(b"<script type=\"application/json\" id=\"ungil-summary\">")?;
        out.write_all(escaped_json(summary).as_bytes())?;
        write!(out, "</script>{bundle}")?;
        let mut text = String::new();
        for (number, bytes) in blocks.iter().enumerate() {
            text.clear();
            STANDARD.encode_string(bytes, &mut text);
            write!(out, "<script type=\"application/octet-stream\" id=\"ungil-block-{number}\">")?;
            out.write_all(text.as_bytes())?;
            out.write_all(b"</script>\n")?;
        }
        out.write_all(foot.as_bytes())
    }
}

/// Text that no browser takes for markup. Control characters are no part of HTML.
fn escaped_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// JSON that means the same and holds nothing that ends or opens anything in HTML. These characters
/// stand in strings alone.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + json.len() / 16);
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' => {
                let escape = format!("\\u{:04x}", u32::from(character));
                escaped.push_str(&escape);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHELL: &str = "<head><title>ungil</title></head><main></main><!-- ungil:summary -->\
                         <script>paint()</script><!-- ungil:blocks --></html>";

    #[test]
    fn data_goes_to_its_places() {
        let shell = Shell::parse(SHELL).unwrap();
        let mut page = Vec::new();
        shell
            .write(&mut page, "<b>", "{\"a\": \"</script>\"}", &[b"\xff".as_slice().into()])
            .unwrap();
        let expected = "<head><title>&lt;b&gt;</title></head><main></main>\
            <script type=\"application/json\" id=\"ungil-summary\">\
            {\"a\": \"\\u003c/script\\u003e\"}</script><script>paint()</script>\
            <script type=\"application/octet-stream\" id=\"ungil-block-0\">/w==</script>\n</html>";
        assert_eq!(String::from_utf8(page).unwrap(), expected);
    }

    #[test]
    fn a_shell_without_a_place_or_with_one_twice_is_none() {
        for marker in [TITLE, SUMMARY, BLOCKS] {
            assert!(Shell::parse(&SHELL.replace(marker, "")).is_none());
        }
        assert!(Shell::parse(&format!("{SHELL}{BLOCKS}")).is_none());
    }

    proptest! {
        #[test]
        fn json_means_the_same_and_has_no_markup(text: String) {
            let escaped = escaped_json(&serde_json::to_string(&text).unwrap());
            let has_markup = escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
            prop_assert!(!has_markup);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
