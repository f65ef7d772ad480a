//! In which passes the stages of a step, and of what is recorded, run, and which spaces take their steps together.
//!
//! In comes a program; out go a pass for each stage of its functions `step` and `observe`, and groups of spaces. In a pass every space of a group works
//! through its blocks, edges first; after it everybody sees what was stored.
//! Never true here: a stage runs before one whose stores it sees, or sees what a later one stores.

use super::is_delivery;
use super::remember::PASSES;
use super::trees::{Trees, home, trees};
use crate::step::{
    FieldId, FieldKind, Function, Map, Op, OpKind, Program, Rate, Region, Role, SpaceId, SpaceKind, Stage,
};
use rustc_hash::FxHashMap as HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Spaces that take their steps together, since edges join them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The spaces, by their numbers in the plan.
    pub spaces: Vec<u32>,
    /// In how many passes a step is done.
    pub passes: u32,
    /// In how many passes what is recorded is computed, if anything of it comes along edges; else 0.
    pub observed: u32,
    /// Do events go from cell to cell?
    pub events: bool,
    /// The branched cells among them, by their numbers in [`Passes::trees`].
    pub trees: Vec<u32>,
}

impl Group {
    /// Can the kernel of its only space take many steps by itself?
    pub fn is_alone(&self) -> bool {
        self.spaces.len() == 1 && self.passes == 1 && self.observed <= 1 && !self.events && self.trees.is_empty()
    }
}

/// The passes of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passes {
    /// For each stage of `step` its pass.
    of_stage: Vec<u32>,
    /// And for each stage of `observe`.
    of_observe: Vec<u32>,
    /// For each stage of branched cells, of any function, its pass.
    of_branches: BTreeMap<(Role, usize), u32>,
    /// Branched cells, and what their kernels do one after the other.
    pub trees: Vec<Trees>,
    /// Every space of cells and their parts is in one of them.
    pub groups: Vec<Group>,
}

impl Passes {
    /// The earliest pass for each stage.
    pub fn new(program: &Program) -> Passes {
        let (of_branches, trees) = trees(program);
        let of_stages = |role: Role| {
            let mut passes = program.function(role).map_or_else(Vec::new, |function| earliest(program, function));
            for (at, pass) in passes.iter_mut().enumerate() {
                *pass = of_branches.get(&(role, at)).copied().unwrap_or(*pass);
            }
            passes
        };
        let (of_stage, of_observe) = (of_stages(Role::Step), of_stages(Role::Observe));
        let mut passes = Passes { of_stage, of_observe, of_branches, trees, groups: Vec::new() };
        passes.groups = passes.groups(program);
        passes
    }

    /// Those of edges that remember: each stage in the pass that is given, and each of these spaces by itself.
    pub fn of_events(of_stage: Vec<u32>, spaces: Vec<u32>) -> Passes {
        let group =
            |space: u32| Group { spaces: vec![space], passes: PASSES, observed: 0, events: true, trees: Vec::new() };
        let groups = spaces.into_iter().map(group).collect();
        Passes { of_stage, of_observe: Vec::new(), of_branches: BTreeMap::new(), trees: Vec::new(), groups }
    }

    /// The pass of a stage of a function, by its number; `init` has several for branched cells alone.
    pub fn of(&self, role: Role, stage: usize) -> u32 {
        match role {
            Role::Step => self.of_stage[stage],
            Role::Observe => self.of_observe.get(stage).copied().unwrap_or(0),
            Role::Init => self.of_branches.get(&(role, stage)).copied().unwrap_or(0),
        }
    }

    /// In how many passes a space does what a function asks for, at most.
    pub fn count(&self, role: Role, space: SpaceId) -> u32 {
        match (self.trees(space), role) {
            (Some(trees), Role::Init | Role::Step | Role::Observe) => trees.passes(),
            (None, Role::Init) => 1,
            (None, Role::Step) => self.group(space).passes,
            (None, Role::Observe) => self.group(space).observed.max(1),
        }
    }

    /// The branched cells that a space is of.
    pub fn trees(&self, space: SpaceId) -> Option<&Trees> {
        self.trees.iter().find(|trees| trees.spaces.contains(&space))
    }

    /// The group of a space.
    pub fn group(&self, space: SpaceId) -> &Group {
        let group = self.groups.iter().find(|group| group.spaces.contains(&space.0));
        group.expect("every plain space is in a group")
    }

    /// The fields that live in memory though their kind is that of registers: some pass reads what an earlier one, or another
    /// space, has stored.
    pub fn kept(&self, program: &Program) -> BTreeSet<FieldId> {
        let mut touched: BTreeMap<(FieldId, Role), BTreeSet<u32>> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        let of_roles = [Role::Step, Role::Observe]
            .into_iter()
            .flat_map(|role| regions(program, role).map(move |(at, region)| (role, at, region)));
        for (role, at, region) in of_roles {
            for op in &region.ops {
                match op.kind {
                    // What events bring is added up before the first pass.
                    OpKind::Accumulate(field, ..) if region.guard.is_some() => drop(kept.insert(field)),
                    OpKind::Gather(field, Map::Source) => drop(kept.insert(field)),
                    OpKind::Gather(field, _)
                    | OpKind::Field(field)
                    | OpKind::Store(field, _)
                    | OpKind::Accumulate(field, ..) => {
                        touched.entry((field, role)).or_default().insert(self.of(role, at));
                    }
                    _ => {}
                }
            }
        }
        kept.extend(touched.iter().filter(|(_, passes)| passes.len() > 1).map(|((field, _), _)| *field));
        kept.retain(|field| program.field(*field).kind == FieldKind::Temp);
        kept
    }

