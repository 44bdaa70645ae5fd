//! The two numbers of a payload: exact integers and finite doubles.
//!
//! They are kept apart because neither holds the other: a double loses integers beyond 2^53,
//! an integer loses fractions. The spelling decides which one a literal is.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

/// An exact integer in `i64::MIN..=u64::MAX`.
///
/// The range is what other JSON tools hold exactly in one of their two integer types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(Exact);

/// The machine word that holds an integer. One number has one form, so the derived order and
/// equality are those of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Exact {
    Signed(i64),
    /// Above `i64::MAX` only.
    Beyond(u64),
}

/// The integer lies outside `i64::MIN..=u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an integer must lie between -9223372036854775808 and 18446744073709551615")]
pub struct IntegerOutOfRange;

impl Integer {
    /// The value, if it fits.
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Exact::Signed(value) => Some(value),
            Exact::Beyond(_) => None,
        }
    }

    /// The value, if it fits.
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            Exact::Signed(value) => u64::try_from(value).ok(),
            Exact::Beyond(value) => Some(value),
        }
    }

    /// The exact sum, if it is in range.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::try_from(self.wide() + other.wide()).ok()
    }

    /// Wide enough for the sum of any two.
    fn wide(self) -> i128 {
        match self.0 {
            Exact::Signed(value) => value.into(),
            Exact::Beyond(value) => value.into(),
        }
    }

    /// The machine word that holds the value.
    pub(super) fn exact(self) -> Exact {
        self.0
    }
}

impl From<u32> for Integer {
    fn from(value: u32) -> Self {
        Integer(Exact::Signed(value.into()))
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Integer(Exact::Signed(value))
    }
}

impl From<u64> for Integer {
    fn from(value: u64) -> Self {
        Integer(i64::try_from(value).map_or(Exact::Beyond(value), Exact::Signed))
    }
}

impl TryFrom<i128> for Integer {
    type Error = IntegerOutOfRange;

    fn try_from(value: i128) -> Result<Self, IntegerOutOfRange> {
        if let Ok(signed) = i64::try_from(value) {
            return Ok(signed.into());
        }
        u64::try_from(value).map(Integer::from).map_err(|_| IntegerOutOfRange)
    }
}

impl From<Integer> for i128 {
    fn from(integer: Integer) -> Self {
        match integer.0 {
            Exact::Signed(value) => value.into(),
            Exact::Beyond(value) => value.into(),
        }
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Exact::Signed(value) => value.fmt(f),
            Exact::Beyond(value) => value.fmt(f),
        }
    }
}

impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A finite double. `-0.0` is kept and differs from `0.0`.
///
/// `Eq`, `Ord` and `Hash` follow the IEEE 754 total order, which on finite numbers is the
/// numeric order with `-0.0` below `0.0`.
#[derive(Clone, Copy)]
pub struct Double(f64);

/// The double is infinite or not a number; JSON has no word for either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a double must be finite")]
pub struct DoubleNotFinite;

impl Double {
    /// The number; always finite.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Double {
    type Error = DoubleNotFinite;

    fn try_from(value: f64) -> Result<Self, DoubleNotFinite> {
        if value.is_finite() { Ok(Double(value)) } else { Err(DoubleNotFinite) }
    }
}

impl PartialEq for Double {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Double {}

impl PartialOrd for Double {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Double {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Double {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The shortest digits that round-trip, laid out as ECMAScript does, with `.0` where that would
/// read as an integer, and `-0.0` for the zero that ECMAScript gives no sign.
impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = ryu_js::Buffer::new();
        let digits = buffer.format_finite(self.0);
        let sign = if self.0 == 0.0 && self.0.is_sign_negative() { "-" } else { "" };
        let fraction = if digits.contains(['.', 'e']) { "" } else { ".0" };
        write!(f, "{sign}{digits}{fraction}")
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
