//! What back ends cannot do so far.
//!
//! In comes any verified program; out goes nothing, or what in it only the interpreter runs.
//! Never true here: a plan is made of what is refused.

use super::trees;
use super::{Passes, is_delivery};
use crate::step::{
    FieldId, FieldKind, Function, Map, Op, OpKind, Program, Region, Role, Solve, Space, SpaceId, SpaceKind, Stage,
};
use std::collections::BTreeSet;
use std::fmt;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplanned(pub String);

impl fmt::Display for Unplanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; so far only the interpreter (`--engine interp`) runs this", self.0)
    }
}

impl std::error::Error for Unplanned {}

/// Refuses what no plan is made of; the answer are the passes of a step.
pub fn check(program: &Program) -> Result<Passes, Unplanned> {
    // A plan numbers cells and their parts as the program does.
    let are_edges = |space: &Space| matches!(space.kind, SpaceKind::Relation { .. });
    let cells = program.spaces.iter().take_while(|space| !are_edges(space)).count();
    if let Some(late) = program.spaces[cells..].iter().find(|space| !are_edges(space)) {
        return refuse(format!("the space `{}` is declared behind edges", late.name));
    }
    let is_plain = |space: SpaceId| program.space(space).kind == SpaceKind::Plain && !program.is_branched(space);
    let is_tree = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Product { tree: true, of } if program.space(of).kind == SpaceKind::Plain);
    let is_part = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Subset { .. });
    program.spaces.iter().zip((0..).map(SpaceId)).try_for_each(|(space, id)| match space.kind {
        SpaceKind::Plain => Ok(()),
        SpaceKind::Relation { from, to } if [from, to].iter().all(|&end| is_plain(end) || is_part(end)) => Ok(()),
        SpaceKind::Relation { .. } if is_delivery(program, id) => Ok(()),
        SpaceKind::Relation { .. } => refuse(format!("`{}` joins other spaces than cells", space.name)),
        SpaceKind::Product { .. } if is_tree(id) => Ok(()),
        SpaceKind::Product { .. } => refuse(format!("every element of another space has its own `{}`", space.name)),
        SpaceKind::Subset { of } if is_tree(of) || is_part(of) => Ok(()),
        SpaceKind::Subset { .. } => refuse(format!("`{}` is part of another space", space.name)),
    })?;
    for field in &program.fields {
        let array = match field.kind {
            FieldKind::Uniform | FieldKind::Series => false,
            FieldKind::Data
            | FieldKind::Const
            | FieldKind::State
            | FieldKind::Temp
            | FieldKind::Output
            | FieldKind::Event => true,
        };
        if field.history > 0 {
            return refuse(format!("`{}` has a history", field.name));
        }
        match field.over {
            None if array => return refuse(format!("`{}` is one value that a function stores", field.name)),
            Some(space)
                if is_delivery(program, space)
                    && matches!(
                        field.kind,
                        FieldKind::Const | FieldKind::Data | FieldKind::State | FieldKind::Output
                    ) => {}
            // What steps only read.
            Some(space)
                if are_edges(program.space(space)) && matches!(field.kind, FieldKind::Const | FieldKind::Data) => {}
            Some(space) if are_edges(program.space(space)) => {
                return refuse(format!("`{}` has a value for every edge", field.name));
            }
            None | Some(_) => {}
        }
    }
    program.functions.iter().try_for_each(|function| stages(program, function))?;
    let passes = Passes::new(program);
    check_passes(program, &passes)?;
    Ok(passes)
}

pub(super) fn refuse<T>(what: String) -> Result<T, Unplanned> {
    Err(Unplanned(what))
}

fn stages(program: &Program, function: &Function) -> Result<(), Unplanned> {
    let is_relation = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    let of_edges = |region: &Region| region.over.is_some_and(is_relation);
    let of_delivery = |region: &Region| region.over.is_some_and(|space| is_delivery(program, space));
    function.stages.iter().try_for_each(|stage| match stage {
        // Planned by itself, or refused there.
        Stage::Region(region) if region.guard.is_some() => Ok(()),
        Stage::Region(region) if function.role != Role::Step && of_delivery(region) => Ok(()),
        Stage::Region(region) if function.role == Role::Init && of_edges(region) => Ok(()),
        Stage::Solve(solve) if program.field(solve.x).over.is_some_and(|space| program.is_branched(space)) => {
            used_up(program, function, solve)
        }
        Stage::Solve(solve) => refuse(format!("`{}` is solved for", program.field(solve.x).name)),
        Stage::Region(region) if region.over.is_some_and(|space| program.is_branched(space)) => {
            region.over.map_or(Ok(()), |over| trees::check(program, region, over))
        }
        Stage::Region(region) => check_region(program, region),
    })
}

