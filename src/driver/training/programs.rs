//! The programs of all trials, forward and back, made from one trial.
//!
//! In come a model, what is free and what the loss reads; out go programs with their set-ups, and what of them is fields, edges and values of a
//! [`trials::Net`].
//! Never true here: a trial has other edges, or begins with other values, than a run of the model.

use super::learn::{OfProjection, begins_within, goes_back};
use super::loaded::Loaded;
use super::reads::Place;
use super::{Lesson, cannot, internal, refused};
use crate::codegen::plan::Precision;
use crate::diag::Diagnostic;
use crate::differentiate::{self, Wanted};
use crate::discretize::projection_space;
use crate::driver::gradient::engine;
use crate::driver::{Checked, CompileOptions, Compiled, EngineChoice, Experiment, Passes, compile_flat};
use crate::engine::{Edges, Engine, EngineError, Recording, Setup};
use crate::hir::Gradient;
use crate::interp::Interp;
use crate::ode::{self, Model, Node, NodeId, ParamId};
use crate::passes::{self, Keep};
#[cfg(feature = "xla")]
use crate::simulate::trials::Device;
use crate::simulate::trials::{self, Both, Host, Net, Origin, Passing, Route, Runner, Spiking, Tract};
use crate::simulate::{self, Shared};
use crate::step::{self, FieldId, FieldKind, OpKind, Program, Role, Source, SpaceKind, Verified};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many numbers matrices of edges whose delays learn may have on a device: 1 GiB in double precision.
#[cfg(feature = "xla")]
pub(super) const MOST_PLACES: usize = 1 << 27;

/// One trial, with all that cells and edges begin with.
pub(super) struct Whole {
    pub(super) experiment: Experiment,
    pub(super) beginning: Interp,
}

impl Whole {
    pub(super) fn new(model: &Model, checked: &Checked, options: &CompileOptions) -> Result<Whole, Vec<Diagnostic>> {
        let plain = CompileOptions { passes: Passes::Named(Vec::new()), ..options.clone() };
        let compiled = compile_flat(model.clone(), &checked.sources, &plain, &mut |_, _, _| {})?;
        let experiment = Experiment::new(compiled)?;
        let mut beginning = Interp::new(experiment.compiled.program.clone(), &experiment.setup).map_err(cannot)?;
        beginning.init().map_err(cannot)?;
        Ok(Whole { experiment, beginning })
    }

    /// The numbers of a file for the cells of a population.
    pub(super) fn data(&self, population: usize, file: u32) -> Option<Vec<f64>> {
        let field = self.experiment.program().bound(Source::Data(population as u32, file))?;
        let (_, values) = self.experiment.setup.data.iter().find(|(id, _)| *id == field)?;
        Some(values.to_vec())
    }

    /// The numbers of all files that cells have, by population and file.
    pub(super) fn files(&self) -> BTreeMap<(usize, u32), Vec<f64>> {
        let of_field = |field: &step::Field| match field.source {
            Source::Data(population, file) => {
                Some(((population as usize, file), self.data(population as usize, file)?))
            }
            _ => None,
        };
        self.experiment.program().fields.iter().filter_map(of_field).collect()
    }

    /// The first values of a field.
    pub(super) fn values(&self, field: FieldId, count: usize) -> Result<Vec<f64>, Vec<Diagnostic>> {
        let mut values = Vec::new();
        self.beginning.read(field, 0..count, &mut values).map_err(cannot)?;
        Ok(values)
    }

    /// The edges of a projection with what they begin with.
    pub(super) fn tract(&self, model: &Model, number: usize, learns: OfProjection) -> Result<Tract, Vec<Diagnostic>> {
        let (projection, space) = (&model.projections[number], projection_space(model, number));
        let program = self.experiment.program();
        let edges = self.experiment.setup.edges_of(space).ok_or_else(|| internal("a projection has no edges"))?;
        let count = edges.sources.len();
        let of_edges = |source: Source| program.bound(source).map(|field| self.values(field, count)).transpose();
        let delays = match projection.graded {
            Some(_) => vec![1.0; count],
            None => of_edges(Source::Delay(number as u32))?.ok_or_else(|| internal("a projection has no delays"))?,
        };
        let weights = match of_edges(Source::Weight(number as u32))? {
            Some(weights) => weights,
            None => match ode::evaluate(model, projection.weight) {
                Ok(step::Value::Real(weight)) => vec![weight; count],
                Ok(step::Value::Single(_) | step::Value::Mask(_)) | Err(_) => {
                    return refused(format!(
                        "the weight of `{}` changes in a run, so that it cannot learn",
                        projection.name
                    ));
                }
            },
        };
        let senders = self.experiment.extent.cells[projection.from];
        if let Some(range) = learns.delay {
            let steps = [range.low, range.high].map(|ms| ms / model.dt);
            begins_within(projection, &delays, steps, model.dt)?;
            return Ok(Tract::moving(edges, senders, &delays, &weights, steps));
        }
        let tract = Tract::new(edges, senders, &delays, &weights);
        let shared = simulate::shared(model, &self.experiment.extent, projection).map_err(|d| vec![d])?;
        Ok(match shared {
            Some(Shared { values, of, share }) => tract.sharing(values, &of, share),
            None => tract,
        })
    }
}

