//! A builder for regions.

use super::{BinaryOp, FieldId, Guard, Map, Op, OpKind, OriginId, Rate, Region, SpaceId, UnaryOp, ValueId};

/// Appends operations to a region; value ids start where the function's last region stopped.
#[derive(Debug)]
pub struct RegionBuilder {
    region: Region,
    next: u32,
    origin: Option<OriginId>,
}

impl RegionBuilder {
    /// An empty region without a guard that runs every step, for every element of a space if it is over one; its first value is `next`.
    pub fn new(over: Option<SpaceId>, next: ValueId) -> RegionBuilder {
        let region = Region { rate: Rate::Every, over, guard: None, ops: Vec::new() };
        RegionBuilder { region, next: next.0, origin: None }
    }

    /// Runs the region only for elements that an event reaches.
    pub fn set_guard(&mut self, guard: Guard) {
        self.region.guard = Some(guard);
    }

    /// The place that the operations to come belong to.
    pub fn set_origin(&mut self, origin: Option<OriginId>) {
        self.origin = origin;
    }

    /// Appends an operation that defines a value.
    pub fn value(&mut self, kind: OpKind) -> ValueId {
        debug_assert!(!kind.has_effect());
        let id = ValueId(self.next);
        self.next += 1;
        self.region.ops.push(Op { result: Some(id), kind, exact: false, origin: self.origin });
        id
    }

    /// Appends an operation that keeps every bit of its value.
    pub fn exact(&mut self, kind: OpKind) -> ValueId {
        let id = self.value(kind);
        if let Some(op) = self.region.ops.last_mut() {
            op.exact = true;
        }
        id
    }

    /// Appends a store, an accumulation or an emit.
    pub fn effect(&mut self, kind: OpKind) {
        debug_assert!(kind.has_effect());
        self.region.ops.push(Op { result: None, kind, exact: false, origin: self.origin });
    }

    /// A real constant.
    pub fn constant(&mut self, value: f64) -> ValueId {
        self.value(OpKind::Const(value))
    }

    /// Reads a field.
    pub fn field(&mut self, field: FieldId) -> ValueId {
        self.value(OpKind::Field(field))
    }

    /// Reads a field of the element that a map leads to.
    pub fn gather(&mut self, field: FieldId, map: Map) -> ValueId {
        self.value(OpKind::Gather(field, map))
    }

    /// A unary operation.
    pub fn unary(&mut self, op: UnaryOp, a: ValueId) -> ValueId {
        self.value(OpKind::Unary(op, a))
    }

    /// A binary operation.
    pub fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.value(OpKind::Binary(op, a, b))
    }

    /// `c ? a : b`.
    pub fn select(&mut self, c: ValueId, a: ValueId, b: ValueId) -> ValueId {
        self.value(OpKind::Select(c, a, b))
    }

    /// Writes a field.
    pub fn store(&mut self, field: FieldId, value: ValueId) {
        self.effect(OpKind::Store(field, value));
    }

    /// Adds to a field of the element that a map leads to; without a map, to the one value of the field.
    pub fn accumulate(&mut self, field: FieldId, map: Option<Map>, value: ValueId) {
        self.effect(OpKind::Accumulate(field, map, value));
    }

    /// The next free value id.
    pub fn next(&self) -> ValueId {
        ValueId(self.next)
    }

    /// The finished region.
    pub fn finish(self) -> Region {
        self.region
    }
}
