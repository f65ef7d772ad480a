//! The oracle: runs a step program exactly as [`crate::step`] says it means, one cell at a time, in f64.
//!
//! In come a [`Verified`] program and a [`Setup`]; out come states, outputs and spikes through [`Engine`].
//! Never true here: speed mattered, or an operation got another meaning than [`crate::step::eval`] gives it.

use crate::engine::{Edges, Engine, EngineError, Setup, Spike};
use crate::runtime::rng;
use crate::step::{
    Distribution, FieldId, FieldKind, Kernel, Op, OpKind, Phase, Program, Region, Role, SpaceId, Value, ValueId,
    Verified, eval, eval_series,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The interpreter.
#[derive(Debug, Clone)]
pub struct Interp {
    program: Program,
    memory: Memory,
    initialized: bool,
}

/// What the fields hold.
#[derive(Debug, Clone)]
struct Memory {
    sizes: Vec<usize>,
    seed: u64,
    /// The source of the edge that an edge region is at.
    source: usize,
    dt: Option<f64>,
    uniforms: HashMap<FieldId, f64>,
    series: HashMap<FieldId, Vec<(f64, f64)>>,
    edges: HashMap<FieldId, Arc<Edges>>,
    /// One number per cell for data, cell, state, temp and output fields; NaN before the first store.
    arrays: HashMap<FieldId, Vec<f64>>,
}

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
        self.program.fields_where(|kind| matches!(kind, FieldKind::State(_)))
    }

    fn kernels(&self, role: Role) -> Vec<Kernel> {
        self.program.kernels.iter().filter(|k| k.role == role).cloned().collect()
    }

    fn readable(&self, field: FieldId) -> Result<(), EngineError> {
        let kind = self.program.fields.get(field.0 as usize).map(|f| f.kind);
        match kind {
            Some(FieldKind::Cell(_) | FieldKind::State(_) | FieldKind::Output(_)) => Ok(()),
            Some(
                FieldKind::Uniform
                | FieldKind::Series
                | FieldKind::Data(_)
                | FieldKind::Temp(_)
                | FieldKind::Event(_)
                | FieldKind::Edges(_),
            ) => Err(EngineError(format!("`{}` holds no values that outlive a step", self.program.field(field).name))),
            None => Err(EngineError(format!("field {} does not exist", field.0))),
        }
    }
}

impl Memory {
    fn new(program: &Program, setup: &Setup) -> Result<Memory, EngineError> {
        if setup.sizes.len() != program.spaces.len() {
            let message = format!("{} sizes for {} spaces", setup.sizes.len(), program.spaces.len());
            return Err(EngineError(message));
        }
        if let Some(size) = setup.sizes.iter().find(|&&size| u32::try_from(size).is_err()) {
            return Err(EngineError(format!("{size} cells are more than random numbers can tell apart")));
        }
        let mut memory = Memory {
            sizes: setup.sizes.clone(),
            seed: setup.seed,
            source: 0,
            dt: None,
            uniforms: setup.uniforms.iter().copied().collect(),
            series: setup.series.iter().cloned().collect(),
            edges: setup.edges.iter().cloned().collect(),
            arrays: setup.data.iter().cloned().collect(),
        };
        for (i, field) in program.fields.iter().enumerate() {
            let id = FieldId(i as u32);
            let fail = |problem: &str| Err(EngineError(format!("the field `{}` {problem}", field.name)));
            match field.kind {
                FieldKind::Uniform => match memory.uniforms.get(&id) {
                    None => return fail("has no value"),
                    Some(&dt) if field.name == "dt" => memory.dt = Some(dt),
                    Some(_) => {}
                },
                FieldKind::Edges(space) => match memory.edges.get(&id) {
                    None => return fail("has no edges"),
                    Some(edges) => edges
                        .check(memory.size(space))
                        .map_err(|why| EngineError(format!("the field `{}`: {why}", field.name)))?,
                },
                FieldKind::Series => match memory.series.get(&id) {
                    None => return fail("has no samples"),
                    Some(samples) if samples.is_empty() => return fail("has no samples"),
                    Some(samples) if samples.windows(2).any(|w| w[0].0 > w[1].0) => {
                        return fail("has samples whose times go back");
                    }
                    Some(_) => {}
                },
                FieldKind::Data(space) => match memory.arrays.get(&id) {
                    None => return fail("has no values"),
                    Some(values) if values.len() != memory.size(space) => {
                        return fail("has a number of values that is not the number of cells");
                    }
                    Some(_) => {}
                },
                FieldKind::Cell(space)
                | FieldKind::State(space)
                | FieldKind::Temp(space)
                | FieldKind::Output(space) => {
                    memory.arrays.insert(id, vec![f64::NAN; memory.size(space)]);
                }
                FieldKind::Event(_) => {}
            }
        }
        Ok(memory)
    }

