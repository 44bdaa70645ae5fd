//! The canonical text: the examples of RFC 8785, and where ours is more exact.

use proptest::prelude::*;

use super::super::*;
use super::json;
use super::strategies::{any_double, any_integer, any_json, any_spelling};

proptest! {
    #[test]
    fn every_spelling_has_the_same_canonical_text((value, text) in any_spelling()) {
        prop_assert_eq!(json(&text).canonical(), value.canonical());
    }

    #[test]
    fn a_canonical_text_that_can_be_read_is_its_own_canonical_text(value in any_json()) {
        let canonical = value.canonical();
        match Json::parse(&canonical) {
            Ok(again) => prop_assert_eq!(again.canonical(), canonical),
            Err(error) => prop_assert_eq!(error.kind, JsonErrorKind::NumberOutOfRange),
        }
    }

    #[test]
    fn serde_json_reads_every_canonical_text(value in any_json()) {
        let canonical = value.canonical();
        let theirs = serde_json::from_str::<serde_json::Value>(&canonical);
        prop_assert!(theirs.is_ok(), "{}: {:?}", canonical, theirs);
    }

    #[test]
    fn different_integers_have_different_texts(one in any_integer(), other in any_integer()) {
        prop_assert_eq!(one == other, Json::from(one).canonical() == Json::from(other).canonical());
    }

    #[test]
    fn an_integer_and_a_double_share_a_text_exactly_when_they_are_equal(
        integer in any_integer(),
        double in any_double(),
    ) {
        // Rounding the integer may move it, so a pair near each other is tried as well.
        let nearest = Double::try_from(i128::from(integer) as f64).unwrap();
        for double in [double, nearest] {
            let equal = double.value().fract() == 0.0 && double.value() as i128 == i128::from(integer);
            let same_text = Json::from(integer).canonical() == Json::from(double).canonical();
            prop_assert_eq!(same_text, equal);
        }
    }

    #[test]
    fn a_canonical_double_is_the_same_number(double in any_double()) {
        let text = Json::from(double).canonical();
        prop_assert_eq!(text.parse::<f64>().unwrap(), double.value());
    }

    #[test]
    fn a_string_is_escaped_as_serde_json_escapes_it(text in any::<String>()) {
        let theirs = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(Json::from(text).canonical(), theirs);
    }
}

#[test]
fn the_sample_of_the_rfc_is_reproduced() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    assert_eq!(
        json(sample).canonical(),
        concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        )
    );
}

#[test]
fn keys_are_sorted_by_utf_16_code_units() {
    let sample = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    assert_eq!(
        json(sample).canonical(),
        concat!(
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",",
            "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",",
            "\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        )
    );
}

#[test]
fn the_number_samples_of_the_rfc_are_reproduced() {
    for (bits, text) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let double = Double::try_from(f64::from_bits(bits)).unwrap();
        assert_eq!(Json::from(double).canonical(), text);
    }
}

#[test]
fn one_and_one_point_zero_are_the_same_number() {
    assert_ne!(json("1"), json("1.0"));
    for text in ["1", "1.0", "10e-1", "0.1E1"] {
        assert_eq!(json(text).canonical(), "1");
    }
}

#[test]
fn numbers_beyond_two_to_the_53_keep_their_digits() {
    for text in ["9007199254740993", "-9007199254740993", "-9223372036854775808", "18446744073709551615"] {
        assert_eq!(json(text).canonical(), text);
    }
    // ECMAScript would write 9223372036854776000, which is the text of another integer.
    assert_eq!(json("9223372036854775808.0").canonical(), "9223372036854775808");
    assert_eq!(json("18446744073709551616.0").canonical(), "18446744073709552000");
}
