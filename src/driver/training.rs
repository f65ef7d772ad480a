//! Networks whose weights and parameters learn: many trials at once, with gradients that go back through spikes.
//!
//! In come a checked model and a [`Lesson`]; out goes a [`Learner`]: what trials read out, and the gradient of a loss of that.
//! Never true here: a loss is chosen, or a run of the same model would deliver its events in other steps.

use super::gradient::{Moved, decides_sizes, engine, fitted, moved};
use super::{Checked, CompileOptions, Compiled, EngineChoice, Experiment, Fitted, Passes, compile_flat, flatten};
use crate::codegen::plan::Precision;
use crate::diag::{Code, Diagnostic, nearest};
use crate::differentiate::{self, Wanted};
use crate::discretize::{Carried, discretize_carried, projection_space};
use crate::engine::{Edges, Engine, EngineError, Recording, Setup};
use crate::interp::Interp;
use crate::ode::{self, Kind, Model, PerCell};
use crate::passes::{self, Keep};
use crate::simulate::trials::{Both, Readout, Route, Slopes, Spiking, Tract, Trials};
use crate::simulate::{self, Loss};
use crate::step::{self, FieldId, FieldKind, OpKind, Program, Role, Source, SpaceKind, Verified};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a loss reads of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// How often each cell of a population spikes.
    SpikeCount(String),
    /// A state of the cells of a population after every step.
    State(String),
}

/// What is learnt, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// The parameter of cells that differs from trial to trial.
    pub input: String,
    /// Values of it that the model takes, for as many cells as there are.
    pub example: Arc<[f64]>,
    /// Projections whose weights learn, and parameters; a name may be the end of one.
    pub learn: Vec<String>,
    /// What the loss reads.
    pub read: Read,
    /// How spikes count.
    pub carried: Carried,
    /// How many trials run at once.
    pub trials: usize,
    /// How many threads carry events.
    pub threads: usize,
    /// The numbers of the engine.
    pub precision: Precision,
}

/// A network that learns.
pub struct Learner {
    model: Model,
    trials: Trials,
    input: Both,
    fitted: Vec<Fitted>,
    moved: Vec<Moved>,
    /// The names of the projections.
    names: Vec<String>,
    /// How many cells the readout has.
    outputs: usize,
}

/// The derivatives of a loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The loss.
    pub loss: f64,
    /// For every projection that learns, in their order, the derivatives in its weights.
    pub weights: Vec<Vec<f64>>,
    /// The derivatives in the parameters that learn, in canonical units.
    pub parameters: Vec<f64>,
    /// How many spikes there were in all trials.
    pub spikes: u64,
}

fn refused<T>(what: String) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::without_place(Code::Unsupported, what)])
}

fn internal(what: impl std::fmt::Display) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Internal, what.to_string())]
}

impl Learner {
    /// Compiles a network for as many trials as the lesson wants.
    pub fn new(
        checked: &Checked,
        options: &CompileOptions,
        lesson: &Lesson,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    ) -> Result<Learner, Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        let mut options = CompileOptions { keep_all: true, ..options.clone() };
        options.per_cell.push(PerCell { name: lesson.input.clone(), values: Arc::clone(&lesson.example) });
        let (mut model, _) = flatten(model, &options)?;
        suited(&model)?;
        let names: Vec<String> = model.projections.iter().map(|p| p.name.clone()).collect();
        let (routes_learn, fitted) = learnt(&model, &lesson.learn)?;

        // One trial, with all that cells and edges begin with.
        let plain = CompileOptions { passes: Passes::Named(Vec::new()), ..options.clone() };
        let whole = Experiment::new(compile_flat(model.clone(), &checked.sources, &plain, &mut |_, _, _| {})?)?;
        let mut beginning = Interp::new(whole.compiled.program.clone(), &whole.setup).map_err(cannot)?;
        beginning.init().map_err(cannot)?;

