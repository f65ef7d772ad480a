//! Networks whose weights and parameters learn: many trials at once, with gradients that go back through spikes.
//!
//! In come a checked model and a [`Lesson`]; out goes a [`Learner`]: what trials read out, and the gradient of a loss of that.
//! Never true here: a loss is chosen, or a run of the same model would deliver its events in other steps.

mod begin;
mod learn;
mod loaded;
mod programs;
mod reads;

use super::gradient::{Moved, moved};
use super::{Checked, CompileOptions, EngineChoice, Fitted, flatten};
#[cfg(feature = "xla")]
use crate::codegen::plan::DeviceClass;
use crate::codegen::plan::Precision;
#[cfg(feature = "xla")]
use crate::codegen::stablehlo::{Entry, mlir};
use crate::data::{Dataset, Kept, Samples};
use crate::diag::{Code, Diagnostic};
use crate::discretize::{Carried, discretize_carried};
use crate::engine::frames::Frames;
use crate::engine::{Engine, EngineError};
use crate::hir::{self, Gradient, Learn, Method, Train};
use crate::ode::{self, Kind, Model, NodeId, ParamId, PerCell};
#[cfg(feature = "xla")]
use crate::simulate::trials::kinds;
use crate::simulate::trials::{Given, Net, Room, Runner, Settling, Slopes, Update};
use crate::simulate::{self, Loss};
use crate::source::Span;
use crate::step::{self, FieldId, FieldKind, Program, Source};
use crate::units;
use begin::Followers;
use learn::{Learnt, Numbers, Of, OfCells, Range, idle, learnt, numbers, of_each_cell, place_of, weights_begin_within};
use loaded::Loaded;
use programs::{Programs, Whole, resistivities};
use reads::{Picked, Place, readout};
pub use reads::{Read, Reads, reads};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is learnt, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// The parameter of cells that differs from trial to trial, and where it is named.
    pub input: (String, Span),
    /// Values of it that the model takes, for as many cells as there are.
    pub example: Arc<[f64]>,
    /// How many steps it keeps its values; all if absent.
    pub frame: Option<usize>,
    /// Projections whose weights or delays learn, and parameters; a name may be the end of one.
    pub learn: Vec<Learn>,
    /// What the loss reads, each once.
    pub reads: Vec<(Read, Span)>,
    /// How spikes count.
    pub carried: Carried,
    /// Along which ways derivatives go back.
    pub gradient: Gradient,
    /// How many trials run at once.
    pub trials: usize,
    /// How many threads carry events.
    pub threads: usize,
    /// The numbers of the engine.
    pub precision: Precision,
}

/// What is wrong with the names of a `train` block, and what of the model cannot learn.
pub(super) fn wrong_names(model: &Model, train: &Train) -> Vec<Diagnostic> {
    let reads = reads(model, train);
    let learnt = learnt(model, &train.learn, &train.input);
    let idle = match (&learnt, &reads) {
        (Ok(learns), Ok(reads)) => idle(model, &learns.projections, &train.learn, (&reads.each, train.gradient)).err(),
        // What is wrong with the readout is told once.
        _ => None,
    };
    let found = [suited(model).err(), learnt.err(), idle, given(model, &train.input).err(), reads.err()];
    let mut found: Vec<Diagnostic> = found.into_iter().flatten().flatten().collect();
    found.extend(left_behind(model, train));
    let word = Span { end: train.span.start + 5, ..train.span };
    found.into_iter().map(|d| at(word, d)).collect()
}

/// What is wrong if samples change in a run and a parameter follows their values, or what cells pass on and compute.
fn left_behind(model: &Model, train: &Train) -> Option<Diagnostic> {
    let (_, frame) = train.frame?;
    let full = given(model, &train.input).ok()?;
    let input = model.params.iter().position(|p| p.name == full)?;
    let of_samples = BTreeSet::from([ParamId(input as u32)]);
    let passed = model.passed_on().into_iter().find(|(_, sent)| model.follows(*sent, &of_samples));
    if let Some((first, _)) = passed {
        let p = &model.projections[first];
        let message = format!("what `{}` passes on would keep the values of a frame for a step of the next", p.name);
        let d = Diagnostic::new(Code::Unsupported, frame, message, "the samples change from frame to frame");
        let d = d.see(p.span, format!("what its cells pass on is made of states and of `{full}`"));
        return Some(d.help("pass on a state that follows the samples: `x' = ...`"));
    }
    let (_, follower) = (0..).zip(&model.params).find(|(at, p)| {
        *at != input && (p.home.is_some() || p.population.is_some()) && model.follows(p.value, &of_samples)
    })?;
    let message = format!("`{}` would keep the values of the first frame", follower.name);
    let d = Diagnostic::new(Code::Unsupported, frame, message, "the samples change from frame to frame");
    let own = follower.name.rsplit('.').next().unwrap_or_default();
    Some(
        d.see(follower.span, format!("this follows `{full}`"))
            .help(format!("write it as `let {own} = ...`, which is computed in every step")),
    )
}

