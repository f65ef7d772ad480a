//! `fuse-regions`: one body region per space.
//!
//! In comes any program; out goes one in which bodies over one space are one region where no element can tell, each of which reads
//! each of its states once, at its top, stores each field once, at its end, and uses no temp field that nobody else needs.
//! Never true here: an element sees another value than before, or a sum is taken in another order.
//!
//! # The law
//!
//! Two bodies over one space, both without a guard, may become one in the place of the first if
//!
//! - **no stage between them is in the way**: none writes what the second reads or writes, none reads what the second writes, and none
//!   defines a value that the second uses; and
//! - **each element can run both before the next one starts**: a field that one of them writes and the other one reads or writes is over
//!   their space, and both read and write no element of it but their own (`field`, `store`, `emit`; not `gather`, `back`, `accumulate`).
//!
//! To solve is to read three fields and to write one, and a guard reads its event and its delay. Space by space this makes one body of
//! those that follow each other, however the bodies of several populations are interleaved.

use super::{Options, fields};
use crate::step::{
    FieldId, FieldKind, Function, Op, OpClass, OpKind, Phase, Program, Region, Role, SpaceId, Stage, ValueId,
};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

/// Runs the pass.
pub fn run(program: &mut Program, _options: &Options) {
    fields::each_function(program, |program, function| {
        merge(function);
        forward_all(program, function);
    });
    let named: HashSet<FieldId> = program.functions.iter().flat_map(|f| &f.stages).flat_map(fields::named).collect();
    let kinds: Vec<FieldKind> = program.fields.iter().map(|f| f.kind).collect();
    fields::retain(program, |f| kinds[f.0 as usize] != FieldKind::Temp || named.contains(&f));
}

/// What a stage reads and writes.
#[derive(Default)]
struct Accesses {
    read: HashSet<FieldId>,
    written: HashSet<FieldId>,
    /// Those of which it may read or write other elements than its own.
    others: HashSet<FieldId>,
    /// The values that it defines, and those that it uses.
    defined: HashSet<ValueId>,
    used: HashSet<ValueId>,
}

impl Accesses {
    fn of(stage: &Stage) -> Accesses {
        let mut accesses = Accesses::default();
        let region = match stage {
            Stage::Region(region) => region,
            Stage::Solve(solve) => {
                accesses.read.extend(solve.reads());
                accesses.written.insert(solve.x);
                accesses.others.extend(fields::named(stage));
                return accesses;
            }
        };
        accesses.read.extend(fields::of_guard(region));
        accesses.others.extend(fields::of_guard(region));
        for op in &region.ops {
            accesses.op(op);
        }
        accesses
    }

    fn op(&mut self, op: &Op) {
        self.defined.extend(op.result);
        self.used.extend(op.kind.operands());
        let Some(field) = op.kind.named_field() else { return };
        if op.kind.class() == OpClass::Write {
            self.written.insert(field)
        } else {
            self.read.insert(field)
        };
        if !matches!(op.kind, OpKind::Field(_) | OpKind::Store(..) | OpKind::Emit(..)) {
            self.others.insert(field);
        }
    }

    fn join(&mut self, later: Accesses) {
        self.read.extend(later.read);
        self.written.extend(later.written);
        self.others.extend(later.others);
        self.defined.extend(later.defined);
        self.used.extend(later.used);
    }

    fn touch(&self, field: &FieldId) -> bool {
        self.read.contains(field) || self.written.contains(field)
    }

    /// The fields that the order of the two matters for: one writes, the other one reads or writes.
    fn shared(&self, later: &Accesses) -> HashSet<FieldId> {
        let written = self.written.iter().filter(|f| later.touch(f));
        written.chain(later.written.iter().filter(|f| self.touch(f))).copied().collect()
    }

    /// May `later` run before this?
    fn lets_pass(&self, later: &Accesses) -> bool {
        self.shared(later).is_empty() && self.defined.is_disjoint(&later.used)
    }

    /// May each element run this and `later` before the next element does?
    fn may_join(&self, later: &Accesses) -> bool {
        self.shared(later).iter().all(|f| !self.others.contains(f) && !later.others.contains(f))
    }
}

