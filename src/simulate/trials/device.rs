//! Trials whose steps a device takes, all of a direction in one call.
//!
//! In come the plans of both directions; out go what trials read out, and slopes. What going back needs stays on the device.
//! Never true here: the host sees a state, or an event.
//!
//! On the host are the loss, between the two calls, and the numbers that edges share. Weights that each have an edge of their own can live on the device,
//! where a third call moves them.

use super::given::{self, Brought, brought};
use super::{Both, Held, Net, OfEdges, Origin, Readout, Room, Runner, Settled, Settling, Slopes, Update};
use crate::codegen::plan::Plan;
use crate::codegen::stablehlo::{self as hlo, Course, Form, Kind, Slot, Trial};
use crate::engine::course::Direction;
use crate::engine::descent::Descent;
use crate::engine::executables::Compiler;
use crate::engine::xla::{Forms, XlaEngine, numbers};
use crate::engine::{EngineError, Setup};
use crate::pjrt::Buffer;
use crate::simulate::Loss;
use crate::step::FieldId;
use std::collections::BTreeMap;

/// Both directions on a device.
pub struct Device {
    forward: Direction,
    back: Direction,
    /// Tables of edges, and what edges carry that do not learn.
    fixed: BTreeMap<Trial, Buffer>,
    compiler: Compiler,
    weights: Option<Weights>,
}

/// Weights that live on the device.
struct Weights {
    /// The routes whose edges carry them.
    routes: Vec<usize>,
    /// Of each first the weights, then what is remembered.
    descent: Descent,
    /// How many arrays a route has.
    arrays: usize,
    /// The slopes of each route that were found last.
    slopes: Vec<Buffer>,
}

impl Weights {
    /// Where the arrays of a route begin.
    fn first(&self, route: usize) -> Option<usize> {
        self.routes.iter().position(|own| *own == route).map(|at| at * self.arrays)
    }

    fn of(&self, route: usize) -> Result<usize, EngineError> {
        self.first(route)
            .ok_or_else(|| EngineError(format!("internal error: the weights of route {route} are elsewhere")))
    }
}

impl Settled for Weights {
    fn bring_up(&mut self, net: &Net, route: usize, remembered: &[&[f64]]) -> Result<(), EngineError> {
        let (first, tract) = (self.of(route)?, &net.routes[route].tract);
        self.descent.set(first, &tract.carried())?;
        (first + 1..).zip(remembered).try_for_each(|(at, list)| self.descent.set(at, &tract.laid_out(list)))
    }

    fn bring_down(&mut self, net: &Net, route: usize) -> Result<Vec<Vec<f64>>, EngineError> {
        let (first, tract) = (self.of(route)?, &net.routes[route].tract);
        let all = first..first + self.arrays;
        all.map(|at| Ok(tract.of_carried(self.descent.values(at)?))).collect()
    }

    fn descend(&mut self, numbers: &[f64]) -> Result<Option<f64>, EngineError> {
        let slopes = std::mem::take(&mut self.slopes);
        self.descent.step(&slopes, numbers)
    }
}

/// What the way forward has come to.
struct Ran {
    results: BTreeMap<Slot, Buffer>,
    samples: Vec<Vec<f64>>,
    /// Of each trial.
    spikes: Vec<u64>,
}

impl Device {
    /// Compiles both directions, or finds them in the compiler's cache.
    pub fn new(
        net: &Net,
        forward: (&Plan, &Setup),
        back: (&Plan, &Setup),
        compiler: &Compiler,
        forms: &Forms,
    ) -> Result<Device, EngineError> {
        let direction = |(plan, setup): (&Plan, &Setup), kind: Kind| {
            let inputs = XlaEngine::inputs_in(forms, plan, setup, compiler.client())?;
            Direction::new(setup, inputs, compiler.clone(), kind)
        };
        let [there, here] = kinds(net)?;
        let (mut forward, mut back) = (direction(forward, there)?, direction(back, here)?);
        let mut fixed = BTreeMap::new();
        let mut keep = |trial: Trial, buffer: Option<Buffer>| fixed.extend(buffer.map(|buffer| (trial, buffer)));
        for (number, route) in (0..).zip(&net.routes).filter(|(_, route)| route.is_sent()) {
            if !route.learns {
                let carried = Trial::Carried(number);
                keep(carried, forward.reals(carried, &route.tract.carried())?);
            }
            if route.tract.are_matrices() {
                continue;
            }
            let lists = route.tract.lists();
            let [senders, edges_in] = lists.into;
            let [targets, edges_out] = lists.out_of;
            let [from, to] = lists.ends;
            keep(Trial::Senders(number), forward.places(Trial::Senders(number), senders)?);
            keep(Trial::EdgesIn(number), forward.places(Trial::EdgesIn(number), edges_in)?);
            keep(Trial::Targets(number), back.places(Trial::Targets(number), targets)?);
            keep(Trial::EdgesOut(number), back.places(Trial::EdgesOut(number), edges_out)?);
            keep(Trial::From(number), back.places(Trial::From(number), from)?);
            keep(Trial::To(number), back.places(Trial::To(number), to)?);
        }
        for (field, values) in &net.begin {
            forward.begin(field.forward, values)?;
            if let Some(field) = field.back {
                back.begin(field, values)?;
            }
        }
        Ok(Device { forward, back, fixed, compiler: compiler.clone(), weights: None })
    }