/// The files of samples that are learnt from, and what is kept for testing.
pub(super) fn files(train: &Train) -> (Samples, Kept) {
    let place = |(name, span): &(String, Span)| (train.directory.join(name), *span);
    let samples = |of: &hir::Samples| Samples { file: place(&of.file), labels: of.labels.as_ref().map(place) };
    let test = match &train.test {
        hir::Test::Share(share, _) => Kept::Share(*share),
        hir::Test::Samples(others) => Kept::Samples(samples(others)),
    };
    (samples(&train.data), test)
}

/// All of its samples, those that are learnt from first.
pub(super) fn all_samples(train: &Train) -> impl Iterator<Item = Samples> {
    let (samples, test) = files(train);
    let others = if let Kept::Samples(others) = test { Some(others) } else { None };
    std::iter::once(samples).chain(others)
}

/// The samples of a `train` block, if they fit its network.
pub fn samples(model: &Model, train: &Train) -> Result<Dataset, Vec<Diagnostic>> {
    let (_, span) = &train.data.file;
    let (files, test) = files(train);
    let data = Dataset::read(&files, train.frame.is_some(), &test, model.seed).map_err(|d| vec![d])?;
    // What is wrong with sizes is told elsewhere.
    let Ok(extent) = simulate::extent(model) else { return Ok(data) };
    let mut errors = Vec::new();
    let wrong = |message: String, why: String| Diagnostic::new(Code::BadData, *span, message, why);
    let param = given(model, &train.input).ok().and_then(|full| model.params.iter().find(|p| p.name == full));
    if let Some(population) = param.and_then(|p| p.home.or(p.population)) {
        let (cells, values) = (extent.cells[population], data.values());
        if cells != values {
            let message =
                format!("a sample has {values} values, but `{}` has {cells} cells", model.populations[population].name);
            let d = wrong(message, format!("the samples have the shape {:?}", data.shape()));
            let d = d.see(train.input.1, format!("each of the {cells} cells needs one"));
            let in_frames = train.frame.is_none()
                && data.shape().get(1..).is_some_and(|rest| rest.iter().product::<usize>() == cells);
            errors.push(match in_frames {
                true => d.help("say how long a frame of a sample lasts: `frame = 1 ms`"),
                false => d,
            });
        }
    }
    errors.extend(frame(model, train, data.frames()).err());
    let outputs = reads(model, train).ok().and_then(|reads| reads.each.first().cloned());
    let outputs = outputs.and_then(|read| readout(model, &read).ok()).map(|read| extent.cells[read.population(model)]);
    let classes = data.classes();
    if let Some(outputs) = outputs.filter(|&outputs| outputs < classes) {
        let message = format!("there are {classes} classes, but {outputs} cells are read out");
        let d = wrong(message, "a cell for each class is needed".into());
        let from_one = data.least_class() > 0;
        errors.push(if from_one { d.help("classes are counted from 0, and none is 0") } else { d });
    }
    if errors.is_empty() { Ok(data) } else { Err(errors) }
}

/// A warning if a share of the samples is to be kept for testing, but is less than one of them.
pub fn none_is_tested(train: &Train, data: &Dataset) -> Option<Diagnostic> {
    let hir::Test::Share(share, span) = train.test else { return None };
    if share == 0.0 || !data.test().is_empty() {
        return None;
    }
    let all = data.count();
    let message = format!("`test = {share}` of {all} samples keeps none for testing");
    let (span, why) = match span {
        Some(span) => (span, "less than one sample"),
        None => (train.data.file.1, "where no `test` is written, it is 0.2"),
    };
    let d = Diagnostic::new(Code::NoEffect, span, message, why);
    Some(match all {
        1 => d.help("write `test = 0`: one sample is learnt from"),
        _ => d.help(format!("write `test = {}` or more, or `test = 0`", (100.0 / all as f64).ceil() / 100.0)),
    })
}

/// A sample, as a run takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The parameter of cells that has its values.
    pub parameter: String,
    /// The values in canonical units, frame by frame; one frame if they stay.
    pub frames: Vec<Vec<f64>>,
    /// How many steps a frame lasts.
    pub steps: usize,
    /// The class.
    pub class: usize,
    /// Is it kept for testing?
    pub is_test: bool,
}

impl Sample {
    /// What its run begins with.
    pub fn first(&self) -> PerCell {
        let values = self.frames.first().map_or_else(Vec::new, Clone::clone);
        PerCell { name: self.parameter.clone(), values: values.into() }
    }

    /// The engine of a run that has taken [`Sample::first`] as an engine of the whole sample.
    pub fn shown(&self, program: &Program, engine: Box<dyn Engine>) -> Result<Box<dyn Engine>, EngineError> {
        if self.frames.len() == 1 {
            return Ok(engine);
        }
        let field = program.find_field(&self.parameter).filter(|&field| program.field(field).kind == FieldKind::Const);
        let field = field.ok_or_else(|| EngineError(format!("nothing in a step reads `{}`", self.parameter)))?;
        Ok(Box::new(Frames::new(engine, field, self.frames.clone(), self.steps)))
    }
}

