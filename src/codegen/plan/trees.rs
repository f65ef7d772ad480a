//! Branched cells: in which order the kernels of their spaces run, and what their maps reach.
//!
//! In comes a program; out go, for the spaces of each kind of branched cells, a list of tasks for every function.
//! Never true here: a stage runs before one whose stores it sees, or sees what a later one stores.
//!
//! No element of a cell reaches another cell. So the kernels of these spaces run one after the other over a few cells, for many steps,
//! and what they read of each other is in fields that lie flat in memory. A stage joins the last kernel of its space where
//! nothing that it needs comes later; else it begins a new one. What edges bring from other cells is added up by kernels of their own; they see what
//! the others had when the step began.

use super::Equations;
use super::refuse::{Unplanned, refuse};
use crate::runtime::branched::{Task, passes};
use crate::step::{
    FieldId, FieldKind, Function, Map, Op, OpKind, Program, Rate, Region, Role, Solve, SpaceId, SpaceKind, Stage,
};
use std::collections::{BTreeMap, BTreeSet};

/// The spaces of cells with branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trees {
    /// The space of the cells.
    pub cells: SpaceId,
    /// All spaces of them, theirs among these.
    pub spaces: Vec<SpaceId>,
    /// What maps and solutions reach.
    pub fields: Vec<FieldId>,
    /// Which of them are states.
    pub states: Vec<bool>,
    /// The maps that are used: from which space, which one, and to which space.
    pub ties: Vec<(SpaceId, Map, SpaceId)>,
    /// What `init`, a step and `observe` do.
    pub tasks: [Vec<Task>; 3],
    /// For each kernel of a step that solves equations its space and pass.
    pub solves: Vec<(SpaceId, u32, Solve)>,
}

impl Trees {
    /// The equations that a pass of a step solves in a space.
    pub(super) fn equations(&self, space: SpaceId, pass: u32) -> Option<Equations> {
        let (.., solve) = self.solves.iter().find(|(other, at, _)| (*other, *at) == (space, pass))?;
        let flat = |field: FieldId| self.flat(field).expect("all fields of equations are listed");
        let [x, own, link, rhs] = [solve.x, solve.own, solve.link, solve.rhs].map(flat);
        Some(Equations { x, own, link, rhs, from: solve.from.map(flat), parent: self.tie(space, Map::Parent) })
    }

    /// What a function does.
    pub fn of_role(&self, role: Role) -> &[Task] {
        match role {
            Role::Init => &self.tasks[0],
            Role::Step => &self.tasks[1],
            Role::Observe => &self.tasks[2],
        }
    }

    /// In how many passes a space does what a function asks for, at most.
    pub fn passes(&self) -> u32 {
        passes(&self.tasks)
    }

    /// The number of a map.
    pub fn tie(&self, from: SpaceId, map: Map) -> u32 {
        let at = self.ties.iter().position(|&(space, other, _)| (space, other) == (from, map));
        at.expect("all maps that are used are listed") as u32
    }

    /// The number of a field that maps or solutions reach.
    pub fn flat(&self, field: FieldId) -> Option<u32> {
        self.fields.iter().position(|&other| other == field).map(|at| at as u32)
    }
}

/// The space in whose blocks a stage runs: the edges that lead to a cell are part of the work on its block.
pub(super) fn home(program: &Program, space: SpaceId) -> SpaceId {
    match program.space(space).kind {
        SpaceKind::Relation { to, .. } => to,
        SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => space,
    }
}

/// What leads from element to element.
fn along(op: &Op) -> Option<(FieldId, Map)> {
    match op.kind {
        OpKind::Gather(field, map) | OpKind::Accumulate(field, Some(map), _) => Some((field, map)),
        _ => None,
    }
}

/// What stands where in a list of kernels: what a later stage must not come before.
#[derive(Default)]
struct Seen {
    stored: BTreeMap<FieldId, usize>,
    added: BTreeMap<FieldId, usize>,
    solved: BTreeMap<FieldId, usize>,
    read: BTreeMap<FieldId, usize>,
    gathered: BTreeMap<FieldId, usize>,
}

/// The passes of the stages of a function that belong to these spaces, its tasks, and which of them are solutions.
struct Order {
    passes: Vec<(usize, u32)>,
    tasks: Vec<Task>,
    solves: Vec<(SpaceId, u32, Solve)>,
}

