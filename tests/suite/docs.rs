//! Tests of: docs.