/// A sample of the data of a `train` block, by its number.
pub fn sample(model: &Model, train: &Train, number: usize) -> Result<Sample, Vec<Diagnostic>> {
    let data = samples(model, train)?;
    if number >= data.count() {
        let message = format!("there is no sample {number}: `{}` has {}", train.data.file.0, data.count());
        let d = Diagnostic::without_place(Code::BadValue, message);
        return Err(vec![d.help(format!("the first is 0, the last {}", data.count() - 1))]);
    }
    let parameter = given(model, &train.input)?;
    let exponent = model.params.iter().find(|p| p.name == parameter).map_or(0, |p| p.unit.exponent);
    let steps = frame(model, train, data.frames()).map_err(|d| vec![d])?.unwrap_or(1);
    let values = |frame| data.frame(number, frame).iter().map(|&x| units::scale(x, exponent)).collect();
    Ok(Sample {
        parameter,
        frames: (0..data.frames()).map(values).collect(),
        steps,
        class: data.class(number),
        is_test: data.test().binary_search(&number).is_ok(),
    })
}

/// How many steps a frame of the samples lasts; none if they do not change. All frames last as long as the run.
pub fn frame(model: &Model, train: &Train, frames: usize) -> Result<Option<usize>, Diagnostic> {
    let Some((ms, span)) = train.frame else { return Ok(None) };
    let steps = (ms / model.dt).round();
    if steps < 1.0 || (steps * model.dt - ms).abs() > 1e-9 * ms {
        let message = format!("a frame of {ms} ms is no whole number of steps of {} ms", model.dt);
        return Err(Diagnostic::new(Code::BadValue, span, message, "as long as some steps"));
    }
    let run = (model.duration / model.dt).round();
    if steps * frames as f64 != run {
        let all = steps * frames as f64 * model.dt;
        let message = format!("{frames} frames of {ms} ms last for {all} ms, but the run for {} ms", model.duration);
        let d = Diagnostic::new(Code::BadData, span, message, "as long as the run in all");
        return Err(d.help("frames of zeros at the end of the samples let the network answer"));
    }
    Ok(Some(steps as usize))
}

/// A network that learns.
pub struct Learner {
    own: Prepared,
    runner: Box<dyn Runner>,
    /// Those of its numbers that live where steps are taken.
    settled: Vec<usize>,
}

/// The derivatives of a loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The loss.
    pub loss: f64,
    /// The derivatives in all that learns of projections, in the order of [`Learner::learnt`] and the units of [`Learner::change`]; of edges in the order of
    /// gradients. Those in weights that have settled are none: they stay where steps are taken.
    pub edges: Vec<Vec<f64>>,
    /// The derivatives in the parameters that learn, in canonical units.
    pub parameters: Vec<f64>,
    /// How many spikes there were in each trial.
    pub spikes: Vec<u64>,
}

fn refused<T>(what: String) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::without_place(Code::Unsupported, what)])
}

fn internal(what: impl std::fmt::Display) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Internal, what.to_string())]
}

/// All of a network that learns but what takes its steps.
struct Prepared {
    model: Model,
    net: Net,
    fitted: Vec<Fitted>,
    /// Where they stay.
    ranges: Vec<Range>,
    moved: Vec<Moved>,
    /// What learns of edges and cells.
    numbers: Vec<Numbers>,
    /// The parameters that learn for each cell; their gradients are behind those of `moved`.
    cells: Vec<OfCells>,
    /// How many cells each readout has.
    outputs: Vec<usize>,
    /// Of each readout what is read, where cells have several values.
    picked: Vec<Option<Picked>>,
    /// What cells begin with that follows samples and parameters.
    followers: Followers,
    /// What the states are called.
    states: Vec<String>,
    /// How many cells populations have.
    sizes: Vec<usize>,
    /// The numbers of files that cells have, by population and file.
    files: BTreeMap<(usize, u32), Vec<f64>>,
}