/// The programs of all trials, forward and back, with their set-ups.
pub(super) struct Programs {
    /// Forward, before the passes.
    pub(super) plain: Verified,
    pub(super) forward: Experiment,
    pub(super) backward: Experiment,
    pub(super) trials: usize,
}

impl Programs {
    /// `of` is what the loss reads of states, `wrt` what is free, `loaded` what the program reads in place of numbers of cells and draws.
    pub(super) fn new(
        model: &Model,
        (plain, loaded): (Verified, &Loaded),
        (of, wrt): (Vec<FieldId>, Vec<FieldId>),
        whole: &Whole,
        options: &CompileOptions,
        trials: usize,
    ) -> Result<Programs, Vec<Diagnostic>> {
        let given: Vec<FieldId> = (0..model.projections.len() as u32)
            .filter_map(|projection| plain.program().bound(Source::Arrived(projection, 0)))
            .collect();
        let adjoints = given.iter().map(|field| Source::Adjoint(field.0)).collect();
        let wanted = Wanted { of, wrt, given, ..Wanted::default() };
        let back = differentiate::backward(&plain, &wanted).or_else(|why| refused(why.to_string()))?;
        // Programs whose events are carried have no projections.
        let bare = Model { projections: Vec::new(), ..model.clone() };
        let made = |plain: Verified, keep: Keep| -> Result<Experiment, Vec<Diagnostic>> {
            let names: Vec<&str> = match &options.passes {
                Passes::Level(level) => passes::pipeline(*level, options.backend).to_vec(),
                Passes::Named(names) => names.iter().map(String::as_str).collect(),
            };
            let pass_options = passes::Options { keep, ..passes::Options::default() };
            let program = passes::run(plain.clone(), &names, &pass_options, &mut |_, _, _| {}).map_err(internal)?;
            let extent = whole.experiment.extent.clone();
            let (mut setup, warnings) = simulate::setup(&bare, program.program(), &extent)?;
            loaded.set_up(program.program(), &mut setup);
            repeat(&mut setup, program.program(), trials);
            let compiled = Compiled { ode: model.clone(), plain, program, warnings: Vec::new() };
            let recording = Recording { every: extent.grid.steps, fields: Vec::new() };
            Ok(Experiment { compiled, extent, setup, recording, warnings })
        };
        let forward = made(plain.clone(), Keep::AllStates)?;
        let mut backward = made(back, Keep::Only(adjoints))?;
        simulate::turn_edges(plain.program(), &mut backward.setup).map_err(internal)?;
        Ok(Programs { plain, forward, backward, trials })
    }

    /// What takes the steps of all trials.
    #[cfg_attr(not(feature = "xla"), allow(unused_variables))]
    pub(super) fn runner(
        &self,
        net: &Net,
        lesson: &Lesson,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    ) -> Result<Box<dyn Runner>, Vec<Diagnostic>> {
        #[cfg(feature = "xla")]
        if let EngineChoice::Xla(compiler, forms) = choice().map_err(cannot)? {
            let too_large = |route: &&Route| route.tract.is_moving() && route.tract.places_in_matrices() > MOST_PLACES;
            if let Some(route) = net.routes.iter().find(too_large) {
                let (places, delays) = (route.tract.places_in_matrices(), route.tract.delays().len());
                return refused(format!(
                    "on a device, delays that learn take a matrix for each of {delays} whole delays, here {places} numbers; \
                     natively they take one for each connection"
                ));
            }
            let [forward, back] = [&self.forward, &self.backward].map(|way| way.plan(lesson.precision));
            let (forward, back) = ((&forward?, &self.forward.setup), (&back?, &self.backward.setup));
            return Ok(Box::new(Device::new(net, forward, back, &compiler, &forms).map_err(cannot)?));
        }
        let forward = engine(&self.forward, choice, lesson.precision)?;
        let back = engine(&self.backward, choice, lesson.precision)?;
        Ok(match lesson.precision {
            Precision::F32 => Box::new(Host::<f32>::new(net, forward, back, lesson.threads)),
            Precision::F64 | Precision::Bf16 => Box::new(Host::<f64>::new(net, forward, back, lesson.threads)),
        })
    }

    pub(super) fn there(&self) -> &Program {
        self.forward.program()
    }

