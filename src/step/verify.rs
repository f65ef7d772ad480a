//! The verifier: the rules of the IR, each with a name.
//!
//! In comes a [`Program`] from anywhere; out goes the same program as [`Verified`], or the first [`Rule`] it breaks and
//! where.
//! Never true here: a program is changed, or an id is trusted before it was checked.

use super::print::{field_name, kernel_heading, kind_name, phase_name, print_op, role_name};
use super::{Field, FieldId, FieldKind, Kernel, Op, OpKind, Phase, Program, Role, SpaceId, Type, ValueId};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A program that obeys every rule of the IR.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified(Program);

impl Verified {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// The program, free to be changed (and then to be verified again).
    pub fn into_inner(self) -> Program {
        self.0
    }
}

/// The rules, in the order in which they are explained by [`Rule::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // `ALL` says what each demands
pub enum Rule {
    UniqueSpaces,
    UniqueFields,
    IdsInRange,
    OneKernel,
    Steps,
    PhaseOrder,
    Result,
    DefinedOnce,
    DefinedBefore,
    Types,
    OwnSpace,
    UniformRegions,
    TimePhases,
    TimeStep,
    Readable,
    ReadPhase,
    StoredBeforeRead,
    Storable,
    EffectPhase,
    /// Edge regions.
    EdgeRegions,
    Emits,
    Samples,
    Streams,
    InitStores,
    ObserveStores,
}

impl Rule {
    /// Every rule with its name and what it demands.
    pub const ALL: &'static [(Rule, &'static str, &'static str)] = &[
        (Rule::UniqueSpaces, "unique-spaces", "no two spaces have one name"),
        (Rule::UniqueFields, "unique-fields", "no two fields have one name"),
        (Rule::IdsInRange, "ids-in-range", "spaces, fields and origins exist"),
        (Rule::OneKernel, "one-kernel", "a space has at most one kernel of each role"),
        (Rule::Steps, "steps", "`steps` is at least 1, and 1 for init and observe kernels"),
        (Rule::PhaseOrder, "phase-order", "regions are listed in the order call, time, cell, edge, body"),
        (Rule::Result, "result", "stores and emits define no value, all other operations define one"),
        (Rule::DefinedOnce, "defined-once", "a value is defined once in its kernel"),
        (
            Rule::DefinedBefore,
            "defined-before",
            "a value is defined earlier in the same region or in a region whose phase reaches the user's",
        ),
        (
            Rule::Types,
            "types",
            "operands have the types that the operation takes; arithmetic takes reals or singles; select, store, sample and approximate take reals",
        ),
        (Rule::OwnSpace, "own-space", "a kernel touches only fields of its own space and fields without a space"),
        (
            Rule::UniformRegions,
            "uniform-regions",
            "call and time regions touch uniform values only: no field of a space, no index, no draw",
        ),
        (Rule::TimePhases, "time-phases", "time and step_index stand in time and body regions only"),
        (Rule::TimeStep, "time-step", "a program that uses time has a uniform named `dt`"),
        (
            Rule::Readable,
            "readable",
            "`field` reads uniform, cell and state fields, data fields in init and temp fields in step",
        ),
        (Rule::ReadPhase, "read-phase", "what a kernel stores, and every state, is read in body regions only"),
        (
            Rule::StoredBeforeRead,
            "stored-before-read",
            "temp fields, and in init all cell and state fields, are stored before they are read",
        ),
        (
            Rule::Storable,
            "storable",
            "init stores cell and state fields, step stores state and temp fields, observe stores outputs",
        ),
        (Rule::EffectPhase, "effect-phase", "stores and emits stand in body regions only"),
        (
            Rule::EdgeRegions,
            "edge-regions",
            "edge regions belong to the step of their edges' space; only they read `there`, and `accumulate` to temps",
        ),
        (Rule::Emits, "emits", "emit names an event field, in a step kernel"),
        (Rule::Samples, "samples", "sample names a series field"),
        (Rule::Streams, "streams", "the stream of a draw is below 2^32"),
        (Rule::InitStores, "init-stores", "the init kernel of a space stores each of its state and cell fields"),
        (Rule::ObserveStores, "observe-stores", "the observe kernel of a space stores each of its output fields"),
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        // ALL is in the order of the declaration; a test checks it.
        Rule::ALL[self as usize].1
    }

    /// What it demands.
    pub fn demand(self) -> &'static str {
        Rule::ALL[self as usize].2
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// Which.
    pub rule: Rule,
    /// The kernel and operation, or the declaration.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {}: {})", self.place, self.problem, self.rule.name(), self.rule.demand())
    }
}

impl std::error::Error for VerifyError {}

/// Checks every rule.
pub fn verify(program: Program) -> Result<Verified, VerifyError> {
    check(&program)?;
    Ok(Verified(program))
}

