//! Relations whose edges remember: what events make of their states, as kernels.
//!
//! In comes a program with stages of events over edges; out goes a program in which these edges are cells of their own, so that kernels are planned
//! for them as for cells: what they read of the cells that they lead to comes in data fields, what they add there goes out in output fields.
//! Never true here: an edge reads what a cell of the other side has.

use super::deliveries::{Draft, Guarded, Told};
use super::refuse::refuse;
use super::{Passes, SpacePlan, Unplanned};
use crate::runtime::remember::{BACK, When};
use crate::step::{
    Field, FieldId, FieldKind, Function, Map, OpKind, Program, Rate, Region, Role, Source, SpaceId, SpaceKind, Stage,
    ValueId,
};
use std::ops::Range;

/// What the edges of a relation remember, and what events do with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembers {
    /// Its kernels: of a step, pass [`PRE`], and one pass after it for each of `back`.
    pub space: SpacePlan,
    /// For each of its state slots the value that an edge begins with, among the `ops` of the delivery.
    pub begin: Vec<ValueId>,
    /// For each of its data slots the state or constant of the cell that the edge leads to.
    pub read: Vec<FieldId>,
    /// Its output slots that are added to a temp field of that cell when events arrive. The others are recorded.
    pub sums: Vec<(u32, FieldId)>,
    /// What is emitted by the cells that the edges lead to and changes the edges, in this order: at most [`BACK`].
    pub back: Vec<Heard>,
}

/// What is emitted by the cells that edges lead to.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The event field.
    pub event: FieldId,
    /// The value among the `ops` of the delivery that says how many steps it takes, if it takes some.
    pub delay: Option<ValueId>,
    /// When the edges hear of it.
    pub when: When,
}

/// The pass of events that arrive.
pub const PRE: u32 = 0;
/// The passes of a step: those of events of the cells that the edges lead to follow.
pub const PASSES: u32 = 1 + BACK as u32;

/// The program of the edges that remember.
pub(super) struct OfEdges {
    pub program: Program,
    pub passes: Passes,
    stand_ins: Vec<StandIn>,
}

/// A field of an edge that stands for one of the cell that it leads to.
struct StandIn {
    /// The space of the edge.
    edges: SpaceId,
    /// Its own field: data that it reads, or an output that is added.
    own: FieldId,
    /// The field of the cell.
    of_cell: FieldId,
}

