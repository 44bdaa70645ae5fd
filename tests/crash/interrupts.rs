//! stub
use crate::suite::Test;
pub(crate) const TESTS: &[Test] = &[];
