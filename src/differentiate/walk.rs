//! Which store a read sees: every store of a field makes a version of it, and every read names one.
//!
//! In comes a function; out goes a [`Walk`] of it, or what keeps a step from being gone through backward.
//! Never true here: two stores make one version, or a sum grows after somebody has read it. What is added to a version belongs to it.

use super::Refused;
use crate::step::{
    BinaryOp, FieldId, FieldKind, Function, Guard, Op, OpKind, Program, Region, Solve, Stage, UnaryOp, ValueId,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::BTreeMap;

/// A version of a field: what it is from one store to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Version(pub usize);

/// The versions that a solve reads and makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Solved {
    pub x: Version,
    pub own: Version,
    pub link: Version,
    pub rhs: Version,
    pub from: Option<Version>,
}

/// A function and the versions of its fields.
pub(super) struct Walk<'a> {
    pub function: &'a Function,
    /// The field of each version.
    pub fields: Vec<FieldId>,
    /// The version of a field before the function.
    pub first: BTreeMap<FieldId, Version>,
    /// The version of a field behind the function.
    pub last: BTreeMap<FieldId, Version>,
    /// What reads see.
    pub reads: HashMap<ValueId, Version>,
    /// Reads of what the same region has stored, and the value.
    pub stored: HashMap<ValueId, ValueId>,
    /// What stores and accumulations make, by stage and operation.
    pub writes: BTreeMap<(usize, usize), Version>,
    /// The versions of solves, by stage.
    pub solves: BTreeMap<usize, Solved>,
    /// Truth values that say whether there is an event. Without a surrogate they have no derivative.
    pub events: HashSet<ValueId>,
    /// Where each value is defined, by stage and operation.
    defined: HashMap<ValueId, (usize, usize)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(program: &Program, function: &'a Function) -> Result<Walk<'a>, Refused> {
        let mut walk = Walk {
            function,
            fields: Vec::new(),
            first: BTreeMap::new(),
            last: BTreeMap::new(),
            reads: HashMap::default(),
            stored: HashMap::default(),
            writes: BTreeMap::new(),
            solves: BTreeMap::new(),
            events: HashSet::default(),
            defined: HashMap::default(),
        };
        let mut read = HashSet::default();
        for (at, stage) in function.stages.iter().enumerate() {
            match stage {
                Stage::Solve(solve) => walk.solve(at, solve, &mut read),
                Stage::Region(region) => walk.region(program, at, region, &mut read)?,
            }
        }
        walk.events = events(function);
        Ok(walk)
    }

    fn version(&mut self, field: FieldId) -> Version {
        self.fields.push(field);
        Version(self.fields.len() - 1)
    }

    /// The version that is there now.
    fn now(&mut self, field: FieldId) -> Version {
        if let Some(&version) = self.last.get(&field) {
            return version;
        }
        let version = self.version(field);
        self.first.insert(field, version);
        self.last.insert(field, version);
        version
    }

    fn next(&mut self, field: FieldId) -> Version {
        let version = self.version(field);
        self.last.insert(field, version);
        version
    }

    fn solve(&mut self, at: usize, solve: &Solve, read: &mut HashSet<Version>) {
        let [own, link, rhs] = [solve.own, solve.link, solve.rhs].map(|f| self.now(f));
        let from = solve.from.map(|f| self.now(f));
        read.extend([own, link, rhs].into_iter().chain(from));
        let x = self.next(solve.x);
        self.solves.insert(at, Solved { x, own, link, rhs, from });
    }

    fn region(
        &mut self,
        program: &Program,
        at: usize,
        region: &Region,
        read: &mut HashSet<Version>,
    ) -> Result<(), Refused> {
        if let Some(guard) = region.guard {
            return Err(guarded(program, region, guard));
        }
        let mut here: HashMap<FieldId, ValueId> = HashMap::default();
        for (number, op) in region.ops.iter().enumerate() {
            self.defined.extend(op.result.map(|value| (value, (at, number))));
            match (op.kind, op.result) {
                (OpKind::Field(field), Some(result)) if is_kept(program, field) => match here.get(&field) {
                    Some(&value) => {
                        self.stored.insert(result, value);
                    }
                    None => {
                        let version = self.now(field);
                        read.insert(version);
                        self.reads.insert(result, version);
                    }
                },
                (OpKind::Gather(field, _), Some(result)) => {
                    let version = self.now(field);
                    read.insert(version);
                    self.reads.insert(result, version);
                }
                (OpKind::Store(field, value), _) => {
                    let version = self.next(field);
                    here.insert(field, value);
                    self.writes.insert((at, number), version);
                }
                (OpKind::Accumulate(field, ..), _) => {
                    let version = match self.last.get(&field) {
                        None => self.next(field),
                        // What was stored and what is added make one sum.
                        Some(&version) if !read.contains(&version) => version,
                        Some(_) => {
                            let name = &program.field(field).name;
                            let what = format!("`{name}` is added to after it was read");
                            return Err(Refused::new(program, Some(op), what));
                        }
                    };
                    self.writes.insert((at, number), version);
                }
                (OpKind::Back(field, ..), _) => {
                    let what = format!("`{}` is read of an earlier step", program.field(field).name);
                    return Err(Refused::new(program, Some(op), what));
                }
                (
                    OpKind::Const(_)
                    | OpKind::Bool(_)
                    | OpKind::Field(_)
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
                    | OpKind::Gather(..)
                    | OpKind::Spike(..)
                    | OpKind::SpikeBy(..)
                    | OpKind::Emit(..),
                    _,
                ) => {}
            }
        }
        Ok(())
    }

    /// The operations that a region runs, in order, each with its number in the region; before them those of other regions whose values it uses.
    pub(super) fn ops(&self, at: usize, region: &'a Region) -> Vec<(Option<usize>, &'a Op)> {
        let mut foreign: BTreeMap<(usize, usize), &Op> = BTreeMap::new();
        let mut open: Vec<ValueId> = region.ops.iter().flat_map(|op| op.kind.operands()).collect();
        while let Some(value) = open.pop() {
            let Some(&place) = self.defined.get(&value) else { continue };
            if place.0 == at || foreign.contains_key(&place) {
                continue;
            }
            let region = self.function.stages.get(place.0).and_then(Stage::region);
            let Some(op) = region.and_then(|region| region.ops.get(place.1)) else { continue };
            open.extend(op.kind.operands());
            foreign.insert(place, op);
        }
        let own = region.ops.iter().enumerate().map(|(number, op)| (Some(number), op));
        foreign.into_values().map(|op| (None, op)).chain(own).collect()
    }
}

/// The truth values of a function that are emitted, and those that are made of them.
pub(super) fn events(function: &Function) -> HashSet<ValueId> {
    let emitted = |op: &Op| if let OpKind::Emit(_, mask) = op.kind { Some(mask) } else { None };
    let mut events: HashSet<ValueId> = function.ops().filter_map(emitted).collect();
    for op in function.ops() {
        let of_masks =
            matches!(op.kind, OpKind::Unary(UnaryOp::Not, _) | OpKind::Binary(BinaryOp::And | BinaryOp::Or, ..));
        let of_event = of_masks && op.kind.operands().iter().any(|v| events.contains(v));
        events.extend(op.result.filter(|_| of_event));
    }
    events
}

/// Why a region that events reach has no derivative.
pub(super) fn guarded(program: &Program, region: &Region, guard: Guard) -> Refused {
    let name = &program.field(guard.event).name;
    Refused::new(program, region.ops.first(), format!("`{name}` decides what a step does"))
}

/// Is a field one that versions are made of? All others are the same in the whole run.
fn is_kept(program: &Program, field: FieldId) -> bool {
    match program.field(field).kind {
        FieldKind::Const | FieldKind::State | FieldKind::Temp | FieldKind::Output => true,
        FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Event => false,
    }
}