/// Checks every rule of a program that is still being changed.
pub fn check(program: &Program) -> Result<(), VerifyError> {
    declarations(program)?;
    let mut seen = HashSet::new();
    for kernel in &program.kernels {
        if kernel.space.0 as usize >= program.spaces.len() {
            return Err(declaration(program, kernel, Rule::IdsInRange, "it runs over a space that does not exist"));
        }
        if !seen.insert((kernel.role, kernel.space)) {
            return Err(declaration(program, kernel, Rule::OneKernel, "there is another one"));
        }
        KernelCheck { program, kernel, values: HashMap::new(), stored: HashSet::new() }.run()?;
    }
    completeness(program)
}

fn declaration(program: &Program, kernel: &Kernel, rule: Rule, problem: &str) -> VerifyError {
    VerifyError { rule, place: kernel_heading(program, kernel.role, kernel.space), problem: problem.into() }
}

fn declarations(program: &Program) -> Result<(), VerifyError> {
    let mut names = HashSet::new();
    for space in &program.spaces {
        if !names.insert(&space.name) {
            let problem = "another space has this name".into();
            return Err(VerifyError { rule: Rule::UniqueSpaces, place: format!("space {:?}", space.name), problem });
        }
    }
    names.clear();
    for field in &program.fields {
        let fail = |rule, problem: &str| VerifyError { rule, place: describe_field(field), problem: problem.into() };
        if !names.insert(&field.name) {
            return Err(fail(Rule::UniqueFields, "another field has this name"));
        }
        if field.kind.space().is_some_and(|s| s.0 as usize >= program.spaces.len()) {
            return Err(fail(Rule::IdsInRange, "it is over a space that does not exist"));
        }
        if field.origin.is_some_and(|o| o.0 as usize >= program.origins.len()) {
            return Err(fail(Rule::IdsInRange, "its origin does not exist"));
        }
    }
    Ok(())
}

fn describe_field(field: &Field) -> String {
    format!("{} {:?}", kind_name(field.kind), field.name)
}

/// The rules that need all kernels.
fn completeness(program: &Program) -> Result<(), VerifyError> {
    for (i, field) in program.fields.iter().enumerate() {
        let (rule, role) = match field.kind {
            FieldKind::Cell(_) | FieldKind::State(_) => (Rule::InitStores, Role::Init),
            FieldKind::Output(_) => (Rule::ObserveStores, Role::Observe),
            FieldKind::Uniform
            | FieldKind::Series
            | FieldKind::Data(_)
            | FieldKind::Temp(_)
            | FieldKind::Event(_)
            | FieldKind::Edges(_) => continue,
        };
        let stores = |op: &Op| matches!(op.kind, OpKind::Store(f, _) if f.0 as usize == i);
        let kernel = field.kind.space().and_then(|space| program.kernel(role, space));
        if !kernel.is_some_and(|k| k.regions.iter().flat_map(|r| &r.ops).any(stores)) {
            let problem = format!("no {} kernel stores it", role_name(role));
            return Err(VerifyError { rule, place: describe_field(field), problem });
        }
    }
    Ok(())
}

/// One kernel on the way from its first operation to its last.
struct KernelCheck<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    /// The type of each value so far, and the region and phase that defined it.
    values: HashMap<ValueId, (Type, usize, Phase)>,
    stored: HashSet<FieldId>,
}