    /// The passes of a function in which something is stored into a field, or added to it.
    pub fn stores(&self, program: &Program, role: Role, field: FieldId) -> BTreeSet<u32> {
        let stores = |region: &Region| {
            region.ops.iter().any(|op| matches!(op.kind, OpKind::Store(f, _) | OpKind::Accumulate(f, ..) if f == field))
        };
        regions(program, role).filter(|(_, region)| stores(region)).map(|(at, _)| self.of(role, at)).collect()
    }

    /// Spaces that relations join, in the order of their first ones.
    fn groups(&self, program: &Program) -> Vec<Group> {
        let plain = (0..program.spaces.len() as u32).filter(|&space| {
            let space = SpaceId(space);
            program.space(space).kind == SpaceKind::Plain && !program.is_branched(space)
        });
        let mut groups: Vec<Group> = plain
            .map(|space| Group { spaces: vec![space], passes: 1, observed: 0, events: false, trees: Vec::new() })
            .collect();
        groups.extend((0..).zip(&self.trees).map(|(at, trees)| {
            let spaces = trees.spaces.iter().map(|space| space.0).collect();
            Group { spaces, passes: 1, observed: 0, events: false, trees: vec![at] }
        }));
        groups.sort_by_key(|group| group.spaces[0]);
        let joined = |groups: &mut Vec<Group>, over: SpaceId| {
            let to = home(program, over);
            let from = match program.space(over).kind {
                SpaceKind::Relation { from, .. } => from,
                SpaceKind::Plain | SpaceKind::Product { .. } | SpaceKind::Subset { .. } => to,
            };
            let place = |space: SpaceId| groups.iter().position(|group| group.spaces.contains(&space.0));
            let (a, b) = (place(from)?, place(to)?);
            let (first, second) = (a.min(b), a.max(b));
            if first != second {
                let other = groups.remove(second);
                groups[first].spaces.extend(other.spaces);
                groups[first].passes = groups[first].passes.max(other.passes);
                groups[first].events |= other.events;
                groups[first].trees.extend(other.trees);
            }
            Some((first, to))
        };
        for (at, region) in regions(program, Role::Step) {
            let Some(over) = region.over.filter(|&over| self.trees(over).is_none()) else { continue };
            let Some((first, to)) = joined(&mut groups, over) else { continue };
            groups[first].events |= region.guard.is_some();
            // The passes of branched cells are within the first one of the others.
            if self.trees(to).is_none() {
                groups[first].passes = groups[first].passes.max(self.of_stage[at] + 1);
            }
        }
        let recorded = || regions(program, Role::Observe);
        let of_edges = |region: &Region| region.over.filter(|&over| is_edges(program, over));
        for over in recorded().filter_map(|(_, region)| of_edges(region)) {
            joined(&mut groups, over);
        }
        let gathered = |role: Role| {
            let gathers = |op: &Op| match op.kind {
                OpKind::Gather(field, Map::Source) => Some(field),
                _ => None,
            };
            regions(program, role).flat_map(|(_, region)| &region.ops).filter_map(gathers).collect::<BTreeSet<_>>()
        };
        // A kernel that takes many steps by itself shows to others what steps read, no more.
        let in_steps = gathered(Role::Step);
        let more = |group: &Group| {
            let of_group =
                |field: &FieldId| program.field(*field).over.is_some_and(|over| group.spaces.contains(&over.0));
            gathered(Role::Observe).iter().any(|field| of_group(field) && !in_steps.contains(field))
        };
        for group in &mut groups {
            let of_group =
                |region: &Region| region.over.is_some_and(|over| group.spaces.contains(&home(program, over).0));
            if recorded().any(|(_, region)| of_group(region) && of_edges(region).is_some()) {
                // Branched cells have passes of their own, before the first one.
                let is_plain =
                    |region: &Region| region.over.is_none_or(|over| !program.is_branched(home(program, over)));
                let others = recorded().filter(|(_, region)| of_group(region) && is_plain(region));
                let passes = others.map(|(at, _)| self.of_observe[at] + 1);
                group.observed = passes.max().unwrap_or(1).max(if more(group) { 2 } else { 1 });
            }
        }
        groups.iter_mut().for_each(|group| group.spaces.sort_unstable());
        groups
    }
}

/// Does it have edges that currents flow along, not events?
fn is_edges(program: &Program, space: SpaceId) -> bool {
    matches!(program.space(space).kind, SpaceKind::Relation { .. }) && !is_delivery(program, space)
}