impl Prepared {
    fn new(
        checked: &Checked,
        options: &CompileOptions,
        lesson: &Lesson,
    ) -> Result<(Prepared, Programs), Vec<Diagnostic>> {
        let Some(model) = &checked.model else { return Err(checked.diagnostics.clone()) };
        if lesson.precision == Precision::Bf16 {
            return refused("networks learn in f64 or f32, not in bf16".into());
        }
        let mut options = CompileOptions { keep_all: true, ..options.clone() };
        let (flat, _) = flatten(model, &options)?;
        suited(&flat)?;
        let input = given(&flat, &lesson.input)?;
        not_set(&flat, &options, &input)?;
        options.per_cell.push(PerCell { name: input.clone(), values: Arc::clone(&lesson.example) });
        let (mut model, _) = flatten(model, &options)?;
        let Learnt { projections: routes_learn, parameters, cells: of_cells } =
            learnt(&model, &lesson.learn, &lesson.input)?;
        let (fitted, ranges): (Vec<Fitted>, Vec<Range>) = parameters.into_iter().unzip();
        idle(&model, &routes_learn, &lesson.learn, (&lesson.reads, lesson.gradient))?;
        let whole = Whole::new(&model, checked, &options)?;
        // All trials, whose events are carried.
        if model.method == Method::Adaptive {
            return refused("networks learn with a method that has steps of `dt`, not with adaptive steps".into());
        }
        let mut program = discretize_carried(&model, &checked.sources, lesson.carried);
        // Cells of all trials are numbered on.
        let loaded = Loaded::instead(&mut program);
        let program = step::verify(program).map_err(internal)?;
        let (mut moved, mut wrt) = moved(&mut model, program.program(), &fitted);
        for (one, _) in &of_cells {
            let field = program.program().bound(Source::Param(one.param.0));
            let field = field.filter(|&field| program.program().field(field).kind == FieldKind::Const);
            let idle = || refused(format!("`{}` cannot learn: no step reads it", one.name));
            wrt.push(field.map_or_else(idle, Ok)?);
        }
        let read = lesson.reads.iter().map(|read| readout(&model, read)).collect::<Result<Vec<_>, _>>()?;
        let states = read.iter().filter_map(|read| match read {
            Place::State(state, _) => program.program().bound(Source::State(state.0)),
            Place::Count(_) | Place::Spikes(_) => None,
        });
        let of: Vec<FieldId> = states.collect();
        let programs = Programs::new(&model, (program, &loaded), (of, wrt), &whole, &options, lesson.trials)?;
        let given = programs.input(&input);
        let spiking = programs.spiking(&model, &whole);
        let answer = (lesson.gradient, read.first().map(|read| model.cells_of(read.population(&model))));
        let routes = programs.routes(&model, &whole, &spiking, (&routes_learn, answer))?;
        for ((p, route), learns) in model.projections.iter().zip(&routes).zip(&routes_learn) {
            learns.weight.map_or(Ok(()), |range| weights_begin_within(p, &route.tract.weights(), range))?;
        }
        let (readouts, outputs): (_, Vec<usize>) = programs.readouts(&read, &whole, &spiking)?.into_iter().unzip();
        let picked: Vec<Option<Picked>> = read.iter().map(|read| read.picked()).collect();
        let outputs = outputs.iter().zip(&picked).map(|(all, picked)| all / picked.map_or(1, |one| one.each)).collect();
        let steps = usize::try_from(whole.experiment.extent.grid.steps).unwrap_or(usize::MAX);
        let frame = lesson.frame.unwrap_or(steps).max(1);
        let elements = lesson.example.len() * lesson.trials;
        let mut net = Net {
            states: programs.states(),
            begin: programs.begin(&model, &whole)?,
            follow: Vec::new(),
            kept: None,
            given: Given { of: given, elements, frames: steps.div_ceil(frame).max(1), steps: frame },
            spiking: spiking.iter().map(|(_, spiking)| *spiking).collect(),
            passing: programs.passing(&model, &whole)?,
            sent: vec![Vec::new(); model.graded_given().count()],
            routes,
            readouts,
            gradients: (0..(moved.len() + of_cells.len()) as u32).map(|of| programs.gradient(of)).collect(),
            trials: lesson.trials,
            steps,
        };
        for one in &mut moved {
            one.forward = programs.there().bound(Source::Param(one.param.0));
            one.back = programs.back().bound(Source::Param(one.param.0));
        }
        let mut numbers = numbers(&model, &routes_learn);
        let mut cells = Vec::new();
        for (one, range) in of_cells {
            let own = of_each_cell(&one, range, programs.there(), &net);
            let own = own.map_err(|d| vec![at(place_of(&lesson.learn, &one.name), d)])?;
            numbers.push(Numbers {
                name: one.name,
                of: Of::Cells(cells.len()),
                same: Vec::new(),
                range,
                unit: units::scale(1.0, one.unit.exponent),
            });
            cells.push(own);
        }
        let input = model.params.iter().zip(0..).find(|(p, _)| p.name == input).map(|(_, at)| ParamId(at));
        let input = input.ok_or_else(|| internal("what samples give is no parameter"))?;
        let learn: BTreeSet<ParamId> = fitted.iter().map(|one| one.param).collect();
        begins_alike(&model, &learn.iter().copied().chain([input]).collect())?;
        let passed = model.passed_on().into_iter().map(|(first, sent)| (first, model.at_the_beginning(sent)));
        let passed: BTreeMap<usize, NodeId> = passed.collect();
        if let Some((&first, _)) = passed.iter().find(|(_, begin)| !model.stays(**begin)) {
            return refused(format!(
                "what the graded synapses of `{}` pass on changes by itself in time; so far states and parameters are passed on",
                model.projections[first].name
            ));
        }
        let followers = Followers::new(&model, programs.there(), &net, (input, learn, passed), &whole)?;
        if net.given.of.is_none() && !followers.of_samples() {
            let (name, span) = &lesson.input;
            let d = Diagnostic::without_place(Code::Unsupported, format!("nothing in a run reads `{name}`"));
            return Err(vec![at(*span, d)]);
        }
        let home = model.param(input).home.or(model.param(input).population);
        net.kept = home.and_then(|home| programs.kept(home, followers.file()));
        net.follow = followers.numbers().into_iter().chain(cells.iter().map(|own| own.begin)).collect();
        let of_state =
            |(both, _): &(crate::simulate::trials::Both, usize)| programs.there().field(both.forward).name.clone();
        let states = net.states.iter().map(of_state).collect();
        let (sizes, files) = (whole.experiment.extent.cells.clone(), whole.files());
        let prepared = Prepared {
            model,
            net,
            fitted,
            ranges,
            moved,
            numbers,
            cells,
            outputs,
            picked,
            followers,
            states,
            sizes,
            files,
        };
        prepared.matters()?;
        Ok((prepared, programs))
    }

