//! The verifier: the rules of the IR, each with a name.
//!
//! In comes a [`Program`] from anywhere; out goes the same program as [`Verified`], or the first [`Rule`] it breaks and
//! where.
//! Never true here: a program is changed, or an id is trusted before it was checked.

use super::print::{function_heading, kind_name, role_name};
use super::{Field, FieldId, FieldKind, Function, Op, OpKind, Program, Role, Source, SpaceId};
use rustc_hash::FxHashSet as HashSet;
use std::fmt;

mod function;
#[cfg(test)]
mod tests;

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
    UniqueSources,
    IdsInRange,
    SpaceOrder,
    FieldSpace,
    History,
    OneFunction,
    Steps,
    OnceFirst,
    Result,
    DefinedOnce,
    DefinedBefore,
    Types,
    Elements,
    Maps,
    OwnElement,
    TimePhases,
    TimeStep,
    Readable,
    ReadPhase,
    StoredBeforeRead,
    Storable,
    GatheredSettled,
    Accumulates,
    Back,
    Guards,
    Solves,
    Surrogates,
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
        (Rule::UniqueSources, "unique-sources", "no two fields stand for the same thing"),
        (Rule::IdsInRange, "ids-in-range", "spaces, fields and origins exist"),
        (Rule::SpaceOrder, "space-order", "a space comes after those that its kind names"),
        (
            Rule::FieldSpace,
            "field-space",
            "uniforms and series are over nothing; data, const and event fields are over a space",
        ),
        (Rule::History, "history", "only states have a history"),
        (Rule::OneFunction, "one-function", "there is at most one function of each role"),
        (Rule::Steps, "steps", "`steps` is at least 1, and 1 for init and observe"),
        (Rule::OnceFirst, "once-first", "regions that run once stand before all other stages and have no effect"),
        (Rule::Result, "result", "stores, accumulations and emits define no value, all other operations define one"),
        (Rule::DefinedOnce, "defined-once", "a value is defined once in its function"),
        (
            Rule::DefinedBefore,
            "defined-before",
            "a value is defined above: in the same region, or in one that is over nothing, or over the same space and runs once, and that runs no more often than the user's",
        ),
        (
            Rule::Types,
            "types",
            "operands have the types that the operation takes; arithmetic takes reals or singles; select, spike, store, sample and approximate take reals",
        ),
        (Rule::Elements, "elements", "index and draw stand in regions over a space"),
        (
            Rule::Maps,
            "maps",
            "a map leads from the region's space to the field's; without one, `accumulate` names a field over nothing",
        ),
        (
            Rule::OwnElement,
            "own-element",
            "without a map, a region touches fields over its own space or over nothing; what is over nothing is stored in regions over nothing",
        ),
        (Rule::TimePhases, "time-phases", "time and step_index stand in regions that run every step"),
        (
            Rule::TimeStep,
            "time-step",
            "a program that uses time has a uniform named `dt`; nothing else stands for the time step",
        ),
        (
            Rule::Readable,
            "readable",
            "`field` and `gather` read const and state fields, and temps in step and observe; `field` also uniforms, and data in init",
        ),
        (
            Rule::ReadPhase,
            "read-phase",
            "what a function may store, and every state, is read in regions that run every step",
        ),
        (
            Rule::StoredBeforeRead,
            "stored-before-read",
            "temps, and in init const and state fields, are stored above without a guard, or accumulated to above, before they are read",
        ),
        (
            Rule::Storable,
            "storable",
            "init stores const and state fields, step states and temps, observe outputs and temps",
        ),
        (
            Rule::GatheredSettled,
            "gathered-settled",
            "a stage neither stores nor accumulates to what it gathers or goes back to, and neither reads nor stores what it accumulates to",
        ),
        (
            Rule::Accumulates,
            "accumulates",
            "accumulate names a temp, in step or observe, or in observe an output over nothing",
        ),
        (
            Rule::Back,
            "back",
            "`back` stands in regions of step that run every step and names a state with a history; a constant number of steps is a whole one from 0 to the history",
        ),
        (
            Rule::Guards,
            "guards",
            "a guarded region is over a space, runs every step of step and does not emit its own event, which is of the element or of where the map leads; the delay is a const over the region's space ; without one, an earlier stage emits the event",
        ),
        (
            Rule::Solves,
            "solves",
            "solve stands in step; all its fields are over one tree; it sets a state or temp, and reads const fields, states or temps that are stored above, none of them what it sets",
        ),
        (Rule::Surrogates, "surrogates", "the slope of a surrogate is a positive number"),
        (Rule::Emits, "emits", "emit names an event field, in init or step"),
        (Rule::Samples, "samples", "sample names a series field"),
        (Rule::Streams, "streams", "the stream of a draw is below 2^32"),
        (Rule::InitStores, "init-stores", "init stores each state and const field"),
        (Rule::ObserveStores, "observe-stores", "observe stores each output field, or accumulates to it"),
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
    /// The function and stage and operation, or the declaration.
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
    spaces(program)?;
    fields(program)?;
    let mut seen = HashSet::default();
    for function in &program.functions {
        if !seen.insert(function.role) {
            return Err(of_function(function, Rule::OneFunction, "there is another one"));
        }
        if function.steps == 0 {
            return Err(of_function(function, Rule::Steps, "it takes 0 steps"));
        }
        if function.role != Role::Step && function.steps != 1 {
            return Err(of_function(function, Rule::Steps, &format!("it takes {} steps", function.steps)));
        }
        function::check(program, function)?;
    }
    completeness(program)
}

