//! Tests of: errors.