/// A solution overwrites what elements do by themselves, and the right-hand side.
fn used_up(program: &Program, function: &Function, solve: &Solve) -> Result<(), Unplanned> {
    let later = function.stages.iter().skip_while(|stage| **stage != Stage::Solve(*solve)).skip(1);
    let reads = |stage: &Stage| -> Vec<FieldId> {
        match stage {
            Stage::Solve(solve) => solve.reads().collect(),
            Stage::Region(region) => {
                let read = |op: &Op| match op.kind {
                    OpKind::Field(field) | OpKind::Gather(field, _) => Some(field),
                    _ => None,
                };
                region.ops.iter().filter_map(read).collect()
            }
        }
    };
    match later.flat_map(reads).find(|field| [solve.own, solve.rhs].contains(field)) {
        Some(field) => refuse(format!("`{}` is read after the equations are solved", program.field(field).name)),
        None if [solve.own, solve.rhs].iter().any(|&field| program.field(field).kind != FieldKind::Temp) => {
            refuse(format!("the equations for `{}` outlive a step", program.field(solve.x).name))
        }
        None => Ok(()),
    }
}

/// What is added up, and what others read, is written in one pass, and no sum is read before it.
fn check_passes(program: &Program, passes: &Passes) -> Result<(), Unplanned> {
    seen_at_the_beginning(program, passes)?;
    [Role::Step, Role::Observe].into_iter().try_for_each(|role| check_passes_of(program, passes, role))
}

fn check_passes_of(program: &Program, passes: &Passes, role: Role) -> Result<(), Unplanned> {
    let ops: Vec<&Op> = program.function(role).into_iter().flat_map(|function| function.ops()).collect();
    let first = |which: &dyn Fn(&OpKind) -> bool| ops.iter().position(|op| which(&op.kind));
    for op in &ops {
        let OpKind::Accumulate(sum, ..) = op.kind else { continue };
        let read = first(&|op| matches!(*op, OpKind::Field(f) | OpKind::Gather(f, _) if f == sum));
        let added = first(&|op| matches!(*op, OpKind::Accumulate(f, ..) if f == sum));
        if read.is_some_and(|read| Some(read) < added) {
            return refuse(format!("`{}` is read before anything is added to it", program.field(sum).name));
        }
    }
    ops.into_iter().try_for_each(|op| match op.kind {
        OpKind::Gather(field, Map::Source) | OpKind::Accumulate(field, Some(Map::Source | Map::Target), _)
            if passes.stores(program, role, field).len() > 1 =>
        {
            let why =
                "is written again after others have seen it, as where spikes without a delay move what junctions see";
            refuse(format!("`{}` {why}", program.field(field).name))
        }
        _ => Ok(()),
    })
}

/// What edges bring to branched cells, or from them, is what was there when the step began.
fn seen_at_the_beginning(program: &Program, passes: &Passes) -> Result<(), Unplanned> {
    let mut stored: BTreeSet<FieldId> = BTreeSet::new();
    let regions = program.function(Role::Step).into_iter().flat_map(|step| step.stages.iter().enumerate());
    for (at, region) in regions.filter_map(|(at, stage)| Some((at, stage.region()?))) {
        let ends = region.over.filter(|_| region.guard.is_none()).map(|over| program.space(over).kind);
        if let Some(SpaceKind::Relation { from, to }) = ends
            && [from, to].iter().any(|&end| program.is_branched(end))
        {
            let late = region.ops.iter().find_map(|op| match op.kind {
                OpKind::Gather(field, Map::Source | Map::Target) if stored.contains(&field) => Some(field),
                OpKind::Gather(field, Map::Source) if !program.is_branched(to) && passes.of(Role::Step, at) > 0 => {
                    Some(field)
                }
                _ => None,
            });
            if let Some(field) = late {
                return refuse(format!(
                    "edges of branched cells read `{}` in the middle of a step",
                    program.field(field).name
                ));
            }
        }
        for op in &region.ops {
            if let OpKind::Store(field, _) | OpKind::Accumulate(field, ..) = op.kind {
                stored.insert(field);
            }
        }
    }
    Ok(())
}

