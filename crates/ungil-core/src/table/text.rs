//! Texts in words that are read while they are written.

use crate::atomic::{AtomicU64, Ordering};

/// Stores `text` into NUL-padded words, cut to fit with one NUL at least.
pub fn store_text(words: &[AtomicU64], text: &[u8]) {
    store_bytes(words, &text[..text.len().min(words.len() * 8 - 1)]);
}

/// Stores `bytes` into NUL-padded words, cut to fit.
pub fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let mut parts = bytes.chunks(8);
    for word in words {
        let part = parts.next().unwrap_or_default();
        let mut padded = [0; 8];
        padded[..part.len()].copy_from_slice(part);
        word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
    }
}

/// The bytes in words, padding included.
pub fn load_bytes(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
}

/// The text in NUL-padded words.
pub fn load_text(words: &[AtomicU64]) -> String {
    let bytes = load_bytes(words);
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_fit_and_comes_back() {
        let words = [const { AtomicU64::new(u64::MAX) }; 2];
        store_text(&words, b"worker-1");
        assert_eq!(load_text(&words), "worker-1");
        store_text(&words, b"a name that is far too long");
        assert_eq!(load_text(&words), "a name that is ");
        store_text(&words, b"");
        assert_eq!(load_text(&words), "");
    }
}