    /// What edges that learn carry now, but for weights that live here.
    fn carried(&self, net: &Net) -> Result<BTreeMap<Trial, Buffer>, EngineError> {
        let mut carried = BTreeMap::new();
        for (number, route) in net.routes.iter().enumerate().filter(|(_, route)| route.learns && route.is_sent()) {
            if self.weights.as_ref().is_some_and(|weights| weights.first(number).is_some()) {
                continue;
            }
            let trial = Trial::Carried(number as u32);
            carried.extend(self.forward.reals(trial, &route.tract.carried())?.map(|buffer| (trial, buffer)));
        }
        Ok(carried)
    }

    /// The way forward. Values that change come as frames with the arguments, others are what it begins with.
    fn run(
        &mut self,
        net: &Net,
        frames: &[Vec<f64>],
        brought: &[Brought<'_, f64>],
        carried: &BTreeMap<Trial, Buffer>,
    ) -> Result<Ran, EngineError> {
        for &at in &net.follow {
            let (field, values) = &net.begin[at];
            self.forward.begin(field.forward, values)?;
            if let Some(field) = field.back {
                self.back.begin(field, values)?;
            }
        }
        let given = match net.given.of {
            Some(of) => given(&mut self.forward, of.forward, frames)?,
            None => None,
        };
        let mut drives = BTreeMap::new();
        for (number, there) in (0..).zip(brought) {
            let trial = Trial::Brought(number);
            drives.extend(self.forward.reals(trial, &there.frames.concat())?.map(|buffer| (trial, buffer)));
        }
        let mut arguments = known([&self.fixed, carried], self.weights.as_ref())?;
        arguments.extend(drives.iter().map(|(&trial, buffer)| (trial, buffer)));
        arguments.extend(given.iter().map(|buffer| (Trial::Given, buffer)));
        let results = self.forward.run(&arguments)?;
        let flag = results.get(&Slot::Finite).ok_or_else(|| missing("finite"))?;
        if !flag.to_vec::<bool>()?.iter().all(|finite| *finite) {
            return Err(EngineError("a state is no longer a finite number".into()));
        }
        let samples =
            |at: u32| numbers(results.get(&Slot::Trial(Trial::Samples(at))).ok_or_else(|| missing("samples"))?);
        let samples = (0..net.readouts.len() as u32).map(samples).collect::<Result<_, EngineError>>()?;
        let mut spikes = vec![0; net.trials];
        for (slot, buffer) in &results {
            if let Slot::Trial(Trial::Spikes(_)) = slot {
                spikes.iter_mut().zip(buffer.to_vec::<u64>()?).for_each(|(sum, of_trial)| *sum += of_trial);
            }
        }
        Ok(Ran { results, samples, spikes })
    }
}

/// Tables of edges, and what edges carry wherever it comes from.
fn known<'a>(
    tables: [&'a BTreeMap<Trial, Buffer>; 2],
    weights: Option<&'a Weights>,
) -> Result<BTreeMap<Trial, &'a Buffer>, EngineError> {
    let mut known: BTreeMap<Trial, &Buffer> =
        tables.into_iter().flatten().map(|(&trial, buffer)| (trial, buffer)).collect();
    if let Some(weights) = weights {
        for &route in &weights.routes {
            known.insert(Trial::Carried(route as u32), weights.descent.array(weights.of(route)?)?);
        }
    }
    Ok(known)
}

/// Brings the values of a parameter to a device: frames as an argument, others as what cells begin with.
fn given(direction: &mut Direction, of: FieldId, frames: &[Vec<f64>]) -> Result<Option<Buffer>, EngineError> {
    if let Some(first) = frames.first() {
        direction.begin(of, first)?;
    }
    match frames {
        [_] => Ok(None),
        frames => direction.reals(Trial::Given, &frames.concat()),
    }
}

