//! Numbers in as few bytes as they need: seven bits in each, the last one without the eighth.

/// Adds a number.
#[inline]
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits are meant")]
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is below 128")]
    bytes.push(number as u8);
}

/// Adds how far it is from one moment to another one, which may be earlier.
#[inline]
pub fn put_step(bytes: &mut Vec<u8>, from: u64, to: u64) {
    let step = to.wrapping_sub(from).cast_signed();
    put(bytes, (step << 1 ^ step >> 63).cast_unsigned());
}

/// Takes a number off the beginning.
#[inline]
pub fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Takes a moment off the beginning that was put as a step from `from`.
#[inline]
pub fn take_step(bytes: &mut &[u8], from: u64) -> u64 {
    let step = take(bytes);
    from.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(numbers: Vec<(u64, u64, u64)>) {
            let mut bytes = Vec::new();
            for &(number, from, to) in &numbers {
                put(&mut bytes, number);
                put_step(&mut bytes, from, to);
            }
            let mut rest = &bytes[..];
            for (number, from, to) in numbers {
                prop_assert_eq!((take(&mut rest), take_step(&mut rest, from)), (number, to));
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_step_of_eight_microseconds_either_way_takes_two_bytes() {
        for (from, to) in [(1 << 40, (1 << 40) + 8_191), (8_192, 0)] {
            let mut bytes = Vec::new();
            put_step(&mut bytes, from, to);
            assert_eq!(bytes.len(), 2);
        }
    }
}