impl OfEdges {
    /// Makes cells of the edges that remember. All fields of the program keep their numbers, and new ones come after.
    pub fn new(program: &Program, drafts: &[Draft<'_>]) -> Result<OfEdges, Unplanned> {
        let own = Program { functions: Vec::new(), ..program.clone() };
        let mut of_edges =
            OfEdges { program: own, passes: Passes::of_events(Vec::new(), Vec::new()), stand_ins: Vec::new() };
        let (mut of_stage, mut stages) = (Vec::new(), Vec::new());
        // What is the same for all, in a run or in a step, is computed wherever it is used.
        for region in program.function(Role::Step).into_iter().flat_map(|step| step.regions()) {
            if region.guard.is_none() && region.over.is_none() {
                stages.push(Stage::Region(region.clone()));
                of_stage.push(PRE);
            }
        }
        let remembering: Vec<&Draft<'_>> = drafts.iter().filter(|draft| draft.remembers(program)).collect();
        for draft in &remembering {
            let Guarded { space, pre, back } = &draft.guarded;
            check_order(program, &draft.guarded)?;
            of_edges.program.spaces[space.0 as usize].kind = SpaceKind::Plain;
            // What has been hoisted out of their stages.
            let hoisted = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
            for region in hoisted.filter(|region| region.guard.is_none() && region.over == Some(*space)) {
                stages.push(Stage::Region(of_edges.cells(*space, region)?));
                of_stage.push(PRE);
            }
            stages.push(Stage::Region(of_edges.cells(*space, pre.0)?));
            of_stage.push(PRE);
            for (pass, told) in (PRE + 1..).zip(back) {
                stages.push(Stage::Region(of_edges.cells(*space, told.region)?));
                of_stage.push(pass);
            }
        }
        of_edges.program.functions.push(Function { role: Role::Step, steps: 1, stages });
        of_edges.observe(program, &remembering)?;
        let spaces = remembering.iter().map(|draft| draft.guarded.space.0).collect();
        of_edges.passes = Passes::of_events(of_stage, spaces);
        Ok(of_edges)
    }

    /// What of the edges is recorded.
    fn observe(&mut self, program: &Program, remembering: &[&Draft<'_>]) -> Result<(), Unplanned> {
        let Some(observe) = program.function(Role::Observe) else { return Ok(()) };
        let mut stages = Vec::new();
        for region in observe.regions() {
            let own = |space: SpaceId| remembering.iter().any(|draft| draft.guarded.space == space);
            match region.over {
                None => stages.push(Stage::Region(region.clone())),
                Some(space) if own(space) => stages.push(Stage::Region(self.cells(space, region)?)),
                Some(_) => {}
            }
        }
        self.program.functions.push(Function { role: Role::Observe, steps: 1, stages });
        Ok(())
    }

    /// A region of edges as one of cells.
    fn cells(&mut self, space: SpaceId, region: &Region) -> Result<Region, Unplanned> {
        let mut region = Region { guard: None, ..region.clone() };
        let mut added: Vec<FieldId> = Vec::new();
        for op in &mut region.ops {
            let name = |of: &OfEdges, field: FieldId| of.program.field(field).name.clone();
            op.kind = match op.kind {
                OpKind::Gather(field, Map::Target)
                    if matches!(self.program.field(field).kind, FieldKind::State | FieldKind::Const) =>
                {
                    OpKind::Field(self.stand_in(space, field, FieldKind::Data))
                }
                OpKind::Gather(field, _) => {
                    return refuse(format!("edges that remember read `{}` of other cells", name(self, field)));
                }
                OpKind::Accumulate(field, Some(Map::Target), _) if added.contains(&field) => {
                    return refuse(format!("edges that remember add to `{}` twice", name(self, field)));
                }
                OpKind::Accumulate(field, Some(Map::Target), value) => {
                    added.push(field);
                    OpKind::Store(self.stand_in(space, field, FieldKind::Output), value)
                }
                OpKind::Accumulate(field, ..) => {
                    return refuse(format!("what is added to `{}` comes from no edges", name(self, field)));
                }
                kind => kind,
            };
        }
        Ok(region)
    }

    fn stand_in(&mut self, edges: SpaceId, of_cell: FieldId, kind: FieldKind) -> FieldId {
        let known = self.stand_ins.iter().find(|known| known.edges == edges && known.of_cell == of_cell);
        if let Some(known) = known {
            return known.own;
        }
        let Field { name, origin, .. } = self.program.field(of_cell);
        let (name, origin) = (format!("{}'{name}", self.program.space(edges).name), *origin);
        let own =
            self.program.add_field(Field { name, kind, over: Some(edges), history: 0, source: Source::None, origin });
        self.stand_ins.push(StandIn { edges, own, of_cell });
        own
    }

    /// What a relation remembers, with its kernels.
    pub fn remembers(&self, draft: &Draft<'_>, space: SpacePlan) -> Result<Remembers, Unplanned> {
        let begin = |&field: &FieldId| {
            let name = &self.program.field(field).name;
            draft.begins(field).ok_or_else(|| Unplanned(format!("`{name}` is not set before the run")))
        };
        let back = |told: &Told<'_>| {
            let Told { guard, when, .. } = told;
            Ok(Heard { event: guard.event, delay: guard.delay.as_ref().map(begin).transpose()?, when: *when })
        };
        let of_cell = |own: &FieldId| Some(self.stand_ins.iter().find(|known| known.own == *own)?.of_cell);
        let sums = (0..).zip(&space.output).filter_map(|(slot, own)| Some((slot, of_cell(own)?))).collect();
        Ok(Remembers {
            begin: space.state.iter().map(begin).collect::<Result<_, _>>()?,
            read: space.data.iter().filter_map(of_cell).collect(),
            sums,
            back: draft.guarded.back.iter().map(back).collect::<Result<_, _>>()?,
            space,
        })
    }
}

/// What edges read of cells is what it is at the beginning of a step if events arrive, and at its beginning or its end if they hear of cells.
fn check_order(program: &Program, guarded: &Guarded<'_>) -> Result<(), Unplanned> {
    let step = program.function(Role::Step).into_iter().flat_map(|step| step.regions());
    let regions: Vec<&Region> = step.filter(|region| region.rate == Rate::Every).collect();
    let place = |region: &Region| regions.iter().position(|other| std::ptr::eq(*other, region));
    let of_cells = |at: usize| regions[at].guard.is_none() && regions[at].over.is_some();
    let between = |mut places: Range<usize>| places.any(of_cells);
    let wrong = |at: usize, when: When| match when {
        When::Ahead | When::Behind => between(0..at),
        When::End => between(at..regions.len()),
    };
    let mut back = guarded.back.iter().filter_map(|told| Some((place(told.region)?, told.when)));
    if place(guarded.pre.0).is_some_and(|at| wrong(at, When::Behind)) || back.any(|(at, when)| wrong(at, when)) {
        return refuse(format!(
            "events reach the edges `{}` in the middle of a step",
            program.space(guarded.space).name
        ));
    }
    Ok(())
}
