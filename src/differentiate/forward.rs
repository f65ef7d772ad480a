//! Forward mode: a program that computes, beside every number, its derivatives.
//!
//! In come a verified program and, for each *direction*, the parameters (uniform fields) that move along it; out goes a verified program that every engine runs as it runs
//! any other, or what has no derivative ([`Refused`]).
//! Never true here: a derivative is dropped or approximated, a field of the program changes, or something is kept for later.
//!
//! # The program that comes out
//!
//! It is the program, with its spaces, its fields and their numbers. Behind its fields stands for each of them that moves along a direction its *tangent*
//! ([`Source::Tangent`]): its derivative along that direction, a field of the same kind over the same space, with as long a history. The tangent of a
//! parameter is a parameter, too: how fast it moves. So a run of this program is a run of the other one that has the derivatives of whatever
//! it stores, and takes as much memory however long it is.
//!
//! # The law
//!
//! The tangent of a value is the sum of what each operand brings, and that is what its adjoint would be if the tangent of the operand were that of the
//! value (`adjoint.rs` knows the one rule for both). What a store overwrites is gone, in the tangent as well. Along a `solve`, `A x = b` moves by
//! `A x' = b' - A' x`: the same matrix with another right-hand side. Comparisons, selections, spikes and what is refused are as on the way back
//! (see the module documentation), but for what is read of earlier steps: of that earlier tangents are read.

use super::active::Active;
use super::adjoint::{Adjoint, Differentiated, Relative};
use super::sweep::sum;
use super::walk::{events, guarded};
use super::{Fields, Refused, spiking};
use crate::step::{
    BinaryOp, Field, FieldId, FieldKind, Function, Map, Op, OpKind, Program, Region, RegionBuilder, Solve, Source,
    Stage, UnaryOp, ValueId, Verified, verify,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::BTreeMap;

/// The program with its derivatives along directions; see the module documentation. Each direction names the uniform fields that move along it.
pub fn forward(program: &Verified, directions: &[Vec<FieldId>]) -> Result<Verified, Refused> {
    let program = program.program();
    let is_shared =
        |field: &FieldId| program.fields.get(field.0 as usize).is_some_and(|f| f.kind == FieldKind::Uniform);
    if let Some(other) = directions.iter().flatten().find(|field| !is_shared(field)) {
        let name = program.fields.get(other.0 as usize).map_or("?", |f| f.name.as_str());
        return Err(Refused { what: format!("`{name}` is no parameter that all share"), origin: None });
    }
    let active: Vec<Active> = directions.iter().map(|moved| Active::new(program, moved)).collect();
    let names = program.fields.iter().map(|f| f.name.clone()).collect();
    let mut fields = Fields { list: program.fields.clone(), names, same: BTreeMap::new() };
    let mut tangents = BTreeMap::new();
    for (direction, active) in active.iter().enumerate() {
        for &of in &active.fields {
            let field = program.field(of);
            let (name, source) = (fields.free(&field.name, "tangent"), Source::Tangent(of.0, direction as u32));
            tangents.insert((of, direction), fields.add(Field { name, source, ..field.clone() }));
        }
    }
    let mut draft = Draft { program, active: &active, fields: &mut fields, tangents };
    let functions = program.functions.iter().map(|function| draft.function(function)).collect::<Result<_, _>>()?;
    let (name, origins, spaces) = (program.name.clone(), program.origins.clone(), program.spaces.clone());
    let along = Program { name, origins, spaces, fields: fields.list, functions };
    verify(along).map_err(|e| Refused { what: format!("internal error: forward, {e}"), origin: None })
}

/// A program in the making.
struct Draft<'a> {
    program: &'a Program,
    /// What moves along each direction.
    active: &'a [Active],
    fields: &'a mut Fields,
    /// The tangents of fields, by direction.
    tangents: BTreeMap<(FieldId, usize), FieldId>,
}

/// What is known of a function on the way through it.
struct Course<'a> {
    /// Truth values that say whether there is an event.
    events: HashSet<ValueId>,
    /// Which operation defines a value.
    definition: HashMap<ValueId, &'a OpKind>,
    /// The same value in the new function.
    same: HashMap<ValueId, ValueId>,
    /// The tangents of values, by direction; none where it is 0 for all elements.
    tangents: HashMap<(ValueId, usize), Adjoint>,
    /// Tangents of fields that selections have made 0 for some elements.
    masked: HashSet<FieldId>,
    next: ValueId,
}

