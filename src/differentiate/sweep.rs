//! The stages of a function, backward.
//!
//! In come a [`Walk`], the fields that hold versions, and adjoints of versions; out go stages that compute the function once more, stages
//! that go back, and for every version and every uniform field the fields that its adjoint is the sum of.
//! Never true here: a field is written in two stages, so that every contribution to an adjoint has a field of its own.

use super::active::Active;
use super::adjoint::{Adjoint, Differentiated, Relative};
use super::walk::{Version, Walk};
use super::{Fields, Refused, spiking};
use crate::step::{
    BinaryOp, Field, FieldId, FieldKind, Map, Op, OpClass, OpKind, Program, Region, RegionBuilder, Solve, Source,
    SpaceId, SpaceKind, Stage, UnaryOp, ValueId,
};
use rustc_hash::FxHashMap as HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What a value is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Version(Version, Option<Map>),
    Uniform(FieldId),
}

/// Are edges turned round?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    No,
    Yes,
}

impl Turn {
    /// The map that leads to the same cells.
    fn map(self, map: Map) -> Map {
        match (self, map) {
            (Turn::Yes, Map::Source) => Map::Target,
            (Turn::Yes, Map::Target) => Map::Source,
            (Turn::No | Turn::Yes, Map::Source | Map::Target | Map::Of | Map::Parent | Map::In) => map,
        }
    }
}