fn order(program: &Program, function: &Function, is_here: impl Fn(SpaceId) -> bool) -> Order {
    let mut seen = Seen::default();
    // For each kernel its space, and whether it does one thing only: it solves equations, or adds up what edges bring.
    let mut kernels: Vec<(SpaceId, bool)> = Vec::new();
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut solves: Vec<(usize, Solve)> = Vec::new();
    for (number, stage) in function.stages.iter().enumerate() {
        let space = match stage {
            Stage::Region(region) if region.rate == Rate::Every && region.guard.is_none() => region.over,
            Stage::Region(_) => None,
            Stage::Solve(solve) => program.field(solve.x).over,
        };
        let edges = space.is_some_and(|space| matches!(program.space(space).kind, SpaceKind::Relation { .. }));
        let space = space.map(|space| home(program, space));
        let Some(space) = space.filter(|&space| is_here(space)) else { continue };
        let last = kernels.iter().rposition(|kernel| *kernel == (space, false));
        let at = |map: &BTreeMap<FieldId, usize>, field: FieldId| map.get(&field).copied();
        let behind = |map: &BTreeMap<FieldId, usize>, field: FieldId| at(map, field).map(|at| at + 1);
        let least = match stage {
            // What edges bring is added up by a kernel of its own.
            Stage::Region(_) if edges => kernels.len(),
            Stage::Region(region) => {
                let needs = |op: &Op| match op.kind {
                    OpKind::Field(field) => [behind(&seen.added, field), behind(&seen.solved, field), None, None],
                    OpKind::Gather(field, _) => {
                        let sums = behind(&seen.added, field).max(behind(&seen.solved, field));
                        [sums, behind(&seen.stored, field), None, None]
                    }
                    OpKind::Store(field, _) => {
                        let sums = behind(&seen.added, field).max(behind(&seen.solved, field));
                        [sums, behind(&seen.gathered, field), at(&seen.read, field), None]
                    }
                    OpKind::Accumulate(field, ..) => [
                        behind(&seen.stored, field),
                        behind(&seen.read, field),
                        behind(&seen.gathered, field),
                        // The first stage adds for all elements before the second one does, where one kernel would take turns.
                        behind(&seen.added, field).filter(|&at| last == Some(at - 1)).or(at(&seen.added, field)),
                    ],
                    _ => [None; 4],
                };
                region.ops.iter().flat_map(needs).flatten().max().unwrap_or(0)
            }
            // All that was there before.
            Stage::Solve(_) => kernels.len(),
        };
        let place = match (stage, last) {
            (Stage::Region(_), _) if edges => {
                kernels.push((space, true));
                kernels.len() - 1
            }
            (Stage::Region(_), Some(last)) if last >= least => last,
            (Stage::Region(_), _) => {
                kernels.push((space, false));
                kernels.len() - 1
            }
            (Stage::Solve(solve), _) => {
                kernels.push((space, true));
                solves.push((kernels.len() - 1, *solve));
                kernels.len() - 1
            }
        };
        let note = |map: &mut BTreeMap<FieldId, usize>, field: FieldId| {
            let known = map.entry(field).or_insert(place);
            *known = (*known).max(place);
        };
        match stage {
            Stage::Region(region) => {
                for op in &region.ops {
                    match op.kind {
                        OpKind::Field(field) | OpKind::Gather(field, Map::Target) => note(&mut seen.read, field),
                        OpKind::Gather(_, Map::Source) => {}
                        OpKind::Gather(field, _) => note(&mut seen.gathered, field),
                        OpKind::Store(field, _) => note(&mut seen.stored, field),
                        OpKind::Accumulate(field, ..) => note(&mut seen.added, field),
                        _ => {}
                    }
                }
            }
            Stage::Solve(solve) => {
                note(&mut seen.solved, solve.x);
                solve.reads().for_each(|field| note(&mut seen.gathered, field));
            }
        }
        places.push((number, place));
    }
    let pass = |place: usize| kernels[..place].iter().filter(|kernel| kernel.0 == kernels[place].0).count() as u32;
    let kernel = |place: usize| Task::Kernel { space: kernels[place].0.0, pass: pass(place) };
    Order {
        passes: places.iter().map(|&(stage, place)| (stage, pass(place))).collect(),
        tasks: (0..kernels.len()).map(kernel).collect(),
        solves: solves.into_iter().map(|(place, solve)| (kernels[place].0, pass(place), solve)).collect(),
    }
}

