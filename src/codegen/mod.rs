//! Code generation: from a verified step program to source text.
//!
//! In comes a [`crate::step::Verified`] program; out goes a [`plan::Plan`], and from it the text of an emitter.
//! Never true here: an emitter decides about layout, order, precision or threads; the plan has.

pub mod plan;
pub mod rust;
pub mod stablehlo;