/// A function on the way back.
pub(super) struct Sweep<'a> {
    /// The program that is differentiated.
    pub program: &'a Program,
    pub walk: &'a Walk<'a>,
    pub active: &'a Active,
    /// The fields of the new program.
    pub fields: &'a mut Fields,
    /// The next free value of the new function.
    pub next: ValueId,
    /// Where versions are found, as fields of the new program.
    pub home: BTreeMap<Version, FieldId>,
    /// The fields that the adjoint of a version is the sum of.
    pub adjoints: BTreeMap<Version, Vec<FieldId>>,
    /// The same for uniform fields, by the space whose elements contribute.
    pub shared: BTreeMap<(FieldId, Option<SpaceId>), Vec<FieldId>>,
    /// Relations whose edges are turned round.
    turned: &'a BTreeMap<SpaceId, SpaceId>,
    needed: BTreeSet<Version>,
    /// Versions whose adjoints selections have made 0 for some elements.
    masked: BTreeSet<Version>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(
        program: &'a Program,
        walk: &'a Walk<'a>,
        active: &'a Active,
        fields: &'a mut Fields,
        turned: &'a BTreeMap<SpaceId, SpaceId>,
        next: ValueId,
    ) -> Sweep<'a> {
        let (home, adjoints, shared) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (needed, masked) = (BTreeSet::new(), BTreeSet::new());
        Sweep { program, walk, active, fields, next, home, adjoints, shared, turned, needed, masked }
    }

    /// All stages, in the order in which the walk went.
    pub(super) fn back(&mut self) -> Result<Vec<Stage>, Refused> {
        let mut out = Vec::new();
        for (at, stage) in self.walk.function.stages.iter().enumerate().rev() {
            match stage {
                Stage::Region(region) => {
                    for turn in [Turn::No, Turn::Yes] {
                        out.extend(self.region(at, region, turn)?.map(Stage::Region));
                    }
                }
                Stage::Solve(solve) => self.solve(at, solve, &mut out),
            }
        }
        Ok(out)
    }

    /// The stages that compute once more what those need that go back.
    pub(super) fn again(&mut self) -> Vec<Stage> {
        let mut kept = Vec::new();
        for (at, stage) in self.walk.function.stages.iter().enumerate().rev() {
            match stage {
                Stage::Solve(solve) => {
                    let solved = self.walk.solves[&at];
                    if self.needed.contains(&solved.x) {
                        self.needed.extend([solved.own, solved.link, solved.rhs].into_iter().chain(solved.from));
                        let [x, own, link, rhs] =
                            [solved.x, solved.own, solved.link, solved.rhs].map(|version| self.home(version));
                        let from = solved.from.map(|version| self.home(version));
                        // Engines may use up what they solve with, and the adjoint is solved for with the same.
                        let mut b = RegionBuilder::new(self.over(solved.own), self.next);
                        let copy = self.used(&mut b, solve, solved.own, own);
                        self.next = b.next();
                        kept.push(Stage::Solve(Solve { x, own: copy, link, rhs, from, origin: solve.origin }));
                        kept.push(Stage::Region(b.finish()));
                    }
                }
                Stage::Region(region) => {
                    let writes = self.walk.writes.range((at, 0)..(at + 1, 0));
                    let wanted: Vec<(usize, Version)> = writes
                        .map(|(place, version)| (place.1, *version))
                        .filter(|w| self.needed.contains(&w.1))
                        .collect();
                    if wanted.is_empty() {
                        continue;
                    }
                    let mut b = RegionBuilder::new(region.over, self.next);
                    let values = self.copy(&mut b, at, region, Turn::No);
                    for (number, version) in wanted {
                        let home = self.home(version);
                        b.effect(region.ops[number].kind.map_field(|_| home).map_operands(|v| values[&v]));
                    }
                    self.next = b.next();
                    kept.push(Stage::Region(b.finish()));
                }
            }
        }
        kept.reverse();
        kept
    }

    /// The field that a version is found in.
    fn home(&mut self, version: Version) -> FieldId {
        if let Some(&home) = self.home.get(&version) {
            return home;
        }
        let field = self.program.field(self.walk.fields[version.0]);
        let home = self.fields.temp(&field.name, "then", field.over);
        self.home.insert(version, home);
        home
    }

    fn over(&self, version: Version) -> Option<SpaceId> {
        self.program.field(self.walk.fields[version.0]).over
    }

    /// Appends what a region computes; the answer are the new names of values.
    fn copy(&mut self, b: &mut RegionBuilder, at: usize, region: &'a Region, turn: Turn) -> HashMap<ValueId, ValueId> {
        let mut values: HashMap<ValueId, ValueId> = HashMap::default();
        for (_, op) in self.walk.ops(at, region) {
            let Some(result) = op.result else { continue };
            if let Some(stored) = self.walk.stored.get(&result) {
                values.insert(result, values[stored]);
                continue;
            }
            b.set_origin(op.origin);
            let kind = match (op.kind.named_field(), self.walk.reads.get(&result)) {
                (_, Some(&version)) => {
                    self.needed.insert(version);
                    let home = self.home(version);
                    op.kind.map_field(|_| home)
                }
                (Some(field), None) => {
                    let same = self.fields.same(field);
                    op.kind.map_field(|_| same)
                }
                (None, None) => op.kind,
            };
            let kind = match kind.map_operands(|v| values[&v]) {
                OpKind::Gather(field, map) => OpKind::Gather(field, turn.map(map)),
                kind => kind,
            };
            let value = if op.exact { b.exact(kind) } else { b.value(kind) };
            values.insert(result, value);
        }
        values
    }

    /// The adjoint of a version, of the element itself or of the one that the map leads to; none if nothing depends on it.
    fn adjoint(&self, b: &mut RegionBuilder, version: Version, map: Option<Map>) -> Option<ValueId> {
        let fields = self.adjoints.get(&version).map_or(&[][..], Vec::as_slice);
        sum_of(b, fields, map)
    }

    /// The relation that the region can be over as well, with the edges turned round: where it knows of edges what they join alone.
    fn turned(&self, region: &Region) -> Option<SpaceId> {
        let space = region.over.filter(|space| self.turned.contains_key(space))?;
        let of_edge = |op: &Op| match op.kind {
            OpKind::Index | OpKind::Draw(..) => true,
            OpKind::Field(field) | OpKind::Store(field, _) => self.program.field(field).over == Some(space),
            _ => false,
        };
        if region.ops.iter().any(of_edge) { None } else { self.turned.get(&space).copied() }
    }

    /// A region backward. Of one over edges that can be turned round, what goes to sources is another region, over the turned ones.
    fn region(&mut self, at: usize, region: &'a Region, turn: Turn) -> Result<Option<Region>, Refused> {
        let turned = self.turned(region);
        let over = match (turn, turned) {
            (Turn::No, _) => region.over,
            (Turn::Yes, Some(space)) => Some(space),
            (Turn::Yes, None) => return Ok(None),
        };
        let moves = self.active.values(self.walk.function.role);
        let written = |number: usize, op: &Op| match op.kind {
            OpKind::Store(_, value) | OpKind::Accumulate(_, _, value) if moves(value) => {
                let version = self.walk.writes.get(&(at, number))?;
                self.adjoints.get(version).filter(|all| !all.is_empty()).map(|_| *version)
            }
            _ => None,
        };
        if !region.ops.iter().enumerate().any(|(number, op)| written(number, op).is_some()) {
            return Ok(None);
        }
        let written: HashMap<usize, Version> =
            region.ops.iter().enumerate().filter_map(|(number, op)| Some((number, written(number, op)?))).collect();
        let mut b = RegionBuilder::new(over, self.next);
        let values = self.copy(&mut b, at, region, turn);
        let ops = self.walk.ops(at, region);
        let definition: HashMap<ValueId, &OpKind> =
            ops.iter().filter_map(|(_, op)| Some((op.result?, &op.kind))).collect();
        let mut adjoints: HashMap<ValueId, Adjoint> = HashMap::default();
        let mut places: BTreeMap<Place, Vec<ValueId>> = BTreeMap::new();
        for (number, op) in ops.iter().rev() {
            b.set_origin(op.origin);
            if let (OpKind::Store(_, value) | OpKind::Accumulate(_, _, value), Some(number)) = (op.kind, number) {
                let map = if let OpKind::Accumulate(_, map, _) = op.kind { map } else { None };
                if let Some(&version) = written.get(number)
                    && let Some(adjoint) = self.adjoint(&mut b, version, map.map(|map| turn.map(map)))
                {
                    join(
                        &mut b,
                        &mut adjoints,
                        value,
                        Adjoint { value: adjoint, masked: self.masked.contains(&version) },
                    );
                }
                continue;
            }
            let Some(result) = op.result else { continue };
            let Some(&g) = adjoints.get(&result) else { continue };
            if let Some(&stored) = self.walk.stored.get(&result) {
                join(&mut b, &mut adjoints, stored, g);
                continue;
            }
            if let (OpKind::Field(field) | OpKind::Gather(field, _), class) = (op.kind, op.kind.class()) {
                debug_assert_eq!(class, OpClass::Read);
                let map = if let OpKind::Gather(_, map) = op.kind { Some(map) } else { None };
                let place = match self.walk.reads.get(&result) {
                    Some(&version) => Place::Version(version, map),
                    None => Place::Uniform(field),
                };
                if let Place::Version(version, _) = place
                    && g.masked
                {
                    self.masked.insert(version);
                }
                places.entry(place).or_default().push(g.value);
                continue;
            }
            if let Some(relative) = Relative::of(&op.kind, &definition) {
                for (operand, adjoint) in relative.adjoints(&mut b, &values, g) {
                    if moves(operand) {
                        join(&mut b, &mut adjoints, operand, adjoint);
                    }
                }
                continue;
            }
            let operands = op.kind.operands();
            if let OpKind::Select(condition, ..) = op.kind
                && self.walk.events.contains(&condition)
                && !moves(condition)
            {
                return Err(Refused::new(self.program, Some(op), spiking(self.program, region)));
            }
            let of_operands = Differentiated {
                b: &mut b,
                kind: op.kind,
                operands: &operands.iter().map(|v| values[v]).collect::<Vec<_>>(),
                moves: &operands.iter().map(|&v| moves(v)).collect::<Vec<_>>(),
                y: values[&result],
                g,
            };
            let found = of_operands.adjoints().map_err(|why| Refused::new(self.program, Some(op), why))?;
            for (number, adjoint) in found {
                if moves(operands[number]) {
                    join(&mut b, &mut adjoints, operands[number], adjoint);
                }
            }
        }
        b.set_origin(None);
        let mut contributes = false;
        for (place, parts) in places {
            let to_source = matches!(place, Place::Version(_, Some(Map::Source)));
            if turned.is_some() && to_source != (turn == Turn::Yes) {
                continue;
            }
            contributes = true;
            let Some(sum) = sum(&mut b, &parts) else { continue };
            self.contribute(&mut b, region.over, place, sum, turn);
        }
        if !contributes {
            return Ok(None);
        }
        self.next = b.next();
        Ok(Some(b.finish()))
    }

    /// Adds a part to the adjoint of what a region over a space reads.
    fn contribute(&mut self, b: &mut RegionBuilder, over: Option<SpaceId>, place: Place, part: ValueId, turn: Turn) {
        match place {
            Place::Version(version, map) => {
                let field = self.walk.fields[version.0];
                if !self.active.fields.contains(&field) {
                    return;
                }
                let to = self.over(version);
                let name = &self.program.field(field).name;
                let temp = self.fields.temp(name, "adjoint", to);
                match (map, to == over) {
                    (None, true) => b.store(temp, part),
                    (map, _) => b.accumulate(temp, map.map(|map| turn.map(map)), part),
                }
                self.adjoints.entry(version).or_default().push(temp);
            }
            Place::Uniform(field) => {
                if !self.active.fields.contains(&field) {
                    return;
                }
                // Of edges the cells that they lead to collect it.
                let target = over.and_then(|space| match self.program.space(space).kind {
                    SpaceKind::Relation { to, .. } => Some(to),
                    SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => None,
                });
                let to = target.or(over);
                let temp = self.fields.temp(&self.program.field(field).name, "adjoint", to);
                match target {
                    Some(_) => b.accumulate(temp, Some(Map::Target), part),
                    None => b.store(temp, part),
                }
                self.shared.entry((field, to)).or_default().push(temp);
            }
        }
    }

    /// A copy of what the elements of a solve do by themselves, which engines may use up.
    fn used(&mut self, b: &mut RegionBuilder, solve: &Solve, version: Version, own: FieldId) -> FieldId {
        let copy = self.fields.temp(&self.program.field(solve.own).name, "used", self.over(version));
        let value = b.field(own);
        b.store(copy, value);
        copy
    }

    /// A solve with a symmetric matrix, backward: the same matrix, with the adjoint of the solution on the right-hand side.
    fn solve(&mut self, at: usize, solve: &Solve, out: &mut Vec<Stage>) {
        let solved = self.walk.solves[&at];
        let over = self.over(solved.x);
        let mut b = RegionBuilder::new(over, self.next);
        b.set_origin(solve.origin);
        let Some(given) = self.adjoint(&mut b, solved.x, None) else { return };
        let name = self.program.field(solve.x).name.clone();
        let [rhs, x] = ["given", "adjoint"].map(|what| self.fields.temp(&name, what, over));
        b.store(rhs, given);
        self.needed.extend([solved.own, solved.link]);
        let [own, link] = [solved.own, solved.link].map(|version| self.home(version));
        let copy = self.used(&mut b, solve, solved.own, own);
        let moves = |version: Version| self.active.fields.contains(&self.walk.fields[version.0]);
        let [of_own, of_link, of_rhs] = [solved.own, solved.link, solved.rhs].map(moves);
        let of_from = solved.from.filter(|&version| moves(version));
        // 0 beyond the root, 1 elsewhere.
        let joined = of_link.then(|| self.fields.temp(&name, "joined", over));
        if let Some(joined) = joined {
            let one = b.constant(1.0);
            b.store(joined, one);
        }
        self.next = b.next();
        out.push(Stage::Region(b.finish()));
        out.push(Stage::Solve(Solve { x, own: copy, link, rhs, from: None, origin: solve.origin }));
        if of_rhs {
            self.adjoints.entry(solved.rhs).or_default().push(x);
        }
        if !of_own && of_from.is_none() && !of_link {
            return;
        }
        let mut b = RegionBuilder::new(over, self.next);
        b.set_origin(solve.origin);
        let adjoint = b.field(x);
        if let Some(version) = of_from {
            let by_itself = b.field(own);
            let part = b.binary(BinaryOp::Mul, by_itself, adjoint);
            self.contribute(&mut b, over, Place::Version(version, None), part, Turn::No);
        }
        if of_own || of_link {
            self.needed.insert(solved.x);
        }
        let solution = self.home(solved.x);
        if of_own {
            let mut moved = b.field(solution);
            if let Some(version) = solved.from {
                self.needed.insert(version);
                let from = self.home(version);
                let from = b.field(from);
                moved = b.binary(BinaryOp::Sub, moved, from);
            }
            let product = b.binary(BinaryOp::Mul, adjoint, moved);
            let part = b.unary(UnaryOp::Neg, product);
            self.contribute(&mut b, over, Place::Version(solved.own, None), part, Turn::No);
        }
        if let Some(joined) = joined {
            let [fall, step] = [x, solution].map(|f| {
                let (own, above) = (b.field(f), b.gather(f, Map::Parent));
                b.binary(BinaryOp::Sub, above, own)
            });
            let product = b.binary(BinaryOp::Mul, fall, step);
            let joined = b.gather(joined, Map::Parent);
            let product = b.binary(BinaryOp::Mul, joined, product);
            let part = b.unary(UnaryOp::Neg, product);
            self.contribute(&mut b, over, Place::Version(solved.link, None), part, Turn::No);
        }
        self.next = b.next();
        out.push(Stage::Region(b.finish()));
    }
}