    /// Is there anything to learn?
    fn matters(&self) -> Result<(), Vec<Diagnostic>> {
        for (number, one) in self.fitted.iter().enumerate() {
            let depends = self.moved.iter().zip(&self.net.gradients);
            if !depends.into_iter().any(|(moved, fields)| moved.slopes[number].is_some() && !fields.is_empty()) {
                return refused(format!("`{}` cannot learn: nothing that is read out depends on it", one.name));
            }
        }
        let of_cells = self.numbers.iter().filter(|one| matches!(one.of, Of::Cells(_)));
        for (one, fields) in of_cells.zip(&self.net.gradients[self.moved.len()..]) {
            if fields.is_empty() {
                return refused(format!("`{}` cannot learn: nothing that is read out depends on it", one.name));
            }
        }
        Ok(())
    }
}

impl Learner {
    /// Compiles a network for as many trials as the lesson wants.
    pub fn new(
        checked: &Checked,
        options: &CompileOptions,
        lesson: &Lesson,
        choice: &dyn Fn() -> Result<EngineChoice, EngineError>,
    ) -> Result<Learner, Vec<Diagnostic>> {
        let (own, programs) = Prepared::new(checked, options, lesson)?;
        let runner = programs.runner(&own.net, lesson, choice)?;
        Ok(Learner { own, runner, settled: Vec::new() })
    }

    /// What XLA compiles of a lesson: the entry points of both directions, as text.
    #[cfg(feature = "xla")]
    pub fn modules(checked: &Checked, options: &CompileOptions, lesson: &Lesson) -> Result<String, Vec<Diagnostic>> {
        let (Prepared { net, .. }, programs) = Prepared::new(checked, options, lesson)?;
        let mut text = String::new();
        let kinds = kinds(&net).map_err(cannot)?;
        for (way, kind) in [&programs.forward, &programs.backward].into_iter().zip(kinds) {
            let plan = way.plan(lesson.precision)?;
            let device = way.setup.device_plan(&plan, DeviceClass::Cpu).map_err(cannot)?;
            let function = Entry::new(&plan, &device, kind.clone(), kind.name()).function;
            let module = mlir::write(&plan.name, &[function], &plan.origins, mlir::Format::Plain);
            text += &String::from_utf8_lossy(&module);
        }
        Ok(text)
    }

    /// Keeps no more than so many bytes of all steps: states on the way forward, and what is read out; on a device also who has sent, and what arrives on the
    /// way back. If that is too little for all steps, they are taken again on the way back, with the same bits, but not on a device. The error says how
    /// many bytes it takes at least.
    pub fn limit(&mut self, budget: f64) -> Result<Room, f64> {
        self.runner.limit(&self.own.net, budget)
    }

    /// Which state the last call has lost: its name, the trial, and the cell or compartment among those of the trial. None if that is not known.
    pub fn lost(&self) -> Option<(&str, usize, usize)> {
        let lost = self.runner.lost()?;
        Some((self.own.states.get(lost.state)?, lost.trial, lost.cell))
    }

    /// How many steps a trial takes.
    pub fn steps(&self) -> usize {
        self.own.net.steps
    }

    /// How many cells each readout has.
    pub fn outputs(&self) -> &[usize] {
        &self.own.outputs
    }

    /// The key of the model's random numbers.
    pub fn seed(&self) -> u64 {
        self.own.model.seed
    }

    /// The parameters that learn.
    pub fn fitted(&self) -> &[Fitted] {
        &self.own.fitted
    }

    /// Where they stay.
    pub fn ranges(&self) -> &[Range] {
        &self.own.ranges
    }

