//! What edges carry, and how long events take along them.
//!
//! In come a planned delivery and a set-up; out go the values of every edge.
//! Never true here: a value of an edge depends on the others, on the number of threads, or on how they are stored.

use super::{EngineError, Setup};
use crate::codegen::plan::{Delivery, Plan, Relation};
use crate::operators::rows::{Column, Step, Steps};
use crate::runtime::events::PerEdge;
use crate::runtime::rng::Draw;
use crate::step::{Op, OpKind, Value, ValueId};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What the edges of a delivery begin a run with.
#[derive(Debug, Clone)]
pub struct EdgeValues {
    /// How many steps an event takes along each.
    pub delays: PerEdge<u32>,
    /// And what goes back to it, of each kind.
    pub back: Vec<PerEdge<u32>>,
    /// Its values.
    pub values: Vec<PerEdge<f64>>,
}

/// Fewer edges are not worth a thread.
const MIN_EDGES: usize = 1 << 16;

/// The values of the edges of all deliveries of a plan, computed with as many threads as there are cores.
pub fn all(plan: &Plan, setup: &Setup) -> Result<Vec<EdgeValues>, EngineError> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let edges = |delivery: &Delivery| setup.edges_of(delivery.space).map_or(0, |edges| edges.sources.len());
    plan.deliveries.iter().map(|delivery| values(delivery, setup, edges(delivery), threads)).collect()
}

/// The numbers of the edges of all relations of a plan, likewise.
#[cfg(feature = "xla")]
pub fn all_numbers(plan: &Plan, setup: &Setup) -> Result<Vec<Vec<PerEdge<f64>>>, EngineError> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let edges = |relation: &Relation| setup.edges_of(relation.space).map_or(0, |edges| edges.sources.len());
    plan.relations.iter().map(|relation| numbers(relation, setup, edges(relation), threads)).collect()
}

/// What is computed for every edge of a relation.
struct Wanted<'a> {
    name: &'a str,
    ops: &'a [Op],
    values: Vec<ValueId>,
    /// How many steps something takes, and how many at least.
    delays: Vec<(Option<ValueId>, u32)>,
}

/// Computes the values of all edges of a delivery, with so many threads at most.
pub fn values(delivery: &Delivery, setup: &Setup, edges: usize, threads: usize) -> Result<EdgeValues, EngineError> {
    let wanted = Wanted {
        name: &delivery.name,
        ops: &delivery.ops,
        values: delivery.values(),
        delays: delivery.delays().into_iter().zip(delivery.least()).collect(),
    };
    computed(&wanted, setup, edges, threads)
}

/// Computes the numbers of all edges of a relation that no events go along.
pub fn numbers(
    relation: &Relation,
    setup: &Setup,
    edges: usize,
    threads: usize,
) -> Result<Vec<PerEdge<f64>>, EngineError> {
    let numbers = &relation.numbers;
    let wanted = Wanted { name: &relation.name, ops: &numbers.ops, values: numbers.values.clone(), delays: Vec::new() };
    Ok(computed(&wanted, setup, edges, threads)?.values)
}

fn computed(wanted: &Wanted<'_>, setup: &Setup, edges: usize, threads: usize) -> Result<EdgeValues, EngineError> {
    let program = Program::new(wanted, setup)?;
    let parts = threads.min(edges / MIN_EDGES).max(1);
    let part = |i: usize| edges * i / parts..edges * (i + 1) / parts;
    let program = &program;
    let computed: Vec<Result<Part, EngineError>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..parts).map(|i| scope.spawn(move || program.part(part(i)))).collect();
        let first = program.part(part(0));
        let died = || Err(EngineError("a thread that computes edges has died".into()));
        std::iter::once(first).chain(others.into_iter().map(|t| t.join().unwrap_or_else(|_| died()))).collect()
    });
    let mut all = Part::default();
    for part in computed {
        let part = part?;
        // Of one thread there is nothing to join.
        if all.values.is_empty() {
            all = part;
        } else {
            all.delays.iter_mut().zip(part.delays).for_each(|(all, delays)| all.extend(delays));
            all.values.iter_mut().zip(part.values).for_each(|(all, values)| all.extend(values));
        }
    }
    let delay = |((delay, least), each): ((Option<ValueId>, u32), Vec<u32>)| {
        if delay.is_some_and(|delay| program.varies(delay)) {
            return Ok(PerEdge::Each(each.into()));
        }
        // What is told without a delay takes no step.
        let steps = delay.map_or(Ok(0.0), |delay| program.same(delay))?;
        Ok(PerEdge::Same(whole(steps, least).ok_or_else(|| program.no_delay(None, steps, least))?))
    };
    let delays = wanted.delays.iter().copied().zip(all.delays);
    let mut delays = delays.map(delay).collect::<Result<Vec<_>, EngineError>>()?.into_iter();
    let along = delays.next().unwrap_or(PerEdge::Same(0));
    let value = |(value, each): (ValueId, Vec<f64>)| match program.varies(value) {
        true => Ok(PerEdge::Each(Arc::from(each))),
        false => Ok(PerEdge::Same(program.same(value)?)),
    };
    let values = wanted.values.iter().copied().zip(all.values).map(value).collect::<Result<_, EngineError>>()?;
    Ok(EdgeValues { delays: along, back: delays.collect(), values })
}

