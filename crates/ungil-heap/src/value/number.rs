//! Numbers, in one form for all that are equal, whatever their types.

use std::borrow::Cow;

use super::Value;

/// A number in the one form that all numbers equal to it have.
#[derive(Debug, PartialEq)]
pub(super) enum Number<'a> {
    /// Any integer of 64 bits, whatever its type.
    Int(i64),
    /// An integer beyond, without zeros at its end.
    Big { negative: bool, magnitude: Cow<'a, [u8]> },
    /// Not an integer.
    Real(f64),
    /// Not on the real axis.
    Complex(f64, f64),
}

/// The number that a value is, if it is one.
#[inline]
pub(super) fn number<'v>(value: &'v Value) -> Option<Number<'v>> {
    Some(match value {
        Value::Bool(flag) => Number::Int((*flag).into()),
        Value::Int(number) => Number::Int(*number),
        Value::BigInt { negative, magnitude } => integer(*negative, magnitude),
        Value::Float(number) => real(*number),
        // Also -0.0; a NaN there is not zero.
        Value::Complex(number, imaginary) if *imaginary == 0.0 => real(*number),
        Value::Complex(number, imaginary) => Number::Complex(*number, *imaginary),
        _ => return None,
    })
}

/// An integer by its sign and magnitude, least significant byte first.
pub(super) fn integer(negative: bool, magnitude: &[u8]) -> Number<'_> {
    let magnitude = trimmed(magnitude);
    let mut bytes = [0; 8];
    if let Some(low) = bytes.get_mut(..magnitude.len()) {
        low.copy_from_slice(magnitude);
        let size = i128::from(u64::from_le_bytes(bytes));
        if let Ok(number) = i64::try_from(if negative { -size } else { size }) {
            return Number::Int(number);
        }
    }
    Number::Big { negative, magnitude: Cow::Borrowed(magnitude) }
}

/// A magnitude without zeros at its most significant end.
pub(super) fn trimmed(magnitude: &[u8]) -> &[u8] {
    let zeros = magnitude.iter().rev().take_while(|byte| **byte == 0).count();
    &magnitude[..magnitude.len() - zeros]
}

/// 2⁶³, beyond the largest integer of 64 bits.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;
/// Bits of a float's mantissa that are stored.
const MANTISSA: u32 = 52;

pub(super) fn real<'v>(number: f64) -> Number<'v> {
    if !number.is_finite() || number.fract() != 0.0 {
        return Number::Real(number);
    }
    if (-LIMIT..LIMIT).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "it was just checked")]
        return Number::Int(number as i64);
    }
    // An integer: its mantissa, shifted to the left by whole bytes and then by bits.
    let bits = number.abs().to_bits();
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let exponent = usize::try_from(bits >> MANTISSA).unwrap_or(0);
    let shift = exponent.saturating_sub(1023 + MANTISSA as usize);
    let mut magnitude = vec![0; shift / 8];
    magnitude.extend_from_slice(&(u128::from(mantissa) << (shift % 8)).to_le_bytes());
    magnitude.truncate(trimmed(&magnitude).len());
    Number::Big { negative: number < 0.0, magnitude: Cow::Owned(magnitude) }
}

impl Value<'_> {
    /// The integer with this sign and magnitude (least significant byte first), in its only
    /// canonical form: [`Value::Int`] if it fits.
    pub fn integer(negative: bool, magnitude: &[u8]) -> Value<'_> {
        match integer(negative, magnitude) {
            Number::Int(number) => Value::Int(number),
            _ => Value::BigInt { negative, magnitude: Cow::Borrowed(trimmed(magnitude)) },
        }
    }
}
