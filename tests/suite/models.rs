//! Tests of: models.