fn of_function(function: &Function, rule: Rule, problem: &str) -> VerifyError {
    VerifyError { rule, place: function_heading(function.role), problem: problem.into() }
}

fn spaces(program: &Program) -> Result<(), VerifyError> {
    let mut names = HashSet::default();
    for (i, space) in program.spaces.iter().enumerate() {
        let fail = |rule, problem: &str| {
            Err(VerifyError { rule, place: format!("space {:?}", space.name), problem: problem.into() })
        };
        if !names.insert(&space.name) {
            return fail(Rule::UniqueSpaces, "another space has this name");
        }
        for other in space.kind.spaces() {
            if !exists(program, other) {
                return fail(Rule::IdsInRange, "a space that it is made of does not exist");
            }
            if other.0 as usize >= i {
                return fail(Rule::SpaceOrder, "a space that it is made of does not stand above it");
            }
        }
    }
    Ok(())
}

fn exists(program: &Program, space: SpaceId) -> bool {
    (space.0 as usize) < program.spaces.len()
}

fn fields(program: &Program) -> Result<(), VerifyError> {
    let mut names = HashSet::default();
    let mut sources = HashSet::default();
    for field in &program.fields {
        let fail = |rule, problem: &str| Err(of_field(field, rule, problem));
        if !names.insert(&field.name) {
            return fail(Rule::UniqueFields, "another field has this name");
        }
        if field.source != Source::None && !sources.insert(field.source) {
            return fail(Rule::UniqueSources, "another field stands for the same thing");
        }
        if field.over.is_some_and(|s| !exists(program, s)) {
            return fail(Rule::IdsInRange, "it is over a space that does not exist");
        }
        if field.origin.is_some_and(|o| o.0 as usize >= program.origins.len()) {
            return fail(Rule::IdsInRange, "its origin does not exist");
        }
        match (field.kind, field.over) {
            (FieldKind::Uniform | FieldKind::Series, Some(_)) => return fail(Rule::FieldSpace, "it is over a space"),
            (FieldKind::Data | FieldKind::Const | FieldKind::Event, None) => {
                return fail(Rule::FieldSpace, "it is over no space");
            }
            (FieldKind::Uniform | FieldKind::Series | FieldKind::State | FieldKind::Temp | FieldKind::Output, None)
            | (
                FieldKind::Data
                | FieldKind::Const
                | FieldKind::State
                | FieldKind::Temp
                | FieldKind::Output
                | FieldKind::Event,
                Some(_),
            ) => {}
        }
        if field.history > 0 && field.kind != FieldKind::State {
            return fail(Rule::History, "it has one");
        }
        if field.source == Source::Dt && !is_time_step(field) {
            return fail(Rule::TimeStep, "it stands for the time step");
        }
    }
    Ok(())
}

fn is_time_step(field: &Field) -> bool {
    field.kind == FieldKind::Uniform && field.name == "dt"
}

fn of_field(field: &Field, rule: Rule, problem: &str) -> VerifyError {
    VerifyError { rule, place: format!("{} {:?}", kind_name(field.kind), field.name), problem: problem.into() }
}

/// The rules that need all functions.
fn completeness(program: &Program) -> Result<(), VerifyError> {
    let stored = |role: Role| -> HashSet<FieldId> {
        let stores = |op: &Op| match op.kind {
            OpKind::Store(field, _) | OpKind::Accumulate(field, ..) => Some(field),
            _ => None,
        };
        program.function(role).into_iter().flat_map(Function::ops).filter_map(stores).collect()
    };
    let (init, observe) = (stored(Role::Init), stored(Role::Observe));
    for (i, field) in program.fields.iter().enumerate() {
        let (rule, role, stored) = match field.kind {
            FieldKind::Const | FieldKind::State => (Rule::InitStores, Role::Init, &init),
            FieldKind::Output => (Rule::ObserveStores, Role::Observe, &observe),
            FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Temp | FieldKind::Event => continue,
        };
        if !stored.contains(&FieldId(i as u32)) {
            return Err(of_field(field, rule, &format!("{} does not", role_name(role))));
        }
    }
    Ok(())
}
