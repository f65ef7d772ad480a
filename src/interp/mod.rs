//! The oracle: runs a step program exactly as [`crate::step`] says it means, one element at a time, in f64.
//!
//! In come a [`Verified`] program and a [`Setup`]; out come states, outputs and spikes through [`Engine`].
//! Never true here: speed mattered, or an operation got another meaning than [`crate::step::eval`] gives it.

mod memory;
#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod tests;

use crate::engine::{Engine, EngineError, Setup, Spike, UnderWay};
use crate::runtime::rng;
use crate::step::{
    Distribution, FieldId, FieldKind, Function, Guard, Map, Op, OpKind, Program, Rate, Region, Role, SpaceId, Stage,
    Value, ValueId, Verified, eval, eval_series,
};
use memory::Memory;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The interpreter.
#[derive(Debug, Clone)]
pub struct Interp {
    program: Program,
    memory: Memory,
    initialized: bool,
}

/// A function that runs.
struct Run<'a> {
    program: &'a Program,
    memory: &'a mut Memory,
    spikes: &'a mut Vec<Spike>,
    /// The events that stages before this one emit.
    emitted: HashSet<FieldId>,
}

/// The element of a space that a region is at; none in a region over nothing.
type Element = Option<(SpaceId, usize)>;

type Values = HashMap<ValueId, Value>;

impl Interp {
    /// An interpreter whose states are not set yet, or what the set-up lacks.
    pub fn new(program: Verified, setup: &Setup) -> Result<Interp, EngineError> {
        let program = program.into_inner();
        let memory = Memory::new(&program, setup)?;
        Ok(Interp { program, memory, initialized: false })
    }

    /// The program that it runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    fn states(&self) -> Vec<FieldId> {
        self.program.fields_where(|field| field.kind == FieldKind::State)
    }

    fn call(&mut self, role: Role, steps: Range<u64>, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        let Some(function) = self.program.function(role) else { return Ok(()) };
        let emitted = HashSet::default();
        Run { program: &self.program, memory: &mut self.memory, spikes, emitted }.call(function, steps)
    }

    fn readable(&self, field: FieldId) -> Result<(), EngineError> {
        let kind = self.program.fields.get(field.0 as usize).map(|f| f.kind);
        match kind {
            Some(FieldKind::Const | FieldKind::State | FieldKind::Output) => Ok(()),
            Some(FieldKind::Uniform | FieldKind::Series | FieldKind::Data | FieldKind::Temp | FieldKind::Event) => {
                Err(EngineError(format!("`{}` holds no values that outlive a step", self.program.field(field).name)))
            }
            None => Err(EngineError(format!("field {} does not exist", field.0))),
        }
    }
}