        // All trials, whose events are carried.
        let program = discretize_carried(&model, &checked.sources, lesson.carried);
        let program = step::verify(program).map_err(internal)?;
        numbered_cells(program.program())?;
        let (moved, wrt) = moved(&mut model, program.program(), &fitted);
        let given: Vec<FieldId> = (0..model.projections.len() as u32)
            .filter_map(|projection| program.program().bound(Source::Arrived(projection, 0)))
            .collect();
        let adjoints = given.iter().map(|field| Source::Adjoint(field.0)).collect();
        let (counted, of) = readout(&model, program.program(), &lesson.read)?;
        let back = differentiate::backward(&program, &Wanted { of: of.into_iter().collect(), wrt, given })
            .or_else(|why| refused(why.to_string()))?;
        let made = |plain: Verified, keep: Keep| -> Result<Experiment, Vec<Diagnostic>> {
            let names: Vec<&str> = match &options.passes {
                Passes::Level(level) => passes::pipeline(*level, options.backend).to_vec(),
                Passes::Named(names) => names.iter().map(String::as_str).collect(),
            };
            let pass_options = passes::Options { keep, ..passes::Options::default() };
            let program = passes::run(plain.clone(), &names, &pass_options, &mut |_, _, _| {}).map_err(internal)?;
            let (mut setup, warnings) =
                simulate::setup(&without_projections(&model), program.program(), &whole.extent)?;
            repeat(&mut setup, program.program(), lesson.trials);
            let compiled = Compiled { ode: model.clone(), plain, program, warnings: Vec::new() };
            let recording = Recording { every: whole.extent.grid.steps, fields: Vec::new() };
            let extent = whole.extent.clone();
            Ok(Experiment { compiled, extent, setup, recording, warnings })
        };
        let forward = made(program.clone(), Keep::AllStates)?;
        let mut backward = made(back, Keep::Only(adjoints))?;
        simulate::turn_edges(program.program(), &mut backward.setup).map_err(internal)?;