impl Draft<'_> {
    fn tangent(&self, field: FieldId, direction: usize) -> Option<FieldId> {
        self.tangents.get(&(field, direction)).copied()
    }

    fn function(&mut self, function: &Function) -> Result<Function, Refused> {
        let definition = function.ops().filter_map(|op| Some((op.result?, &op.kind))).collect();
        let mut course = Course {
            events: events(function),
            definition,
            same: HashMap::default(),
            tangents: HashMap::default(),
            masked: HashSet::default(),
            next: ValueId(0),
        };
        let mut stages = Vec::new();
        for stage in &function.stages {
            match stage {
                Stage::Region(region) => stages.push(Stage::Region(self.region(region, &mut course)?)),
                Stage::Solve(solve) => self.solve(solve, &mut course, &mut stages),
            }
        }
        Ok(Function { stages, ..function.clone() })
    }

    fn region(&self, region: &Region, course: &mut Course<'_>) -> Result<Region, Refused> {
        if let (Some(guard), false) = (region.guard, self.tangents.is_empty()) {
            return Err(guarded(self.program, region, guard));
        }
        let mut b = RegionBuilder::new(region.over, course.next);
        for op in &region.ops {
            b.set_origin(op.origin);
            let kind = op.kind.map_operands(|v| course.same[&v]);
            let Some(result) = op.result else {
                self.effect(&mut b, op, kind, course);
                continue;
            };
            let value = if op.exact { b.exact(kind) } else { b.value(kind) };
            course.same.insert(result, value);
            for direction in 0..self.active.len() {
                if let Some(tangent) = self.op(&mut b, region, (op, value), direction, course)? {
                    course.tangents.insert((result, direction), tangent);
                }
            }
        }
        course.next = b.next();
        let ops = b.finish().ops;
        Ok(Region { ops, ..region.clone() })
    }

    /// Writes something, and its tangents.
    fn effect(&self, b: &mut RegionBuilder, op: &Op, kind: OpKind, course: &mut Course<'_>) {
        b.effect(kind);
        for direction in 0..self.active.len() {
            let (OpKind::Store(field, value) | OpKind::Accumulate(field, _, value)) = op.kind else { continue };
            let Some(to) = self.tangent(field, direction) else { continue };
            let tangent = course.tangents.get(&(value, direction)).copied();
            if tangent.is_some_and(|tangent| tangent.masked) {
                course.masked.insert(to);
            }
            match (&op.kind, tangent.map(|tangent| tangent.value)) {
                (OpKind::Accumulate(_, map, _), Some(tangent)) => b.accumulate(to, *map, tangent),
                (OpKind::Accumulate(..), None) => {}
                (_, tangent) => {
                    let tangent = tangent.unwrap_or_else(|| b.constant(0.0));
                    b.store(to, tangent);
                }
            }
        }
    }

    /// The tangent of the value of an operation, which is that value in the new function.
    fn op(
        &self,
        b: &mut RegionBuilder,
        region: &Region,
        (op, value): (&Op, ValueId),
        direction: usize,
        course: &Course<'_>,
    ) -> Result<Option<Adjoint>, Refused> {
        if let OpKind::Field(field) | OpKind::Gather(field, _) | OpKind::Back(field, ..) = op.kind {
            return Ok(self.tangent(field, direction).map(|to| Adjoint {
                value: b.value(op.kind.map_field(|_| to).map_operands(|v| course.same[&v])),
                masked: course.masked.contains(&to),
            }));
        }
        let operands = op.kind.operands();
        let of = |value: ValueId| course.tangents.get(&(value, direction)).copied();
        if operands.iter().all(|&v| of(v).is_none()) {
            return Ok(None);
        }
        if let OpKind::Select(condition, ..) = op.kind
            && course.events.contains(&condition)
            && of(condition).is_none()
        {
            return Err(Refused::new(self.program, Some(op), spiking(self.program, region)));
        }
        let mut parts = Vec::new();
        if let Some(relative) = Relative::of(&op.kind, &course.definition) {
            for operand in relative.operands() {
                if let Some(tangent) = of(operand) {
                    let found = relative.adjoints(b, &course.same, tangent);
                    parts.extend(found.into_iter().filter(|(to, _)| *to == operand).map(|(_, part)| part));
                }
            }
            return Ok(joined(b, &parts));
        }
        for (number, &operand) in operands.iter().enumerate() {
            let Some(tangent) = of(operand) else { continue };
            let moves: Vec<bool> = (0..operands.len()).map(|other| other == number).collect();
            let of_operand = Differentiated {
                b: &mut *b,
                kind: op.kind,
                operands: &operands.iter().map(|v| course.same[v]).collect::<Vec<_>>(),
                moves: &moves,
                y: value,
                g: tangent,
            };
            let found = of_operand.adjoints().map_err(|why| Refused::new(self.program, Some(op), why))?;
            parts.extend(found.into_iter().filter(|(to, _)| *to == number).map(|(_, part)| part));
        }
        Ok(joined(b, &parts))
    }

    /// A solve, and one more with the same matrix for each direction.
    fn solve(&mut self, solve: &Solve, course: &mut Course<'_>, out: &mut Vec<Stage>) {
        let (program, over) = (self.program, self.program.field(solve.x).over);
        let directions: Vec<(usize, FieldId)> =
            (0..self.active.len()).filter_map(|d| Some((d, self.tangent(solve.x, d)?))).collect();
        let begin = |course: &Course<'_>| {
            let mut b = RegionBuilder::new(over, course.next);
            b.set_origin(solve.origin);
            b
        };
        // Engines may use up what they solve with.
        let copies: Vec<FieldId> =
            directions.iter().map(|_| self.fields.temp(&program.field(solve.own).name, "used", over)).collect();
        // 0 beyond the root, 1 elsewhere.
        let link_moves = directions.iter().any(|&(direction, _)| self.tangent(solve.link, direction).is_some());
        let joined = link_moves.then(|| self.fields.temp(&program.field(solve.x).name, "joined", over));
        if !copies.is_empty() {
            let mut b = begin(course);
            let own = b.field(solve.own);
            copies.iter().for_each(|&copy| b.store(copy, own));
            if let Some(joined) = joined {
                let one = b.constant(1.0);
                b.store(joined, one);
            }
            course.next = b.next();
            out.push(Stage::Region(b.finish()));
        }
        out.push(Stage::Solve(*solve));
        for ((direction, x), own) in directions.into_iter().zip(copies) {
            let name = &program.field(solve.x).name;
            let rhs = self.fields.temp(name, "given", over);
            let [of_own, of_link, of_rhs] =
                [solve.own, solve.link, solve.rhs].map(|field| self.tangent(field, direction));
            let from = solve.from.and_then(|field| self.tangent(field, direction));
            let mut b = begin(course);
            let mut given = of_rhs.map(|field| b.field(field));
            if let Some(of_own) = of_own {
                let (moves, mut moved) = (b.field(of_own), b.field(solve.x));
                if let Some(from) = solve.from {
                    let from = b.field(from);
                    moved = b.binary(BinaryOp::Sub, moved, from);
                }
                given = Some(less(&mut b, given, moves, moved));
            }
            if let (Some(of_link), Some(joined)) = (of_link, joined) {
                let [own, children] = ["own", "of_children"].map(|what| self.fields.temp(name, what, over));
                let (moves, solution, above) = (b.field(of_link), b.field(solve.x), b.gather(solve.x, Map::Parent));
                let joined = b.gather(joined, Map::Parent);
                let moves = b.binary(BinaryOp::Mul, moves, joined);
                let rise = b.binary(BinaryOp::Sub, solution, above);
                let of_own = less(&mut b, given, moves, rise);
                b.store(own, of_own);
                let of_parent = b.binary(BinaryOp::Mul, moves, rise);
                b.accumulate(children, Some(Map::Parent), of_parent);
                course.next = b.next();
                out.push(Stage::Region(b.finish()));
                b = begin(course);
                let (own, children) = (b.field(own), b.field(children));
                given = Some(b.binary(BinaryOp::Add, own, children));
            }
            let given = given.unwrap_or_else(|| b.constant(0.0));
            b.store(rhs, given);
            course.next = b.next();
            out.push(Stage::Region(b.finish()));
            out.push(Stage::Solve(Solve { x, own, link: solve.link, rhs, from, origin: solve.origin }));
        }
    }
}

/// The sum of what operands bring.
fn joined(b: &mut RegionBuilder, parts: &[Adjoint]) -> Option<Adjoint> {
    let values: Vec<ValueId> = parts.iter().map(|part| part.value).collect();
    sum(b, &values).map(|value| Adjoint { value, masked: parts.iter().any(|part| part.masked) })
}

/// What is left of a right-hand side: less the product of two.
fn less(b: &mut RegionBuilder, given: Option<ValueId>, x: ValueId, y: ValueId) -> ValueId {
    let part = b.binary(BinaryOp::Mul, x, y);
    match given {
        Some(given) => b.binary(BinaryOp::Sub, given, part),
        None => b.unary(UnaryOp::Neg, part),
    }
}