/// For each function the passes of the stages of branched cells, by number; and the tasks of each kind of cells.
pub(super) type Planned = (BTreeMap<(Role, usize), u32>, Vec<Trees>);

/// Plans all branched cells of a program that [`check`] has let through.
pub(super) fn trees(program: &Program) -> Planned {
    let spaces = || (0..program.spaces.len() as u32).map(SpaceId);
    let mut of_stages = BTreeMap::new();
    let roots = spaces().filter(|&space| program.cells_of(space) == space && program.is_branched(space));
    let of_cells = |cells: SpaceId| {
        let is_here = |space: SpaceId| program.cells_of(space) == cells;
        let (mut fields, mut ties) = (BTreeSet::new(), BTreeSet::new());
        for region in program.functions.iter().flat_map(|function| function.regions()) {
            let Some(over) = region.over.filter(|&over| is_here(over)) else { continue };
            for (field, map) in region.ops.iter().filter_map(along) {
                fields.insert(field);
                ties.extend(program.map(over, map).map(|to| (over, map, to)));
            }
        }
        let mut tasks: [Vec<Task>; 3] = Default::default();
        let mut solves = Vec::new();
        for (role, tasks) in [Role::Init, Role::Step, Role::Observe].into_iter().zip(&mut tasks) {
            let Some(function) = program.function(role) else { continue };
            let order = order(program, function, is_here);
            of_stages.extend(order.passes.into_iter().map(|(stage, pass)| ((role, stage), pass)));
            for (space, _, solve) in &order.solves {
                fields.extend(solve.reads().chain([solve.x]));
                ties.insert((*space, Map::Parent, *space));
            }
            *tasks = order.tasks;
            solves.extend(order.solves);
        }
        let fields: Vec<FieldId> = fields.into_iter().collect();
        for (role, tasks) in [Role::Init, Role::Step, Role::Observe].into_iter().zip(&mut tasks) {
            // Sums begin at 0, unless something is stored before.
            let ops = || program.function(role).into_iter().flat_map(|function| function.ops());
            let writes = |field: FieldId| {
                ops().find_map(|op| match op.kind {
                    OpKind::Accumulate(other, ..) if other == field => Some(true),
                    OpKind::Store(other, _) if other == field => Some(false),
                    _ => None,
                })
            };
            let sums = (0..).zip(&fields).filter(|(_, field)| writes(**field) == Some(true));
            tasks.splice(0..0, sums.map(|(field, _)| Task::Clear { field }));
        }
        let states = fields.iter().map(|&field| program.field(field).kind == FieldKind::State).collect();
        Trees {
            cells,
            spaces: spaces().filter(|&space| is_here(space)).collect(),
            fields,
            states,
            ties: ties.into_iter().collect(),
            tasks,
            solves,
        }
    };
    let trees = roots.map(of_cells).collect();
    (of_stages, trees)
}