impl<'a> KernelCheck<'a> {
    fn run(mut self) -> Result<(), VerifyError> {
        let kernel = self.kernel;
        let fail = |rule, problem: String| Err(declaration(self.program, kernel, rule, &problem));
        if kernel.steps == 0 {
            return fail(Rule::Steps, "it takes 0 steps".into());
        }
        if kernel.role != Role::Step && kernel.steps != 1 {
            return fail(Rule::Steps, format!("it takes {} steps", kernel.steps));
        }
        for pair in kernel.regions.windows(2) {
            if pair[0].phase > pair[1].phase {
                let [before, after] = [pair[0].phase, pair[1].phase].map(phase_name);
                return fail(Rule::PhaseOrder, format!("a {after} region follows a {before} region"));
            }
        }
        for (index, region) in kernel.regions.iter().enumerate() {
            if let Phase::Edge(edges) = region.phase {
                let kind = self.program.fields.get(edges.0 as usize).map(|f| f.kind);
                if kind != Some(FieldKind::Edges(kernel.space)) || kernel.role != Role::Step {
                    return fail(
                        Rule::EdgeRegions,
                        "its field is not the edges of the kernel's space, or this is no step".into(),
                    );
                }
            }
            for op in &region.ops {
                self.op(op, index, region.phase).map_err(|(rule, problem)| {
                    let heading = kernel_heading(self.program, kernel.role, kernel.space);
                    VerifyError { rule, place: format!("{heading}, `{}`", print_op(self.program, op)), problem }
                })?;
            }
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, region: usize, phase: Phase) -> Result<(), (Rule, String)> {
        if op.origin.is_some_and(|o| o.0 as usize >= self.program.origins.len()) {
            return Err((Rule::IdsInRange, "its origin does not exist".into()));
        }
        let operands =
            op.kind.operands().iter().map(|&v| self.used(v, region, phase)).collect::<Result<Vec<_>, _>>()?;
        let result = self.types(&op.kind, &operands)?;
        self.place(&op.kind, phase)?;
        match (op.result, result) {
            (None, None) => Ok(()),
            (Some(_), None) => Err((Rule::Result, "it defines a value".into())),
            (None, Some(_)) => Err((Rule::Result, "it defines no value".into())),
            (Some(value), Some(ty)) => match self.values.insert(value, (ty, region, phase)) {
                Some(_) => Err((Rule::DefinedOnce, format!("%{} is defined already", value.0))),
                None => Ok(()),
            },
        }
    }

    fn used(&self, value: ValueId, region: usize, phase: Phase) -> Result<Type, (Rule, String)> {
        let fail = |problem: String| Err((Rule::DefinedBefore, format!("%{} {problem}", value.0)));
        match self.values.get(&value) {
            None => fail("is not defined above".into()),
            Some(&(ty, from, _)) if from == region => Ok(ty),
            Some(&(_, _, from)) if from == phase => fail(format!("belongs to another {} region", phase_name(phase))),
            Some(&(_, _, from)) if !from.reaches(phase) => fail(format!(
                "belongs to a {} region, which a {} region does not see",
                phase_name(from),
                phase_name(phase)
            )),
            Some(&(ty, _, _)) => Ok(ty),
        }
    }

    fn types(&self, kind: &OpKind, operands: &[Type]) -> Result<Option<Type>, (Rule, String)> {
        use Type::{Mask, Real, Single};
        // Arithmetic of singles.
        let real = if operands.first() == Some(&Single) { Single } else { Real };
        let like = |ty: Type, from: Type, to: Type| if (from, to) == (Real, Real) { real } else { ty };
        let (expected, result): (Vec<Type>, Option<Type>) = match kind {
            OpKind::Const(_)
            | OpKind::Field(_)
            | OpKind::There(_)
            | OpKind::Time
            | OpKind::StepIndex
            | OpKind::Index => (vec![], Some(Real)),
            OpKind::Bool(_) => (vec![], Some(Mask)),
            OpKind::Unary(op, _) => {
                let (from, to) = op.types();
                (vec![like(from, from, to)], Some(like(to, from, to)))
            }
            OpKind::Approximate(..) => (vec![Real], Some(Real)),
            OpKind::Binary(op, ..) => {
                let (from, to) = op.types();
                (vec![like(from, from, to); 2], Some(like(to, from, to)))
            }
            OpKind::Fma(..) => (vec![real; 3], Some(real)),
            OpKind::Select(..) => (vec![Mask, Real, Real], Some(Real)),
            OpKind::Draw(..) | OpKind::Sample(..) => (vec![Real], Some(Real)),
            OpKind::Store(..) | OpKind::Accumulate(..) => (vec![Real], None),
            OpKind::Emit(..) => (vec![Mask], None),
        };
        for ((value, found), expected) in kind.operands().iter().zip(operands).zip(&expected) {
            if found != expected {
                let [found, expected] = [found, expected].map(|t| match t {
                    Real => "real",
                    Single => "single",
                    Mask => "mask",
                });
                return Err((Rule::Types, format!("%{} is a {found}, a {expected} is needed", value.0)));
            }
        }
        Ok(result)
    }

    /// Where an operation may stand and what it may touch.
    fn place(&mut self, kind: &OpKind, phase: Phase) -> Result<(), (Rule, String)> {
        let uniform = matches!(phase, Phase::Call | Phase::Time);
        let in_region = format!("this is a {} region", phase_name(phase));
        match *kind {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..) => Ok(()),
            OpKind::Time | OpKind::StepIndex if matches!(phase, Phase::Call | Phase::Cell) => {
                Err((Rule::TimePhases, in_region))
            }
            OpKind::StepIndex => Ok(()),
            OpKind::Time => {
                let dt = self.program.find_field("dt").map(|f| self.program.field(f).kind);
                if dt == Some(FieldKind::Uniform) { Ok(()) } else { Err((Rule::TimeStep, "there is none".into())) }
            }
            OpKind::Index | OpKind::Draw(..) if uniform => Err((Rule::UniformRegions, in_region)),
            OpKind::Draw(_, stream, _) if u32::try_from(stream).is_err() => {
                Err((Rule::Streams, format!("its stream is {stream}")))
            }
            OpKind::Index | OpKind::Draw(..) => Ok(()),
            OpKind::There(field) => {
                let kind = self.touched(field, uniform, &in_region)?;
                if !matches!(kind, FieldKind::State(_)) {
                    return Err((Rule::EdgeRegions, self.is_a(field, kind)));
                }
                if matches!(phase, Phase::Edge(_)) { Ok(()) } else { Err((Rule::EdgeRegions, in_region)) }
            }
            OpKind::Accumulate(field, _) => {
                let kind = self.touched(field, uniform, &in_region)?;
                self.stored.insert(field);
                if !matches!(kind, FieldKind::Temp(_)) {
                    return Err((Rule::EdgeRegions, self.is_a(field, kind)));
                }
                if matches!(phase, Phase::Edge(_)) { Ok(()) } else { Err((Rule::EdgeRegions, in_region)) }
            }
            OpKind::Field(field) => self.read(field, phase, &in_region),
            OpKind::Sample(field, _) => match self.touched(field, uniform, &in_region)? {
                FieldKind::Series => Ok(()),
                other => Err((Rule::Samples, self.is_a(field, other))),
            },
            OpKind::Store(field, _) => {
                let kind = self.touched(field, uniform, &in_region)?;
                let role = self.kernel.role;
                let legal = match kind {
                    FieldKind::Cell(_) => role == Role::Init,
                    FieldKind::State(_) => matches!(role, Role::Init | Role::Step),
                    FieldKind::Temp(_) => role == Role::Step,
                    FieldKind::Output(_) => role == Role::Observe,
                    FieldKind::Uniform
                    | FieldKind::Series
                    | FieldKind::Data(_)
                    | FieldKind::Event(_)
                    | FieldKind::Edges(_) => false,
                };
                if !legal {
                    return Err((Rule::Storable, self.is_a(field, kind)));
                }
                self.stored.insert(field);
                if phase == Phase::Body { Ok(()) } else { Err((Rule::EffectPhase, in_region)) }
            }
            OpKind::Emit(field, _) => {
                let kind = self.touched(field, uniform, &in_region)?;
                if !matches!(kind, FieldKind::Event(_)) {
                    return Err((Rule::Emits, self.is_a(field, kind)));
                }
                if self.kernel.role != Role::Step {
                    return Err((Rule::Emits, format!("this is a {} kernel", role_name(self.kernel.role))));
                }
                if phase == Phase::Body { Ok(()) } else { Err((Rule::EffectPhase, in_region)) }
            }
        }
    }

