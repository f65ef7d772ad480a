//! Tests of: passes.
