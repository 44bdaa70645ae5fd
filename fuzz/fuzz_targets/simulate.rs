//! Inputs for the engine, raw or chosen. What must hold: `portcullis_fuzz::simulate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portcullis_fuzz::simulate::check(bytes));

libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8], size: usize, size_max: usize, seed: u32| {
    portcullis_fuzz::mutator::mutate(&mut bytes[..size_max], size, seed)
        .unwrap_or_else(|| libfuzzer_sys::fuzzer_mutate(bytes, size, size_max))
});
