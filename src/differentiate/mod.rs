//! Gradients: from a program of steps to a program that goes back, step by step, and finds them (reverse mode, [`backward`]), or to one that carries
//! derivatives along (forward mode, [`forward`](forward()), which has its own documentation in `forward.rs`).
//!
//! In come a verified program, what a loss reads ([`Wanted::of`]) and the parameters that the loss is to be differentiated in ([`Wanted::wrt`]); out goes a
//! verified program that every engine runs as it runs any other, or what has no derivative ([`Refused`]).
//! Never true here: a derivative is dropped or approximated, or a back end has to know of gradients.
//!
//! # The program that goes back
//!
//! Its constants and states are those of the program, with the same names. Beside each state that moves with a parameter stands its *adjoint*, the
//! derivative of the loss in it ([`Source::Adjoint`]), and for everything that the loss reads a *seed*, the derivative of the loss in what was
//! read after this step ([`Source::Seed`]); both begin at 0.
//!
//! Behind its spaces stands for every relation of the program, in their order, another one, `'turned`: the same edges from their targets to their sources. So
//! what goes back along edges is added up at the ends that they lead to, as everywhere.
//!
//! - `fn init` is that of the program.
//! - `fn step` expects in the states what they were after `k` steps, in the adjoints what it left there when it went back to step `k + 1`, and in the
//!   seeds those of what was read after `k` steps. It computes the step forward once more, with each store in a field of its own; goes through
//!   its stages and those of `observe` in reverse; and leaves the adjoints of the states after `k` steps. What parameters contribute is added up beside.
//! - `fn observe` goes back through `init`, after `k = 0`, and stores the gradient ([`Source::Gradient`]) in each parameter: that of a uniform
//!   parameter element by element of each space that reads it, to be summed up in the order of the spaces and elements; that of a constant element by
//!   element, as if it was written after `init`, so that what `init` makes of it stays.
//!
//! So a run of `n` steps is undone by calls of `fn step` for `k = n, n - 1, ... 0`: in the first one adjoints are 0, so that its seeds alone count.
//! The time, the number of a step and draws are those of the step.
//!
//! # The law
//!
//! The adjoint of a read is a sum over those who read: of `gather` along a map it is `accumulate` along it, of `accumulate` it is `gather`, and
//! `solve` with a symmetric matrix is its own. To keep stages independent of the order of elements, every stage contributes to a field of its own,
//! and who needs the adjoint adds them up.
//!
//! Comparisons, `floor` and draws stand still between jumps: their derivative is 0. A selection has the derivative of the side that it is on; if a
//! `spike` with a surrogate decides, alone or joined to other conditions, the surrogate's beside. What jumps when a cell spikes without a surrogate,
//! events that arrive, and histories are refused.

mod active;
mod adjoint;
mod forward;
mod sweep;
#[cfg(test)]
mod tests;
mod walk;

use crate::step::{
    Field, FieldId, FieldKind, Function, Op, OpKind, Origin, Program, Region, RegionBuilder, Role, Source, Space,
    SpaceId, SpaceKind, Stage, ValueId, Verified, verify,
};
use active::Active;
pub use forward::forward;
use rustc_hash::FxHashSet as HashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use sweep::{Sweep, sum, sum_of};
use walk::Walk;

/// What is differentiated in what: fields of the program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The states and outputs that the loss reads; the number of each is that of its seed.
    pub of: Vec<FieldId>,
    /// Uniform and constant fields; the number of each is that of its gradient.
    pub wrt: Vec<FieldId>,
    /// States that count as they were before the first step: their adjoints are there, whether a parameter moves them or not.
    pub from: Vec<FieldId>,
    /// States that are written from outside before every step. After a call for `k` steps the adjoint of such a state is the derivative in what was written
    /// before step `k + 1`.
    pub given: Vec<FieldId>,
}

/// What has no gradient, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reason, the beginning of a sentence.
    pub what: String,
    /// Where it comes from.
    pub origin: Option<Origin>,
}

impl Refused {
    fn new(program: &Program, op: Option<&Op>, what: String) -> Refused {
        let origin = op.and_then(|op| op.origin).and_then(|id| program.origins.get(id.0 as usize)).cloned();
        Refused { what, origin }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(Origin { file, line }) => write!(f, "{} ({file}:{line}), which has no gradient so far", self.what),
            None => write!(f, "{}, which has no gradient so far", self.what),
        }
    }
}

impl std::error::Error for Refused {}

/// The fields of the program in the making.
struct Fields {
    list: Vec<Field>,
    names: HashSet<String>,
    /// Fields of the program that stay, in the new one.
    same: BTreeMap<FieldId, FieldId>,
}

impl Fields {
    fn add(&mut self, field: Field) -> FieldId {
        self.names.insert(field.name.clone());
        self.list.push(field);
        FieldId(self.list.len() as u32 - 1)
    }