        let [there, back] = [forward.program(), backward.program()];
        let sizes = &forward.setup.sizes;
        let elements = |field: FieldId| there.field(field).over.map_or(1, |space| sizes[space.0 as usize]);
        let in_back = |field: FieldId, kind: FieldKind| {
            back.find_field(&there.field(field).name).filter(|&f| back.field(f).kind == kind)
        };
        let adjoint = |field: FieldId| {
            let name = &there.field(field).name;
            // Adjoints name the fields of the program before the passes.
            let plain = program.program().find_field(name)?;
            back.bound(Source::Adjoint(plain.0))
        };
        let all_states: Vec<FieldId> = there.fields_where(|f| f.kind == FieldKind::State);
        let read: BTreeSet<FieldId> = (back.function(Role::Step).into_iter().flat_map(|step| step.ops()))
            .filter_map(|op| match op.kind {
                OpKind::Field(field) | OpKind::Gather(field, _) => Some(field),
                _ => None,
            })
            .collect();
        let states = all_states.iter().map(|&f| (Both { forward: f, back: in_back(f, FieldKind::State) }, elements(f)));
        let mut begin = Vec::new();
        for kind in [FieldKind::Const, FieldKind::State] {
            for field in there.fields_where(|f| f.kind == kind) {
                let known = whole.program().find_field(&there.field(field).name);
                let Some(known) = known.filter(|&f| whole.program().field(f).kind == kind) else { continue };
                let mut values = Vec::new();
                let cells = elements(field) / lesson.trials;
                beginning.read(known, 0..cells, &mut values).map_err(cannot)?;
                let values = values.repeat(lesson.trials);
                begin.push((Both { forward: field, back: in_back(field, kind) }, values));
            }
        }
        let spiking: Vec<(usize, Spiking)> = (0..model.populations.len())
            .filter_map(|population| {
                let forward = there.bound(Source::Spiked(population as u32))?;
                let spiked = Both { forward, back: adjoint(forward) };
                Some((population, Spiking { cells: whole.extent.cells[population], spiked }))
            })
            .collect();
        let sender = |population: usize| spiking.iter().position(|(other, _)| *other == population);
        let mut routes = Vec::new();
        for (number, projection) in model.projections.iter().enumerate() {
            let arrived = there.bound(Source::Arrived(number as u32, 0));
            let (Some(arrived), Some(from)) = (arrived, sender(projection.from)) else {
                return refused(format!("nothing spikes or arrives through `{}`", projection.name));
            };
            routes.push(Route {
                tract: tract(&model, &whole, &beginning, number)?,
                from,
                arrived: Both { forward: arrived, back: adjoint(arrived) },
                targets: elements(arrived),
                learns: routes_learn[number],
            });
        }
        let (readout, outputs) = match counted {
            Some(population) => match sender(population) {
                Some(number) => (Readout::Count(number), whole.extent.cells[population]),
                None => return refused(format!("`{}` does not spike", model.populations[population].name)),
            },
            None => {
                let plain = of.ok_or_else(|| internal("nothing is read out"))?;
                let name = &program.program().field(plain).name;
                let field = there.find_field(name).ok_or_else(|| internal("what is read out is gone"))?;
                let seed = Both { forward: field, back: back.bound(Source::Seed(0)) };
                (Readout::State(seed, elements(field)), elements(field) / lesson.trials)
            }
        };
        let gradients = (0..moved.len() as u32)
            .map(|parameter| {
                let mut of: Vec<(u32, FieldId, usize)> = (0..back.fields.len() as u32)
                    .map(FieldId)
                    .filter_map(|f| match back.field(f).source {
                        Source::Gradient(of, space) if of == parameter => {
                            let count = back.field(f).over.map_or(1, |s| backward.setup.sizes[s.0 as usize]);
                            Some((space, f, count))
                        }
                        _ => None,
                    })
                    .collect();
                of.sort_unstable();
                of.into_iter().map(|(_, field, count)| (field, count)).collect()
            })
            .collect();
        let input = ode::full_name(&model, &lesson.input).map_err(|d| vec![d])?;
        let input = there.find_field(input).filter(|&f| there.field(f).kind == FieldKind::Const);
        let Some(input) = input else {
            return refused(format!("nothing in a step reads `{}`", lesson.input));
        };
        let input = Both { forward: input, back: in_back(input, FieldKind::Const) };
        let trials = Trials {
            states: states.filter(|(both, _)| both.back.is_some_and(|field| read.contains(&field))).collect(),
            begin,
            spiking: spiking.iter().map(|(_, spiking)| *spiking).collect(),
            routes,
            readout,
            gradients,
            trials: lesson.trials,
            steps: usize::try_from(whole.extent.grid.steps).unwrap_or(usize::MAX),
            threads: lesson.threads,
            forward: engine(&forward, choice, lesson.precision)?,
            back: engine(&backward, choice, lesson.precision)?,
        };
        let mut learner = Learner { model, trials, input, fitted, moved, names, outputs };
        for one in &mut learner.moved {
            one.forward = there.bound(Source::Param(one.param.0));
            one.back = back.bound(Source::Param(one.param.0));
        }
        learner.matters()?;
        Ok(learner)
    }

    /// Is there anything to learn?
    fn matters(&self) -> Result<(), Vec<Diagnostic>> {
        for (route, name) in self.trials.routes.iter().zip(&self.names) {
            if route.learns && route.arrived.back.is_none() {
                return refused(format!(
                    "the weights of `{name}` cannot learn: nothing that is read out depends on them"
                ));
            }
        }
        for (number, one) in self.fitted.iter().enumerate() {
            let depends = self.moved.iter().zip(&self.trials.gradients);
            if !depends.into_iter().any(|(moved, fields)| moved.slopes[number].is_some() && !fields.is_empty()) {
                return refused(format!("`{}` cannot learn: nothing that is read out depends on it", one.name));
            }
        }
        Ok(())
    }

    /// How many bytes of states are kept on the way forward.
    pub fn memory(&self) -> f64 {
        let values: usize = self.trials.states.iter().map(|(_, count)| count).sum();
        8.0 * values as f64 * (self.trials.steps as f64 + 1.0)
    }

    /// How many cells the readout has.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The key of the model's random numbers.
    pub fn seed(&self) -> u64 {
        self.model.seed
    }

    /// The parameters that learn.
    pub fn fitted(&self) -> &[Fitted] {
        &self.fitted
    }

    /// The projections whose weights learn: names, and weights in the order of gradients.
    pub fn weights_mut(&mut self) -> impl Iterator<Item = (&str, &mut [f64])> {
        let routes = self.trials.routes.iter_mut().zip(&self.names).filter(|(route, _)| route.learns);
        routes.map(|(route, name)| (name.as_str(), route.tract.weights_mut()))
    }

    /// The weights of the projections that learn, in the order of their edges: by target, and of each target by source.
    pub fn weights(&self) -> Vec<(&str, Vec<f64>)> {
        let routes = self.trials.routes.iter().zip(&self.names).filter(|(route, _)| route.learns);
        routes.map(|(route, name)| (name.as_str(), route.tract.weights())).collect()
    }

    /// Gives the projections that learn weights, in the order of their edges.
    pub fn set_weights(&mut self, weights: &[Vec<f64>]) {
        let routes = self.trials.routes.iter_mut().filter(|route| route.learns);
        routes.zip(weights).for_each(|(route, weights)| route.tract.set_weights(weights));
    }

    /// Values of edges in the order of gradients, of the projection with this number among those that learn, in the order of the edges.
    pub fn in_order(&self, number: usize, values: &[f64]) -> Vec<f64> {
        let mut routes = self.trials.routes.iter().filter(|route| route.learns);
        routes.nth(number).map_or_else(Vec::new, |route| route.tract.in_order(values))
    }

    /// What the trials read out, `[sample][trial][cell]`, and the number of spikes; `input` has values `[trial][cell]`.
    pub fn samples(&mut self, parameters: &[f64], input: &[f64]) -> Result<(Vec<f64>, u64), EngineError> {
        self.set(parameters)?;
        self.trials.samples(&[(self.input, input.to_vec())])
    }

    /// The loss of all trials and its derivatives; `loss` gets what they read out, `[sample][trial][cell]`.
    pub fn gradient(
        &mut self,
        parameters: &[f64],
        input: &[f64],
        loss: &mut dyn FnMut(&[f64]) -> Loss,
    ) -> Result<Found, EngineError> {
        self.set(parameters)?;
        let Slopes { loss, weights, parameters: of, spikes } =
            self.trials.slopes(&[(self.input, input.to_vec())], loss)?;
        let weights = weights.into_iter().zip(&self.trials.routes).filter(|(_, route)| route.learns);
        let weights = weights.map(|(weights, _)| weights).collect();
        let totals: Vec<f64> = of.iter().map(|values| values.iter().sum()).collect();
        let parameters = super::gradient::chained(&self.model, &self.moved, &totals, self.fitted.len())?;
        Ok(Found { loss, weights, parameters, spikes })
    }

    fn set(&mut self, values: &[f64]) -> Result<(), EngineError> {
        let (forward, back) = (self.trials.forward.as_mut(), self.trials.back.as_mut());
        super::gradient::set(&mut self.model, &self.fitted, &self.moved, values, forward, back)
    }
}

