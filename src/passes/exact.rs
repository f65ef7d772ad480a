//! `exact`: marks what a later operation can tell to the last bit.
//!
//! In comes any program; out goes the same one with operations marked `exact`, which no other pass computes in another way.
//! Never true here: an operation changes, or a mark that was there goes.
//!
//! A comparison, a `spike`, `floor`, `ceil`, a root or logarithm of what may not be positive, a division by what may cancel to 0, the
//! counter of a draw, both operands of `poisson`, the place in a series and the number of steps back all *tell*: a sum of exactly 0 and one that
//! rounds to 1e-17 lead to results that have nothing to do with each other. What they read is exact, and what that was computed from, back to where a
//! field is read. And so is a difference of a value and what has that value in some cases, as `max(v, vt) - vt` or `abs(x) - x`: it is 0 then,
//! however large the value is. (Fields carry roundings from step to step as it is; a new state that is compared before it is stored is such a field
//! still, because this pass runs before regions are fused.) `init` is exact as a whole: it runs once, and what it stores is compared by others.
//!
//! Which divisors may cancel is decided by the values that parameters have now (their signs, and whether a divisor is 0). If a user of
//! the kernel turns a sign round, a 0/0 that was not foreseen may come out as a large number instead of NaN; no other result
//! depends on that.

use super::ranges::{self, Range};
use super::{Options, fields};
use crate::step::{
    BinaryOp, Field, FieldId, Function, Op, OpClass, OpKind, Program, Role, UnaryOp, Value, ValueId, eval,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, options: &Options) {
    let now = fields::values_now(program, options);
    fields::each_function(program, |program, function| {
        let told = match function.role {
            Role::Init => function.ops().filter_map(|op| op.result).collect(),
            Role::Step | Role::Observe => told(function, &program.fields, &now),
        };
        for op in function.regions_mut().flat_map(|r| &mut r.ops) {
            // What is read, drawn or written down cannot be computed in another way.
            let computed = op.kind.class() == OpClass::Pure;
            op.exact |= op.result.is_some_and(|v| told.contains(&v)) && computed;
        }
    });
}

/// The values whose bits some operation can tell.
fn told(function: &Function, fields: &[Field], now: &HashMap<FieldId, f64>) -> HashSet<ValueId> {
    let known = Known::of(function, fields, now);
    let mut waiting: Vec<ValueId> = function.ops().flat_map(|op| known.tells(op)).collect();
    let mut told = HashSet::default();
    while let Some(value) = waiting.pop() {
        if told.insert(value)
            && let Some(kind) = known.defs.get(&value)
        {
            waiting.extend(kind.operands());
        }
    }
    told
}

/// What is known of the values of a function.
struct Known {
    defs: HashMap<ValueId, OpKind>,
    ranges: HashMap<ValueId, Range>,
    /// The same if parameters keep the signs that they have now.
    likely: HashMap<ValueId, Range>,
    /// The values that can then be exactly 0 though nothing underflows.
    vanishing: HashSet<ValueId>,
    /// What parameters that are known now make of values that do not vary.
    numbers: HashMap<ValueId, Value>,
}

impl Known {
    fn of(function: &Function, fields: &[Field], now: &HashMap<FieldId, f64>) -> Known {
        let mut known = Known {
            defs: HashMap::default(),
            ranges: HashMap::default(),
            likely: HashMap::default(),
            vanishing: HashSet::default(),
            numbers: HashMap::default(),
        };
        for op in function.ops() {
            let Some(id) = op.result else { continue };
            known.defs.insert(id, op.kind);
            known.ranges.insert(id, ranges::of(&op.kind, fields, |v| known.ranges[&v]));
            let number = known.value_now(&op.kind, now);
            let sign = number.and_then(Value::real).and_then(Range::of_sign);
            known.numbers.extend(number.map(|number| (id, number)));
            let range = ranges::of(&op.kind, fields, |v| known.likely[&v]);
            let likely = sign.map_or(range, |sign| range.within(sign));
            known.likely.insert(id, likely);
            if !likely.excludes_zero() && known.may_vanish(&op.kind) {
                known.vanishing.insert(id);
            }
        }
        known
    }

    /// The value of an operation on what does not vary.
    fn value_now(&self, kind: &OpKind, now: &HashMap<FieldId, f64>) -> Option<Value> {
        if let OpKind::Field(f) = kind {
            return now.get(f).copied().map(Value::Real);
        }
        let operands: Option<Vec<Value>> = kind.operands().iter().map(|v| self.numbers.get(v).copied()).collect();
        eval(kind, &operands?)
    }

    fn number(&self, v: ValueId) -> Option<f64> {
        if let Some(OpKind::Const(c)) = self.defs.get(&v) { Some(*c) } else { None }
    }

