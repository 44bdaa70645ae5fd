//! Success and fallback can be built from their proofs alone (SPEC 3): forging them does not compile, and
//! beside each forgery stands a twin that does. Tried on the bare core: they do not depend on features, and the
//! compiler would check everything that the others draw in once more.

#[test]
fn proofs_cannot_be_forged_from_outside() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/forbidden/*.rs");
    cases.pass("tests/allowed/*.rs");
}