    fn read(&self, field: FieldId, phase: Phase, in_region: &str) -> Result<(), (Rule, String)> {
        let uniform = matches!(phase, Phase::Call | Phase::Time);
        let kind = self.touched(field, uniform, in_region)?;
        let init = self.kernel.role == Role::Init;
        let (readable, changes, must_be_stored) = match kind {
            FieldKind::Uniform => (true, false, false),
            FieldKind::Data(_) => (init, false, false),
            FieldKind::Cell(_) => (true, init, init),
            FieldKind::State(_) => (true, true, init),
            FieldKind::Temp(_) => (self.kernel.role == Role::Step, true, true),
            FieldKind::Series | FieldKind::Output(_) | FieldKind::Event(_) | FieldKind::Edges(_) => {
                (false, false, false)
            }
        };
        if !readable {
            let role = role_name(self.kernel.role);
            return Err((Rule::Readable, format!("{}, and this is the {role} kernel", self.is_a(field, kind))));
        }
        let edge_state = matches!((kind, phase), (FieldKind::State(_), Phase::Edge(_)));
        if changes && phase != Phase::Body && !edge_state {
            return Err((Rule::ReadPhase, in_region.into()));
        }
        if must_be_stored && !self.stored.contains(&field) {
            return Err((Rule::StoredBeforeRead, format!("{} is not stored above", field_name(self.program, field))));
        }
        Ok(())
    }

    /// The kind of a field that exists and that this kernel may name in a region like this.
    fn touched(&self, id: FieldId, uniform: bool, in_region: &str) -> Result<FieldKind, (Rule, String)> {
        let Some(field) = self.program.fields.get(id.0 as usize) else {
            return Err((Rule::IdsInRange, format!("field {} does not exist", id.0)));
        };
        match field.kind.space() {
            Some(space) if space != self.kernel.space => {
                Err((Rule::OwnSpace, format!("{} is over {}", field_name(self.program, id), self.space(space))))
            }
            Some(_) if uniform => Err((Rule::UniformRegions, in_region.into())),
            Some(_) | None => Ok(field.kind),
        }
    }

    fn space(&self, id: SpaceId) -> String {
        super::print::space_name(self.program, id)
    }

    fn is_a(&self, field: FieldId, kind: FieldKind) -> String {
        format!("{} is a field of kind {}", field_name(self.program, field), kind_name(kind))
    }
}

#[cfg(test)]
mod tests;