    /// The values that an operation tells, itself among them if it is a comparison.
    fn tells(&self, op: &Op) -> Vec<ValueId> {
        match op.kind {
            OpKind::Unary(UnaryOp::Floor | UnaryOp::Ceil, a) | OpKind::Draw(_, _, a) => vec![a],
            OpKind::Sample(_, a) | OpKind::Back(_, _, a) => vec![a],
            OpKind::Spike(_, a) | OpKind::SpikeBy(a, _) => op.result.into_iter().chain([a]).collect(),
            OpKind::Unary(UnaryOp::Sqrt | UnaryOp::Ln | UnaryOp::Log2 | UnaryOp::Log10, a) => self.unless_positive(a),
            OpKind::Unary(..) => vec![],
            OpKind::Binary(op_, a, b) => match op_ {
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
                    op.result.into_iter().chain([a, b]).collect()
                }
                BinaryOp::Div if self.is_zero_now(b) => op.result.into_iter().chain([a, b]).collect(),
                // What may be 0 over what may be nearly 0 is anything, or 0.
                BinaryOp::Div if self.vanishing.contains(&b) => {
                    [b].into_iter().chain(self.vanishing.get(&a).copied()).collect()
                }
                BinaryOp::Div => vec![],
                BinaryOp::Pow => match self.number(b) {
                    Some(n) if n.fract() == 0.0 && n >= 0.0 => vec![],
                    Some(_) => self.unless_positive(a),
                    None => self.unless_positive(a).into_iter().chain([b]).collect(),
                },
                BinaryOp::Poisson => vec![a, b],
                BinaryOp::Add | BinaryOp::Sub if self.cancel(a, b) => op.result.into_iter().chain([a, b]).collect(),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::And
                | BinaryOp::Or => vec![],
            },
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::Gather(..)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Approximate(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => vec![],
        }
    }

    /// Can two values be the same, or opposite, because one of them may be the other?
    fn cancel(&self, a: ValueId, b: ValueId) -> bool {
        let (mut of_a, mut of_b) = (HashSet::default(), HashSet::default());
        self.choices(a, &mut of_a);
        self.choices(b, &mut of_b);
        // Values that are what they are cancel nowhere, or everywhere.
        (of_a.len() > 1 || of_b.len() > 1) && of_a.iter().any(|v| of_b.contains(v) && self.number(*v) != Some(0.0))
    }

    /// The values, but for their signs, of which a value is one.
    fn choices(&self, v: ValueId, all: &mut HashSet<ValueId>) {
        const MOST: usize = 16;
        let signless = self.signless(v);
        if all.len() >= MOST || !all.insert(signless) {
            return;
        }
        match self.defs.get(&signless) {
            Some(OpKind::Binary(BinaryOp::Min | BinaryOp::Max, x, y) | OpKind::Select(_, x, y)) => {
                self.choices(*x, all);
                self.choices(*y, all);
            }
            Some(OpKind::Unary(UnaryOp::Abs | UnaryOp::Finite, x)) => self.choices(*x, all),
            Some(_) | None => {}
        }
    }

    /// What a value is the opposite of, if it is written so.
    fn signless(&self, v: ValueId) -> ValueId {
        match self.defs.get(&v) {
            Some(OpKind::Unary(UnaryOp::Neg, x)) => self.signless(*x),
            Some(_) | None => v,
        }
    }

    /// A divisor without a reciprocal, such as a slope factor of 0 that makes a step of a sigmoid.
    fn is_zero_now(&self, v: ValueId) -> bool {
        self.numbers.get(&v).and_then(|n| n.real()).is_some_and(|x| !(1.0 / x).is_normal())
    }

    fn unless_positive(&self, v: ValueId) -> Vec<ValueId> {
        if self.ranges[&v].positive() { vec![] } else { vec![v] }
    }

    /// Can the value be exactly 0 because terms cancel, or because a function is 0 at some place?
    fn may_vanish(&self, kind: &OpKind) -> bool {
        let vanishes = |v: ValueId| self.vanishing.contains(&v);
        match *kind {
            OpKind::Const(c) => c == 0.0,
            // Positive wherever they do not underflow.
            OpKind::Unary(
                UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Exp2rel
                | UnaryOp::Cosh
                | UnaryOp::Linoid
                | UnaryOp::Nonzero
                | UnaryOp::Not,
                _,
            ) => false,
            OpKind::Unary(
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sqrt | UnaryOp::Finite | UnaryOp::Narrow | UnaryOp::Widen,
                a,
            ) => vanishes(a),
            OpKind::Unary(
                UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Expm1
                | UnaryOp::Exp2m1
                | UnaryOp::Ln
                | UnaryOp::Log2
                | UnaryOp::Log10
                | UnaryOp::Sin
                | UnaryOp::Cos
                | UnaryOp::Tan
                | UnaryOp::Sinh
                | UnaryOp::Tanh,
                _,
            )
            | OpKind::Approximate(..)
            | OpKind::Binary(BinaryOp::Poisson, ..) => true,
            OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                !ranges::same_sign(kind, |v| self.likely[&v]) || vanishes(a) && vanishes(b)
            }
            OpKind::Fma(a, b, c) => {
                !ranges::same_sign(kind, |v| self.likely[&v]) || (vanishes(a) || vanishes(b)) && vanishes(c)
            }
            OpKind::Binary(BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, a, b) | OpKind::Select(_, a, b) => {
                vanishes(a) || vanishes(b)
            }
            OpKind::Binary(BinaryOp::Div | BinaryOp::Pow, a, _) => vanishes(a),
            OpKind::Binary(
                BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::And
                | BinaryOp::Or,
                ..,
            )
            | OpKind::Bool(_)
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => false,
            // What is read may be anything.
            OpKind::Field(_)
            | OpKind::Gather(..)
            | OpKind::Back(..)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Draw(..)
            | OpKind::Sample(..) => true,
        }
    }
}
