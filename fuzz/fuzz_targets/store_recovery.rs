//! Damage to a store's file. What must hold: `portcullis_fuzz::store_recovery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portcullis_fuzz::store_recovery::check(bytes));
