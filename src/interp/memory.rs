//! What the interpreter remembers: the elements of spaces, the values of fields, what was before.
//!
//! In come a program and a [`Setup`]; out go values by field and element, and where maps lead.
//! Never true here: a set-up that does not fit the program is taken.

use crate::engine::{Edges, EngineError, Setup};
use crate::step::{
    Field, FieldId, FieldKind, Function, Guard, Map, Op, OpKind, Program, Role, Solve, SpaceId, SpaceKind,
};
use rustc_hash::FxHashMap as HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the fields hold.
#[derive(Debug, Clone)]
pub struct Memory {
    spaces: Vec<Elements>,
    pub seed: u64,
    pub dt: Option<f64>,
    pub uniforms: HashMap<FieldId, f64>,
    pub series: HashMap<FieldId, Vec<(f64, f64)>>,
    /// One number per element (one in all, if over nothing) for data, const, state, temp and output fields; NaN before the first store.
    pub arrays: HashMap<FieldId, Vec<f64>>,
    /// What functions accumulate to: it begins every step at 0.
    sums: Vec<(Role, FieldId)>,
    /// Of states with a history: their values at the start of this step, of the one before, and so on.
    past: HashMap<FieldId, Past<f64>>,
    /// Of events that guards look at: who emitted in this step, in the one before, and so on.
    emitted: HashMap<FieldId, Past<bool>>,
    /// Of guards with delays, once these are known: the elements of each delay, the longest first.
    waiting: HashMap<FieldId, Waiting>,
}

/// The elements that wait so many steps, for each number of steps, in their order.
pub type Waiting = Vec<(f64, Arc<[u32]>)>;

/// The values of the last steps, the newest first.
#[derive(Debug, Clone)]
struct Past<T> {
    rows: VecDeque<Vec<T>>,
    history: usize,
}

impl<T> Past<T> {
    fn push(&mut self, row: Vec<T>) {
        self.rows.push_front(row);
        self.rows.truncate(self.history + 1);
    }
}

/// The elements of a space.
#[derive(Debug, Clone)]
struct Elements {
    size: usize,
    /// How many of them follow each other in every element of the space that the whole is `of`; all, if there is none.
    each: usize,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Plain,
    /// So many elements for each of the other space, and the parent of each of these, if they are a tree.
    Product {
        each: usize,
        parents: Option<Arc<[u32]>>,
    },
    /// Which elements, out of every `of` of the whole.
    Subset {
        chosen: Arc<[u32]>,
        of: usize,
    },
    /// The edges, and the target of each.
    Relation {
        edges: Arc<Edges>,
        targets: Vec<u32>,
    },
}

impl Memory {
    /// Checks that the set-up has what the program needs.
    pub fn new(program: &Program, setup: &Setup) -> Result<Memory, EngineError> {
        let spaces = elements(program, setup)?;
        let mut memory = Memory {
            spaces,
            seed: setup.seed,
            dt: None,
            uniforms: setup.uniforms.iter().copied().collect(),
            series: setup.series.iter().cloned().collect(),
            arrays: setup.data.iter().cloned().collect(),
            sums: sums(program),
            past: HashMap::default(),
            emitted: HashMap::default(),
            waiting: HashMap::default(),
        };
        for (i, field) in program.fields.iter().enumerate() {
            memory.field(FieldId(i as u32), field)?;
        }
        Ok(memory)
    }

    fn field(&mut self, id: FieldId, field: &Field) -> Result<(), EngineError> {
        let fail = |problem: &str| Err(EngineError(format!("the field `{}` {problem}", field.name)));
        let size = field.over.map_or(1, |space| self.size(space));
        match field.kind {
            FieldKind::Uniform => match self.uniforms.get(&id) {
                None => return fail("has no value"),
                Some(&dt) if field.name == "dt" => self.dt = Some(dt),
                Some(_) => {}
            },
            FieldKind::Series => match self.series.get(&id) {
                None => return fail("has no samples"),
                Some(samples) if samples.is_empty() => return fail("has no samples"),
                Some(samples) if samples.windows(2).any(|w| w[0].0 > w[1].0) => {
                    return fail("has samples whose times go back");
                }
                Some(_) => {}
            },
            FieldKind::Data => match self.arrays.get(&id) {
                None => return fail("has no values"),
                Some(values) if values.len() != size => {
                    return fail("has a number of values that is not the number of cells");
                }
                Some(_) => {}
            },
            FieldKind::Const | FieldKind::State | FieldKind::Temp | FieldKind::Output => {
                self.arrays.insert(id, vec![f64::NAN; size]);
                if field.history > 0 {
                    self.past.insert(id, Past { rows: VecDeque::new(), history: field.history as usize });
                }
            }
            FieldKind::Event => {
                self.emitted.insert(id, Past { rows: VecDeque::new(), history: field.history as usize });
            }
        }
        Ok(())
    }