/// The regions of a function that run every step, with the numbers of their stages.
fn regions(program: &Program, role: Role) -> impl Iterator<Item = (usize, &Region)> {
    let stages = program.function(role).map_or(&[][..], |function| &function.stages);
    let regions = stages.iter().enumerate().filter_map(|(at, stage)| Some((at, stage.region()?)));
    regions.filter(|(_, region)| region.rate == Rate::Every)
}

/// The pass in which a space is.
#[derive(Clone, Copy, Default)]
struct At {
    pass: u32,
    /// Whether its cells have begun their update in this pass: edges come before it.
    begun: bool,
}

fn earliest(program: &Program, function: &Function) -> Vec<u32> {
    let mut at: HashMap<SpaceId, At> = HashMap::default();
    let (mut stored, mut gathered): (HashMap<FieldId, u32>, HashMap<FieldId, u32>) = Default::default();
    let mut of_stage = Vec::new();
    // What edges that remember have for themselves is recorded by kernels of their own.
    let by_itself =
        |region: &Region| function.role == Role::Observe && region.over.is_some_and(|over| is_delivery(program, over));
    for stage in &function.stages {
        let region = match stage {
            Stage::Region(region) if region.rate == Rate::Every && region.guard.is_none() && !by_itself(region) => {
                region
            }
            Stage::Region(_) | Stage::Solve(_) => {
                of_stage.push(0);
                continue;
            }
        };
        let Some(over) = region.over.filter(|&over| !program.is_branched(over)) else {
            of_stage.push(0);
            continue;
        };
        let to = home(program, over);
        let place = at.entry(to).or_default();
        let mut pass = if over != to && place.begun { place.pass + 1 } else { place.pass };
        for op in &region.ops {
            match op.kind {
                OpKind::Gather(field, Map::Source) => {
                    pass = pass.max(stored.get(&field).map_or(0, |stored| stored + 1));
                }
                OpKind::Store(field, _) => pass = pass.max(gathered.get(&field).copied().unwrap_or(0)),
                _ => {}
            }
        }
        *place = At { pass, begun: over == to || (place.begun && place.pass == pass) };
        for op in &region.ops {
            let (passes, field) = match op.kind {
                OpKind::Gather(field, Map::Source) => (&mut gathered, field),
                OpKind::Store(field, _) | OpKind::Accumulate(field, ..) => (&mut stored, field),
                _ => continue,
            };
            let known = passes.entry(field).or_insert(pass);
            *known = (*known).max(pass);
        }
        of_stage.push(pass);
    }
    of_stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::parse;

    fn passes(fields: &str, step: &str) -> Passes {
        let text = format!(
            "program \"p\"\nspace @a\nspace @b\nspace @c\nspace @ab from @a to @b\nspace @ba from @b to @a\n\
             state @a.v over @a\nstate @b.v over @b\nstate @c.v over @c\ntemp @a.s over @a\ntemp @b.s over @b\n{fields}\n\
             fn step {{\n{step}\n}}\n"
        );
        Passes::new(&parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")))
    }

    const EDGES: &str = "over @ab {\n %0 = gather @a.v along source\n accumulate @b.s along target, %0\n }
        over @ba {\n %1 = gather @b.v along source\n accumulate @a.s along target, %1\n }";
    const UPDATES: &str = "over @a {\n %2 = field @a.s\n store @a.v, %2\n }
        over @b {\n %3 = field @b.s\n store @b.v, %3\n }";

    #[test]
    fn spaces_that_read_old_values_of_each_other_need_one_pass() {
        let passes = passes("", &format!("{EDGES}\n{UPDATES}"));
        assert_eq!(passes.of_stage, [0, 0, 0, 0]);
        let group = |spaces: &[u32]| Group {
            spaces: spaces.to_vec(),
            passes: 1,
            observed: 0,
            events: false,
            trees: Vec::new(),
        };
        assert_eq!(passes.groups, [group(&[0, 1]), group(&[2])]);
        assert!(passes.group(SpaceId(2)).is_alone() && !passes.group(SpaceId(1)).is_alone());
    }

    #[test]
    fn new_values_arrive_one_pass_later() {
        let edges = EDGES.replace('%', "%1");
        let passes = passes("", &format!("{UPDATES}\n{edges}"));
        assert_eq!(passes.of_stage, [0, 0, 1, 1]);
        assert_eq!(passes.groups[0].passes, 2);
    }

    /// `b` waits for what `a` stores, so that its own store is late; `a` had read the old value before.
    #[test]
    fn a_store_waits_for_those_that_read_the_old_value() {
        let step = "over @a {\n %0 = const 1.0\n store @a.t, %0\n }
            over @ab {\n %1 = gather @a.t along source\n accumulate @b.s along target, %1\n }
            over @ba {\n %2 = gather @b.v along source\n accumulate @a.s along target, %2\n }
            over @b {\n %3 = field @b.s\n store @b.v, %3\n }
            over @a {\n %4 = field @a.s\n store @a.v, %4\n }";
        let text = "temp @a.t over @a";
        let passes = passes(text, step);
        // The edges to `a` come after an update of `a`.
        assert_eq!(passes.of_stage, [0, 1, 1, 1, 1]);
    }
}