    /// A name that no field has.
    fn free(&self, name: &str, what: &str) -> String {
        let plain = format!("{name}'{what}");
        let numbered = (2..).map(|n| format!("{plain}{n}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or(plain)
    }

    /// A uniform, a series, a data field, a constant or a state in the new program.
    fn same(&self, field: FieldId) -> FieldId {
        self.same.get(&field).copied().unwrap_or(field)
    }

    /// A state that the program does not have.
    fn state(&mut self, name: &str, what: &str, over: Option<SpaceId>, source: Source) -> FieldId {
        let name = self.free(name, what);
        self.add(Field { name, kind: FieldKind::State, over, history: 0, source, origin: None })
    }
}

/// The program that goes back; see the module documentation.
pub fn backward(program: &Verified, wanted: &Wanted) -> Result<Verified, Refused> {
    let program = program.program();
    check(program, wanted)?;
    let active = Active::new(program, &[&wanted.wrt[..], &wanted.from[..], &wanted.given[..]].concat());
    let empty = |role| Function { role, steps: 1, stages: Vec::new() };
    let [init, step, observe] = [Role::Init, Role::Step, Role::Observe]
        .map(|role| program.function(role).cloned().unwrap_or_else(|| empty(role)));
    let [of_init, of_step, of_observe] =
        [Walk::new(program, &init)?, Walk::new(program, &step)?, Walk::new(program, &observe)?];
    if let Some(op) = of_init.fields.iter().enumerate().find(|(i, f)| of_init.fields[..*i].contains(f)) {
        let what = format!("`{}` is stored twice at the start", program.field(*op.1).name);
        return Err(Refused { what, origin: None });
    }
    let (spaces, turned) = turned(program);
    let mut fields = kept(program);
    let mut draft = Draft { program, active: &active, kept_data: BTreeMap::new(), zeros: Vec::new() };

    // What is added up or carried from step to step.
    let adjoints: BTreeMap<FieldId, FieldId> = program
        .fields_where(|f| f.kind == FieldKind::State)
        .into_iter()
        .filter(|f| active.fields.contains(f))
        .map(|f| {
            let field = program.field(f);
            (f, draft.zero(&mut fields, &field.name, "adjoint", field.over, Source::Adjoint(f.0)))
        })
        .collect();
    // The loss may read one thing several times.
    let seeds: Vec<(FieldId, FieldId)> = (wanted.of.iter().zip(0..))
        .map(|(&f, i)| {
            let field = program.field(f);
            (f, draft.zero(&mut fields, &field.name, "seed", field.over, Source::Seed(i)))
        })
        .collect();

    // Back through a step, from the states behind it, and through what is observed before it.
    let mut stages = Vec::new();
    let mut next = ValueId(0);
    let mut of_states: BTreeMap<FieldId, Vec<FieldId>> = BTreeMap::new();
    let mut of_shared: BTreeMap<(FieldId, Option<SpaceId>), Vec<FieldId>> = BTreeMap::new();
    let of_next: Vec<(FieldId, FieldId)> = adjoints.iter().map(|(&field, &adjoint)| (field, adjoint)).collect();
    for (walk, from) in [(&of_step, &of_next), (&of_observe, &seeds)] {
        let mut sweep = Sweep::new(program, walk, &active, &mut fields, &turned, next);
        for (&field, &first) in &walk.first {
            sweep.home.insert(first, sweep.fields.same(field));
        }
        // What is written from outside does not last.
        let last = |field: &FieldId| walk.function.role != Role::Step || !wanted.given.contains(field);
        for &(field, adjoint) in from.iter().filter(|(field, _)| last(field)) {
            match walk.last.get(&field) {
                // What the loss reads of a state is added below.
                Some(&last) if walk.function.role == Role::Step || program.field(field).kind == FieldKind::Output => {
                    sweep.adjoints.entry(last).or_default().push(adjoint);
                }
                None if walk.function.role == Role::Step => of_states.entry(field).or_default().push(adjoint),
                Some(_) | None => {}
            }
        }
        let back = sweep.back()?;
        let again = sweep.again();
        stages.extend(again);
        stages.extend(back);
        next = sweep.next;
        for (field, first) in &walk.first {
            of_states.entry(*field).or_default().extend(sweep.adjoints.get(first).into_iter().flatten());
        }
        for (place, parts) in sweep.shared {
            of_shared.entry(place).or_default().extend(parts);
        }
    }
    for (field, seed) in &seeds {
        if program.field(*field).kind == FieldKind::State {
            of_states.entry(*field).or_default().push(*seed);
        }
    }
    let mut ends: BTreeMap<Option<SpaceId>, Vec<(FieldId, Vec<FieldId>)>> = BTreeMap::new();
    let mut gained: BTreeMap<(FieldId, Option<SpaceId>), FieldId> = BTreeMap::new();
    for (field, mut parts) in of_states {
        let over = program.field(field).over;
        match (program.field(field).kind, adjoints.get(&field)) {
            (FieldKind::State, Some(&adjoint)) => ends.entry(over).or_default().push((adjoint, parts)),
            (FieldKind::Const, _) if !parts.is_empty() => {
                let all = draft.zero(&mut fields, &program.field(field).name, "gained", over, Source::Adjoint(field.0));
                parts.insert(0, all);
                gained.insert((field, over), all);
                ends.entry(over).or_default().push((all, parts));
            }
            _ => {}
        }
    }
    for ((field, over), mut parts) in of_shared {
        let all = draft.zero(&mut fields, &program.field(field).name, "gained", over, Source::None);
        parts.insert(0, all);
        gained.insert((field, over), all);
        ends.entry(over).or_default().push((all, parts));
    }
    for (over, parts) in ends {
        let mut b = RegionBuilder::new(over, next);
        // All of them are read before one is stored: an adjoint may be part of another.
        let sums: Vec<(FieldId, ValueId)> = parts
            .into_iter()
            .map(|(to, parts)| {
                let sum = sum_of(&mut b, &parts, None);
                (to, sum.unwrap_or_else(|| b.constant(0.0)))
            })
            .collect();
        sums.into_iter().for_each(|(to, sum)| b.store(to, sum));
        next = b.next();
        stages.push(Stage::Region(b.finish()));
    }
    let step = Function { role: Role::Step, steps: 1, stages };
    let observe = draft.gradients(&mut fields, wanted, &of_init, &turned, &adjoints, &gained)?;
    let init = draft.init(&mut fields, &of_init);
    let name = program.name.clone();
    let origins = program.origins.clone();
    let functions = [init, step, observe].into_iter().filter(|f| !f.stages.is_empty()).collect();
    let back = Program { name, origins, spaces, fields: fields.list, functions };
    verify(back).map_err(|e| Refused { what: format!("internal error: backward, {e}"), origin: None })
}

/// Are these fields that can be read, and parameters?
fn check(program: &Program, wanted: &Wanted) -> Result<(), Refused> {
    let refuse = |field: &FieldId, why: &str| {
        let name = program.fields.get(field.0 as usize).map_or("?", |f| f.name.as_str());
        Err(Refused { what: format!("`{name}` is {why}"), origin: None })
    };
    let kind = |field: &FieldId| program.fields.get(field.0 as usize).map(|f| f.kind);
    for field in &wanted.from {
        if kind(field) != Some(FieldKind::State) {
            return refuse(field, "no state");
        }
    }
    for field in &wanted.of {
        if !matches!(kind(field), Some(FieldKind::State | FieldKind::Output)) {
            return refuse(field, "no state and no output");
        }
    }
    for field in &wanted.wrt {
        if !matches!(kind(field), Some(FieldKind::Uniform | FieldKind::Const)) {
            return refuse(field, "no parameter");
        }
    }
    Ok(())
}

/// Why a selection by an event has no derivative.
fn spiking(program: &Program, region: &Region) -> String {
    match region.over {
        Some(space) => format!("`{}` changes by a jump when it spikes", program.space(space).name),
        None => "a state changes by a jump at an event".into(),
    }
}

/// The spaces of the new program: behind those of the program a relation for each relation, whose edges are turned round.
fn turned(program: &Program) -> (Vec<Space>, BTreeMap<SpaceId, SpaceId>) {
    let mut spaces = program.spaces.clone();
    let mut turned = BTreeMap::new();
    for (space, id) in program.spaces.iter().zip(0..) {
        if let SpaceKind::Relation { from, to } = space.kind {
            let name = format!("{}'turned", space.name);
            turned.insert(SpaceId(id), SpaceId(spaces.len() as u32));
            spaces.push(Space { name, kind: SpaceKind::Relation { from: to, to: from } });
        }
    }
    (spaces, turned)
}

/// The fields that the new program shares with the program.
fn kept(program: &Program) -> Fields {
    let mut fields = Fields { list: Vec::new(), names: HashSet::default(), same: BTreeMap::new() };
    fields.names.extend(program.fields.iter().map(|f| f.name.clone()));
    for (i, field) in program.fields.iter().enumerate() {
        match field.kind {
            FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Const | FieldKind::State => {
                let same = fields.add(Field { history: 0, ..field.clone() });
                fields.same.insert(FieldId(i as u32), same);
            }
            FieldKind::Temp | FieldKind::Output | FieldKind::Event => {}
        }
    }
    fields
}

/// What the functions of the new program have in common.
struct Draft<'a> {
    program: &'a Program,
    active: &'a Active,
    /// Copies of data, which `init` alone reads.
    kept_data: BTreeMap<FieldId, FieldId>,
    /// States that begin at 0.
    zeros: Vec<FieldId>,
}

impl Draft<'_> {
    /// A state that begins at 0.
    fn zero(&mut self, fields: &mut Fields, name: &str, what: &str, over: Option<SpaceId>, source: Source) -> FieldId {
        let field = fields.state(name, what, over, source);
        self.zeros.push(field);
        field
    }