/// Refuses what no plan of branched cells is made of.
pub(super) fn check(program: &Program, region: &Region, over: SpaceId) -> Result<(), Unplanned> {
    region.ops.iter().try_for_each(|op| match op.kind {
        OpKind::Back(field, ..) => refuse(format!("`{}` is read of an earlier step", program.field(field).name)),
        OpKind::Accumulate(field, None, _) => {
            refuse(format!("what is added to `{}` comes from all elements", program.field(field).name))
        }
        OpKind::Accumulate(field, ..) if program.field(field).kind != FieldKind::Temp => {
            refuse(format!("`{}` is added to and outlives a step", program.field(field).name))
        }
        OpKind::Gather(field, _) if program.field(field).kind == FieldKind::Output => {
            refuse(format!("`{}` is gathered and an output", program.field(field).name))
        }
        OpKind::Gather(_, map) | OpKind::Accumulate(_, Some(map), _) if program.map(over, map).is_none() => {
            refuse(format!("`{}` has no map `{}`", program.space(over).name, map.name()))
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
        | OpKind::Gather(..)
        | OpKind::Accumulate(..)
        | OpKind::Store(..)
        | OpKind::Emit(..) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use crate::codegen::plan::{Plan, PlanOptions, plan};
    use crate::runtime::branched::Task;
    use crate::step::{parse, verify};

    /// A channel in some compartments of a tree, with a current from `step`, equations, and a gate with the new voltage.
    fn tasks(step: &str) -> Vec<String> {
        let text = format!(
            "program \"p\"\nspace @a\nspace @c of @a tree\nspace @na in @c\n\
             state @c.v over @c\nstate @na.m over @na\nconst @c.g over @c\n\
             temp @c.i over @c\ntemp @c.d over @c\ntemp @c.b over @c\ntemp @c.x over @c\n{INIT}fn step {{\n{step}\n}}\n"
        );
        let program = verify(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap_or_else(|e| panic!("{e}"));
        described(&plan(&program, &PlanOptions::default()).unwrap_or_else(|e| panic!("{e}")))
    }

    /// What branched cells do in a step.
    fn described(plan: &Plan) -> Vec<String> {
        let trees = &plan.trees[0];
        let task = |task: &Task| match *task {
            Task::Clear { field } => format!("clear {}", plan.fields[trees.fields[field as usize].0 as usize]),
            Task::Kernel { space, pass } => format!("{} {pass}", plan.spaces[space as usize].name),
        };
        trees.tasks[1].iter().map(task).collect()
    }

    const INIT: &str = "fn init {
        over @c {\n %0 = const 1.0\n store @c.v, %0\n store @c.g, %0\n }
        over @na {\n %1 = const 0.5\n store @na.m, %1\n }\n}\n";
    const CURRENT: &str = "over @na {\n %0 = gather @c.v along in\n %1 = field @na.m\n %2 = mul %0, %1
        accumulate @c.i along in, %2\n }";
    const ROWS: &str = "over @c {\n %3 = field @c.i\n %4 = field @c.g\n %5 = field @c.v\n %6 = sub %5, %3
        store @c.d, %4\n store @c.b, %6\n }";
    const SOLVE: &str = "solve tree @c.x: own @c.d, link @c.g, rhs @c.b";
    const GATE: &str = "over @na {\n %7 = gather @c.x along in\n store @na.m, %7\n }";
    const KEEP: &str = "over @c {\n %8 = field @c.x\n store @c.v, %8\n }";

    #[test]
    fn each_kernel_comes_behind_what_it_needs() {
        let all = [CURRENT, ROWS, SOLVE, GATE, KEEP].join("\n");
        assert_eq!(tasks(&all), ["clear c.i", "na 0", "c 0", "c 1", "na 1", "c 2"]);
    }

    #[test]
    fn a_stage_joins_the_kernel_of_its_space_where_it_can() {
        // The gate with the old voltage needs nothing that comes later.
        let gate = GATE.replace("@c.x", "@c.v").replace("%7", "%9");
        let all = [CURRENT, ROWS, SOLVE, &gate, KEEP].join("\n");
        assert_eq!(tasks(&all), ["clear c.i", "na 0", "c 0", "c 1", "c 2"]);
    }

    #[test]
    fn what_edges_bring_is_added_up_by_a_kernel_of_its_own_before_what_reads_it() {
        let text = "program \"p\"\nspace @a\nspace @c of @a tree\nspace @p in @c\nspace @e from @p to @p
            state @c.v over @c\nstate @p.v over @p\ntemp @p.s over @p\ntemp @c.i over @c
            fn init {
            over @c {\n %0 = const 1.0\n store @c.v, %0\n }
            over @p {\n %1 = gather @c.v along in\n store @p.v, %1\n }
            }
            fn step {
            over @e {\n %0 = gather @p.v along source\n accumulate @p.s along target, %0\n }
            over @p {\n %1 = field @p.s\n accumulate @c.i along in, %1\n }
            over @c {\n %2 = field @c.i\n store @c.v, %2\n }
            over @p {\n %3 = gather @c.i along in\n store @p.v, %3\n }
            }\n";
        let program = verify(parse(text).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"));
        let plan = plan(&program, &PlanOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(described(&plan), ["clear c.i", "p 0", "p 1", "c 0", "p 2"]);
        let place = &plan.spaces[2];
        let adds = place.step().map(|kernel| plan.is_before_passes(place, kernel));
        assert_eq!(adds.collect::<Vec<_>>(), [true, false, false]);
        // The others see what places have when the first pass is over.
        assert_eq!(place.shared.iter().map(|shared| shared.pass).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn what_is_stored_before_it_is_added_to_does_not_begin_at_zero() {
        let parent = "over @c {\n %9 = field @c.g\n accumulate @c.d along parent, %9\n }";
        let all = [CURRENT, ROWS, parent, SOLVE, KEEP].join("\n");
        assert_eq!(tasks(&all), ["clear c.i", "na 0", "c 0", "c 1", "c 2", "c 3"]);
    }
}