    pub(super) fn back(&self) -> &Program {
        self.backward.program()
    }

    /// How many values a field of the program that goes forward has.
    pub(super) fn elements(&self, field: FieldId) -> usize {
        self.there().field(field).over.map_or(1, |space| self.forward.setup.sizes[space.0 as usize])
    }

    /// A field of both.
    pub(super) fn both(&self, field: FieldId) -> Both {
        let (name, kind) = (&self.there().field(field).name, self.there().field(field).kind);
        let back = self.back().find_field(name).filter(|&f| self.back().field(f).kind == kind);
        Both { forward: field, back }
    }

    /// A state and its adjoint.
    pub(super) fn with_adjoint(&self, field: FieldId) -> Both {
        // Adjoints name the fields of the program before the passes.
        let plain = self.plain.program().find_field(&self.there().field(field).name);
        Both { forward: field, back: plain.and_then(|plain| self.back().bound(Source::Adjoint(plain.0))) }
    }

    /// All states; in the program that goes back are those that it reads.
    pub(super) fn states(&self) -> Vec<(Both, usize)> {
        let step = self.back().function(Role::Step);
        let read = |op: &step::Op| match op.kind {
            OpKind::Field(field) | OpKind::Gather(field, _) => Some(field),
            _ => None,
        };
        let read: BTreeSet<FieldId> = step.into_iter().flat_map(|step| step.ops()).filter_map(read).collect();
        let states = self.there().fields_where(|f| f.kind == FieldKind::State).into_iter();
        let both = |field: FieldId| {
            let Both { forward, back } = self.both(field);
            Both { forward, back: back.filter(|back| read.contains(back)) }
        };
        states.map(|field| (both(field), self.elements(field))).collect()
    }

    /// What cells and states begin with.
    pub(super) fn begin(&self, model: &Model, whole: &Whole) -> Result<Vec<(Both, Vec<f64>)>, Vec<Diagnostic>> {
        let one = whole.experiment.program();
        let mut begin = Vec::new();
        for field in self.there().fields_where(|f| matches!(f.kind, FieldKind::Const | FieldKind::State)) {
            // What is made of one resistivity for all compartments may learn with it.
            if let Source::Axial(cable) = self.there().field(field).source
                && resistivities(model, &model.cables[cable as usize]).is_none()
            {
                continue;
            }
            if let Source::Sent(..) = self.there().field(field).source {
                // It follows the states.
                begin.push((self.both(field), vec![0.0; self.elements(field)]));
                continue;
            }
            let known = one.find_field(&self.there().field(field).name);
            let Some(known) = known.filter(|&f| one.field(f).kind == self.there().field(field).kind) else { continue };
            let values = whole.values(known, self.elements(field) / self.trials)?;
            begin.push((self.both(field), values.repeat(self.trials)));
        }
        Ok(begin)
    }

    /// In the program that goes back: the numbers of a file, as `init` is differentiated with them.
    pub(super) fn kept(&self, population: usize, file: u32) -> Option<FieldId> {
        let plain = self.plain.program();
        let data = plain.bound(Source::Data(population as u32, file))?;
        let kept = self.back().find_field(&format!("{}'kept", plain.field(data).name))?;
        (self.back().field(kept).kind == FieldKind::Const).then_some(kept)
    }

    /// The populations that spike, with their numbers.
    pub(super) fn spiking(&self, model: &Model, whole: &Whole) -> Vec<(usize, Spiking)> {
        let of_population = |population: usize| {
            let spiked = self.with_adjoint(self.there().bound(Source::Spiked(population as u32))?);
            Some((population, Spiking { cells: whole.experiment.extent.cells[population], spiked }))
        };
        (0..model.populations.len()).filter_map(of_population).collect()
    }

    /// The populations that pass on what they compute, in the order of [`Model::passed_on`].
    pub(super) fn passing(&self, model: &Model, whole: &Whole) -> Result<Vec<Passing>, Vec<Diagnostic>> {
        let of_first = |(first, _): (usize, NodeId)| {
            let field = self.there().bound(Source::Sent(first as u32, 0));
            let passed = self.with_adjoint(field.ok_or_else(|| internal("what cells pass on is gone"))?);
            Ok(Passing { cells: whole.experiment.extent.cells[model.projections[first].from], passed })
        };
        model.passed_on().into_iter().map(of_first).collect()
    }