    /// Lets weights live where steps are taken, if a device takes them and each is the weight of one edge. A function that `update` makes moves
    /// them, and the lists that are remembered of them begin at 0.
    pub fn settle(&mut self, lists: usize, update: Update<'_>) -> Result<(), EngineError> {
        let settling = |one: &Numbers| match one.of {
            Of::Weights(route) if one.same.is_empty() => {
                Some(Settling { route, range: [one.range.low, one.range.high], unit: one.unit })
            }
            Of::Weights(_) | Of::Delays(_) | Of::Cells(_) => None,
        };
        let routes: Vec<Settling> = self.own.numbers.iter().filter_map(settling).collect();
        let routes = self.runner.settle(&self.own.net, &routes, lists, update)?;
        let is_there = |one: &Numbers| matches!(one.of, Of::Weights(route) if routes.contains(&route));
        let numbers = self.own.numbers.iter().enumerate().filter(|(_, one)| is_there(one));
        self.settled = numbers.map(|(number, _)| number).collect();
        Ok(())
    }

    /// Does this one, of what [`Learner::learnt`] lists, live where steps are taken?
    pub fn has_settled(&self, number: usize) -> bool {
        self.settled.contains(&number)
    }

    /// Moves what has settled against the slopes of the last gradient; `numbers` is the last argument of the function. The answer is its last result, if that
    /// is a single number; none if nothing has settled.
    pub fn descend(&mut self, numbers: impl FnOnce() -> Vec<f64>) -> Result<Option<f64>, EngineError> {
        self.runner.settled().map_or(Ok(None), |settled| settled.descend(&numbers()))
    }

    /// Fetches what has settled, for [`Learner::learnt`]. The answer are the lists that are remembered of each, in the order of gradients.
    pub fn fetch(&mut self) -> Result<BTreeMap<usize, Vec<Vec<f64>>>, EngineError> {
        let mut remembered = BTreeMap::new();
        let Some(settled) = self.runner.settled() else { return Ok(remembered) };
        for &number in &self.settled {
            let one = &self.own.numbers[number];
            let Of::Weights(route) = one.of else { continue };
            let mut lists = settled.bring_down(&self.own.net, route)?.into_iter();
            let weights = lists.next().unwrap_or_default();
            self.own.net.routes[route].tract.change(|own| {
                own.copy_from_slice(&weights);
                // The end of a range may be rounded on a device.
                one.range.hold(own);
            });
            remembered.insert(number, lists.collect());
        }
        Ok(remembered)
    }

    /// Brings what [`Learner::set_learnt`] has set to where it has settled, with lists that are remembered.
    pub fn bring(&mut self, remembered: &BTreeMap<usize, Vec<&[f64]>>) -> Result<(), EngineError> {
        let Some(settled) = self.runner.settled() else { return Ok(()) };
        let all = remembered.iter().filter(|(number, _)| self.settled.contains(number));
        for (&number, lists) in all {
            if let Of::Weights(route) = self.own.numbers[number].of {
                settled.bring_up(&self.own.net, route, lists)?;
            }
        }
        Ok(())
    }

    /// Changes what learns of edges and cells and has not settled, one after the other, in the order of gradients; weights are in the units of their synapses,
    /// delays in ms, parameters in the units that they are written in. What leaves its range is brought back to its end.
    pub fn change(&mut self, mut change: impl FnMut(usize, &mut [f64])) {
        let dt = self.own.model.dt;
        for (at, Numbers { of, same, range, unit, .. }) in self.own.numbers.iter().enumerate() {
            if self.settled.contains(&at) {
                continue;
            }
            let mut in_units = |values: &mut [f64]| {
                values.iter_mut().for_each(|x| *x /= unit);
                change(at, values);
                values.iter_mut().for_each(|x| *x *= unit);
                range.hold(values);
            };
            match *of {
                Of::Weights(route) => {
                    let tract = &mut self.own.net.routes[route].tract;
                    tract.change(in_units);
                    if !same.is_empty() {
                        let weights = tract.weights();
                        same.iter().for_each(|&other| self.own.net.routes[other].tract.set_weights(&weights));
                    }
                }
                Of::Delays(route) => self.own.net.routes[route].tract.change_delays(|steps| {
                    steps.iter_mut().for_each(|steps| *steps *= dt);
                    change(at, steps);
                    steps.iter_mut().for_each(|ms| *ms /= dt);
                }),
                Of::Cells(number) => {
                    in_units(&mut self.own.cells[number].values);
                    self.own.cells[number].tell(&mut self.own.net);
                }
            }
        }
    }

    /// What learns of edges and cells: weights (`a.b.Kick.weight`) and delays in ms (`a.b.Kick.delay`) in the order of the edges: by target, and of each target by
    /// source; of edges that share a kernel its numbers; parameters of cells in canonical units. What has settled is as it was fetched last.
    pub fn learnt(&self) -> Vec<(&str, Vec<f64>)> {
        let tract = |route: usize| &self.own.net.routes[route].tract;
        let values = |one: &Numbers| match one.of {
            Of::Weights(route) => tract(route).weights(),
            Of::Delays(route) => {
                tract(route).moved_delays().into_iter().map(|steps| steps * self.own.model.dt).collect()
            }
            Of::Cells(number) => self.own.cells[number].values.clone(),
        };
        self.own.numbers.iter().map(|one| (one.name.as_str(), values(one))).collect()
    }

