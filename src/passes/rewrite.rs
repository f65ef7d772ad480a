//! Rewriting a function, operation by operation.
//!
//! In come a function and a rule; out comes the function with every operation that the rule recognised renamed to the
//! value that the rule built in front of it, and without what nobody uses any more.
//! Never true here: an operation with an effect is moved, dropped or doubled.

use super::ranges::{self, Range};
use super::{cse, phase};
use crate::step::{
    BinaryOp, Field, FieldId, FieldKind, Function, Op, OpClass, OpKind, OriginId, Phase, Program, Rate, Region, Role,
    UnaryOp, ValueId,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::mem::{Discriminant, discriminant};

/// A pure operation as a key of value numbering: discriminant, payload, operands.
type Key = (Discriminant<OpKind>, [u64; 2], Vec<ValueId>);

/// What rules see of an exact operation: a leaf, which nothing can be made of but itself.
const OPAQUE: OpKind = OpKind::StepIndex;

/// A function under rewriting: what is known of every value, and the region being written.
pub struct Rewriter<'p> {
    fields: &'p [Field],
    role: Role,
    defs: HashMap<ValueId, OpKind>,
    phases: HashMap<ValueId, Phase>,
    ranges: HashMap<ValueId, Range>,
    uses: HashMap<ValueId, u32>,
    /// Values that become states.
    states: HashSet<ValueId>,
    /// Values of single precision.
    singles: HashSet<ValueId>,
    renamed: HashMap<ValueId, ValueId>,
    known: HashMap<Key, ValueId>,
    out: Vec<Op>,
    next: u32,
    origin: Option<OriginId>,
    place: usize,
    /// The phase, in this region, of what does not depend on time.
    timeless: Phase,
}

/// How often each value of a function is used.
pub fn uses(function: &Function) -> HashMap<ValueId, u32> {
    let mut uses = HashMap::default();
    for op in function.ops() {
        for v in op.kind.operands() {
            *uses.entry(v).or_insert(0) += 1;
        }
    }
    uses
}

/// The values that a function stores into states.
fn new_states(fields: &[Field], function: &Function) -> HashSet<ValueId> {
    let into_state = |f: FieldId| fields[f.0 as usize].kind == FieldKind::State;
    let stored = |op: &Op| if let OpKind::Store(f, v) = op.kind { into_state(f).then_some(v) } else { None };
    function.ops().filter_map(stored).collect()
}