    /// `fn init` of the program, and what begins at 0.
    fn init(&self, fields: &mut Fields, walk: &Walk<'_>) -> Function {
        let mut init = walk.function.clone();
        for op in init.regions_mut().flat_map(|region| &mut region.ops) {
            op.kind = op.kind.map_field(|f| fields.same(f));
        }
        let mut next = init.next_value();
        let over = |field: &FieldId| fields.list[field.0 as usize].over;
        let spaces: BTreeSet<Option<SpaceId>> = self.zeros.iter().chain(self.kept_data.values()).map(over).collect();
        for space in spaces {
            let mut b = RegionBuilder::new(space, next);
            let zero = b.constant(0.0);
            self.zeros.iter().filter(|f| over(f) == space).for_each(|&f| b.store(f, zero));
            for (data, copy) in self.kept_data.iter().filter(|(_, copy)| over(copy) == space) {
                let value = b.field(fields.same(*data));
                b.store(*copy, value);
            }
            next = b.next();
            init.stages.push(Stage::Region(b.finish()));
        }
        init
    }

    /// `fn observe`: back through `init`, and what that and all steps have found.
    fn gradients(
        &mut self,
        fields: &mut Fields,
        wanted: &Wanted,
        walk: &Walk<'_>,
        turned: &BTreeMap<SpaceId, SpaceId>,
        adjoints: &BTreeMap<FieldId, FieldId>,
        gained: &BTreeMap<(FieldId, Option<SpaceId>), FieldId>,
    ) -> Result<Function, Refused> {
        let program = self.program;
        // Data can be read at the start only.
        let same = fields.same.clone();
        let read = |op: &Op| if let OpKind::Field(f) = op.kind { Some(f) } else { None };
        let data: BTreeSet<FieldId> =
            (walk.function.ops().filter_map(read)).filter(|&f| program.field(f).kind == FieldKind::Data).collect();
        for f in data {
            let field = program.field(f);
            let name = fields.free(&field.name, "kept");
            let copy = Field { name, kind: FieldKind::Const, source: Source::None, ..field.clone() };
            let copy = fields.add(copy);
            self.kept_data.insert(f, copy);
            fields.same.insert(f, copy);
        }
        let mut sweep = Sweep::new(program, walk, self.active, fields, turned, ValueId(0));
        for (number, &field) in walk.fields.iter().enumerate() {
            let home = sweep.fields.same(field);
            sweep.home.insert(walk::Version(number), home);
        }
        for (field, last) in &walk.last {
            let known = adjoints.get(field).or_else(|| gained.get(&(*field, program.field(*field).over)));
            sweep.adjoints.entry(*last).or_default().extend(known);
        }
        let mut stages = sweep.back()?;
        let mut next = sweep.next;
        let of_shared = sweep.shared;
        fields.same = same;
        let mut outputs: BTreeMap<Option<SpaceId>, Vec<(FieldId, Vec<FieldId>)>> = BTreeMap::new();
        for (&field, number) in wanted.wrt.iter().zip(0..) {
            let mut parts: BTreeMap<Option<SpaceId>, Vec<FieldId>> = BTreeMap::new();
            for (&(_, over), &part) in gained.iter().filter(|((f, _), _)| *f == field) {
                parts.entry(over).or_default().push(part);
            }
            for ((_, over), more) in of_shared.iter().filter(|((f, _), _)| *f == field) {
                parts.entry(*over).or_default().extend(more);
            }
            for (over, parts) in parts.into_iter().filter(|(_, parts)| !parts.is_empty()) {
                let name = fields.free(&program.field(field).name, "gradient");
                let source = Source::Gradient(number, over.map_or(program.spaces.len() as u32, |space| space.0));
                let kind = FieldKind::Output;
                let output = fields.add(Field { name, kind, over, history: 0, source, origin: None });
                outputs.entry(over).or_default().push((output, parts));
            }
        }
        for (over, parts) in outputs {
            let mut b = RegionBuilder::new(over, next);
            for (output, parts) in parts {
                let values: Vec<ValueId> = parts.into_iter().map(|part| b.field(part)).collect();
                if let Some(sum) = sum(&mut b, &values) {
                    b.store(output, sum);
                }
            }
            next = b.next();
            stages.push(Stage::Region(b.finish()));
        }
        Ok(Function { role: Role::Observe, steps: 1, stages })
    }
}
