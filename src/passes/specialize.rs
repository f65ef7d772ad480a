//! `specialize`: parameters that are known now become constants.
//!
//! In come any program and [`Options::uniforms`]; out goes the program with each read of such a field replaced by its
//! value.
//! Never true here: a field is removed (`dce` does that), or `dt` stops to exist because its value is known.

use super::{Options, fields};
use crate::step::{FieldKind, OpKind, Program};
use std::collections::HashMap;

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let given = options.uniforms.iter().filter(|(name, _)| is_uniform(program, name));
    let values: HashMap<_, _> = given.filter_map(|(name, x)| Some((program.find_field(name)?, *x))).collect();
    for op in fields::ops_mut(program) {
        if let OpKind::Field(field) = op.kind
            && let Some(&value) = values.get(&field)
        {
            op.kind = OpKind::Const(value);
        }
    }
}

/// Does a program have a uniform of this name?
pub fn is_uniform(program: &Program, name: &str) -> bool {
    program.find_field(name).is_some_and(|f| program.field(f).kind == FieldKind::Uniform)
}