impl Run<'_> {
    /// Runs a function for steps that one call may take.
    fn call(&mut self, function: &Function, steps: Range<u64>) -> Result<(), EngineError> {
        let mut shared = Values::default();
        let mut of_elements: HashMap<SpaceId, Vec<Values>> = HashMap::default();
        for region in function.regions().filter(|region| region.rate == Rate::Once) {
            let Some(space) = region.over else {
                self.region(region, None, steps.start, &[], &mut shared)?;
                continue;
            };
            let size = self.memory.size(space);
            let mut values = of_elements.remove(&space).unwrap_or_else(|| vec![Values::default(); size]);
            for (element, values) in values.iter_mut().enumerate() {
                self.region(region, Some((space, element)), steps.start, &[&shared], values)?;
            }
            of_elements.insert(space, values);
        }
        for step in steps {
            self.begin_step(function.role);
            self.emitted.clear();
            let mut now = Values::default();
            let arrivals = function.arrivals();
            for (at, stage) in function.stages.iter().enumerate() {
                match stage {
                    Stage::Region(region) if region.rate == Rate::Once => {}
                    Stage::Region(region) if region.is_arrival() => {
                        if let Some(together) = arrivals.iter().find(|together| together.start == at) {
                            let stages = function.stages[together.clone()].iter().filter_map(Stage::region);
                            self.arrive(stages, step, &[&now, &shared], &of_elements)?;
                        }
                    }
                    Stage::Region(region) => {
                        match region.over {
                            None => self.region(region, None, step, &[&shared], &mut now)?,
                            Some(space) => {
                                let elements: Vec<Arc<[u32]>> = match region.guard {
                                    Some(Guard { event, delay: Some(delay), .. }) => {
                                        self.memory.waiting(event, delay).into_iter().map(|(_, run)| run).collect()
                                    }
                                    Some(Guard { delay: None, .. }) | None => {
                                        vec![(0..self.memory.size(space) as u32).collect()]
                                    }
                                };
                                let of_elements = of_elements.get(&space);
                                for elements in elements {
                                    self.over(region, space, &elements, step, &[&now, &shared], of_elements)?;
                                }
                            }
                        }
                        let emits = |op: &Op| if let OpKind::Emit(event, _) = op.kind { Some(event) } else { None };
                        self.emitted.extend(region.ops.iter().filter_map(emits));
                    }
                    Stage::Solve(solve) => {
                        let space = self.program.field(solve.x).over.ok_or_else(|| broken("a solve over nothing"))?;
                        self.memory.solve(solve, space).ok_or_else(|| broken("a solve over no tree"))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn begin_step(&mut self, role: Role) {
        self.memory.begin_sums(role);
        if role != Role::Step {
            return;
        }
        self.memory.begin_step();
        begin_events(self.program, self.memory);
    }

    /// Runs arrivals together: what is older first, of one step in the order of those that emit.
    fn arrive<'r>(
        &mut self,
        regions: impl Iterator<Item = &'r Region>,
        step: u64,
        known: &[&Values; 2],
        of_elements: &HashMap<SpaceId, Vec<Values>>,
    ) -> Result<(), EngineError> {
        // By age and who emits, with what is to be done.
        let mut runs = Vec::new();
        for region in regions.filter(|region| region.rate == Rate::Every) {
            let (Some(Guard { event, delay: Some(delay), .. }), Some(space)) = (region.guard, region.over) else {
                return Err(broken("an arrival without a guard"));
            };
            let sender = (self.program.field(event).over, event);
            let waiting = self.memory.waiting(event, delay);
            runs.extend(waiting.into_iter().map(|(steps, run)| ((steps, sender), (region, space, run))));
        }
        // Stages keep their order.
        runs.sort_by(|((a, from), _), ((b, other), _)| b.total_cmp(a).then(from.cmp(other)));
        for (_, (region, space, run)) in runs {
            self.over(region, space, &run, step, known, of_elements.get(&space))?;
        }
        Ok(())
    }

    /// Runs a region for those of some elements of its space that its guard lets through.
    fn over(
        &mut self,
        region: &Region,
        space: SpaceId,
        elements: &[u32],
        step: u64,
        known: &[&Values; 2],
        of_elements: Option<&Vec<Values>>,
    ) -> Result<(), EngineError> {
        let none = Values::default();
        let emitted_before = region.guard.is_some_and(|guard| self.emitted.contains(&guard.event));
        for element in elements.iter().map(|element| *element as usize) {
            if let Some(guard) = &region.guard
                && !self.lets_through(guard, emitted_before, space, element)?
            {
                continue;
            }
            let own = of_elements.map_or(&none, |values| &values[element]);
            self.region(region, Some((space, element)), step, &[known[0], known[1], own], &mut Values::default())?;
        }
        Ok(())
    }

    /// Does an event reach an element? `emitted_before` says whether an earlier stage emits it.
    fn lets_through(
        &self,
        guard: &Guard,
        emitted_before: bool,
        space: SpaceId,
        element: usize,
    ) -> Result<bool, EngineError> {
        let steps = match guard.delay {
            None => 0,
            Some(delay) => {
                let steps = self.memory.arrays[&delay][element];
                whole(steps).ok_or_else(|| {
                    let name = &self.program.field(delay).name;
                    EngineError(format!("`{name}` of element {element} is {steps}, not a number of steps"))
                })?
            }
        };
        let Some(emitter) = self.lead(space, guard.along, element) else { return Ok(false) };
        let event = self.program.field(guard.event);
        let fail = |why: String| {
            let of = &self.program.space(space).name;
            EngineError(format!("element {element} of `{of}` waits {steps} steps, but {why}"))
        };
        if guard.delay.is_some() && steps == 0 && !emitted_before {
            return Err(fail(format!("a later stage emits `{}`", event.name)));
        }
        let emitted = self.memory.emitted(guard.event, emitter, steps);
        emitted.ok_or_else(|| fail(format!("`{}` is not remembered as long", event.name)))
    }

    fn lead(&self, space: SpaceId, along: Option<Map>, element: usize) -> Option<usize> {
        along.map_or(Some(element), |map| self.memory.lead(space, map, element))
    }

    /// Runs a region for an element, or once if it is over nothing; its values join `values`.
    fn region(
        &mut self,
        region: &Region,
        element: Element,
        step: u64,
        earlier: &[&Values],
        values: &mut Values,
    ) -> Result<(), EngineError> {
        for op in &region.ops {
            let value = |v: &ValueId| values.get(v).or_else(|| earlier.iter().find_map(|known| known.get(v))).copied();
            let operands: Option<Vec<Value>> = op.kind.operands().iter().map(value).collect();
            let operands = operands.ok_or_else(|| broken("a value is used before it is defined"))?;
            let result = self.op(op, element, step, &operands)?;
            if let (Some(id), Some(value)) = (op.result, result) {
                values.insert(id, value);
            }
        }
        Ok(())
    }

    /// The place of a field's value for an element: the element's own, or the only one.
    fn own(&self, field: FieldId, element: Element) -> Result<usize, EngineError> {
        match (self.program.field(field).over, element) {
            (None, _) => Ok(0),
            (Some(over), Some((space, element))) if over == space => Ok(element),
            (Some(_), _) => Err(broken("a region touches an element of another space")),
        }
    }

    fn array(&mut self, field: FieldId) -> Result<&mut Vec<f64>, EngineError> {
        self.memory.arrays.get_mut(&field).ok_or_else(|| broken("a store to no array"))
    }

    fn op(&mut self, op: &Op, element: Element, step: u64, operands: &[Value]) -> Result<Option<Value>, EngineError> {
        let at = || element.ok_or_else(|| broken("a region over nothing touches an element"));
        let real = |i: usize| operands[i].real().ok_or_else(|| broken("a number is a truth value"));
        Ok(match op.kind {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Spike(..)
            | OpKind::SpikeBy(..)
            | OpKind::Select(..) => Some(eval(&op.kind, operands).ok_or_else(|| broken("an operation is ill-typed"))?),
            OpKind::Field(field) => Some(Value::Real(match self.memory.uniforms.get(&field) {
                Some(&value) => value,
                None => self.memory.arrays[&field][self.own(field, element)?],
            })),
            OpKind::Gather(field, map) => {
                let (space, element) = at()?;
                let there = self.memory.lead(space, map, element);
                Some(Value::Real(there.map_or(0.0, |there| self.memory.arrays[&field][there])))
            }
            OpKind::Back(field, along, _) => {
                let steps = whole(real(0)?);
                let there = match element {
                    Some((space, element)) => self.lead(space, along, element),
                    None => Some(0),
                };
                let value = match (steps, there) {
                    (_, None) => Some(0.0),
                    (Some(steps), Some(there)) => self.memory.back(field, there, steps),
                    (None, Some(_)) => None,
                };
                Some(Value::Real(value.ok_or_else(|| {
                    let field = self.program.field(field);
                    let steps = operands[0].real().unwrap_or(f64::NAN);
                    let (name, history) = (&field.name, field.history);
                    EngineError(format!("`{name}` is read {steps} steps back, but remembered for {history}"))
                })?))
            }
            OpKind::Accumulate(field, along, _) => {
                let value = real(0)?;
                let there = match (along, element) {
                    (Some(_), Some((space, element))) => self.lead(space, along, element),
                    (None, _) | (_, None) => Some(0),
                };
                if let Some(there) = there {
                    self.array(field)?[there] += value;
                }
                None
            }
            OpKind::Time => {
                let dt = self.memory.dt.ok_or_else(|| broken("time is used without `dt`"))?;
                Some(Value::Real(step as f64 * dt))
            }
            OpKind::StepIndex => Some(Value::Real(step as f64)),
            OpKind::Index => Some(Value::Real(at()?.1 as f64)),
            OpKind::Draw(distribution, stream, _) => {
                Some(Value::Real(self.draw(distribution, stream, at()?.1, real(0)?)?))
            }
            OpKind::Sample(field, _) => {
                let value = eval_series(&self.memory.series[&field], real(0)?);
                Some(Value::Real(value.ok_or_else(|| broken("an empty series"))?))
            }
            OpKind::Store(field, _) => {
                let (place, value) = (self.own(field, element)?, real(0)?);
                self.array(field)?[place] = value;
                None
            }
            OpKind::Emit(field, _) => {
                if operands[0].mask().ok_or_else(|| broken("a truth value is a number"))? {
                    let cell = at()?.1;
                    self.memory.emit(field, cell);
                    self.spikes.push(Spike { step, field, cell: cell as u64, early: 0 });
                }
                None
            }
        })
    }

    fn draw(&self, distribution: Distribution, stream: u64, cell: usize, counter: f64) -> Result<f64, EngineError> {
        let wrong = || EngineError(format!("the counter of a random draw is {counter}, not a whole number from 0"));
        let counter = whole(counter).ok_or_else(wrong)?;
        let stream = u32::try_from(stream).map_err(|_| broken("a stream of more than 32 bits"))?;
        let cell = u32::try_from(cell).map_err(|_| broken("a cell number of more than 32 bits"))?;
        let draw = rng::Draw { seed: self.memory.seed, stream };
        Ok(distribution.draw(draw, cell, counter as u64))
    }
}

/// A step begins: nobody has emitted anything.
fn begin_events(program: &Program, memory: &mut Memory) {
    for (i, field) in program.fields.iter().enumerate() {
        if let (FieldKind::Event, Some(space)) = (field.kind, field.over) {
            memory.begin_events(FieldId(i as u32), memory.size(space));
        }
    }
}

/// A number of steps, if it is one.
fn whole(x: f64) -> Option<usize> {
    // Beyond 2^53 a number does not tell one step from the next.
    ((0.0..=9007199254740992.0).contains(&x) && x.fract() == 0.0).then_some(x as usize)
}

/// The verifier let something through.
fn broken(what: &str) -> EngineError {
    EngineError(format!("internal error: {what}, which the verifier refuses"))
}

impl Engine for Interp {
    fn init(&mut self) -> Result<(), EngineError> {
        self.memory.forget();
        // The step before the first.
        begin_events(&self.program, &mut self.memory);
        self.call(Role::Init, 0..1, &mut Vec::new())?;
        self.memory.order_by_delay(&self.program);
        self.initialized = true;
        Ok(())
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        if !self.initialized {
            return Err(EngineError("a step was asked for before the states were set".into()));
        }
        let window = self.program.function(Role::Step).map_or(1, |function| u64::from(function.steps));
        let mut found = Vec::new();
        let end = first_step + u64::from(steps);
        let mut at = first_step;
        while at < end {
            let next = end.min(at + window);
            self.call(Role::Step, at..next, &mut found)?;
            at = next;
        }
        found.sort();
        spikes.extend(found);
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        if !self.initialized {
            return Err(EngineError("outputs were asked for before the states were set".into()));
        }
        self.call(Role::Observe, step..step + 1, &mut Vec::new())
    }

    fn read(&self, field: FieldId, cells: Range<usize>, out: &mut Vec<f64>) -> Result<(), EngineError> {
        self.readable(field)?;
        let values = self.memory.arrays[&field].get(cells.clone());
        let name = &self.program.field(field).name;
        out.extend(values.ok_or_else(|| EngineError(format!("`{name}` has no cells {cells:?}")))?);
        Ok(())
    }

    fn write(&mut self, field: FieldId, values: &[f64]) -> Result<(), EngineError> {
        self.readable(field)?;
        let name = &self.program.field(field).name;
        if matches!(self.program.field(field).kind, FieldKind::Output) {
            return Err(EngineError(format!("`{name}` is an output and cannot be written")));
        }
        match self.memory.arrays.get_mut(&field) {
            Some(array) if array.len() == values.len() => {
                array.copy_from_slice(values);
                self.memory.order_by_delay(&self.program);
            }
            Some(array) => {
                return Err(EngineError(format!("{} values for the {} cells of `{name}`", values.len(), array.len())));
            }
            None => return Err(broken("a field without an array")),
        }
        Ok(())
    }

    fn set_uniform(&mut self, field: FieldId, value: f64) -> Result<(), EngineError> {
        let uniform = self.memory.uniforms.get_mut(&field);
        let uniform = uniform.ok_or_else(|| EngineError(format!("field {} is not the same for all cells", field.0)))?;
        *uniform = value;
        Ok(())
    }

    fn knows_events(&self) -> bool {
        true
    }

    fn under_way(&self, _step: u64) -> Vec<UnderWay> {
        let named = |(field, ago, cell)| UnderWay { field, ago, cell };
        let mut all: Vec<UnderWay> = self.memory.under_way().map(named).collect();
        all.sort_unstable();
        all
    }

    fn resume(&mut self, _step: u64, under_way: &[UnderWay]) -> Result<(), EngineError> {
        let Interp { program, memory, .. } = self;
        let sizes: HashMap<FieldId, usize> = program
            .fields_where(|field| field.kind == FieldKind::Event)
            .into_iter()
            .map(|event| (event, program.field(event).over.map_or(1, |space| memory.size(space))))
            .collect();
        let sent = under_way.iter().map(|event| (event.field, event.ago, event.cell));
        let taken = memory.resume(sent, |event| sizes[&event]);
        taken.ok_or_else(|| EngineError("an event is of a cell that does not exist".into()))
    }

    fn all_finite(&self) -> bool {
        self.states().iter().all(|f| self.memory.arrays[f].iter().all(|x| x.is_finite()))
    }
}