    /// How many elements a space has.
    pub fn size(&self, space: SpaceId) -> usize {
        self.spaces[space.0 as usize].size
    }

    /// Where a map leads from an element; a root has no parent.
    pub fn lead(&self, space: SpaceId, map: Map, element: usize) -> Option<usize> {
        match (&self.spaces[space.0 as usize].kind, map) {
            (Kind::Product { each, .. }, Map::Of) => Some(element / each),
            (Kind::Product { each, parents: Some(parents) }, Map::Parent) => {
                let (of, own) = (element / each, element % each);
                let parent = parents[own] as usize;
                (parent != own).then_some(of * each + parent)
            }
            // A whole that is no product has one part of each of its elements.
            (Kind::Subset { chosen, .. }, Map::Of) => Some(element / chosen.len()),
            (Kind::Subset { chosen, of }, Map::In) => {
                let (part, own) = (element / chosen.len(), element % chosen.len());
                Some(part * of + chosen[own] as usize)
            }
            (Kind::Relation { edges, .. }, Map::Source) => Some(edges.sources[element] as usize),
            (Kind::Relation { targets, .. }, Map::Target) => Some(targets[element] as usize),
            (
                Kind::Plain | Kind::Product { .. } | Kind::Subset { .. } | Kind::Relation { .. },
                Map::Of | Map::Parent | Map::In | Map::Source | Map::Target,
            ) => None,
        }
    }

    /// A run begins: nothing has been before.
    pub fn forget(&mut self) {
        self.past.values_mut().for_each(|past| past.rows.clear());
        self.emitted.values_mut().for_each(|past| past.rows.clear());
    }

    /// The delays of guards are known now: events are remembered as long as the longest asks.
    pub fn order_by_delay(&mut self, program: &Program) {
        for region in program.function(Role::Step).into_iter().flat_map(Function::regions) {
            let Some(Guard { event, delay: Some(delay), .. }) = region.guard else { continue };
            let delays = &self.arrays[&delay];
            let mut order: Vec<u32> = (0..delays.len() as u32).collect();
            order.sort_by(|&a, &b| delays[b as usize].total_cmp(&delays[a as usize]));
            let runs = order.chunk_by(|&a, &b| delays[a as usize] == delays[b as usize]);
            let waiting: Waiting = runs.map(|run| (delays[run[0] as usize], Arc::from(run))).collect();
            let longest = waiting.first().map_or(0.0, |(longest, _)| *longest);
            if let Some(past) = self.emitted.get_mut(&event) {
                past.history = past.history.max(longest as usize);
            }
            self.waiting.insert(delay, waiting);
        }
    }

    /// The elements of a stage whose guard has these delays that an event may reach now, by delay, in the order in which events reach them.
    pub fn waiting(&self, event: FieldId, delay: FieldId) -> Waiting {
        let emits = |row: &Vec<bool>| row.iter().any(|emits| *emits);
        // What is no number of steps is complained about when its turn comes.
        let may = |steps: f64| {
            let past = self.emitted.get(&event).filter(|_| steps >= 1.0 && steps.fract() == 0.0);
            past.is_none_or(|past| past.rows.get(steps as usize).is_some_and(emits))
        };
        let runs = self.waiting.get(&delay).into_iter().flatten();
        runs.filter(|(steps, _)| may(*steps)).cloned().collect()
    }

    /// A step of a function begins: its sums are 0.
    pub fn begin_sums(&mut self, role: Role) {
        for (_, sum) in self.sums.iter().filter(|(of, _)| *of == role) {
            if let Some(values) = self.arrays.get_mut(sum) {
                values.fill(0.0);
            }
        }
    }

    /// A step begins: what is now becomes the past.
    pub fn begin_step(&mut self) {
        for (field, past) in &mut self.past {
            past.push(self.arrays[field].clone());
        }
    }

