//! `specialize`: parameters that are known now become constants.
//!
//! In come any program and [`Options::uniforms`]; out goes the program with each read of such a field replaced by its
//! value.
//! Never true here: a field is removed (`dce` does that), or `dt` stops to exist because its value is known.

use super::{Options, fields};
use crate::step::{OpKind, Program};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let values = fields::values_now(program, options);
    for op in fields::ops_mut(program) {
        if let OpKind::Field(field) = op.kind
            && let Some(&value) = values.get(&field)
        {
            op.kind = OpKind::Const(value);
        }
    }
}