    /// Are these, of what [`Learner::learnt`] lists, delays?
    pub fn are_delays(&self, number: usize) -> bool {
        self.own.numbers.get(number).is_some_and(|one| matches!(one.of, Of::Delays(_)))
    }

    /// Gives what learns of edges and cells values, as [`Learner::learnt`] lists them.
    pub fn set_learnt(&mut self, all: &[Vec<f64>]) {
        for (one, values) in self.own.numbers.iter().zip(all) {
            one.same.iter().for_each(|&other| self.own.net.routes[other].tract.set_weights(values));
            match one.of {
                Of::Weights(route) => self.own.net.routes[route].tract.set_weights(values),
                Of::Delays(route) => {
                    let steps: Vec<f64> = values.iter().map(|ms| ms / self.own.model.dt).collect();
                    self.own.net.routes[route].tract.set_delays(&steps);
                }
                Of::Cells(number) => {
                    self.own.cells[number].values.clone_from(values);
                    self.own.cells[number].tell(&mut self.own.net);
                }
            }
        }
    }

    /// Values in the order of gradients, for what has this number in [`Learner::learnt`], in the order of the edges.
    pub fn in_order(&self, number: usize, values: &[f64]) -> Vec<f64> {
        match self.own.numbers.get(number).map(|one| one.of) {
            Some(Of::Weights(route) | Of::Delays(route)) => self.own.net.routes[route].tract.in_order(values),
            Some(Of::Cells(_)) => values.to_vec(),
            None => Vec::new(),
        }
    }

    /// What the trials read out, for each readout `[sample][trial][cell]`, and the number of spikes of each, as in a run: delays that learn are whole
    /// numbers of steps.
    /// `input` has values `[frame][trial][cell]`.
    pub fn samples(
        &mut self,
        parameters: &[f64],
        input: &[Vec<f64>],
    ) -> Result<(Vec<Vec<f64>>, Vec<u64>), EngineError> {
        self.set(parameters, input)?;
        let moving = self.own.net.routes.iter_mut().filter(|route| route.tract.is_moving());
        let between: Vec<Vec<f64>> = moving.map(|route| route.tract.round_delays()).collect();
        let found = self.runner.samples(&self.own.net, input);
        let moving = self.own.net.routes.iter_mut().filter(|route| route.tract.is_moving());
        moving.zip(between).for_each(|(route, delays)| route.tract.set_delays(&delays));
        let (all, spikes) = found?;
        Ok((picked(&self.own.picked, &all).into_owned(), spikes))
    }

    /// The loss of all trials and its derivatives; `input` as above; `loss` gets what they read out, for each readout `[sample][trial][cell]`.
    pub fn gradient(
        &mut self,
        parameters: &[f64],
        input: &[Vec<f64>],
        loss: &mut dyn FnMut(&[Vec<f64>]) -> Loss,
    ) -> Result<Found, EngineError> {
        self.set(parameters, input)?;
        let of_picked = &self.own.picked;
        let mut of_all = |all: &[Vec<f64>]| {
            let mut loss = loss(&picked(of_picked, all));
            for (slopes, one) in loss.slopes.iter_mut().zip(of_picked) {
                if let Some(one) = one {
                    *slopes = one.spread(slopes);
                }
            }
            loss
        };
        let Slopes { loss, mut edges, parameters: of, spikes } =
            self.runner.slopes(&self.own.net, input, &mut of_all)?;
        let dt = self.own.model.dt;
        let slopes = |one: &Numbers| match one.of {
            Of::Weights(route) => {
                let mut all = std::mem::take(&mut edges[route].weights);
                for &other in &one.same {
                    all.iter_mut().zip(&edges[other].weights).for_each(|(sum, slope)| *sum += slope);
                }
                all.iter_mut().for_each(|slope| *slope *= one.unit);
                all
            }
            Of::Delays(route) => edges[route].delays.iter().map(|per_step| per_step / dt).collect(),
            Of::Cells(number) => {
                // What every trial contributes.
                let (values, cells) = (&of[self.own.moved.len() + number], self.own.cells[number].values.len());
                let of_cell = |cell: usize| values.iter().skip(cell).step_by(cells).sum::<f64>() * one.unit;
                (0..cells).map(of_cell).collect()
            }
        };
        let edges = self.own.numbers.iter().map(slopes).collect();
        let totals: Vec<f64> = of.iter().map(|values| values.iter().sum()).collect();
        let parameters = super::gradient::chained(&self.own.model, &self.own.moved, &totals, self.own.fitted.len())?;
        Ok(Found { loss, edges, parameters, spikes })
    }

    /// Gives parameters that learn values, and what cells begin with that follows them and what samples give.
    fn set(&mut self, values: &[f64], input: &[Vec<f64>]) -> Result<(), EngineError> {
        let runner = &mut self.runner;
        super::gradient::set(&mut self.own.model, &self.own.fitted, &self.own.moved, values, &mut |moved, x| {
            runner.set_uniform(moved.forward, moved.back, x)
        })?;
        self.own.followers.bring(&self.own.model, input, &mut self.own.net)
    }
}

