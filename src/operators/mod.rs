//! Operators on single values, which expressions of the continuous model and operations of the step IR share.
//!
//! In come an operator and its operands; out go types and the result, bit for bit what the runtime computes in one lane.
//! Never true here: a field, a cell, a time or a unit is known, or an ill-typed operand is guessed at (the result is `None`).

mod eval;
pub mod rows;

use crate::runtime::rng::Draw;

pub use eval::{Value, eval_binary, eval_fma, eval_series, eval_unary};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// A real number.
    Real,
    /// A real number of single precision, between [`UnaryOp::Narrow`] and [`UnaryOp::Widen`].
    Single,
    /// A truth value.
    Mask,
}

/// A standard distribution; scale and shift are ordinary arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Uniform in [0, 1).
    Uniform,
    /// Normal, mean 0, standard deviation 1.
    Normal,
    /// Exponential, mean 1.
    Exponential,
}

impl Distribution {
    /// The standard draw that belongs to an index and a step.
    pub fn draw(self, from: Draw, index: u32, step: u64) -> f64 {
        match self {
            Distribution::Uniform => from.uniform(index, step),
            Distribution::Normal => from.normal(index, step),
            Distribution::Exponential => from.exponential(index, step),
        }
    }
}

/// What differentiation takes for the derivative of a spike at `x`, with a slope `k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Surrogate {
    /// None: the derivative is 0.
    None,
    /// `1 / (1 + k |x|)^2`
    FastSigmoid(f64),
    /// `1 / (1 + (k x)^2)`
    Arctan(f64),
    /// `4 s (1 - s)` with `s = 1 / (1 + exp(-k x))`
    Sigmoid(f64),
    /// `max(0, 1 - k |x|)`
    Triangular(f64),
    /// 1
    StraightThrough,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the functions' own
pub enum UnaryOp {
    Neg,
    Abs,
    Sqrt,
    Floor,
    Ceil,
    Exp,
    /// `2^x`
    Exp2,
    /// `e^x - 1`, accurate near 0.
    Expm1,
    /// `2^x - 1`, accurate near 0.
    Exp2m1,
    /// `(2^x - 1) / x`, ln 2 at 0.
    Exp2rel,
    Ln,
    Log2,
    Log10,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    /// `x / (e^x - 1)`, 1 at 0.
    Linoid,
    /// The number itself, but 2^-60 for zeros: what may be divided by.
    Nonzero,
    /// The number itself, but 0 for infinities and NaN.
    Finite,
    /// The nearest number of single precision.
    Narrow,
    /// The same number in double precision.
    Widen,
    /// Logical not.
    Not,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the operations' own
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
    /// Of a uniform number and a mean, the number of a Poisson distribution ([`crate::runtime::math::poisson`]).
    Poisson,
}

impl UnaryOp {
    /// Every operator with its name in the text form.
    pub const ALL: &'static [(UnaryOp, &'static str)] = &[
        (UnaryOp::Neg, "neg"),
        (UnaryOp::Abs, "abs"),
        (UnaryOp::Sqrt, "sqrt"),
        (UnaryOp::Floor, "floor"),
        (UnaryOp::Ceil, "ceil"),
        (UnaryOp::Exp, "exp"),
        (UnaryOp::Exp2, "exp2"),
        (UnaryOp::Expm1, "expm1"),
        (UnaryOp::Exp2m1, "exp2m1"),
        (UnaryOp::Exp2rel, "exp2rel"),
        (UnaryOp::Ln, "ln"),
        (UnaryOp::Log2, "log2"),
        (UnaryOp::Log10, "log10"),
        (UnaryOp::Sin, "sin"),
        (UnaryOp::Cos, "cos"),
        (UnaryOp::Tan, "tan"),
        (UnaryOp::Sinh, "sinh"),
        (UnaryOp::Cosh, "cosh"),
        (UnaryOp::Tanh, "tanh"),
        (UnaryOp::Linoid, "linoid"),
        (UnaryOp::Nonzero, "nonzero"),
        (UnaryOp::Finite, "finite"),
        (UnaryOp::Narrow, "narrow"),
        (UnaryOp::Widen, "widen"),
        (UnaryOp::Not, "not"),
    ];

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        // ALL is in the order of the declaration; a test checks it.
        UnaryOp::ALL[self as usize].1
    }

    /// `(operand, result)`; those from reals to reals work on singles too, and give one.
    pub fn types(self) -> (Type, Type) {
        match self {
            UnaryOp::Not => (Type::Mask, Type::Mask),
            UnaryOp::Narrow => (Type::Real, Type::Single),
            UnaryOp::Widen => (Type::Single, Type::Real),
            UnaryOp::Neg
            | UnaryOp::Abs
            | UnaryOp::Sqrt
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Exp2m1
            | UnaryOp::Exp2rel
            | UnaryOp::Ln
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh
            | UnaryOp::Linoid
            | UnaryOp::Nonzero
            | UnaryOp::Finite => (Type::Real, Type::Real),
        }
    }
}

impl BinaryOp {
    /// Every operator with its name in the text form.
    pub const ALL: &'static [(BinaryOp, &'static str)] = &[
        (BinaryOp::Add, "add"),
        (BinaryOp::Sub, "sub"),
        (BinaryOp::Mul, "mul"),
        (BinaryOp::Div, "div"),
        (BinaryOp::Pow, "pow"),
        (BinaryOp::Min, "min"),
        (BinaryOp::Max, "max"),
        (BinaryOp::Lt, "lt"),
        (BinaryOp::Le, "le"),
        (BinaryOp::Gt, "gt"),
        (BinaryOp::Ge, "ge"),
        (BinaryOp::Eq, "eq"),
        (BinaryOp::Ne, "ne"),
        (BinaryOp::And, "and"),
        (BinaryOp::Or, "or"),
        (BinaryOp::Poisson, "poisson"),
    ];

    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        // ALL is in the order of the declaration; a test checks it.
        BinaryOp::ALL[self as usize].1
    }

    /// `(both operands, result)`; those from reals to reals work on two singles too, and give one.
    pub fn types(self) -> (Type, Type) {
        match self {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Pow
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Poisson => (Type::Real, Type::Real),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
                (Type::Real, Type::Mask)
            }
            BinaryOp::And | BinaryOp::Or => (Type::Mask, Type::Mask),
        }
    }
}