fn missing(what: &str) -> EngineError {
    EngineError(format!("internal error: the way forward has no result `{what}`"))
}

impl Runner for Device {
    fn samples(&mut self, net: &Net, given: &[Vec<f64>]) -> Result<(Vec<Vec<f64>>, Vec<u64>), EngineError> {
        let carried = self.carried(net)?;
        let Ran { samples, spikes, .. } = self.run(net, given, &brought(net, 1), &carried)?;
        Ok((samples, spikes))
    }

    fn slopes(
        &mut self,
        net: &Net,
        frames: &[Vec<f64>],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Slopes, EngineError> {
        let carried = self.carried(net)?;
        let mut brought = brought(net, 1);
        let Ran { results: kept, samples, spikes } = self.run(net, frames, &brought, &carried)?;
        let found = loss(&samples);
        if let (Some(field), Some(first)) = (net.kept, frames.first()) {
            self.back.begin(field, first)?;
        }
        let given = match net.given.of.and_then(|of| of.back) {
            Some(field) => given(&mut self.back, field, frames)?,
            None => None,
        };
        let mut slopes = Vec::new();
        for (at, of) in (0..).zip(&found.slopes) {
            let trial = Trial::Slopes(at);
            slopes.extend(self.back.reals(trial, of)?.map(|buffer| (trial, buffer)));
        }
        let mut arguments = known([&self.fixed, &carried], self.weights.as_ref())?;
        arguments.extend(given.as_ref().map(|buffer| (Trial::Given, buffer)));
        arguments.extend(slopes.iter().map(|(trial, buffer)| (*trial, buffer)));
        arguments.extend(kept.iter().filter_map(|(slot, buffer)| match slot {
            Slot::Trial(trial @ (Trial::Tape(_) | Trial::Sent(_))) => Some((*trial, buffer)),
            _ => None,
        }));
        let mut results = self.back.run(&arguments)?;
        let missing = || EngineError("internal error: the way back has no slopes of weights that live here".into());
        if let Some(weights) = &mut self.weights {
            let slopes = weights.routes.iter().map(|&route| results.remove(&Slot::Trial(Trial::Weights(route as u32))));
            weights.slopes = slopes.map(|slopes| slopes.ok_or_else(missing)).collect::<Result<_, _>>()?;
        }
        let mut edges = Vec::new();
        for (number, route) in (0..).zip(&net.routes) {
            let tract = &route.tract;
            if self.weights.as_ref().is_some_and(|weights| weights.first(number as usize).is_some()) {
                edges.push(OfEdges::default());
                continue;
            }
            let slopes = match results.get(&Slot::Trial(Trial::Weights(number))) {
                Some(slopes) => tract.of_carried(numbers(slopes)?),
                // Nothing that is read out depends on what arrives here.
                None => vec![0.0; if route.learns { tract.edges() } else { 0 }],
            };
            edges.push(tract.of_numbers(slopes));
        }
        for (number, there) in (0..).zip(&mut brought) {
            let Some(felt) = results.get(&Slot::Trial(Trial::Felt(number))) else { continue };
            for (frame, slopes) in numbers(felt)?.chunks(there.targets.max(1)).enumerate() {
                there.add(frame, slopes);
            }
        }
        for (number, of_edges) in brought.iter().flat_map(|there| there.of_edges(net, 1)) {
            edges[number] = net.routes[number].tract.of_numbers(of_edges);
        }
        let mut parameters = Vec::new();
        for of in &net.gradients {
            let mut all = Vec::new();
            for (field, _) in of.iter().filter(|(_, count)| *count > 0) {
                all.extend(self.back.output(*field, &results)?);
            }
            parameters.push(all);
        }
        Ok(Slopes { loss: found.value, edges, parameters, spikes })
    }

    fn set_uniform(&mut self, forward: Option<FieldId>, back: Option<FieldId>, value: f64) -> Result<(), EngineError> {
        if let Some(field) = forward {
            self.forward.set_uniform(field, value);
        }
        if let Some(field) = back {
            self.back.set_uniform(field, value);
        }
        Ok(())
    }

    fn settle(
        &mut self,
        net: &Net,
        routes: &[Settling],
        lists: usize,
        update: Update<'_>,
    ) -> Result<Vec<usize>, EngineError> {
        let (mut own, mut held, mut masks) = (Vec::new(), Vec::new(), Vec::new());
        for settling in routes {
            let route = settling.route;
            let tract = &net.routes[route].tract;
            let there = self.forward.argument(Trial::Carried(route as u32));
            let finds = self.back.finds(Trial::Weights(route as u32));
            let Some((array, mask)) = there.filter(|_| finds).and_then(|ty| Held::of(tract, ty, settling)) else {
                continue;
            };
            own.push(route);
            held.push(array);
            masks.extend(mask);
        }
        if own.is_empty() {
            return Ok(own);
        }
        let descent = Descent::new(&self.compiler, &update(&held), &masks)?;
        let mut weights = Weights { routes: own.clone(), descent, arrays: 1 + lists, slopes: Vec::new() };
        for &route in &own {
            let zeros = vec![0.0; net.routes[route].tract.edges()];
            weights.bring_up(net, route, &vec![&zeros[..]; lists])?;
        }
        self.weights = Some(weights);
        Ok(own)
    }

    fn settled(&mut self) -> Option<&mut dyn Settled> {
        self.weights.as_mut().map(|weights| weights as &mut dyn Settled)
    }

    /// What is kept of all steps of both directions, whatever the budget.
    fn limit(&mut self, net: &Net, budget: f64) -> Result<Room, f64> {
        let bytes = self.back.bytes() as f64;
        match bytes <= budget {
            true => Ok(Room { bytes, kept: net.steps as u64 + 1, again: 0 }),
            false => Err(bytes),
        }
    }
}

/// The entry points of both directions.
pub fn kinds(net: &Net) -> Result<[Kind; 2], EngineError> {
    let forward = course(net, &|both| Some(both.forward))?;
    Ok([Kind::Forward(forward), Kind::Back(course(net, &|both| both.back)?)])
}

/// A network as the entry points of one direction see it.
fn course(net: &Net, of: &dyn Fn(Both) -> Option<FieldId>) -> Result<Course, EngineError> {
    let sender = |cells: usize, sent: Both, spikes: bool| {
        let sent = of(sent).filter(|_| cells * net.trials > 0);
        hlo::Sender { cells, sent, spikes }
    };
    // Those that pass something on stand behind those that spike.
    let senders = net.spiking.iter().map(|one| sender(one.cells, one.spiked, true));
    let senders = senders.chain(net.passing.iter().map(|one| sender(one.cells, one.passed, false)));
    let route = |route: &super::Route| {
        let tract = &route.tract;
        let [_, targets] = tract.ends();
        let form = match tract.are_matrices() {
            true => Form::Matrices,
            false => {
                let [into, out_of] = tract.lists().rows;
                Form::Lists { edges: tract.edges(), into, out_of }
            }
        };
        // What samples bring is no event.
        let (from, delays) = match route.from {
            Origin::Spiking(from) => (from, tract.delays()),
            Origin::Passing(from) => (net.spiking.len() + from, tract.delays()),
            Origin::Given(_) => (0, Vec::new()),
        };
        let arrived = of(route.arrived);
        hlo::Route { from, targets, arrived, learns: route.learns, returns: route.returns, delays, form }
    };
    // Those that going back does not read are not kept.
    let tape = net.states.iter().filter(|(both, count)| both.back.is_some() && *count > 0);
    let drives = given::receptors(net).into_iter().map(|(arrived, elements)| hlo::Drive {
        arrived: of(arrived),
        elements,
        frames: net.given.frames,
        steps: net.given.steps,
    });
    let course = Course {
        trials: net.trials,
        drives: drives.collect(),
        steps: net.steps,
        senders: senders.collect(),
        routes: net.routes.iter().map(route).collect(),
        given: net.given.of.and_then(of).filter(|_| net.given.frames > 1).map(|of| hlo::Given {
            of,
            elements: net.given.elements,
            frames: net.given.frames,
            steps: net.given.steps,
        }),
        tape: tape.filter_map(|(both, count)| Some((of(*both)?, *count))).collect(),
        readouts: (net.readouts.iter())
            .map(|readout| match *readout {
                Readout::Count(sender) => hlo::Readout::Count(sender),
                Readout::Spikes(sender) => hlo::Readout::Spikes(sender),
                Readout::State(both, count) => hlo::Readout::State(of(both), count),
            })
            .collect(),
    };
    // Rows and places are counted in numbers of 32 bits.
    let largest = |at: usize| course.carried(at).iter().product::<usize>();
    let events = (0..course.routes.len()).filter(|&at| !course.routes[at].delays.is_empty());
    let most = events.map(largest).chain([net.steps + 1]).max();
    match most.is_none_or(|most| i32::try_from(most).is_ok()) {
        true => Ok(course),
        false => Err(EngineError("a projection has more edges than one array of a device takes".into())),
    }
}
