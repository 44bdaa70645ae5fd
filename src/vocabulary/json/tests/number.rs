//! The two number types.

use proptest::prelude::*;

use super::super::*;
use super::hash_of;
use super::strategies::{any_double, any_integer};

const RANGE: std::ops::RangeInclusive<i128> = (i64::MIN as i128)..=(u64::MAX as i128);

proptest! {
    #[test]
    fn an_integer_is_made_exactly_of_the_numbers_in_range(
        value in prop_oneof![any::<i128>(), (-2_i128 << 63)..(2_i128 << 64)],
    ) {
        match Integer::try_from(value) {
            Ok(integer) => {
                prop_assert!(RANGE.contains(&value));
                prop_assert_eq!(i128::from(integer), value);
                prop_assert_eq!(integer.to_string(), value.to_string());
            }
            Err(IntegerOutOfRange) => prop_assert!(!RANGE.contains(&value)),
        }
    }

    #[test]
    fn integers_compare_as_numbers(one in any_integer(), other in any_integer()) {
        prop_assert_eq!(one.cmp(&other), i128::from(one).cmp(&i128::from(other)));
    }

    #[test]
    fn an_integer_is_a_machine_word_exactly_when_it_fits(integer in any_integer()) {
        prop_assert_eq!(integer.as_i64(), i64::try_from(i128::from(integer)).ok());
        prop_assert_eq!(integer.as_u64(), u64::try_from(i128::from(integer)).ok());
    }

    #[test]
    fn one_integer_has_one_form_whatever_it_was_made_from(value in any::<u32>()) {
        let made = [
            Integer::from(value),
            Integer::from(i64::from(value)),
            Integer::from(u64::from(value)),
            Integer::try_from(i128::from(value)).unwrap(),
        ];
        for integer in made {
            prop_assert_eq!(integer, made[0]);
            prop_assert_eq!(hash_of(&integer), hash_of(&made[0]));
        }
    }

    #[test]
    fn a_double_is_made_exactly_of_the_finite_ones(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        match Double::try_from(value) {
            Ok(double) => prop_assert_eq!(double.value().to_bits(), bits),
            Err(DoubleNotFinite) => prop_assert!(!value.is_finite()),
        }
    }

    #[test]
    fn doubles_compare_as_numbers_but_for_the_sign_of_zero(one in any_double(), other in any_double()) {
        let by_value = one.value().partial_cmp(&other.value()).unwrap();
        let by_sign = other.value().is_sign_negative().cmp(&one.value().is_sign_negative());
        prop_assert_eq!(one.cmp(&other), by_value.then(by_sign));
        prop_assert_eq!(one == other, one.cmp(&other).is_eq());
        if one == other {
            prop_assert_eq!(hash_of(&one), hash_of(&other));
        }
    }
}

#[test]
fn what_is_not_finite_is_no_double() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Double::try_from(value), Err(DoubleNotFinite));
    }
}

#[test]
fn the_two_zeros_differ() {
    let [minus, plus] = [-0.0, 0.0].map(|value| Double::try_from(value).unwrap());
    assert!(minus < plus);
    assert_ne!(minus, plus);
}