/// The values of some edges, where they differ from edge to edge.
#[derive(Default)]
struct Part {
    /// In the order of the delivery's delays.
    delays: Vec<Vec<u32>>,
    /// In the order of the delivery's values.
    values: Vec<Vec<f64>>,
}

/// What is computed for an edge.
struct Program<'a> {
    wanted: &'a Wanted<'a>,
    steps: Steps<'a>,
}

impl<'a> Program<'a> {
    fn new(wanted: &'a Wanted<'a>, setup: &'a Setup) -> Result<Program<'a>, EngineError> {
        let mut program = Program { wanted, steps: Steps::default() };
        for op in wanted.ops {
            let step = step(&op.kind, setup).ok_or_else(|| program.broken())?;
            program.steps.push(step);
        }
        Ok(program)
    }

    fn varies(&self, value: ValueId) -> bool {
        self.steps.varies(value.0 as usize)
    }

    fn part(&self, edges: Range<usize>) -> Result<Part, EngineError> {
        let Wanted { values, delays, .. } = self.wanted;
        let mut part = Part { delays: vec![Vec::new(); delays.len()], values: vec![Vec::new(); values.len()] };
        for (each, &value) in part.values.iter_mut().zip(values).filter(|(_, value)| self.varies(**value)) {
            each.reserve_exact(edges.len());
            self.reals(value, edges.clone(), |_, x| each.push(x))?;
        }
        for (each, &(delay, least)) in part.delays.iter_mut().zip(delays) {
            let Some(delay) = delay.filter(|&delay| self.varies(delay)) else { continue };
            each.reserve_exact(edges.len());
            let mut wrong = None;
            self.reals(delay, edges.clone(), |edge, steps| match whole(steps, least) {
                Some(steps) => each.push(steps),
                None => wrong = wrong.or(Some((edge, steps))),
            })?;
            if let Some((edge, steps)) = wrong {
                return Err(self.no_delay(Some(edge), steps, least));
            }
        }
        Ok(part)
    }

    /// Tells the numbers of edges.
    fn reals(&self, value: ValueId, edges: Range<usize>, take: impl FnMut(usize, f64)) -> Result<(), EngineError> {
        Column::new(&self.steps, value.0 as usize).reals(edges, take).ok_or_else(|| self.broken())
    }

    /// The number that all edges have.
    fn same(&self, value: ValueId) -> Result<f64, EngineError> {
        let mut same = 0.0;
        self.reals(value, 0..1, |_, x| same = x)?;
        Ok(same)
    }

    fn no_delay(&self, edge: Option<usize>, steps: f64, least: u32) -> EngineError {
        let which = edge.map_or(String::new(), |edge| format!("edge {edge} of "));
        EngineError(format!(
            "along {which}`{}` an event takes {steps} steps; from {least} to {LONGEST} are possible",
            self.wanted.name
        ))
    }

    fn broken(&self) -> EngineError {
        EngineError(format!("what edges of `{}` carry is ill-typed", self.wanted.name))
    }
}

/// An operation for edges, if its value is known before a run.
fn step<'a>(kind: &OpKind, setup: &'a Setup) -> Option<Step<'a>> {
    let at = |value: ValueId| value.0 as usize;
    Some(match *kind {
        OpKind::Const(x) => Step::Same(Value::Real(x)),
        OpKind::Bool(b) => Step::Same(Value::Mask(b)),
        OpKind::Index => Step::Index,
        OpKind::Field(field) => {
            let data = setup.data.iter().rfind(|(id, _)| *id == field);
            let uniform = setup.uniforms.iter().rfind(|(id, _)| *id == field);
            match data {
                Some((_, values)) => Step::Data(Cow::Borrowed(values)),
                None => Step::Same(Value::Real(uniform?.1)),
            }
        }
        OpKind::Draw(distribution, stream, step) => {
            Step::Draw(distribution, Draw { seed: setup.seed, stream: u32::try_from(stream).ok()? }, at(step))
        }
        OpKind::Unary(op, a) => Step::Unary(op, at(a)),
        OpKind::Binary(op, a, b) => Step::Binary(op, at(a), at(b)),
        OpKind::Fma(a, b, c) => Step::Fma(at(a), at(b), at(c)),
        OpKind::Select(c, a, b) => Step::Select(at(c), at(a), at(b)),
        OpKind::Approximate(function, tolerance, a) => Step::Approximate(function, tolerance, at(a)),
        OpKind::Spike(_, a) | OpKind::SpikeBy(a, _) => Step::Positive(at(a)),
        OpKind::Gather(..)
        | OpKind::Back(..)
        | OpKind::Time
        | OpKind::StepIndex
        | OpKind::Sample(..)
        | OpKind::Store(..)
        | OpKind::Accumulate(..)
        | OpKind::Emit(..) => return None,
    })
}

/// How many steps something takes, if it can take so many.
fn whole(steps: f64, least: u32) -> Option<u32> {
    ((f64::from(least)..=f64::from(LONGEST)).contains(&steps) && steps.fract() == 0.0).then_some(steps as u32)
}

/// The longest delay in steps: what is on its way is kept for every step to come.
pub const LONGEST: u32 = 1 << 20;