fn cannot(e: EngineError) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Unsupported, e.0)]
}

/// Refuses what trials cannot have.
fn suited(model: &Model) -> Result<(), Vec<Diagnostic>> {
    if let Some(branched) = model.populations.iter().find(|p| p.kind != Kind::Cells) {
        return refused(format!("`{}` has branches; so far only cells without them learn", branched.name));
    }
    match model.projections.iter().find(|p| p.plasticity.is_some()) {
        Some(p) => refused(format!(
            "the synapses of `{}` remember what events do; so far these do not learn from a loss",
            p.name
        )),
        None => Ok(()),
    }
}

/// Which projections learn, and the parameters that do.
fn learnt(model: &Model, names: &[String]) -> Result<(Vec<bool>, Vec<Fitted>), Vec<Diagnostic>> {
    let mut learns = vec![false; model.projections.len()];
    let (mut errors, mut parameters): (Vec<Diagnostic>, Vec<Fitted>) = (Vec::new(), Vec::new());
    for name in names {
        let wrong = |code, message: String| Diagnostic::without_place(code, message);
        if let Some(of) = name.strip_suffix(".weight") {
            let suffix = format!(".{of}");
            let fits: Vec<usize> = (model.projections.iter().enumerate())
                .filter(|(_, p)| p.name == of || p.name.ends_with(&suffix))
                .map(|(number, _)| number)
                .collect();
            match fits[..] {
                [one] if learns[one] => errors.push(wrong(Code::BadValue, format!("`{name}` learns twice"))),
                [one] => {
                    learns[one] = true;
                    continue;
                }
                [] => {
                    let known: Vec<String> = model.projections.iter().map(|p| format!("{}.weight", p.name)).collect();
                    let d = wrong(Code::UnknownParameter, format!("there is no projection `{of}`"));
                    let near = nearest(name, known.iter().map(String::as_str));
                    let d = near.map_or(d.clone(), |near| d.help(format!("did you mean `{near}`?")));
                    errors.push(d.note(format!("weights that may learn are {}", known.join(", "))));
                }
                _ => {
                    let all: Vec<&str> = fits.iter().map(|&p| model.projections[p].name.as_str()).collect();
                    let d = wrong(Code::AmbiguousParameter, format!("`{name}` fits several projections"));
                    errors.push(d.note(format!("they are {}", all.join(", "))).help("write more of the name"));
                }
            }
            continue;
        }
        match fitted(model, name) {
            Ok(one) if parameters.iter().any(|other| other.name == one.name) => {
                errors.push(wrong(Code::BadValue, format!("`{}` learns twice", one.name)));
            }
            Ok(one) if decides_sizes(model, &one) => errors.push(wrong(
                Code::Unsupported,
                format!(
                    "`{}` says how many cells there are, who is connected or when events arrive, and cannot learn",
                    one.name
                ),
            )),
            Ok(one) if one.value.is_none() => {
                errors.push(wrong(
                    Code::Unsupported,
                    format!("`{}` differs from cell to cell, and cannot learn so far", one.name),
                ));
            }
            Ok(one) => parameters.push(one),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok((learns, parameters)) } else { Err(errors) }
}

/// Cells are numbered anew for each trial, so that a step must not ask for numbers.
fn numbered_cells(program: &Program) -> Result<(), Vec<Diagnostic>> {
    let asks = |role| program.function(role).is_some_and(|f| f.ops().any(|op| op.kind == OpKind::Index));
    match [Role::Step, Role::Observe].into_iter().any(asks) {
        true => refused("a step asks for the number of a cell; so far nothing learns where it does".into()),
        false => Ok(()),
    }
}

/// The model, as programs see it whose events are carried.
fn without_projections(model: &Model) -> Model {
    Model { projections: Vec::new(), ..model.clone() }
}

/// Gives the set-up of one trial as many.
fn repeat(setup: &mut Setup, program: &Program, trials: usize) {
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

/// The edges of a projection with what they begin with.
fn tract(model: &Model, whole: &Experiment, beginning: &Interp, number: usize) -> Result<Tract, Vec<Diagnostic>> {
    let (projection, space) = (&model.projections[number], projection_space(model, number));
    let program = whole.program();
    let edges = whole.setup.edges_of(space).ok_or_else(|| internal("a projection has no edges"))?;
    let count = edges.sources.len();
    let of_edges = |source: Source| {
        let Some(field) = program.bound(source) else { return Ok::<_, Vec<Diagnostic>>(None) };
        let mut values = Vec::new();
        beginning.read(field, 0..count, &mut values).map_err(cannot)?;
        Ok(Some(values))
    };
    let delays = of_edges(Source::Delay(number as u32))?.ok_or_else(|| internal("a projection has no delays"))?;
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
    Ok(Tract::new(edges, whole.extent.cells[projection.from], &delays, &weights))
}

/// The population whose spikes are counted, or the state that is read.
fn readout(model: &Model, program: &Program, read: &Read) -> Result<(Option<usize>, Option<FieldId>), Vec<Diagnostic>> {
    let unknown = |name: &str, what: &str, known: Vec<&str>| {
        let d = Diagnostic::without_place(Code::UnknownParameter, format!("there is no {what} `{name}`"));
        let d = nearest(name, known.clone()).map_or(d.clone(), |near| d.help(format!("did you mean `{near}`?")));
        vec![d.note(format!("it may be {}", known.join(", ")))]
    };
    match read {
        Read::SpikeCount(name) => match model.populations.iter().position(|p| p.name == *name) {
            Some(population) => Ok((Some(population), None)),
            None => Err(unknown(name, "population", model.populations.iter().map(|p| p.name.as_str()).collect())),
        },
        Read::State(name) => {
            let suffix = format!(".{name}");
            let states = || (0..).zip(&model.states).filter(|(_, s)| s.edges.is_none());
            let fits: Vec<u32> = states()
                .filter(|(_, s)| s.name == *name || s.name.ends_with(&suffix))
                .map(|(number, _)| number)
                .collect();
            match fits[..] {
                [one] => Ok((None, program.bound(Source::State(one)))),
                [] => Err(unknown(name, "state", states().map(|(_, s)| s.name.as_str()).collect())),
                _ => refused(format!("`{name}` fits several states; write more of the name")),
            }
        }
    }
}