/// Adds to the adjoint of a value.
fn join(b: &mut RegionBuilder, adjoints: &mut HashMap<ValueId, Adjoint>, value: ValueId, part: Adjoint) {
    let sum = match adjoints.get(&value) {
        None => part,
        Some(&before) => {
            let value = b.binary(BinaryOp::Add, before.value, part.value);
            Adjoint { value, masked: before.masked || part.masked }
        }
    };
    adjoints.insert(value, sum);
}

/// The sum of values, in their order; none of none.
pub(super) fn sum(b: &mut RegionBuilder, values: &[ValueId]) -> Option<ValueId> {
    values.iter().copied().reduce(|sum, value| b.binary(BinaryOp::Add, sum, value))
}

/// The sum of fields, in their order, of the element itself or of the one that the map leads to; none of none.
pub(super) fn sum_of(b: &mut RegionBuilder, fields: &[FieldId], map: Option<Map>) -> Option<ValueId> {
    let read = |&field: &FieldId| match map {
        Some(map) => b.gather(field, map),
        None => b.field(field),
    };
    let values: Vec<ValueId> = fields.iter().map(read).collect();
    sum(b, &values)
}

impl Fields {
    /// A temp field of a name that nobody has.
    pub(super) fn temp(&mut self, name: &str, what: &str, over: Option<SpaceId>) -> FieldId {
        let name = self.free(name, what);
        self.add(Field { name, kind: FieldKind::Temp, over, history: 0, source: Source::None, origin: None })
    }
}