    /// A step begins for the elements that emit: nobody has.
    pub fn begin_events(&mut self, event: FieldId, size: usize) {
        if let Some(past) = self.emitted.get_mut(&event) {
            past.push(vec![false; size]);
        }
    }

    /// An element emits an event.
    pub fn emit(&mut self, event: FieldId, element: usize) {
        if let Some(row) = self.emitted.get_mut(&event).and_then(|past| past.rows.front_mut()) {
            row[element] = true;
        }
    }

    /// Who emitted an event, and how many steps before the next step, from 1 on.
    pub fn under_way(&self) -> impl Iterator<Item = (FieldId, u64, u64)> {
        let of_row = |field: FieldId, ago: u64, row: &[bool]| {
            let emits = (0..).zip(row).filter(|(_, emits)| **emits).map(|(element, _)| element);
            emits.map(|element| (field, ago, element)).collect::<Vec<_>>()
        };
        let of_field = move |(&field, past): (&FieldId, &Past<bool>)| {
            let rows = (1..=past.history as u64).zip(&past.rows);
            rows.flat_map(move |(ago, row)| of_row(field, ago, row)).collect::<Vec<_>>()
        };
        self.emitted.iter().flat_map(of_field)
    }

    /// Of what was emitted before the next step, this is all that is known: event, steps ago, element. None if there is no such element.
    pub fn resume(
        &mut self,
        under_way: impl Iterator<Item = (FieldId, u64, u64)> + Clone,
        sizes: impl Fn(FieldId) -> usize,
    ) -> Option<()> {
        for (&field, past) in &mut self.emitted {
            let own = under_way.clone().filter(|(event, ..)| *event == field);
            let longest = own.clone().map(|(_, ago, _)| ago as usize).max().unwrap_or(0);
            past.rows = vec![vec![false; sizes(field)]; longest.min(past.history)].into();
            for (_, ago, element) in own {
                let row = (ago as usize).checked_sub(1).and_then(|row| past.rows.get_mut(row));
                if let Some(row) = row {
                    *row.get_mut(element as usize)? = true;
                }
            }
        }
        Some(())
    }

    /// Did an element emit an event so many steps ago? None if that is not remembered.
    pub fn emitted(&self, event: FieldId, element: usize, steps: usize) -> Option<bool> {
        let past = self.emitted.get(&event)?;
        if steps > past.history {
            return None;
        }
        Some(past.rows.get(steps).is_some_and(|row| row[element]))
    }

    /// What a state was at the start of the step so many steps ago; before the run, what it was at its start. None if that is not remembered.
    pub fn back(&self, field: FieldId, element: usize, steps: usize) -> Option<f64> {
        let past = self.past.get(&field)?;
        if steps > past.history {
            return None;
        }
        past.rows.get(steps).or(past.rows.back()).map(|row| row[element])
    }

    /// Solves the equations of every tree, by elimination from the leaves to the root (M. Hines, Int J Biomed Comput 15:69, 1984).
    pub fn solve(&mut self, solve: &Solve, space: SpaceId) -> Option<()> {
        let Kind::Product { each, parents: Some(parents) } = &self.spaces[space.0 as usize].kind else { return None };
        let [mut own, link, mut rhs] = [solve.own, solve.link, solve.rhs].map(|f| self.arrays.get(&f).cloned());
        let (own, link, rhs) = (own.as_mut()?, link?, rhs.as_mut()?);
        let mut x = match solve.from {
            Some(from) => self.arrays.get(&from)?.clone(),
            None => vec![0.0; own.len()],
        };
        let parent = |i: usize| Some(parents[i] as usize).filter(|&p| p != i);
        for first in (0..own.len()).step_by((*each).max(1)) {
            let at = |i: usize| first + i;
            for i in (0..*each).rev() {
                let by_itself = own[at(i)];
                let Some(p) = parent(i) else {
                    own[at(i)] = 1.0 / by_itself;
                    continue;
                };
                own[at(i)] = 1.0 / (by_itself + link[at(i)]);
                let right = rhs[at(i)] + by_itself * (x[at(i)] - x[at(p)]);
                own[at(p)] += link[at(i)] * by_itself * own[at(i)];
                rhs[at(p)] += link[at(i)] * right * own[at(i)];
            }
            for i in 0..*each {
                let above = parent(i).map_or(0.0, |p| link[at(i)] * (x[at(p)] - x[at(i)]));
                x[at(i)] += (rhs[at(i)] + above) * own[at(i)];
            }
        }
        self.arrays.insert(solve.x, x);
        Some(())
    }
}

