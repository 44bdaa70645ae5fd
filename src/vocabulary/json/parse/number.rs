//! Number literals. The spelling decides the type: digits alone are an integer.

use super::super::{Double, Integer, Json, JsonError, JsonErrorKind};
use super::Parser;

impl Parser<'_> {
    /// A number, which starts here with a minus sign or a digit.
    ///
    /// One that the end of the text cuts `inside` an array or object is not judged by its size,
    /// for a fraction or an exponent may have followed.
    pub(super) fn number(&mut self, inside: bool) -> Result<Json, JsonError> {
        let start = self.at;
        let negative = self.eat(b'-');
        let magnitude = self.whole_part()?;
        let has_fraction = self.fraction()?;
        let has_exponent = self.exponent()?;
        let number = if has_fraction || has_exponent {
            double(self.since(start)?).map(Json::Double)
        } else {
            magnitude.and_then(|magnitude| integer(negative, magnitude)).map(Json::Integer)
        };
        if number.is_none() && inside && self.peek().is_none() {
            return Err(self.error(JsonErrorKind::Unterminated));
        }
        number.ok_or(JsonErrorKind::NumberOutOfRange.at(start))
    }

    /// The digits before fraction and exponent, as a number; `None` above `u64::MAX`.
    fn whole_part(&mut self) -> Result<Option<u64>, JsonError> {
        let starts_with_zero = self.peek() == Some(b'0');
        let start = self.at;
        let magnitude = self.digits()?;
        if starts_with_zero && self.at > start + 1 {
            return Err(JsonErrorKind::Syntax.at(start + 1));
        }
        Ok(magnitude)
    }

    fn fraction(&mut self) -> Result<bool, JsonError> {
        if !self.eat(b'.') {
            return Ok(false);
        }
        self.digits().map(|_| true)
    }

    fn exponent(&mut self) -> Result<bool, JsonError> {
        if !(self.eat(b'e') || self.eat(b'E')) {
            return Ok(false);
        }
        let _signed = self.eat(b'+') || self.eat(b'-');
        self.digits().map(|_| true)
    }

    /// One digit or more, as a number; `None` above `u64::MAX`.
    fn digits(&mut self) -> Result<Option<u64>, JsonError> {
        let start = self.at;
        let mut number = Some(0_u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number
                .and_then(|number| number.checked_mul(10))
                .and_then(|number| number.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected()) } else { Ok(number) }
    }
}

/// `None` below `i64::MIN`.
fn integer(negative: bool, magnitude: u64) -> Option<Integer> {
    if negative { 0_i64.checked_sub_unsigned(magnitude).map(Integer::from) } else { Some(Integer::from(magnitude)) }
}

/// The double nearest to a well-formed literal.
///
/// `None` if that is infinite, or zero though the literal is not: both would stand for a number
/// that nobody wrote.
fn double(literal: &str) -> Option<Double> {
    let value: f64 = literal.parse().ok()?;
    let mut significand = literal.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    if value == 0.0 && significand.any(|byte| matches!(byte, b'1'..=b'9')) {
        return None;
    }
    Double::try_from(value).ok()
}