    fn size(&self, space: SpaceId) -> usize {
        self.sizes[space.0 as usize]
    }

    /// Runs a kernel for steps that one call may take.
    fn call(&mut self, kernel: &Kernel, steps: Range<u64>, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        let regions = |phase| kernel.regions.iter().filter(move |r| r.phase == phase);
        let cells = self.size(kernel.space);
        let mut call = Values::new();
        for region in regions(Phase::Call) {
            self.region(region, None, steps.start, &[], &mut call, spikes)?;
        }
        let mut per_cell = vec![Values::new(); cells];
        for region in regions(Phase::Cell) {
            for (cell, values) in per_cell.iter_mut().enumerate() {
                self.region(region, Some(cell), steps.start, &[&call], values, spikes)?;
            }
        }
        for step in steps {
            let mut time = Values::new();
            for region in regions(Phase::Time) {
                self.region(region, None, step, &[&call], &mut time, spikes)?;
            }
            for op in kernel.ops() {
                if let OpKind::Accumulate(field, _) = op.kind {
                    self.arrays.get_mut(&field).ok_or_else(|| broken("a sum in no array"))?.fill(0.0);
                }
            }
            for region in &kernel.regions {
                if let Phase::Edge(edges) = region.phase {
                    self.edge_region(region, edges, step, &[&call, &time], spikes)?;
                }
            }
            for region in regions(Phase::Body) {
                for (cell, of_cell) in per_cell.iter().enumerate() {
                    let earlier = [&call, &time, of_cell];
                    self.region(region, Some(cell), step, &earlier, &mut Values::new(), spikes)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a region for every edge, the edges of a target in their order.
    fn edge_region(
        &mut self,
        region: &Region,
        edges: FieldId,
        step: u64,
        earlier: &[&Values],
        spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        let edges = self.edges.get(&edges).cloned().ok_or_else(|| broken("edges without a field"))?;
        for (target, bounds) in edges.offsets.windows(2).enumerate() {
            for &source in &edges.sources[bounds[0] as usize..bounds[1] as usize] {
                self.source = source as usize;
                self.region(region, Some(target), step, earlier, &mut Values::new(), spikes)?;
            }
        }
        Ok(())
    }

    /// Runs a region for a cell, or once if it is uniform; its values join `values`.
    fn region(
        &mut self,
        region: &Region,
        cell: Option<usize>,
        step: u64,
        earlier: &[&Values],
        values: &mut Values,
        spikes: &mut Vec<Spike>,
    ) -> Result<(), EngineError> {
        for op in &region.ops {
            let value = |v: &ValueId| values.get(v).or_else(|| earlier.iter().find_map(|known| known.get(v))).copied();
            let operands: Option<Vec<Value>> = op.kind.operands().iter().map(value).collect();
            let operands = operands.ok_or_else(|| broken("a value is used before it is defined"))?;
            let result = self.op(op, cell, step, &operands, spikes)?;
            if let (Some(id), Some(value)) = (op.result, result) {
                values.insert(id, value);
            }
        }
        Ok(())
    }

    fn op(
        &mut self,
        op: &Op,
        cell: Option<usize>,
        step: u64,
        operands: &[Value],
        spikes: &mut Vec<Spike>,
    ) -> Result<Option<Value>, EngineError> {
        let cell = || cell.ok_or_else(|| broken("a uniform region touches a cell"));
        let real = |i: usize| operands[i].real().ok_or_else(|| broken("a number is a truth value"));
        Ok(match op.kind {
            OpKind::Const(_)
            | OpKind::Bool(_)
            | OpKind::Unary(..)
            | OpKind::Approximate(..)
            | OpKind::Binary(..)
            | OpKind::Fma(..)
            | OpKind::Select(..) => Some(eval(&op.kind, operands).ok_or_else(|| broken("an operation is ill-typed"))?),
            OpKind::Field(field) => Some(Value::Real(match self.uniforms.get(&field) {
                Some(&value) => value,
                None => self.arrays[&field][cell()?],
            })),
            OpKind::There(field) => Some(Value::Real(self.arrays[&field][self.source])),
            OpKind::Accumulate(field, _) => {
                let (cell, value) = (cell()?, real(0)?);
                self.arrays.get_mut(&field).ok_or_else(|| broken("a sum in no array"))?[cell] += value;
                None
            }
            OpKind::Time => {
                let dt = self.dt.ok_or_else(|| broken("time is used without `dt`"))?;
                Some(Value::Real(step as f64 * dt))
            }
            OpKind::StepIndex => Some(Value::Real(step as f64)),
            OpKind::Index => Some(Value::Real(cell()? as f64)),
            OpKind::Draw(distribution, stream, _) => {
                Some(Value::Real(self.draw(distribution, stream, cell()?, real(0)?)?))
            }
            OpKind::Sample(field, _) => {
                Some(Value::Real(eval_series(&self.series[&field], real(0)?).ok_or_else(|| broken("an empty series"))?))
            }
            OpKind::Store(field, _) => {
                let (cell, value) = (cell()?, real(0)?);
                self.arrays.get_mut(&field).ok_or_else(|| broken("a store to no array"))?[cell] = value;
                None
            }
            OpKind::Emit(field, _) => {
                if operands[0].mask().ok_or_else(|| broken("a truth value is a number"))? {
                    spikes.push(Spike { step, field, cell: cell()? as u64 });
                }
                None
            }
        })
    }

    fn draw(&self, distribution: Distribution, stream: u64, cell: usize, counter: f64) -> Result<f64, EngineError> {
        // 2^53: beyond it a number does not tell one counter from the next.
        if !(0.0..=9007199254740992.0).contains(&counter) || counter.fract() != 0.0 {
            return Err(EngineError(format!("the counter of a random draw is {counter}, not a whole number from 0")));
        }
        let stream = u32::try_from(stream).map_err(|_| broken("a stream of more than 32 bits"))?;
        let cell = u32::try_from(cell).map_err(|_| broken("a cell number of more than 32 bits"))?;
        let draw = rng::Draw { seed: self.seed, stream };
        Ok(match distribution {
            Distribution::Uniform => draw.uniform(cell, counter as u64),
            Distribution::Normal => draw.normal(cell, counter as u64),
            Distribution::Exponential => draw.exponential(cell, counter as u64),
        })
    }
}

/// The verifier let something through.
fn broken(what: &str) -> EngineError {
    EngineError(format!("internal error: {what}, which the verifier refuses"))
}

impl Engine for Interp {
    fn init(&mut self) -> Result<(), EngineError> {
        for kernel in self.kernels(Role::Init) {
            self.memory.call(&kernel, 0..1, &mut Vec::new())?;
        }
        self.initialized = true;
        Ok(())
    }

    fn step(&mut self, first_step: u64, steps: u32, spikes: &mut Vec<Spike>) -> Result<(), EngineError> {
        if !self.initialized {
            return Err(EngineError("a step was asked for before the states were set".into()));
        }
        let mut found = Vec::new();
        for kernel in self.kernels(Role::Step) {
            let end = first_step + u64::from(steps);
            let mut at = first_step;
            while at < end {
                let next = end.min(at + u64::from(kernel.steps));
                self.memory.call(&kernel, at..next, &mut found)?;
                at = next;
            }
        }
        found.sort();
        spikes.extend(found);
        Ok(())
    }

    fn observe(&mut self, step: u64) -> Result<(), EngineError> {
        if !self.initialized {
            return Err(EngineError("outputs were asked for before the states were set".into()));
        }
        for kernel in self.kernels(Role::Observe) {
            self.memory.call(&kernel, step..step + 1, &mut Vec::new())?;
        }
        Ok(())
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
        if matches!(self.program.field(field).kind, FieldKind::Output(_)) {
            return Err(EngineError(format!("`{name}` is an output and cannot be written")));
        }
        match self.memory.arrays.get_mut(&field) {
            Some(array) if array.len() == values.len() => array.copy_from_slice(values),
            Some(array) => {
                return Err(EngineError(format!("{} values for the {} cells of `{name}`", values.len(), array.len())));
            }
            None => return Err(broken("a field without an array")),
        }
        Ok(())
    }

    fn all_finite(&self) -> bool {
        self.states().iter().all(|f| self.memory.arrays[f].iter().all(|x| x.is_finite()))
    }
}