/// Of all samples those that are read.
fn picked<'a>(of: &[Option<Picked>], all: &'a [Vec<f64>]) -> Cow<'a, [Vec<f64>]> {
    if of.iter().all(Option::is_none) {
        return Cow::Borrowed(all);
    }
    let own = |(one, all): (&Option<Picked>, &Vec<f64>)| one.map_or_else(|| all.clone(), |one| one.picked(all));
    of.iter().zip(all).map(own).collect::<Vec<_>>().into()
}

/// Refuses what compartments begin with, by way of others, and what would have to follow samples or what learns: `of`.
fn begins_alike(model: &Model, of: &BTreeSet<ParamId>) -> Result<(), Vec<Diagnostic>> {
    let wrong = |what: String| {
        let d = Diagnostic::without_place(Code::Unsupported, what);
        Err(vec![d.note("so far what begins between compartments neither learns nor follows samples")])
    };
    for cable in &model.cables {
        let cells = &model.populations[model.cells_of(cable.population)].name;
        if resistivities(model, cable).is_some_and(|ra| model.follows(model.param(ra).value, of)) {
            return wrong(format!(
                "the resistivity of `{cells}` differs from compartment to compartment, and would change"
            ));
        }
    }
    for diffusion in &model.diffusions {
        if model.follows(diffusion.coefficient, of) {
            let cells = &model.populations[model.cells_of(diffusion.population)].name;
            return wrong(format!("how `{}` diffuses along `{cells}` would change", diffusion.name));
        }
    }
    for place in model.seen_by_edges() {
        if model.follows(model.state(place.v).init, of) {
            let cells = &model.populations[model.cells_of(place.population)].name;
            return wrong(format!("what `{cells}` begins with at its gap junctions would change"));
        }
    }
    Ok(())
}

fn cannot(e: EngineError) -> Vec<Diagnostic> {
    vec![Diagnostic::without_place(Code::Unsupported, e.0)]
}

/// Refuses what trials cannot have.
fn suited(model: &Model) -> Result<(), Vec<Diagnostic>> {
    if model.populations.iter().any(|p| p.kind == Kind::Clock) {
        return refused("a drive brings spikes of a file; so far samples are all that differs in a step".into());
    }
    let given = |arrives: u32| model.graded_given().find(|(_, p, _)| p.arrives == arrives);
    let mixed =
        model.graded().find_map(|(_, p, graded)| (!model.stays(graded.sent)).then(|| Some((p, given(p.arrives)?)))?);
    if let Some((p, (_, other, _))) = mixed {
        let message =
            format!("what samples give through `{}` arrives where `{}` brings what cells compute", other.name, p.name);
        let d = Diagnostic::without_place(Code::Unsupported, message);
        return Err(vec![d.help("lead one of them to a receptor of its own: `via Synapse as other`")]);
    }
    if let (Some((_, p, _)), Method::Heun | Method::Rk4) = (model.graded().next(), model.method) {
        let message = format!(
            "with `method = {}` the graded synapses of `{}` act several times in a step, where networks learn once",
            model.method.name(),
            p.name
        );
        let d = Diagnostic::without_place(Code::Unsupported, message);
        return Err(vec![d.help("write `method = exp_euler`, or another method of one stage")]);
    }
    match model.projections.iter().find(|p| p.plasticity.is_some()) {
        Some(p) => refused(format!(
            "the synapses of `{}` remember what events do; so far these do not learn from a loss",
            p.name
        )),
        None => Ok(()),
    }
}

/// Gives what has no place one, if there is one.
fn at(span: Span, d: Diagnostic) -> Diagnostic {
    if span == Span::default() || !d.labels.is_empty() {
        return d;
    }
    Diagnostic { labels: Diagnostic::new(d.code, span, "", "here").labels, ..d }
}

/// The full name of the parameter of cells that samples give values to.
fn given(model: &Model, (name, span): &(String, Span)) -> Result<String, Vec<Diagnostic>> {
    let full = ode::full_name(model, name).map_err(|d| vec![at(*span, d)])?;
    match model.params.iter().find(|p| p.name == full) {
        Some(p) if p.home.is_some() || p.population.is_some() => Ok(full.to_string()),
        Some(_) | None => {
            let message = format!("`{full}` is no parameter of cells, so that samples cannot give it values");
            let d = Diagnostic::without_place(Code::BadTarget, message);
            Err(vec![at(*span, d.help("give the cells a `param` that their equations read"))])
        }
    }
}

/// Refuses settings of what samples give.
fn not_set(model: &Model, options: &CompileOptions, input: &str) -> Result<(), Vec<Diagnostic>> {
    match options.names_set(model).contains(input) {
        true => {
            let message = format!("samples give `{input}`, so that setting it has no effect");
            Err(vec![Diagnostic::without_place(Code::BadTarget, message)])
        }
        false => Ok(()),
    }
}