    pub(super) fn routes(
        &self,
        model: &Model,
        whole: &Whole,
        spiking: &[(usize, Spiking)],
        (learn, (gradient, answer)): (&[OfProjection], (Gradient, Option<usize>)),
    ) -> Result<Vec<Route>, Vec<Diagnostic>> {
        let route = |(number, projection): (usize, &ode::Projection)| {
            let arrived = self.there().bound(Source::Arrived(projection.arrives, 0));
            let from = match projection.graded {
                Some(graded) if model.stays(graded.sent) => {
                    let mut given = model.graded_given();
                    given.position(|(other, ..)| other == number).map(Origin::Given)
                }
                Some(graded) => {
                    let same = |&(first, sent): &(usize, NodeId)| {
                        (model.projections[first].from, sent) == (projection.from, graded.sent)
                    };
                    model.passed_on().iter().position(same).map(Origin::Passing)
                }
                None => {
                    let number = spiking.iter().position(|(population, _)| *population == projection.from);
                    number.map(Origin::Spiking)
                }
            };
            let (Some(arrived), Some(from)) = (arrived, from) else {
                return refused(format!("nothing spikes or arrives through `{}`", projection.name));
            };
            Ok(Route {
                tract: whole.tract(model, number, learn[number])?,
                from,
                arrived: self.with_adjoint(arrived),
                targets: self.elements(arrived),
                learns: learn[number].weight.or(learn[number].delay).is_some(),
                returns: goes_back(model, projection, gradient, answer),
            })
        };
        model.projections.iter().enumerate().map(route).collect()
    }

    /// What the loss reads, each with its number of cells.
    pub(super) fn readouts(
        &self,
        read: &[Place],
        whole: &Whole,
        spiking: &[(usize, Spiking)],
    ) -> Result<Vec<(trials::Readout, usize)>, Vec<Diagnostic>> {
        let mut seeds = 0..;
        let readout = |found: &Place| match *found {
            Place::Count(population) | Place::Spikes(population) => {
                let number = spiking.iter().position(|(other, _)| *other == population);
                let number = number.ok_or_else(|| internal("cells that spike send nothing"))?;
                let readout = match found {
                    Place::Count(_) => trials::Readout::Count(number),
                    Place::Spikes(_) | Place::State(..) => trials::Readout::Spikes(number),
                };
                Ok((readout, whole.experiment.extent.cells[population]))
            }
            Place::State(state, _) => {
                let plain = self.plain.program();
                let field = plain.bound(Source::State(state.0)).map(|field| &plain.field(field).name);
                let field = field.and_then(|name| self.there().find_field(name));
                let field = field.ok_or_else(|| internal("what is read out is gone"))?;
                let seed = seeds.next().and_then(|seed| self.back().bound(Source::Seed(seed)));
                let count = self.elements(field);
                Ok((trials::Readout::State(Both { forward: field, back: seed }, count), count / self.trials))
            }
        };
        read.iter().map(readout).collect()
    }

    /// The fields of a gradient, in the order of the spaces.
    pub(super) fn gradient(&self, parameter: u32) -> Vec<(FieldId, usize)> {
        let back = self.back();
        let of = |field: FieldId| match back.field(field).source {
            Source::Gradient(of, space) if of == parameter => {
                let count = back.field(field).over.map_or(1, |s| self.backward.setup.sizes[s.0 as usize]);
                Some((space, field, count))
            }
            _ => None,
        };
        let mut found: Vec<_> = (0..back.fields.len() as u32).map(FieldId).filter_map(of).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, field, count)| (field, count)).collect()
    }

    /// The parameter that samples give values to, if a step reads it.
    pub(super) fn input(&self, name: &str) -> Option<Both> {
        let field = self.there().find_field(name);
        field.filter(|&f| self.there().field(f).kind == FieldKind::Const).map(|field| self.both(field))
    }
}

/// The resistivity of a cable's compartments, if it may differ from one to the next.
pub(super) fn resistivities(model: &Model, cable: &ode::Cable) -> Option<ParamId> {
    match model.graph.node(cable.ra) {
        Node::Param(param) if model.param(param).population.is_some() => Some(param),
        _ => None,
    }
}

/// Gives the set-up of one trial as many.
pub(super) fn repeat(setup: &mut Setup, program: &Program, trials: usize) {
    let sizes = setup.sizes.clone();
    setup.sizes.iter_mut().for_each(|size| *size *= trials);
    for (grid, &size) in setup.grids.iter_mut().zip(&setup.sizes) {
        *grid = vec![size];
    }
    setup.data.iter_mut().for_each(|(_, values)| *values = values.repeat(trials));
    for (space, edges) in &mut setup.edges {
        let SpaceKind::Relation { from, .. } = program.space(*space).kind else { continue };
        let senders = sizes[from.0 as usize] as u32;
        let mut all = Edges { offsets: vec![0], sources: Vec::new() };
        for trial in 0..trials as u32 {
            let begin = all.sources.len() as u32;
            all.offsets.extend(edges.offsets.iter().skip(1).map(|end| begin + end));
            all.sources.extend(edges.sources.iter().map(|source| trial * senders + source));
        }
        *edges = Arc::new(all);
    }
}
