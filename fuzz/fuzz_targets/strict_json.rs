//! A payload, beside `serde_json`. What must hold: `portcullis_fuzz::strict_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portcullis_fuzz::strict_json::check(bytes));

libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8], size: usize, size_max: usize, seed: u32| {
    portcullis_fuzz::mutator::mutate(&mut bytes[..size_max], size, seed)
        .unwrap_or_else(|| libfuzzer_sys::fuzzer_mutate(bytes, size, size_max))
});
