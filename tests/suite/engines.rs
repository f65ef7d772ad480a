//! Tests of: engines.