/// Do elements of branched cells read a field of each other?
fn within(program: &Program, field: FieldId) -> bool {
    let leads = |op: &Op| match op.kind {
        OpKind::Gather(other, map) | OpKind::Accumulate(other, Some(map), _) => {
            other == field && matches!(map, Map::In | Map::Of | Map::Parent)
        }
        _ => false,
    };
    program.functions.iter().flat_map(|function| function.ops()).any(leads)
}

fn check_region(program: &Program, region: &Region) -> Result<(), Unplanned> {
    let of_edges = region.over.is_some_and(|space| program.space(space).kind != SpaceKind::Plain);
    let is_relation = |space: SpaceId| matches!(program.space(space).kind, SpaceKind::Relation { .. });
    region.ops.iter().try_for_each(|op| match op.kind {
        OpKind::Index | OpKind::Draw(..) if of_edges => refuse("an edge asks for its number".into()),
        OpKind::Store(field, _) if program.field(field).over.is_some_and(is_relation) => {
            refuse(format!("`{}` is another number for every edge in every step", program.field(field).name))
        }
        OpKind::Back(field, ..) => refuse(format!("`{}` is read of an earlier step", program.field(field).name)),
        OpKind::Gather(field, Map::Source | Map::Target) if within(program, field) => {
            refuse(format!("edges and the elements of a cell both read `{}`", program.field(field).name))
        }
        OpKind::Gather(_, Map::Target) => Ok(()),
        OpKind::Gather(field, Map::Source)
            if matches!(program.field(field).kind, FieldKind::State | FieldKind::Temp) =>
        {
            Ok(())
        }
        OpKind::Gather(field, _) => refuse(format!("`{}` is gathered and no state", program.field(field).name)),
        OpKind::Accumulate(_, Some(Map::Target), _) => Ok(()),
        OpKind::Accumulate(field, ..) => {
            refuse(format!("what is added to `{}` comes from no edges", program.field(field).name))
        }
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
        | OpKind::Spike(..)
        | OpKind::SpikeBy(..)
        | OpKind::Draw(..)
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Emit(..) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use crate::codegen::plan::{PlanOptions, plan};
    use crate::step::{parse, verify};

    fn refused(text: &str) -> String {
        let program = verify(parse(text).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
        match plan(&program, &PlanOptions::default()) {
            Ok(_) => panic!("there is a plan"),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn what_only_the_interpreter_runs_is_named() {
        let only = "; so far only the interpreter (`--engine interp`) runs this";
        let cable = include_str!("../../interp/cable.ir");
        assert_eq!(refused(cable), format!("`all` is one value that a function stores{only}"));
        let delays = include_str!("../../interp/delays.ir");
        assert_eq!(refused(delays), format!("`e.ramp` has a history{only}"));
    }

    /// A population of one state, with something else of each kind.
    #[test]
    fn each_reason_is_told() {
        let program = |spaces: &str, fields: &str, init: &str, step: &str| {
            format!(
                "program \"p\"\nspace @a\n{spaces}state @a.v over @a{fields}
                fn init {{\n over @a {{\n %0 = const 1.0\n store @a.v, %0\n }}\n {init}\n}}
                fn step {{\n {step}\n}}\n"
            )
        };
        let cases = [
            ("space @r from @a to @a\nspace @b\n", "", "", "", "the space `b` is declared behind edges"),
            (
                "",
                " history 2\nstate @a.w over @a",
                "over @a {\n %1 = const 0.0\n store @a.w, %1\n }",
                "over @a {\n %1 = const 1.0\n %2 = back @a.v, %1\n store @a.w, %2\n }",
                "`a.v` has a history",
            ),
            (
                "",
                "\nstate @n",
                "every {\n %1 = const 0.0\n store @n, %1\n }",
                "",
                "`n` is one value that a function stores",
            ),
            (
                "space @r from @a to @a\n",
                "\nstate @r.w over @r",
                "over @r {\n %1 = const 0.0\n store @r.w, %1\n }",
                "",
                "`r.w` has a value for every edge",
            ),
            (
                "space @t of @a tree\nspace @p in @t\nspace @r from @p to @p\n",
                "\nstate @t.v over @t\nstate @p.v over @p\ntemp @p.s over @p",
                "over @t {\n %1 = const 0.0\n store @t.v, %1\n }\n over @p {\n %2 = const 0.0\n store @p.v, %2\n }",
                "over @p {\n %3 = gather @t.v along in\n store @p.v, %3\n }
                over @r {\n %4 = gather @p.v along source\n accumulate @p.s along target, %4\n }",
                "edges of branched cells read `p.v` in the middle of a step",
            ),
            (
                "space @t of @a tree\nspace @p in @t\nspace @q in @p\nspace @r from @p to @p\n",
                "\nstate @p.v over @p\nstate @q.v over @q\ntemp @p.s over @p",
                "over @p {\n %1 = const 0.0\n store @p.v, %1\n }\n over @q {\n %2 = const 0.0\n store @q.v, %2\n }",
                "over @r {\n %4 = gather @p.v along source\n accumulate @p.s along target, %4\n }
                over @q {\n %3 = gather @p.v along in\n store @q.v, %3\n }",
                "edges and the elements of a cell both read `p.v`",
            ),
            (
                "space @t of @a tree\nspace @r from @t to @a\n",
                "",
                "",
                "",
                "`r` joins other spaces than cells",
            ),
            (
                "space @r from @a to @a\n",
                "\ntemp @a.s over @a",
                "",
                "over @r {\n %1 = index\n accumulate @a.s along target, %1\n }",
                "an edge asks for its number",
            ),
            (
                "space @r from @a to @a\n",
                "\ntemp @a.s over @a",
                "",
                "over @r {\n %1 = gather @a.v along source\n accumulate @a.s along target, %1\n }
                over @a {\n %2 = field @a.s\n store @a.v, %2\n }
                over @r {\n %3 = gather @a.v along source\n accumulate @a.s along target, %3\n }",
                "`a.s` is written again after others have seen it, as where spikes without a delay move what junctions see",
            ),
            (
                "space @r from @a to @a\n",
                "\nevent @a.e over @a\nconst @r.d over @r\nconst @r.w over @r\ntemp @a.s over @a",
                "over @r {\n %1 = const 1.0\n store @r.d, %1\n store @r.w, %1\n }",
                "over @r when @a.e along source delay @r.d {\n %2 = gather @a.v along source\n accumulate @a.s along target, %2\n }
                over @a {\n %3 = bool true\n emit @a.e, %3\n }",
                "what events do along `r` changes in a run",
            ),
            (
                "space @r from @a to @a\nspace @q from @a to @a\n",
                "\nevent @a.e over @a\nconst @r.d over @r\nconst @q.d over @q\ntemp @a.s over @a\ntemp @a.t over @a",
                "over @r {\n %1 = const 1.0\n store @r.d, %1\n }\n over @q {\n %2 = const 1.0\n store @q.d, %2\n }",
                "over @r when @a.e along source delay @r.d {\n %3 = const 1.0\n accumulate @a.s along target, %3\n }
                over @a {\n %7 = const 0.0\n store @a.t, %7\n }
                over @q when @a.e along source delay @q.d {\n %4 = const 2.0\n accumulate @a.s along target, %4\n }
                over @a {\n %5 = bool true\n %6 = field @a.s\n store @a.v, %6\n emit @a.e, %5\n }",
                "events along `r` and `q` add to one field, with other stages between them",
            ),
            (
                "",
                "\nevent @a.e over @a",
                "",
                "over @a {\n %1 = bool true\n emit @a.e, %1\n }
                over @a when @a.e {\n %2 = const 0.0\n store @a.v, %2\n }",
                "`a.e` decides where a stage runs, without a delay along edges",
            ),
            (
                "space @c of @a tree\n",
                "\nconst @c.o over @c\ntemp @c.d over @c\ntemp @c.b over @c\ntemp @c.p over @c\ntemp @c.x over @c\ntemp @c.y over @c",
                "over @c {\n %1 = const -1.0\n store @c.o, %1\n }",
                "over @c {\n %2 = const 4.0\n store @c.d, %2\n store @c.b, %2\n store @c.p, %2\n }
                solve tree @c.x: own @c.d, link @c.o, rhs @c.b
                solve tree @c.y: own @c.d, link @c.o, rhs @c.p",
                "`c.d` is read after the equations are solved",
            ),
        ];
        for (spaces, fields, init, step, why) in cases {
            let text = program(spaces, fields, init, step);
            let said = refused(&text);
            assert!(said.contains(why), "{said}, not {why}\n{text}");
        }
    }
}