/// Applies a rule to every operation of a function that defines a value, but for the exact ones. The rule gets the operation (its operands
/// already renamed) and the id it defined, and returns the value that replaces it, if any.
pub fn rewrite(
    program: &Program,
    function: &mut Function,
    mut rule: impl FnMut(&mut Rewriter<'_>, ValueId, OpKind) -> Option<ValueId>,
) {
    let mut rw = Rewriter {
        fields: &program.fields,
        role: function.role,
        defs: HashMap::default(),
        phases: HashMap::default(),
        ranges: HashMap::default(),
        uses: uses(function),
        states: new_states(&program.fields, function),
        singles: HashSet::default(),
        renamed: HashMap::default(),
        known: HashMap::default(),
        out: Vec::new(),
        next: function.next_value().0,
        origin: None,
        place: 0,
        timeless: Phase::Cell,
    };
    for (i, region) in function.regions_mut().enumerate() {
        rw.place = i;
        let stays = region.rate == Rate::Every && !phase::keeps_for_cells(program, region);
        rw.timeless = if stays { Phase::Body } else { Phase::Cell };
        rw.region(region, &mut rule);
    }
    drop_unused(function);
}

/// Removes operations without effects whose value nobody uses.
fn drop_unused(function: &mut Function) {
    let mut used: HashSet<ValueId> = HashSet::default();
    for region in function.regions_mut().rev() {
        let mut kept = Vec::with_capacity(region.ops.len());
        for op in region.ops.drain(..).rev() {
            if op.kind.has_effect() || op.result.is_some_and(|v| used.contains(&v)) {
                used.extend(op.kind.operands());
                kept.push(op);
            }
        }
        kept.reverse();
        region.ops = kept;
    }
}

impl Rewriter<'_> {
    fn region(
        &mut self,
        region: &mut Region,
        rule: &mut impl FnMut(&mut Rewriter<'_>, ValueId, OpKind) -> Option<ValueId>,
    ) {
        self.known.clear();
        for op in std::mem::take(&mut region.ops) {
            self.origin = op.origin;
            let kind = op.kind.map_operands(|v| self.current(v));
            let Some(id) = op.result else {
                self.out.push(Op { kind, ..op });
                continue;
            };
            // Rules speak of reals; what is computed in single precision stays as it is.
            let of_singles = self.gives_single(&kind) || kind.operands().iter().any(|v| self.singles.contains(v));
            let replaced = if of_singles || op.exact { None } else { rule(self, id, kind) };
            match replaced {
                Some(new) => {
                    let moved = self.uses(id);
                    *self.uses.entry(new).or_insert(0) += moved;
                    self.renamed.insert(id, new);
                    if self.states.contains(&id) {
                        self.becomes_state(new);
                    }
                }
                None => self.define(id, kind, op.exact),
            }
        }
        region.ops = std::mem::take(&mut self.out);
    }

    fn gives_single(&self, kind: &OpKind) -> bool {
        if let OpKind::Unary(op @ (UnaryOp::Narrow | UnaryOp::Widen), _) = *kind {
            return op == UnaryOp::Narrow;
        }
        kind.operands().first().is_some_and(|v| self.singles.contains(v))
    }

    fn define(&mut self, id: ValueId, kind: OpKind, exact: bool) {
        if self.gives_single(&kind) {
            self.singles.insert(id);
        }
        self.defs.insert(id, if exact { OPAQUE } else { kind });
        self.phases.insert(id, self.natural_phase(&kind));
        let range = ranges::of(&kind, self.fields, |v| self.range(v));
        self.ranges.insert(id, range);
        if self.states.contains(&id) {
            self.becomes_state(id);
        }
        if let Some(key) = key(&kind, self.fields) {
            self.known.entry(key).or_insert(id);
        }
        self.out.push(Op { result: Some(id), kind, exact, origin: self.origin });
    }

    fn becomes_state(&mut self, v: ValueId) {
        let range = self.ranges[&v].within(Range::STATE);
        self.ranges.insert(v, range);
    }

    /// The number of the region that is being written.
    pub fn place(&self) -> usize {
        self.place
    }

    /// What an old id is called now.
    pub fn current(&self, old: ValueId) -> ValueId {
        self.renamed.get(&old).copied().unwrap_or(old)
    }

    /// The operation that defines a value; of an exact one, a leaf.
    pub fn def(&self, v: ValueId) -> OpKind {
        self.defs[&v]
    }

    /// How many operations used the value before this pass; what the pass itself built counts as used once.
    pub fn uses(&self, v: ValueId) -> u32 {
        self.uses.get(&v).copied().unwrap_or(0)
    }

    /// Is every use of the value the one in hand?
    pub fn single(&self, v: ValueId) -> bool {
        self.uses(v) <= 1
    }

    /// What is known of a value's size, under the assumption that [`ranges`] documents.
    pub fn range(&self, v: ValueId) -> Range {
        self.ranges[&v]
    }

    /// The earliest phase in which the value could be computed.
    pub fn phase(&self, v: ValueId) -> Phase {
        self.phases[&v]
    }

    /// Is it the same for all cells, so that computing it costs nothing in the loop over cells?
    pub fn uniform(&self, v: ValueId) -> bool {
        matches!(self.phase(v), Phase::Call | Phase::Time)
    }

    /// The number, if the value is a constant.
    pub fn number(&self, v: ValueId) -> Option<f64> {
        if let OpKind::Const(c) = self.def(v) { Some(c) } else { None }
    }

    /// The operand, if the value is this unary operation.
    pub fn as_unary(&self, op: UnaryOp, v: ValueId) -> Option<ValueId> {
        if let OpKind::Unary(o, a) = self.def(v) { (o == op).then_some(a) } else { None }
    }

    /// The operands, if the value is this binary operation.
    pub fn as_binary(&self, op: BinaryOp, v: ValueId) -> Option<(ValueId, ValueId)> {
        if let OpKind::Binary(o, a, b) = self.def(v) { (o == op).then_some((a, b)) } else { None }
    }

    fn natural_phase(&self, kind: &OpKind) -> Phase {
        match phase::earliest(kind, self.role, self.fields, |v| self.phase(v)) {
            Phase::Cell => self.timeless,
            phase @ (Phase::Call | Phase::Time | Phase::Body) => phase,
        }
    }

    /// Defines a value, or finds the same one.
    pub fn value(&mut self, kind: OpKind) -> ValueId {
        if let Some(found) = key(&kind, self.fields).and_then(|k| self.known.get(&k).copied()) {
            *self.uses.entry(found).or_insert(0) += 1;
            return found;
        }
        for v in kind.operands() {
            // The pass takes over uses of what it replaces; a value that nobody used before is now used.
            self.uses.entry(v).or_insert(1);
        }
        let id = ValueId(self.next);
        self.next += 1;
        self.define(id, kind, false);
        id
    }

    /// A real constant.
    pub fn constant(&mut self, c: f64) -> ValueId {
        self.value(OpKind::Const(c))
    }

    /// `op a`, folded where that takes no transcendental function.
    pub fn unary(&mut self, op: UnaryOp, a: ValueId) -> ValueId {
        self.value(OpKind::Unary(op, a))
    }

    /// `-a`
    pub fn neg(&mut self, a: ValueId) -> ValueId {
        if let Some(c) = self.number(a) {
            return self.constant(-c);
        }
        match self.as_unary(UnaryOp::Neg, a) {
            Some(x) => x,
            None => self.unary(UnaryOp::Neg, a),
        }
    }

    /// `a + b`
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.number(a), self.number(b)) {
            (Some(x), Some(y)) => self.constant(x + y),
            (Some(0.0), _) => b,
            (_, Some(0.0)) => a,
            (_, _) => match (self.as_unary(UnaryOp::Neg, a), self.as_unary(UnaryOp::Neg, b)) {
                (_, Some(y)) => self.sub(a, y),
                (Some(x), None) => self.sub(b, x),
                (None, None) => self.value(OpKind::Binary(BinaryOp::Add, a, b)),
            },
        }
    }

    /// `a - b`
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.number(a), self.number(b)) {
            (Some(x), Some(y)) => self.constant(x - y),
            (Some(0.0), _) => self.neg(b),
            (_, Some(0.0)) => a,
            (_, _) => match self.as_unary(UnaryOp::Neg, b) {
                Some(y) => self.add(a, y),
                None => self.value(OpKind::Binary(BinaryOp::Sub, a, b)),
            },
        }
    }

    /// `a * b`; never folds `0 * x`.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.number(a), self.number(b)) {
            (Some(x), Some(y)) => self.constant(x * y),
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            (Some(-1.0), _) => self.neg(b),
            (_, Some(-1.0)) => self.neg(a),
            (_, _) => self.value(OpKind::Binary(BinaryOp::Mul, a, b)),
        }
    }

    /// `a / b`
    pub fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.number(a), self.number(b)) {
            (Some(x), Some(y)) if y != 0.0 => self.constant(x / y),
            (_, Some(1.0)) => a,
            (_, Some(-1.0)) => self.neg(a),
            (_, _) => self.value(OpKind::Binary(BinaryOp::Div, a, b)),
        }
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        let trivial = |x: Option<f64>| x == Some(1.0) || x == Some(-1.0);
        let (x, y, z) = (self.number(a), self.number(b), self.number(c));
        if trivial(x) || trivial(y) || z == Some(0.0) || (x.is_some() && y.is_some()) {
            let product = self.mul(a, b);
            return self.add(product, c);
        }
        self.value(OpKind::Fma(a, b, c))
    }

    /// `c ? a : b`
    pub fn select(&mut self, c: ValueId, a: ValueId, b: ValueId) -> ValueId {
        self.value(OpKind::Select(c, a, b))
    }

    /// `x^n` by repeated squaring, for `n >= 1`.
    pub fn power(&mut self, x: ValueId, n: u32) -> ValueId {
        if n == 1 {
            return x;
        }
        let half = self.power(x, n / 2);
        let square = self.mul(half, half);
        if n.is_multiple_of(2) { square } else { self.mul(square, x) }
    }
}

/// The key of an operation whose value depends on its operands alone.
fn key(kind: &OpKind, fields: &[Field]) -> Option<Key> {
    let alone = match kind.class() {
        OpClass::Pure => true,
        OpClass::Leaf => matches!(kind, OpKind::Const(_) | OpKind::Bool(_)),
        OpClass::Read => matches!(kind, OpKind::Field(f) if fields[f.0 as usize].kind == FieldKind::Uniform),
        OpClass::Draw | OpClass::Write => false,
    };
    let mut operands = kind.operands();
    if let OpKind::Binary(BinaryOp::Add | BinaryOp::Mul, ..) = kind {
        operands.sort();
    }
    alone.then(|| (discriminant(kind), cse::payload(kind), operands))
}
