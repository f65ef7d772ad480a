//! Tests of: pages.
