//! The protobuf wire format: fields out, fields in.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>.
//! Reading borrows: a field is a slice of the input, so nothing is allocated on behalf of a file
//! before its content makes sense.

/// A message being written at the end of a buffer.
pub struct Message<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> Message<'a> {
    /// A message that begins where `bytes` ends.
    pub fn at_end_of(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes }
    }

    /// An integer, bool or enum field.
    #[inline]
    pub fn uint(&mut self, field: u32, value: u64) {
        put_varint(self.bytes, u64::from(field << 3));
        put_varint(self.bytes, value);
    }

    /// A bytes or string field.
    #[inline]
    pub fn bytes(&mut self, field: u32, value: impl AsRef<[u8]>) {
        put_varint(self.bytes, u64::from(field << 3 | 2));
        put_varint(self.bytes, value.as_ref().len() as u64);
        self.bytes.extend_from_slice(value.as_ref());
    }

    /// A field that is itself a message.
    #[inline]
    pub fn message(&mut self, field: u32, build: impl FnOnce(&mut Message)) {
        put_varint(self.bytes, u64::from(field << 3 | 2));
        // Nearly all messages are shorter than 128 bytes: one byte of length is left free, and a
        // longer message moves.
        let start = self.bytes.len() + 1;
        self.bytes.push(0);
        build(&mut Message { bytes: self.bytes });
        let length = self.bytes.len() - start;
        if let Ok(short @ ..0x80) = u8::try_from(length) {
            self.bytes[start - 1] = short;
        } else {
            let mut prefix = Vec::new();
            put_varint(&mut prefix, length as u64);
            self.bytes.splice(start - 1..start, prefix);
        }
    }

    /// Fields that were encoded before.
    #[inline]
    pub fn encoded(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time is the encoding")]
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    if value < 0x80 {
        return bytes.push(value as u8);
    }
    let mut encoded = [0; 10];
    let mut length = 0;
    while value >= 0x80 {
        encoded[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    encoded[length] = value as u8;
    bytes.extend_from_slice(&encoded[..=length]);
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer, bool or enum.
    Uint(u64),
    /// Bytes, a string or a message.
    Bytes(&'a [u8]),
    /// A fixed-width number; none of ours is.
    Fixed,
}

/// The bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The fields of an encoded message, in its order.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (index, &byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.0 = &self.0[index + 1..];
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let tag = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        let value = match tag & 7 {
            0 => Value::Uint(self.varint()?),
            1 => self.bytes(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Malformed> {
        Fields(bytes).collect()
    }

    #[test]
    fn the_examples_of_the_encoding_guide_come_out_byte_for_byte() {
        let mut bytes = Vec::new();
        Message::at_end_of(&mut bytes).uint(1, 150);
        assert_eq!(bytes, [0x08, 0x96, 0x01]);
        bytes.clear();
        Message::at_end_of(&mut bytes).bytes(2, "testing");
        assert_eq!(bytes, b"\x12\x07testing");
        bytes.clear();
        Message::at_end_of(&mut bytes).message(3, |inner| inner.uint(1, 150));
        assert_eq!(bytes, [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    proptest! {
        #[test]
        fn fields_come_back_in_order_whatever_their_size(
            first in 1u32..1 << 29, number: u64, text in prop::collection::vec(any::<u8>(), 0..400)
        ) {
            let mut bytes = Vec::new();
            let mut message = Message::at_end_of(&mut bytes);
            message.uint(first, number);
            message.message(7, |inner| inner.bytes(2, &text));
            let outer = fields(&bytes).unwrap();
            prop_assert_eq!(outer[0], (first, Value::Uint(number)));
            let (7, Value::Bytes(inner)) = outer[1] else { panic!("{outer:?}") };
            prop_assert_eq!(fields(inner).unwrap(), vec![(2, Value::Bytes(&text))]);
        }
    }

    #[test]
    fn groups_and_fields_cut_short_are_malformed() {
        for bytes in [&b"\x0b"[..], b"\x08", b"\x12\x07test", b"\x09\0\0\0", &[0xff; 11]] {
            assert_eq!(fields(bytes), Err(Malformed), "{bytes:?}");
        }
    }
}
