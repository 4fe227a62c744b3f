//! What a reader waits for.

/// What a reader waits for.
#[derive(Clone, Debug)]
pub enum Until {
    /// Something, but not more than this.
    AtMost(usize),
    /// This much.
    Exactly(usize),
    /// The end of what there is.
    End,
    /// Certain bytes.
    Separator {
        /// These, at least one.
        separator: Vec<u8>,
        /// Within so many.
        limit: usize,
        /// Whether what there is will do at the end, without them.
        or_end: bool,
    },
}

impl Until {
    /// How much of what has arrived belongs to it, if that is enough. `seen` was looked at before.
    pub fn found(&self, arrived: &[u8], seen: usize) -> Option<usize> {
        match self {
            Self::AtMost(0) => Some(0),
            Self::AtMost(most) => (!arrived.is_empty()).then_some(arrived.len().min(*most)),
            Self::Exactly(count) => (*count <= arrived.len()).then_some(*count),
            Self::End => None,
            Self::Separator { separator, .. } => {
                // It may have begun in what was seen.
                let from = seen.saturating_sub(separator.len() - 1);
                let rest = &arrived[from..];
                let at = match separator.as_slice() {
                    [byte] => rest.iter().position(|other| other == byte),
                    several => rest.windows(several.len()).position(|part| part == several),
                };
                at.map(|at| from + at + separator.len())
            }
        }
    }

    /// Whether what has arrived before the end will do; else the sentence says what is missing.
    pub fn is_found_by_end(&self, arrived: usize) -> Result<(), String> {
        match self {
            Self::Exactly(wanted) => Err(format!("after {arrived} of {wanted} bytes")),
            Self::Separator { or_end: false, separator, .. } => {
                Err(format!("after {arrived} bytes without \"{}\"", separator.escape_ascii()))
            }
            _ => Ok(()),
        }
    }

    /// The limit, if so many bytes without an end are more than that.
    pub fn is_beyond(&self, arrived: usize) -> Option<usize> {
        match self {
            Self::Separator { limit, .. } if arrived > *limit => Some(*limit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn separator(text: &[u8]) -> Until {
        Until::Separator { separator: text.to_vec(), limit: 10, or_end: false }
    }

    proptest! {
        #[test]
        fn a_separator_is_found_at_the_same_place_however_it_arrives(
            bytes in prop::collection::vec(0..3_u8, 0..40),
            wanted in prop::collection::vec(0..3_u8, 1..4),
            cuts in prop::collection::vec(0..40_usize, 0..6),
        ) {
            let until = separator(&wanted);
            let whole = until.found(&bytes, 0);
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            ends.push(bytes.len());
            ends.sort_unstable();
            let (mut seen, mut found) = (0, None);
            for end in ends {
                found = until.found(&bytes[..end], seen);
                if found.is_some() {
                    break;
                }
                seen = end;
            }
            prop_assert_eq!(found, whole);
        }
    }

    #[test]
    fn what_is_asked_for_is_neither_more_nor_less() {
        assert_eq!(Until::AtMost(0).found(b"", 0), Some(0));
        assert_eq!(Until::AtMost(3).found(b"", 0), None);
        assert_eq!(Until::AtMost(3).found(b"abcd", 0), Some(3));
        assert_eq!(Until::AtMost(9).found(b"ab", 0), Some(2));
        assert_eq!(Until::Exactly(3).found(b"ab", 2), None);
        assert_eq!(Until::Exactly(3).found(b"abcd", 2), Some(3));
        assert_eq!(Until::End.found(b"abcd", 0), None);
    }

    #[test]
    fn an_end_before_the_end_is_told_with_what_was_missing() {
        assert_eq!(Until::Exactly(3).is_found_by_end(2), Err("after 2 of 3 bytes".into()));
        let why = separator(b"\r\n").is_found_by_end(7);
        assert_eq!(why, Err("after 7 bytes without \"\\r\\n\"".into()));
        let line = Until::Separator { separator: b"\n".to_vec(), limit: 10, or_end: true };
        assert_eq!(line.is_found_by_end(7), Ok(()));
        assert_eq!(Until::End.is_found_by_end(7), Ok(()));
    }

    #[test]
    fn only_what_has_a_limit_can_be_beyond_it() {
        assert_eq!(separator(b"\n").is_beyond(10), None);
        assert_eq!(separator(b"\n").is_beyond(11), Some(10));
        assert_eq!(Until::End.is_beyond(usize::MAX), None);
    }
}
