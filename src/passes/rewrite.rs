//! Rewriting a kernel, operation by operation.
//!
//! In come a kernel and a rule; out comes the kernel with every operation that the rule recognised renamed to the
//! value that the rule built in front of it, and without what nobody uses any more.
//! Never true here: an operation with an effect is moved, dropped or doubled.

use super::ranges::{self, Range};
use crate::step::{BinaryOp, Field, FieldId, FieldKind, Kernel, Op, OpKind, OriginId, Phase, Region, UnaryOp, ValueId};
use std::collections::{HashMap, HashSet};

/// A pure operation as a key of value numbering: discriminant, payload, operands.
type Key = (u8, u64, [u32; 3]);

/// What rules see of an exact operation: a leaf, which nothing can be made of but itself.
const OPAQUE: OpKind = OpKind::StepIndex;

/// A kernel under rewriting: what is known of every value, and the region being written.
pub struct Rewriter<'p> {
    fields: &'p [Field],
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
}

/// How often each value of a kernel is used.
pub fn uses(kernel: &Kernel) -> HashMap<ValueId, u32> {
    let mut uses = HashMap::new();
    for op in kernel.regions.iter().flat_map(|r| &r.ops) {
        for v in op.kind.operands() {
            *uses.entry(v).or_insert(0) += 1;
        }
    }
    uses
}

/// The values that a kernel stores into states.
fn new_states(fields: &[Field], kernel: &Kernel) -> HashSet<ValueId> {
    let into_state = |f: FieldId| matches!(fields[f.0 as usize].kind, FieldKind::State(_));
    let stored = |op: &Op| if let OpKind::Store(f, v) = op.kind { into_state(f).then_some(v) } else { None };
    kernel.regions.iter().flat_map(|r| &r.ops).filter_map(stored).collect()
}

/// Applies a rule to every operation of a kernel that defines a value, but for the exact ones. The rule gets the operation (its operands
/// already renamed) and the id it defined, and returns the value that replaces it, if any.
pub fn rewrite(
    fields: &[Field],
    kernel: &mut Kernel,
    mut rule: impl FnMut(&mut Rewriter<'_>, ValueId, OpKind) -> Option<ValueId>,
) {
    let mut rw = Rewriter {
        fields,
        defs: HashMap::new(),
        phases: HashMap::new(),
        ranges: HashMap::new(),
        uses: uses(kernel),
        states: new_states(fields, kernel),
        singles: HashSet::new(),
        renamed: HashMap::new(),
        known: HashMap::new(),
        out: Vec::new(),
        next: kernel.next_value().0,
        origin: None,
        place: 0,
    };
    for (i, region) in kernel.regions.iter_mut().enumerate() {
        rw.place = i;
        rw.region(region, &mut rule);
    }
    drop_unused(kernel);
}

/// Removes operations without effects whose value nobody uses.
fn drop_unused(kernel: &mut Kernel) {
    let mut used: HashSet<ValueId> = HashSet::new();
    for region in kernel.regions.iter_mut().rev() {
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
        match *kind {
            OpKind::Unary(UnaryOp::Narrow, _) => true,
            OpKind::Unary(UnaryOp::Widen, _) => false,
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Draw(..)
            | OpKind::Sample(..)
            | OpKind::Store(..)
            | OpKind::Accumulate(..)
            | OpKind::Emit(..) => kind.operands().first().is_some_and(|v| self.singles.contains(v)),
        }
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
        let own = match *kind {
            OpKind::Const(_) | OpKind::Bool(_) => Phase::Call,
            OpKind::Field(f) => match self.fields[f.0 as usize].kind {
                FieldKind::Uniform | FieldKind::Series => Phase::Call,
                FieldKind::Data(_) | FieldKind::Cell(_) => Phase::Cell,
                FieldKind::State(_)
                | FieldKind::Temp(_)
                | FieldKind::Output(_)
                | FieldKind::Event(_)
                | FieldKind::Edges(_) => Phase::Body,
            },
            OpKind::Time | OpKind::StepIndex => Phase::Time,
            OpKind::Index | OpKind::Draw(..) => Phase::Cell,
            OpKind::There(_) | OpKind::Store(..) | OpKind::Accumulate(..) | OpKind::Emit(..) => Phase::Body,
            OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..)
            | OpKind::Sample(..) => Phase::Call,
        };
        kind.operands().into_iter().map(|v| self.phase(v)).fold(own, later)
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

/// The earliest phase that sees both.
fn later(a: Phase, b: Phase) -> Phase {
    match (a, b) {
        (Phase::Call, p) | (p, Phase::Call) => p,
        (Phase::Time, Phase::Time) => Phase::Time,
        (Phase::Cell, Phase::Cell) => Phase::Cell,
        (Phase::Time, Phase::Cell) | (Phase::Cell, Phase::Time) => Phase::Body,
        // In an edge region everything that is not uniform varies as in a body.
        (Phase::Body | Phase::Edge(_), _) | (_, Phase::Body | Phase::Edge(_)) => Phase::Body,
    }
}

/// The key of an operation whose value depends on its operands alone.
fn key(kind: &OpKind, fields: &[Field]) -> Option<Key> {
    match *kind {
        OpKind::Const(c) => Some((0, c.to_bits(), [0; 3])),
        OpKind::Bool(b) => Some((1, u64::from(b), [0; 3])),
        OpKind::Field(f) => (fields[f.0 as usize].kind == FieldKind::Uniform).then_some((2, u64::from(f.0), [0; 3])),
        OpKind::Unary(op, a) => Some((3, op as u64, [a.0, 0, 0])),
        OpKind::Binary(op, a, b) => {
            let swap = matches!(op, BinaryOp::Add | BinaryOp::Mul) && b < a;
            let (a, b) = if swap { (b, a) } else { (a, b) };
            Some((4, op as u64, [a.0, b.0, 0]))
        }
        OpKind::Approximate(f, tolerance, a) => Some((7, (f as u64) << 8 | tolerance as u64, [a.0, 0, 0])),
        OpKind::Fma(a, b, c) => Some((5, 0, [a.0, b.0, c.0])),
        OpKind::Select(c, a, b) => Some((6, 0, [c.0, a.0, b.0])),
        OpKind::Time
        | OpKind::StepIndex
        | OpKind::There(_)
        | OpKind::Index
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => None,
    }
}
