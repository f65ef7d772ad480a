//! Arithmetic: the operations that sums, products and quotients are made of.
//!
//! In comes an operation; out goes what it is as arithmetic, for rules that know nothing else.
//! Never true here: an operation that rules of arithmetic must not look into (the smaller of two numbers, a function) is one of these.

use crate::step::{BinaryOp, OpKind, UnaryOp, ValueId};

/// An operation of arithmetic.
#[derive(Debug, Clone, Copy)]
pub enum Arithmetic {
    /// `-a`
    Neg(ValueId),
    /// `a + b`
    Add(ValueId, ValueId),
    /// `a - b`
    Sub(ValueId, ValueId),
    /// `a * b`
    Mul(ValueId, ValueId),
    /// `a / b`
    Div(ValueId, ValueId),
    /// `a * b + c`
    Fma(ValueId, ValueId, ValueId),
}

/// What an operation is as arithmetic, if it is that.
pub fn arithmetic(kind: OpKind) -> Option<Arithmetic> {
    if let OpKind::Unary(UnaryOp::Neg, a) = kind {
        return Some(Arithmetic::Neg(a));
    }
    if let OpKind::Fma(a, b, c) = kind {
        return Some(Arithmetic::Fma(a, b, c));
    }
    let OpKind::Binary(op, a, b) = kind else { return None };
    match op {
        BinaryOp::Add => Some(Arithmetic::Add(a, b)),
        BinaryOp::Sub => Some(Arithmetic::Sub(a, b)),
        BinaryOp::Mul => Some(Arithmetic::Mul(a, b)),
        BinaryOp::Div => Some(Arithmetic::Div(a, b)),
        BinaryOp::Pow
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Poisson => None,
    }
}