/// What functions accumulate to.
fn sums(program: &Program) -> Vec<(Role, FieldId)> {
    let ops = program.functions.iter().flat_map(|f| f.ops().map(|op| (f.role, op)));
    let sum = |(role, op): (Role, &Op)| if let OpKind::Accumulate(f, ..) = op.kind { Some((role, f)) } else { None };
    let mut sums: Vec<(Role, FieldId)> = ops.filter_map(sum).collect();
    sums.sort();
    sums.dedup();
    sums
}

/// The elements of all spaces, which fit each other.
fn elements(program: &Program, setup: &Setup) -> Result<Vec<Elements>, EngineError> {
    if setup.sizes.len() != program.spaces.len() {
        let message = format!("{} sizes for {} spaces", setup.sizes.len(), program.spaces.len());
        return Err(EngineError(message));
    }
    if let Some(size) = setup.sizes.iter().find(|&&size| u32::try_from(size).is_err()) {
        return Err(EngineError(format!("{size} cells are more than random numbers can tell apart")));
    }
    let mut spaces: Vec<Elements> = Vec::new();
    for (i, space) in program.spaces.iter().enumerate() {
        let (id, size) = (SpaceId(i as u32), setup.sizes[i]);
        let kind = kind(space.kind, id, size, setup, &spaces);
        let kind = kind.map_err(|why| EngineError(format!("the space `{}`: {why}", space.name)))?;
        let each = match &kind {
            Kind::Product { each, .. } => *each,
            Kind::Subset { chosen, .. } => chosen.len(),
            Kind::Plain | Kind::Relation { .. } => size,
        };
        spaces.push(Elements { size, each, kind });
    }
    Ok(spaces)
}

fn kind(kind: SpaceKind, id: SpaceId, size: usize, setup: &Setup, spaces: &[Elements]) -> Result<Kind, String> {
    let other = |of: SpaceId| &spaces[of.0 as usize];
    match kind {
        SpaceKind::Plain => Ok(Kind::Plain),
        SpaceKind::Product { of, tree } => {
            let of = other(of).size;
            let each = size.checked_div(of).unwrap_or(0);
            if each * of != size {
                return Err(format!("{size} elements are not so many for each of {of}"));
            }
            if !tree {
                return Ok(Kind::Product { each, parents: None });
            }
            let parents = setup.trees.iter().rfind(|(space, _)| *space == id).map(|(_, tree)| Arc::clone(tree));
            let parents = parents.ok_or("it has no tree")?;
            if parents.len() != each || parents.iter().enumerate().any(|(i, &p)| p as usize > i) {
                return Err(format!("its tree is not one of {each} elements, each behind its parent"));
            }
            Ok(Kind::Product { each, parents: Some(parents) })
        }
        SpaceKind::Subset { of } => {
            let whole = other(of);
            let chosen = setup.subsets.iter().rfind(|(space, _)| *space == id).map(|(_, list)| Arc::clone(list));
            let chosen = chosen.ok_or("it has no list of elements")?;
            let of = whole.each;
            let parts = match &whole.kind {
                Kind::Product { .. } | Kind::Subset { .. } => whole.size.checked_div(of).unwrap_or(0),
                Kind::Plain | Kind::Relation { .. } => 1,
            };
            if chosen.len() * parts != size || chosen.iter().any(|&e| e as usize >= of) {
                return Err(format!("its list is not one of {size} elements of {}", whole.size));
            }
            Ok(Kind::Subset { chosen, of })
        }
        SpaceKind::Relation { from, to } => {
            let edges = setup.edges.iter().rfind(|(space, _)| *space == id).map(|(_, edges)| Arc::clone(edges));
            let edges = edges.ok_or("it has no edges")?;
            edges.check(other(to).size, other(from).size)?;
            if edges.sources.len() != size {
                return Err(format!("{} edges, not {size}", edges.sources.len()));
            }
            let of = |target: usize| std::iter::repeat_n(target as u32, edges.of(target).len());
            let targets = (0..other(to).size).flat_map(of).collect();
            Ok(Kind::Relation { edges, targets })
        }
    }
}