/// The space of a region that may be merged with others over it.
fn body_space(stage: &Stage) -> Option<SpaceId> {
    stage.region().filter(|r| r.phase() == Phase::Body && r.guard.is_none())?.over
}

/// Merges each body into an earlier one that the law allows.
fn merge(function: &mut Function) {
    let mut merged: Vec<(Stage, Accesses)> = Vec::new();
    for stage in std::mem::take(&mut function.stages) {
        let accesses = Accesses::of(&stage);
        let home = body_space(&stage).and_then(|space| home(&mut merged, space, &accesses));
        match (home, stage) {
            (Some((home, before)), Stage::Region(region)) => {
                home.ops.extend(region.ops);
                before.join(accesses);
            }
            (_, stage) => merged.push((stage, accesses)),
        }
    }
    function.stages = merged.into_iter().map(|(stage, _)| stage).collect();
}

/// The last of the earlier bodies over a space that a body may be merged into.
fn home<'m>(
    earlier: &'m mut [(Stage, Accesses)],
    space: SpaceId,
    later: &Accesses,
) -> Option<(&'m mut Region, &'m mut Accesses)> {
    for (stage, accesses) in earlier.iter_mut().rev() {
        if body_space(stage) == Some(space) && accesses.may_join(later) {
            return stage.region_mut().map(|region| (region, accesses));
        }
        if !accesses.lets_pass(later) {
            return None;
        }
    }
    None
}

/// Keeps in values what passes between the operations of a body in fields.
fn forward_all(program: &Program, function: &mut Function) {
    let mut stages: HashMap<FieldId, usize> = HashMap::default();
    for stage in &function.stages {
        for field in fields::named(stage).into_iter().collect::<HashSet<_>>() {
            *stages.entry(field).or_insert(0) += 1;
        }
    }
    for stage in &mut function.stages {
        let others = Accesses::of(stage).others;
        if let Stage::Region(region) = stage
            && region.phase() == Phase::Body
        {
            let body = Body { program, role: function.role, others, stages: &stages };
            region.ops = body.forward(std::mem::take(&mut region.ops));
        }
    }
}

/// What counts for the fields of a body.
struct Body<'a> {
    program: &'a Program,
    role: Role,
    /// The fields of which the body touches other elements than its own.
    others: HashSet<FieldId>,
    /// How many stages name each field.
    stages: &'a HashMap<FieldId, usize>,
}

impl Body<'_> {
    /// Loads first, then the rest, then stores.
    fn forward(&self, ops: Vec<Op>) -> Vec<Op> {
        let mut loads = Vec::new();
        let mut rest = Vec::new();
        let mut stores: Vec<(FieldId, Op)> = Vec::new();
        let mut content: HashMap<FieldId, ValueId> = HashMap::default();
        let mut renamed: HashMap<ValueId, ValueId> = HashMap::default();
        for mut op in ops {
            op.kind = op.kind.map_operands(|v| renamed.get(&v).copied().unwrap_or(v));
            if let (OpKind::Field(field), Some(result)) = (op.kind, op.result)
                && self.changes(field)
            {
                if let Some(&value) = content.get(&field) {
                    renamed.insert(result, value);
                } else {
                    content.insert(field, result);
                    loads.push(op);
                }
            } else if let OpKind::Store(field, value) = op.kind
                && !self.others.contains(&field)
            {
                content.insert(field, value);
                stores.retain(|(f, _)| *f != field);
                stores.push((field, op));
            } else {
                rest.push(op);
            }
        }
        // A temp field that is stored is stored before it is read, so every read of it has become a value.
        stores.retain(|(f, _)| !self.vanishes(*f));
        loads.into_iter().chain(rest).chain(stores.into_iter().map(|(_, op)| op)).collect()
    }

    /// May the body store its own element of this field, and read it?
    fn changes(&self, field: FieldId) -> bool {
        let changes = match self.program.field(field).kind {
            FieldKind::State | FieldKind::Temp => true,
            FieldKind::Const => self.role == Role::Init,
            FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Output | FieldKind::Event => false,
        };
        changes && !self.others.contains(&field)
    }

    /// Is this a temp field that no other stage knows of?
    fn vanishes(&self, field: FieldId) -> bool {
        self.program.field(field).kind == FieldKind::Temp && self.stages[&field] == 1
    }
}
